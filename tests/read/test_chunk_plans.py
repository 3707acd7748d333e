"""Plans of column chunks from the bytes of a footer are those from the decoded footer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.encryption import ColumnEncryptionProperties
from fastpq.encryption.decryptor import FileDecryptor
from fastpq.format.plain_chunk import stored_path
from fastpq.metadata.file_metadata import FileMetaData, decoded_footer
from fastpq.read.chunk_plan import ChunkPlan, claimed_sizes
from fastpq.read.chunk_run import cut_runs
from fastpq.read.plan import plan_chunk, plan_read, planner_of
from tests.requirements import peer

polars = peer("polars")

ROWS, GROUP = 90, 40
SIZE = 1 << 20          # of the file, as far as the plans know
FACTS = (
    "column", "row_group", "row_offset", "num_rows", "num_values", "start", "length", "num_bytes", "ranges", "codec",
    "is_encrypted", "has_dictionary", "v2_is_compressed", "file_path", "pages", "kept", "chunk_values", "uncompressed_size",
)


def table() -> pa.Table:
    rows = range(ROWS)
    return pa.table({
        "id": rows,
        "name": [None if row % 7 == 0 else f"name {row % 5}" for row in rows],
        "Größe \U0001f600": pa.array(np.arange(ROWS) / 4),
        "list": [[row] * (row % 3) for row in rows],
        "struct": [{"x": row, "y": {"z": str(row)}} for row in rows],
        "map": pa.array([[(str(row), row)] for row in rows], pa.map_(pa.string(), pa.int64())),
    })


def facts(plan: ChunkPlan) -> list[Any]:
    return [getattr(plan, name) for name in FACTS]


def plans(metadata: FileMetaData) -> tuple[list[list[ChunkPlan]], int]:
    """The plans of all chunks by column, and how many of them were made of a decoded chunk."""
    offset, groups = 0, []
    for index, rows in enumerate(metadata.row_counts):
        groups.append((index, rows, offset))
        offset += rows
    found = [planner_of(metadata, groups, SIZE).chunks(column) for column in metadata.schema.columns]
    decoded = len(metadata._kept_chunks)
    for column, of_column in zip(metadata.schema.columns, found, strict=True):
        for plan, (index, _, first) in zip(of_column, groups, strict=True):
            assert facts(plan) == facts(plan_chunk(metadata, index, column, first, SIZE))
            assert plan.metadata.num_values == metadata.row_group(index).column(column.index).num_values
    return found, decoded


def footer_of(path: Path) -> fmt.FileMetaData:
    return decoded_footer(fastpq.read_metadata(path))


def metadata_of(footer: fmt.FileMetaData) -> FileMetaData:
    return FileMetaData(memoryview(fmt.encode(footer)), FileDecryptor(), "path")


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"compression": "none", "write_page_index": True}], ids=str)
def test_files_of_pyarrow(tmp_path: Path, options: dict[str, Any]) -> None:
    pq.write_table(table(), tmp_path / "file", row_group_size=GROUP, **options)
    assert plans(fastpq.read_metadata(tmp_path / "file"))[1] == 0


def test_files_of_polars(tmp_path: Path) -> None:
    polars.from_arrow(table().drop_columns(["map"])).write_parquet(tmp_path / "file", row_group_size=GROUP)
    assert plans(fastpq.read_metadata(tmp_path / "file"))[1] == 0


def test_files_of_fastpq(tmp_path: Path) -> None:
    fastpq.write_table(table(), tmp_path / "file", row_group_size=GROUP)
    assert plans(fastpq.read_metadata(tmp_path / "file"))[1] == 0


def test_chunks_out_of_order_and_in_other_files(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "file", row_group_size=GROUP)
    footer = footer_of(tmp_path / "file")
    footer.row_groups[1].columns.reverse()
    footer.row_groups[0].columns[1].file_path = "beside"
    found, decoded = plans(metadata_of(footer))
    assert decoded == len(found) + 1
    assert [plan.file_path for plan in found[1]] == ["beside", None, None]


def test_encrypted_chunks(tmp_path: Path) -> None:
    key = b"0123456789012345"
    properties = fastpq.FileEncryptionProperties(
        key, column_keys={"id": b"0123456789012346"}, plaintext_footer=True, unlisted="plaintext"
    )
    fastpq.write_table({"id": range(ROWS), "clear": range(ROWS)}, tmp_path / "file", encryption_properties=properties)
    keys = fastpq.FileDecryptionProperties(key, column_keys={"id": b"0123456789012346"})
    found, decoded = plans(fastpq.read_metadata(tmp_path / "file", decryption_properties=keys))
    assert [of_column[0].is_encrypted for of_column in found] == [True, False]
    assert decoded == 0


def test_chunks_under_the_footer_key(tmp_path: Path) -> None:
    key = b"0123456789012345"
    properties = fastpq.FileEncryptionProperties(key)
    fastpq.write_table(table(), tmp_path / "file", row_group_size=GROUP, encryption_properties=properties)
    keys = fastpq.FileDecryptionProperties(key)
    found, decoded = plans(fastpq.read_metadata(tmp_path / "file", decryption_properties=keys))
    assert decoded == 0
    assert all(plan.is_encrypted and plan.under_footer_key for of_column in found for plan in of_column)
    assert [plan.row_group_ordinal for plan in found[0]] == [0, 1, 2]
    own = fastpq.FileDecryptionProperties(key, column_keys={"id": b"0123456789012346"})
    with pytest.raises(fastpq.CryptoError, match="with the footer key") as caught:
        fastpq.read_table(tmp_path / "file", decryption_properties=own)
    assert caught.value.context["column"] == "id"


@pytest.mark.parametrize(("field", "value"), [
    ("type", 99), ("num_values", 3), ("num_values", -1), ("total_compressed_size", -1), ("total_compressed_size", SIZE + 1),
    ("data_page_offset", -5), ("data_page_offset", SIZE), ("dictionary_page_offset", 1 << 62), ("codec", 77),
    ("dictionary_page_offset", 0), ("dictionary_page_offset", -3), ("dictionary_page_offset", None),
])
def test_consistency_checks_are_found_alike(tmp_path: Path, field: str, value: int | None) -> None:
    pq.write_table(table(), tmp_path / "file", row_group_size=GROUP)
    footer = footer_of(tmp_path / "file")
    metadata = footer.row_groups[1].columns[0].meta_data
    assert metadata is not None
    setattr(metadata, field, value)
    assert_alike(metadata_of(footer))


def assert_alike(metadata: FileMetaData) -> None:
    """A chunk that decoding understands has the same plan either way; any error is a FormatError."""
    column, rows = metadata.schema.columns[0], metadata.row_group(1).num_rows
    try:
        expected = facts(plan_chunk(metadata, 1, column, GROUP, SIZE))
    except fastpq.FormatError as error:
        expected = [error.message]
    try:
        found = facts(planner_of(metadata, [(1, rows, GROUP)], SIZE).chunks(column)[0])
    except fastpq.FormatError as error:
        found = [error.message]
    if len(expected) > 1:
        assert found == expected
    elif len(found) > 1:        # of a field that no read needs
        assert found[0] is column


def test_broken_entries(tmp_path: Path) -> None:
    """Each byte of the entry of a chunk, changed in turn."""
    pq.write_table(table().select(["id", "name"]), tmp_path / "file", row_group_size=GROUP)
    footer = fmt.encode(footer_of(tmp_path / "file"))
    whole = metadata_of(footer_of(tmp_path / "file"))
    group = whole.row_group(1)
    first, behind = (int(group._offsets[number]) for number in (0, 1))
    for place in range(first, behind):
        for value in (0, footer[place] ^ 1, footer[place] ^ 0x80, 0xFF):
            changed = bytearray(footer)
            changed[place] = value
            try:
                metadata = FileMetaData(memoryview(changed), FileDecryptor())
                assert metadata.schema.columns
                metadata.row_group(1)
            except fastpq.ParquetError:
                continue
            assert_alike(metadata)


def test_a_field_that_is_there_twice(tmp_path: Path) -> None:
    """The last one counts, whatever the first one has."""
    pq.write_table(table(), tmp_path / "file", row_group_size=GROUP)
    footer = footer_of(tmp_path / "file")
    entry = footer.row_groups[0].columns[0]
    assert entry.meta_data is not None
    whole, first = fmt.encode(entry.meta_data), entry.meta_data.dictionary_page_offset
    assert first
    entry.meta_data.dictionary_page_offset = None
    last = fmt.encode(entry.meta_data)
    stored = fmt.encode(footer)
    place = stored.index(last)
    twice = stored[:place] + whole + b"\x0c\x06" + last + stored[place + len(last):]      # a struct in field 3 again
    metadata = FileMetaData(memoryview(twice), FileDecryptor())
    plan = planner_of(metadata, [(0, GROUP, 0)], SIZE).chunks(metadata.schema.columns[0])[0]
    assert facts(plan) == facts(plan_chunk(metadata, 0, metadata.schema.columns[0], 0, SIZE))
    assert not plan.has_dictionary


def test_chunks_of_any_claimed_size_are_cut_into_runs(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "file", row_group_size=GROUP)
    footer = footer_of(tmp_path / "file")
    entry = footer.row_groups[1].columns[1].meta_data
    assert entry is not None
    entry.total_uncompressed_size = (1 << 63) - 1
    chunks = plans(metadata_of(footer))[0][1]
    assert [run.chunks for run in cut_runs(chunks, 16, True, 1 << 20, 256)] == [[chunk] for chunk in chunks]
    assert [run.first for run in cut_runs(chunks, 16, True, -1, 256)] == [0, 1, 2]
    [whole] = cut_runs(chunks, 16, False, 1 << 20, 256)
    assert (whole.chunks, whole.first, whole.row_offset, whole.num_rows) == (chunks, 0, 0, ROWS)
    assert whole.ranges == [chunk.ranges[0] for chunk in chunks]
    assert (whole.is_encrypted, whole.under_footer_key) == (False, False)


def test_ordinals_of_row_groups(tmp_path: Path) -> None:
    """Where none is stored, the index counts."""
    pq.write_table(table(), tmp_path / "file", row_group_size=GROUP)
    footer = footer_of(tmp_path / "file")
    for group, ordinal in zip(footer.row_groups, (None, 7, None), strict=True):
        group.ordinal = ordinal
    metadata = metadata_of(footer)
    assert metadata.row_group_ordinals == [0, 7, 2]
    assert [plan.row_group_ordinal for plan in plans(metadata)[0][0]] == [0, 7, 2]


def test_sizes_that_metadata_claim(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "file", row_group_size=GROUP)
    footer = footer_of(tmp_path / "file")
    chunks = plans(metadata_of(footer))[0][0]
    stored = sum(chunk.num_bytes for chunk in chunks)
    assert claimed_sizes(chunks, False, 16, 16 * GROUP) == (16 * ROWS, stored, [])
    assert claimed_sizes(chunks, True, 8, 8 * GROUP - 1) == (8 * ROWS, stored, [0, 1])      # the last one has fewer rows
    many = [chunk.of_rows(0, 1 << 62, 1 << 62) for chunk in chunks]
    assert claimed_sizes(many, False, 16, 1 << 62) == (((1 << 63) - 1) // 16 * 16, stored, [0, 1, 2])
    assert claimed_sizes([], False, 0, 0) == (0, 0, [])


def test_more_rows_than_a_read_has_numbers_for(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "file")
    footer = footer_of(tmp_path / "file")
    footer.row_groups[0].num_rows = 1 << 62
    with pytest.raises(fastpq.FormatError, match="the row groups of a read have"):
        plan_read(metadata_of(footer), metadata_of(footer).schema.columns, [0] * 3, SIZE)


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_columns_with_their_own_keys(tmp_path: Path, plaintext_footer: bool) -> None:
    """Their encrypted metadata are opened for the plans, but not decoded as structs. Only a missing key takes the longer way."""
    key, own = b"0123456789012345", b"0123456789012346"
    by_metadata = {"name": b"n", "Größe 😀": b"g" * 200, "map": b"m"}
    writing = fastpq.FileEncryptionProperties(
        key,
        {"id": own, "list": own, "struct": own}
        | {name: ColumnEncryptionProperties(own, key_metadata=text) for name, text in by_metadata.items()},
        plaintext_footer=plaintext_footer, unlisted="raise")
    fastpq.write_table(table(), tmp_path / "file", row_group_size=GROUP, encryption_properties=writing)
    reading = fastpq.FileDecryptionProperties(
        key, dict.fromkeys(["id", "list", "struct"], own), key_retriever=dict.fromkeys(by_metadata.values(), own).get)
    assert plans(fastpq.read_metadata(tmp_path / "file", decryption_properties=reading))[1] == 0
    assert pa.table(fastpq.read_table(tmp_path / "file", decryption_properties=reading)).to_pylist() == table().to_pylist()
    without = fastpq.FileDecryptionProperties(key, dict.fromkeys(["id", "list", "struct"], own))
    with pytest.raises(fastpq.KeyAccessError) as caught:
        fastpq.read_table(tmp_path / "file", ["id", "name"], decryption_properties=without)
    assert caught.value.context["column"] == "name"
    wrong = fastpq.FileDecryptionProperties(key, {"id": key})
    with pytest.raises(fastpq.TagVerificationError) as refused:
        fastpq.read_table(tmp_path / "file", ["id"], decryption_properties=wrong)
    assert (refused.value.context["column"], refused.value.context["module"]) == ("id", "COLUMN_METADATA")


def test_a_plain_chunk_among_protected_ones_is_refused_before_any_row(tmp_path: Path) -> None:
    """Row groups in plaintext, in a file with a key for the column; the forged footer is not verified."""
    key, own = b"0123456789012345", b"0123456789012346"
    sealed, plain = tmp_path / "sealed", tmp_path / "plain"
    properties = fastpq.FileEncryptionProperties(key, column_keys={"s": own}, plaintext_footer=True, unlisted="plaintext")
    columns = {"i": range(ROWS), "s": range(ROWS)}
    fastpq.write_table(columns, sealed, row_group_size=GROUP, encryption_properties=properties)
    fastpq.write_table(columns, plain, row_group_size=GROUP)
    stored = sealed.read_bytes()
    size = int.from_bytes(stored[-8:-4], "little")
    footer = fmt.decode(fmt.FileMetaData, stored[-8 - size:-8])[0]
    footer.row_groups[1:] = footer_of(plain).row_groups[1:]
    forged = fmt.encode(footer) + bytes(28)
    (tmp_path / "forged").write_bytes(stored[:-8 - size] + forged + len(forged).to_bytes(4, "little") + b"PAR1")
    keys = fastpq.FileDecryptionProperties(key, column_keys={"s": own}, verify_footer_signature=False)
    out = np.full(ROWS, -1)
    with pytest.raises(fastpq.CryptoError, match="in plaintext") as caught:
        fastpq.read_table(tmp_path / "forged", decryption_properties=keys, out={"i": out})
    assert (caught.value.context["column"], caught.value.context["row_group"]) == ("s", 1)
    assert (out == -1).all()
    with (
        fastpq.ParquetFile(tmp_path / "forged", decryption_properties=keys) as file,
        pytest.raises(fastpq.CryptoError, match="in plaintext"),
    ):
        next(file.iter_batches(batch_size=10))


@pytest.mark.parametrize(
    "names", [["a"], ["list", "list", "element"], ["Größe", "\udcff"], ["x" * 200], [str(number) for number in range(20)]])
def test_stored_paths(names: list[str]) -> None:
    metadata = fmt.ColumnMetaData(
        type=fmt.Type.INT32, encodings=[], path_in_schema=names, codec=fmt.CompressionCodec.SNAPPY, num_values=1,
        total_uncompressed_size=1, total_compressed_size=1, data_page_offset=4)
    assert stored_path(names) in fmt.encode(metadata)
