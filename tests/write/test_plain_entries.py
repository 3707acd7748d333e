"""Footer entries that are encoded without structs are the bytes that the structs give."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.encryption import ColumnEncryptionProperties
from fastpq.options import WriterProperties
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.types import ColumnType, Type
from fastpq.write import file_writer
from fastpq.write.chunk_metadata import entry_pattern
from fastpq.write.spec import column_specs

FLOATS = np.array([1.5, np.nan, -0.0, 3.0])
COLUMNS: dict[str, Any] = {
    "integers": pa.array([3, None, 1, 2], pa.int64()),
    "required": pa.field("required", pa.int32(), nullable=False),
    "small": pa.array([3, None, 1, 2], pa.int8()),
    "unsigned": pa.array([3, None, 1, 2], pa.uint32()),
    "floats": pa.array(FLOATS),
    "singles": pa.array(FLOATS.astype(np.float32)),
    "halves": pa.array(FLOATS.astype(np.float16)),
    "nan": pa.array([np.nan] * 4),
    "nulls": pa.array([None] * 4, pa.float64()),
    "booleans": pa.array([True, None, False, True]),
    "texts": pa.array(["b", None, "a", ""]),
    "same_texts": pa.array(["word"] * 4),
    "long_texts": pa.array(["x" * 100, None, "é" * 100, "\U0010ffff" * 40]),
    "bytes": pa.array([b"\xff" * 80, b"", None, b"\0"]),
    "fixed": pa.array([b"abc", None, b"abd", b"abb"], pa.binary(3)),
    "wide": pa.array([b"a" * 70, None, b"b" * 70, b"c" * 70], pa.binary(70)),
    "dates": pa.array([1, None, 2, 3], pa.date32()),
    "times": pa.array([1, None, 2, 3], pa.time64("us")),
    "timestamps": pa.array([1, None, 2, 3], pa.timestamp("ns", "UTC")),
    "decimals": pa.array([1, None, 2, 3], pa.decimal128(7, 2)),
    "categories": pa.array(["b", None, "a", "b"]).dictionary_encode(),
    "lists": pa.array([[1], None, [], [2, 3]]),
    "structs": pa.array([{"a": 1}, None, {"a": None}, {"a": 2}]),
    "deep": pa.array([{"a": {"f": np.nan, "t": "x" * 90}, "b": b"y"}, None, {"a": None}, {"a": {"f": 1.0, "t": None}}]),
    "lists_in_structs": pa.array([{"a": [1]}, None, {"a": None}, {"a": []}]),
}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"write_page_index": False},
    {"write_statistics": False},
    {"write_path_in_schema": False},
    {"use_dictionary": False, "compression": "zstd"},
    {"float_order": "total"},
    {"data_page_version": "2.0", "compression": None},
    {"data_page_rows": 2},
    {"row_group_size": 2},
    {"bloom_filter": {"integers": True}},
    {"encoding": "auto"},
    {"statistics_truncation": 3},
    {"checkpoint_every": 1, "row_group_size": 1},
]


def table() -> pa.Table:
    arrays = [pa.array([1, 2, 2, 1], value.type) if isinstance(value, pa.Field) else value for value in COLUMNS.values()]
    fields = [
        value if isinstance(value, pa.Field) else pa.field(name, array.type)
        for (name, value), array in zip(COLUMNS.items(), arrays, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "defaults")
@pytest.mark.parametrize("rows", [4, 0])
def test_the_same_bytes(options: dict[str, Any], rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = table().slice(0, rows)
    fastpq.write_table(data, tmp_path / "plain.parquet", **options)
    monkeypatch.setattr(file_writer, "entry_pattern", lambda spec: None)
    fastpq.write_table(data, tmp_path / "structs.parquet", **options)
    assert (tmp_path / "plain.parquet").read_bytes() == (tmp_path / "structs.parquet").read_bytes()
    if options.get("write_path_in_schema", True):       # pyarrow needs the paths
        assert pq.read_table(tmp_path / "plain.parquet")["integers"].equals(data["integers"])


KEY, OTHER_KEY = b"0123456789012345", b"5432109876543210"
ENCRYPTIONS: dict[str, dict[str, Any]] = {
    "footer key": {},
    "column keys": {"column_keys": {"integers": OTHER_KEY, "texts": OTHER_KEY, "structs": OTHER_KEY}},
    "key metadata": {"column_keys": {"deep": ColumnEncryptionProperties(OTHER_KEY, key_metadata=b"k" * 300)}},
    "plaintext columns": {"plaintext_columns": ["integers", "texts"]},
    "signed footer": {"plaintext_footer": True, "column_keys": {"texts": OTHER_KEY}, "unlisted": "footer_key"},
    "CTR": {"algorithm": "AES_GCM_CTR_V1", "column_keys": {"texts": OTHER_KEY}},
    "DuckDB": {"for_reader": "duckdb"},
}


def entries_of(path: Path, keys: fastpq.FileDecryptionProperties) -> list[Any]:
    """The size of the file, and each chunk's entry, metadata and indexes, decrypted."""
    facts: list[Any] = [path.stat().st_size]
    with fastpq.ParquetFile(path, decryption_properties=keys) as file:
        for index in range(file.num_row_groups):
            for number in range(len(file.schema.columns)):
                chunk = file.metadata.row_group(index).column(number)
                sealed_metadata, entry = chunk.chunk.encrypted_column_metadata, copy.copy(chunk.chunk)
                entry.encrypted_column_metadata = None
                indexes = file.column_index(index, number), file.offset_index(index, number)
                facts += [entry, None if sealed_metadata is None else len(sealed_metadata), chunk.metadata, *map(repr, indexes)]
    return facts


