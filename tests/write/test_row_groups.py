"""Row groups of a new file: their number, the ciphers of their chunks, and the schema of each table."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.encryption import FileDecryptionProperties, FileEncryptionProperties
from fastpq.encryption.encryptor import KeyedFileEncryptor
from fastpq.io.sink_opening import open_sink
from fastpq.options import MOST_ENCRYPTED_ROW_GROUPS, MOST_ROW_GROUPS
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.shape import shape_of
from fastpq.schema.types import ColumnType, Type
from fastpq.write.row_groups import RowGroups

KEY = b"0123456789abcdef"
NESTED = pa.table(
    {
        "flat": pa.array([1, 2, 3]),
        "list": pa.array([[1], None, [2, 3]], pa.list_(pa.int32())),
        "struct": pa.array([{"a": 1, "b": {"c": "x"}}] * 3),
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
    }
)


def test_an_encrypted_file_has_row_groups_with_ordinals_alone() -> None:
    writer = fastpq.ParquetWriter(io.BytesIO(), row_group_size=1, encryption_properties=FileEncryptionProperties(KEY))
    with pytest.raises(fastpq.LimitError, match="an encrypted file cannot have more than 32,768 row groups"):
        writer.write_table({"a": np.zeros(MOST_ENCRYPTED_ROW_GROUPS + 1, np.int8)})


@pytest.mark.slow
def test_many_row_groups(tmp_path: Path) -> None:
    """The ordinal is an INT16. It is left out where it does not fit."""
    path, count = tmp_path / "many.parquet", MOST_ENCRYPTED_ROW_GROUPS + 2
    fastpq.write_table({"a": np.arange(count, dtype=np.int32)}, path, row_group_size=1)
    assert fastpq.read_table(path)["a"].to_numpy().tolist() == [*range(count)]
    assert pq.read_table(path)["a"].to_pylist() == [*range(count)]
    assert pytest.importorskip("polars").read_parquet(path)["a"].to_list() == [*range(count)]
    metadata = fastpq.read_metadata(path)
    assert metadata.num_row_groups == count
    assert metadata.row_group(count - 1).metadata.ordinal is None
    with pytest.raises(fastpq.LimitError, match="an encrypted file"):
        fastpq.encrypt_file(path, tmp_path / "encrypted", FileEncryptionProperties(KEY))
    fastpq.merge_files([path, path], tmp_path / "merged")
    assert fastpq.read_metadata(tmp_path / "merged").num_row_groups == 2 * count


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"checkpoint_every": 1}], ids=str)
def test_a_row_group_begins_with_its_first_page(options: dict[str, Any], threads: int) -> None:
    """Spark assigns row groups to tasks by these offsets; here pyarrow's reading of the first chunk is the truth."""
    table = pa.table({f"c{number}": np.arange(50_000) % 100 for number in range(3)})
    first, second, merged = (io.BytesIO() for _ in range(3))
    for target in (first, second):
        fastpq.write_table(table, target, row_group_size=20_000, bloom_filter={"c0": True}, threads=threads, **options)
    fastpq.merge_files([first.getvalue(), second.getvalue()], merged)
    for file in (first, merged):
        chunks = [pq.read_metadata(file).row_group(number).column(0) for number in range(pq.read_metadata(file).num_row_groups)]
        with fastpq.ParquetFile(file.getvalue()) as opened:
            offsets = [opened.metadata.row_group(number).file_offset for number in range(len(chunks))]
        assert offsets == [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
        assert offsets[0] == 4


@pytest.mark.parametrize("limit", [MOST_ROW_GROUPS, MOST_ENCRYPTED_ROW_GROUPS])
def test_the_last_row_group_has_room(limit: int) -> None:
    schema = ParquetSchema.of([("a", ColumnType(Type.INT32), False)])
    encryption = None if limit == MOST_ROW_GROUPS else FileEncryptionProperties(KEY)
    row_groups = RowGroups(open_sink(io.BytesIO()), schema, encryption)
    assert row_groups.next_ordinal(limit) == 0
    with pytest.raises(fastpq.LimitError, match=f"{limit:,} row groups"):
        row_groups.next_ordinal(limit + 1)


def write(out: io.BytesIO) -> None:
    fastpq.write_table(
        NESTED, out, row_group_size=2, bloom_filter={"flat": True}, encryption_properties=FileEncryptionProperties(KEY)
    )


def encrypt(out: io.BytesIO) -> None:
    plain = io.BytesIO()
    fastpq.write_table(NESTED, plain, row_group_size=2, bloom_filter={"flat": True})
    fastpq.encrypt_file(plain, out, FileEncryptionProperties(KEY))


@pytest.mark.parametrize("make", [write, encrypt])
def test_each_chunk_has_one_cipher(make: Callable[[io.BytesIO], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """One cipher seals the pages, the indexes, the bloom filter and the metadata of a chunk."""
    asked: Counter[tuple[int, int]] = Counter()
    original = KeyedFileEncryptor.chunk_cipher

    def counted(self: KeyedFileEncryptor, path: tuple[str, ...], row_group: int, column: int) -> Any:
        asked[row_group, column] += 1
        return original(self, path, row_group, column)

    monkeypatch.setattr(KeyedFileEncryptor, "chunk_cipher", counted)
    out = io.BytesIO()
    make(out)
    assert asked == dict.fromkeys(((group, column) for group in range(2) for column in range(6)), 1)
    read = fastpq.read_table(out, decryption_properties=FileDecryptionProperties(KEY))
    assert pa.table(read).to_pylist() == NESTED.to_pylist()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (NESTED.drop_columns("map"), "it lacks 'map'"),
        (NESTED.rename_columns(["flat", "list", "struct", "other"]), "it lacks 'map'"),
        (NESTED.set_column(1, "list", pa.array([["x"], None, []], pa.list_(pa.string()))), "does not fit"),
    ],
    ids=["missing", "renamed", "retyped"],
)
def test_a_table_of_another_schema_is_refused(other: pa.Table, message: str) -> None:
    writer = fastpq.ParquetWriter(io.BytesIO())
    writer.write_table(NESTED)
    with pytest.raises(fastpq.SchemaError, match=message):
        writer.write_table(other)


def test_a_later_null_of_a_required_column_is_refused() -> None:
    writer = fastpq.ParquetWriter(io.BytesIO())
    writer.write_table(pa.table({"a": np.arange(3)}, pa.schema([pa.field("a", pa.int64(), nullable=False)])))
    with pytest.raises(fastpq.SchemaError, match="nulls in a column"):
        writer.write_table({"a": np.ma.MaskedArray(np.arange(3), [False, True, False])})


def test_schemas_are_compared_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shape of a column is made of its own leaves, not of the numbers of all leaves."""
    sizes = []

    def counted(node: Any, wanted: Collection[int]) -> Any:
        sizes.append(len(wanted))
        return shape_of(node, wanted)

    monkeypatch.setattr("fastpq.write.file_writer.shape_of", counted)
    with fastpq.ParquetWriter(io.BytesIO()) as writer:
        writer.write_table(NESTED)
        writer.write_table(NESTED)
    assert sizes == [1, 1, 2, 2] * 2        # of the file, and of the second table
