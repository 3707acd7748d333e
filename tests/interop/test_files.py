"""Every file of the test data: the values that others read, or a typed error.

What later issues bring is recognised in the file itself (encodings, chunks in other files) and must be
refused with UnsupportedError, column by column; everything else must be read.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.format import Encoding
from tests.interop.comparison import assert_same

FOLDER = Path(os.environ.get("FASTPQ_TEST_DATA", "/nowhere"))
CORRUPT_CHECKSUMS = {"datapage_v1-corrupt-checksum.parquet", "rle-dict-uncompressed-corrupt-checksum.parquet"}
LEGAL_AFTER_ALL = "ARROW-GH-43605.parquet"      # indices of 0 bits into a dictionary of one value, as others read them
WRAPPED_BY_SPARK = "int96_from_spark.parquet"       # its last value overflowed in its writer; every reader has its own
OPTIONAL_KEYS = "incorrect_map_schema.parquet"      # which pyarrow refuses to read
# a dictionary page of a gigabyte, over the default bounds
HUGE = "large_string_map.brotli.parquet"
NESTED_TOO_DEEP = "Recursion level in ArrowSchema struct exceeded"      # for pyarrow; DuckDB does not come to an end
BATCH_SIZE = 97
INT96_UNITS = ("ns", "us", "ms")

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs FASTPQ_TEST_DATA")


def manifest(*classes: str) -> list[Any]:
    path = FOLDER / "wild/manifest.json"
    entries = json.loads(path.read_text()) if path.exists() else []
    chosen = [entry for entry in entries if entry["class"] in classes]
    return [pytest.param(entry, id=entry["file"].removeprefix("files/")) for entry in chosen]


def parquet_testing(folder: str) -> list[Any]:
    root = FOLDER / "parquet-testing" / folder
    return [pytest.param(path, id=str(path.relative_to(root))) for path in sorted(root.rglob("*.parquet"))]


def is_later(file: fastpq.ParquetFile, column: fastpq.ColumnDescriptor) -> bool:
    """Whether a later issue brings this leaf."""
    chunks = [file.metadata.row_group(i).column(column.index) for i in range(file.num_row_groups)]
    return any(Encoding.ALP in chunk.encodings or chunk.file_path for chunk in chunks)


def read_what_is_ours(path: Path, **options: Any) -> tuple[list[str], pa.Table]:
    """The columns that this issue brings, after those that later ones bring have been refused one by one."""
    with fastpq.ParquetFile(path, **options) as file:
        later = [column for column in file.schema.columns if is_later(file, column)]
        refused = {column.path[0] for column in later}
        names = [name for name in file.schema.names if name not in refused]
        if file.metadata.num_rows:
            for column in later:
                with pytest.raises(fastpq.UnsupportedError):
                    file.read([column.index])
        whole = pa.table(file.read(names))
        batches = [pa.table(batch) for batch in file.iter_batches(BATCH_SIZE, names)]
        if batches:
            assert_same(pa.concat_tables(batches), whole)
        for strings in ("offsets", "dictionary"):
            assert_same(pa.table(fastpq.read_table(path, names, **options | {"strings": strings})), whole)
    return names, whole


def oracle(path: Path, names: list[str], reader: str = "pyarrow", int96_unit: str = "ns") -> pa.Table:
    """The same columns as another library reads them."""
    if reader == "duckdb":
        columns = ", ".join(f'"{name}"' for name in names)
        with duckdb.connect() as connection:
            return connection.sql(f"SELECT {columns} FROM read_parquet('{path}')").to_arrow_table()
    return pq.read_table(path, columns=names, coerce_int96_timestamp_unit=int96_unit)


def check(path: Path, reader: str = "pyarrow") -> None:
    """Compare with what the reader reads."""
    names, table, unit = read_in_some_unit(path)
    if names:
        truth = oracle(path, names, reader, unit).select(names)
        if path.name == WRAPPED_BY_SPARK:
            table, truth = table.slice(0, table.num_rows - 1), truth.slice(0, table.num_rows - 1)
        assert_same(table, truth)
        if is_valid(truth):
            table.validate(full=True)


def read_in_some_unit(path: Path) -> tuple[list[str], pa.Table, str]:
    """Columns that are ours, with INT96 timestamps in the finest unit that holds them all."""
    *finer_units, coarsest = INT96_UNITS
    for unit in finer_units:
        try:
            return *read_what_is_ours(path, coerce_int96_timestamp_unit=unit), unit
        except fastpq.UnsupportedError as error:
            if "INT96 timestamp outside" not in str(error):
                raise
            _, coarse = read_what_is_ours(path, coerce_int96_timestamp_unit=coarsest)
            if not any(beyond(column, unit) for column in coarse.columns):
                raise
    return *read_what_is_ours(path, coerce_int96_timestamp_unit=coarsest), coarsest


def beyond(column: pa.ChunkedArray, unit: str) -> bool:
    """Whether a column of milliseconds has values that 64 bits of a finer unit do not hold."""
    if column.type != pa.timestamp("ms"):
        return False
    factor = {"us": 1_000, "ns": 1_000_000}[unit]
    extremes = pc.min_max(column.cast(pa.int64())).as_py()
    return any(value is not None and not -(2**63) <= value * factor < 2**63 for value in extremes.values())


def is_valid(table: pa.Table) -> bool:
    """Whether Arrow holds the table for valid; decimals in a file may have more digits than their precision."""
    try:
        table.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


@pytest.mark.parametrize("entry", manifest("valid"))
def test_wild(entry: dict[str, Any]) -> None:
    check(FOLDER / "wild" / entry["file"], entry["oracle"])


@pytest.mark.parametrize("entry", manifest("hard", "suspect", "unread"))
def test_wild_hard(entry: dict[str, Any]) -> None:
    """Readers differ, or one or none reads it: read it rightly, or refuse it with a typed error."""
    path = FOLDER / "wild" / entry["file"]
    try:
        names, table = read_what_is_ours(path)
    except fastpq.ParquetError:
        return
    except pa.ArrowInvalid as error:
        if str(error) != NESTED_TOO_DEEP:
            raise
        with fastpq.ParquetFile(path) as file:
            assert len(file.read().to_pylist()) == file.metadata.num_rows
        return
    if "oracle" in entry and names:
        assert_same(table, oracle(path, names, entry["oracle"]).select(names))


@pytest.mark.parametrize("entry", manifest("bad"))
def test_wild_bad(entry: dict[str, Any]) -> None:
    with pytest.raises(fastpq.ParquetError):
        fastpq.read_table(FOLDER / "wild" / entry["file"])


@pytest.mark.parametrize("path", parquet_testing("data"))
def test_parquet_testing(path: Path) -> None:
    if path.name == OPTIONAL_KEYS:
        check(path, "duckdb")
    elif path.name == HUGE:
        with pytest.raises(fastpq.LimitError, match="max_dictionary_size"):
            fastpq.read_table(path)
    elif path.name in CORRUPT_CHECKSUMS:
        with pytest.raises(fastpq.FormatError, match="CRC"):
            fastpq.read_table(path)
    else:
        check(path)


@pytest.mark.parametrize("path", parquet_testing("bad_data"))
def test_parquet_testing_bad(path: Path) -> None:
    if path.name == LEGAL_AFTER_ALL:
        check(path)
    else:
        with pytest.raises(fastpq.ParquetError):
            fastpq.read_table(path)


def test_corrupt_checksums_are_read_on_request() -> None:
    """Without verification both read what the altered bytes say."""
    unchecked = fastpq.ReaderProperties(verify_checksums=False)
    for name in CORRUPT_CHECKSUMS:
        path = FOLDER / "parquet-testing/data" / name
        assert_same(pa.table(fastpq.read_table(path, properties=unchecked)), pq.read_table(path))