@pytest.mark.parametrize("options", [{}, {"encoding": "auto"}, {"data_page_rows": 2}], ids=str)
@pytest.mark.parametrize("encryption", ENCRYPTIONS)
def test_encrypted_entries(encryption: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writing = fastpq.FileEncryptionProperties(KEY, **ENCRYPTIONS[encryption])
    keys = ENCRYPTIONS[encryption].get("column_keys", {})
    reading = fastpq.FileDecryptionProperties(
        KEY, dict.fromkeys(keys, OTHER_KEY), allowed_algorithms=[writing.algorithm], allow_duckdb_dialect=True)
    data = table()
    options = {**options, "write_page_checksum": False}     # the size of a page header depends on the CRC-32 of ciphertext
    patterns: list[Any] = []

    def kept_pattern(spec: Any) -> Any:
        patterns.append(entry_pattern(spec))
        return patterns[-1]

    monkeypatch.setattr(file_writer, "entry_pattern", kept_pattern)
    fastpq.write_table(data, tmp_path / "plain.parquet", encryption_properties=writing, **options)
    assert any(patterns)
    monkeypatch.setattr(file_writer, "entry_pattern", lambda spec: None)
    fastpq.write_table(data, tmp_path / "structs.parquet", encryption_properties=writing, **options)
    assert entries_of(tmp_path / "plain.parquet", reading) == entries_of(tmp_path / "structs.parquet", reading)
    read = fastpq.read_table(tmp_path / "plain.parquet", decryption_properties=reading)
    for name in ("integers", "texts", "structs", "lists"):
        assert pa.table(read)[name].to_pylist() == data[name].to_pylist()


def test_an_encrypted_column_shows_no_bounds(tmp_path: Path) -> None:
    """A signed footer has the chunk's place, but no statistics: neither in the struct nor anywhere in the file's bytes."""
    path = tmp_path / "signed.parquet"
    keys = fastpq.FileEncryptionProperties(KEY, plaintext_footer=True)
    fastpq.write_table({"x": ["a rare text", "another"]}, path, encryption_properties=keys)
    assert b"rare" not in path.read_bytes()
    with fastpq.ParquetFile(path) as file:
        shown = file.metadata.row_group(0).column(0).metadata
        assert shown.num_values == 2
        assert shown.statistics is None
        assert shown.size_statistics is None
        assert shown.encoding_stats is None
    with fastpq.ParquetFile(path, decryption_properties=fastpq.FileDecryptionProperties(KEY)) as file:
        whole = file.metadata.row_group(0).column(0).metadata
        assert whole.statistics is not None
        assert whole.statistics.min_value == b"a rare text"


def test_ordinary_columns_have_a_pattern() -> None:
    """Without this, the test above might compare the structs with themselves."""
    [spec] = column_specs(ParquetSchema.of([("x", ColumnType(Type.INT64), True)]), WriterProperties())
    assert entry_pattern(spec) is not None


@pytest.mark.parametrize("levels", [2, 31, 32])
def test_histograms_of_levels(levels: int, tmp_path: Path) -> None:
    values: Any = pa.array([1, None, 2])
    for level in range(levels - 1):
        values = pa.StructArray.from_arrays([values], [f"f{level}"], mask=pa.array([level == row for row in range(3)]))
    fastpq.write_table({"x": values}, tmp_path / "deep.parquet")
    with fastpq.ParquetFile(tmp_path / "deep.parquet") as file:
        index = file.column_index(0, 0)
        stored = file.metadata.row_group(0).column(0).metadata.size_statistics
        assert index is not None
        assert index.definition_level_histograms is not None
        assert stored is not None
        assert stored.definition_level_histogram is not None
        assert index.definition_level_histograms[0].tolist() == stored.definition_level_histogram
        assert len(stored.definition_level_histogram) == levels + 1
        assert sum(stored.definition_level_histogram) == 3
    assert pq.read_table(tmp_path / "deep.parquet")["x"].combine_chunks().equals(values)
