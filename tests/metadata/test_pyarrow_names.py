"""Names of pyarrow's footers: the same values as pyarrow gives for the same file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import SchemaError, UnsupportedError
from tests.requirements import DATA, needs_data

TABLE = pa.table({
    "a": [1, 2, None, 4], "s": ["x", "y", None, "x"], "l": [[1], None, [], [2, 3]], "f": [0.5, 1.5, 2.5, 3.5],
    "b": [True, None, False, True], "t": pa.array([1, 2, 3, 4], pa.timestamp("ms")), "d": pa.array([1, 2, 3, 4], pa.date32()),
})
NAMES = ("compression", "is_stats_set", "has_dictionary_page", "has_column_index", "has_offset_index", "bloom_filter_offset",
         "bloom_filter_length", "file_offset", "is_geo_stats_set")
BOUNDS = ("min_raw", "max_raw", "has_min_max", "has_null_count", "null_count", "num_values")
OPTIONS: list[dict[str, Any]] = [
    {}, {"compression": "zstd", "write_page_index": True}, {"compression": "lz4", "use_dictionary": False},
    {"compression": "none", "write_statistics": False, "version": "1.0"}, {"compression": "gzip", "row_group_size": 2},
    {"bloom_filter_options": {"a": True}, "sorting_columns": [pq.SortingColumn(3, nulls_first=True)]}, {"compression": "brotli"},
]


@pytest.fixture(params=range(2 * len(OPTIONS)))
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of pyarrow, or one of fastpq."""
    options = OPTIONS[request.param // 2]
    if request.param % 2:
        known = {name: value for name, value in options.items() if name in ("compression", "use_dictionary", "row_group_size")}
        fastpq.write_table(TABLE, tmp_path / "x.parquet", **known)
    else:
        pq.write_table(TABLE, tmp_path / "x.parquet", **options)
    return tmp_path / "x.parquet"


def test_chunks(path: Path) -> None:
    ours, theirs = fastpq.read_metadata(path), pq.read_metadata(path)
    for group in range(theirs.num_row_groups):
        for column in range(theirs.num_columns):
            one, other = ours.row_group(group).column(column), theirs.row_group(group).column(column)
            assert [getattr(one, name) for name in NAMES] == [getattr(other, name) for name in NAMES]


def test_statistics(path: Path) -> None:
    ours, theirs = (read(path).row_group(0) for read in (fastpq.read_metadata, pq.read_metadata))
    for column in range(theirs.num_columns):
        one, other = ours.column(column).statistics, theirs.column(column).statistics
        assert (one is None) == (other is None)
        if other is not None:
            assert [getattr(one, name) for name in BOUNDS] == [getattr(other, name) for name in BOUNDS]
            assert one.physical_type.name == other.physical_type
            assert one.equals(ours.column(column).statistics)
    assert not ours.column(0).has_index_page
    assert ours.column(0).index_page_offset is None


def test_equality(path: Path) -> None:
    first, second = fastpq.ParquetFile(path), fastpq.ParquetFile(path)
    assert first.schema.equals(second.schema)
    assert first.metadata.row_group(0).equals(second.metadata.row_group(0))
    assert first.metadata.row_group(0).column(1).equals(second.metadata.row_group(0).column(1))
    assert not first.metadata.row_group(0).column(1).equals(second.metadata.row_group(0).column(0))
    for each in (first.schema, first.metadata.row_group(0), first.metadata.row_group(0).column(0)):
        with pytest.raises(TypeError, match="not compared with a str"):
            each.equals("x")     # type: ignore[arg-type]


def test_arrow_schema_of_a_schema(tmp_path: Path) -> None:
    """Without ARROW:schema the types are those of the file alone."""
    fastpq.write_table(TABLE, tmp_path / "x.parquet", arrow_schema=False)
    schema = fastpq.read_schema(tmp_path / "x.parquet")
    assert schema.to_arrow_schema() == fastpq.ParquetFile(tmp_path / "x.parquet").schema_arrow
    assert schema.to_arrow_schema().names == pq.read_schema(tmp_path / "x.parquet").names
    assert schema.to_arrow_schema().field("t").type == pa.timestamp("ms")


@needs_data
def test_metadata_of_chunks() -> None:
    path = DATA / "parquet-testing" / "data" / "column_chunk_key_value_metadata.parquet"
    chunks = [fastpq.read_metadata(path).row_group(0).column(number) for number in range(2)]
    assert [chunk.key_value_metadata for chunk in chunks] == [{"foo": "bar", "thisiskeywithoutvalue": None}, {}]


def test_dicts(path: Path) -> None:
    ours, theirs = fastpq.read_metadata(path), pq.read_metadata(path)
    assert ours.to_dict() == theirs.to_dict()
    assert ours.row_group(0).to_dict() == theirs.row_group(0).to_dict()
    assert ours.row_group(0).column(1).to_dict() == theirs.row_group(0).column(1).to_dict()
    assert ours.format_version == theirs.format_version
    assert ours.serialized_size == theirs.serialized_size


def test_files(path: Path) -> None:
    with fastpq.ParquetFile(path) as ours, pq.ParquetFile(path) as theirs:
        assert ours.closed == theirs.closed is False
        assert ours.schema_arrow == theirs.schema_arrow
        assert ours.scan_contents() == theirs.scan_contents() == 4
        assert ours.scan_contents(["a"], batch_size=3) == theirs.scan_contents(["a"], batch_size=3) == 4
    assert ours.closed == theirs.closed is True


def test_metadata_files(tmp_path: Path) -> None:
    """Footers that are put together are read by pyarrow as it reads its own."""
    footers = []
    for number in range(2):
        data = {"x": np.arange(3) + number, "s": ["a", "b", None]}
        fastpq.write_table(data, tmp_path / f"{number}.parquet")
        footer = fastpq.read_metadata(tmp_path / f"{number}.parquet")
        footer.set_file_path(f"{number}.parquet")
        footers.append(footer)
    first, second = footers
    assert first.row_group(0).column(0).file_path == "0.parquet"
    assert first.equals(first)
    assert not first.equals(second)
    first.append_row_groups(second)
    assert (first.num_rows, first.num_row_groups) == (6, 2)
    first.write_metadata_file(tmp_path / "_metadata")
    theirs = pq.read_metadata(tmp_path / "_metadata")
    assert theirs.to_dict() == fastpq.read_metadata(tmp_path / "_metadata").to_dict() == first.to_dict()
    assert ds.parquet_dataset(tmp_path / "_metadata").to_table()["x"].to_pylist() == [0, 1, 2, 1, 2, 3]
    assert fastpq.read_table(tmp_path / "_metadata")["x"].to_pylist() == [0, 1, 2, 1, 2, 3]
    buffer = io.BytesIO()
    first.write_metadata_file(buffer)
    assert buffer.getvalue() == (tmp_path / "_metadata").read_bytes()


def test_wrong_footers(tmp_path: Path) -> None:
    key = b"0123456789012345"
    for plaintext_footer in (False, True):
        keys = fastpq.FileEncryptionProperties(key, plaintext_footer=plaintext_footer)
        fastpq.write_table({"x": [1]}, tmp_path / "secret", encryption_properties=keys)
        footer = fastpq.read_metadata(tmp_path / "secret", decryption_properties=fastpq.FileDecryptionProperties(key))
        with pytest.raises(UnsupportedError):
            footer.set_file_path("x")
        with pytest.raises(UnsupportedError):
            footer.write_metadata_file(tmp_path / "open")
    fastpq.write_table({"x": [1]}, tmp_path / "a")
    fastpq.write_table({"y": [1]}, tmp_path / "b")
    first, second = fastpq.read_metadata(tmp_path / "a"), fastpq.read_metadata(tmp_path / "b")
    with pytest.raises(SchemaError):
        first.append_row_groups(second)
    with pytest.raises(TypeError):
        first.equals(1)     # type: ignore[arg-type]
