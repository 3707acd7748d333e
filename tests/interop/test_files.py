"""Every file of the test data, in one loop: the values that others read, or a typed error.

Corrupt files must raise one, and so must those of REFUSED, each for the reason that stands beside it. All others must be read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.interop.comparison import assert_same
from tests.requirements import DATA, needs_data, peer

duckdb = peer("duckdb")

CORRUPT_CHECKSUMS = {"datapage_v1-corrupt-checksum.parquet", "rle-dict-uncompressed-corrupt-checksum.parquet"}
LEGAL_AFTER_ALL = "ARROW-GH-43605.parquet"      # indices of 0 bits into a dictionary of one value, as others read them
WRAPPED_BY_SPARK = "int96_from_spark.parquet"       # its last value overflowed in its writer; every reader has its own
OPTIONAL_KEYS = "incorrect_map_schema.parquet"      # which pyarrow refuses to read
NESTED_TOO_DEEP = "Recursion level in ArrowSchema struct exceeded"      # for pyarrow; DuckDB does not come to an end
BATCH_SIZE = 97
INT96_UNITS = ("ns", "us", "ms")

# Files that are no plain "bad": what refuses them, and why nothing else would be right.
REFUSED: dict[str, tuple[type[fastpq.ParquetError], str]] = {
    # CRC-32s that do not match; test_corrupt_checksums_are_read_on_request reads them without
    "datapage_v1-corrupt-checksum.parquet": (fastpq.FormatError, "CRC-32"),
    "rle-dict-uncompressed-corrupt-checksum.parquet": (fastpq.FormatError, "CRC-32"),
    # a dictionary page of a gigabyte, over the default bound
    "large_string_map.brotli.parquet": (fastpq.LimitError, "max_dictionary_size"),
    # cases.json wants errors: types that no shredded variant has
    "case-127.parquet": (fastpq.FormatError, "typed_value of a shredded variant cannot be"),
    "case-137.parquet": (fastpq.FormatError, "typed_value of a shredded variant cannot be"),
    # decimals of more digits than their precision, which others return as an invalid table
    "_flow.parquet": (fastpq.FormatError, "more than 10 digits"),
    # readers differ about what contradicts itself: 45 digits in six bytes, five rows too few, a row too many
    "clusterfuzz-testcase-minimized-parquet-arrow-fuzz-5068991573000192": (fastpq.FormatError, "more than the 14 digits"),
    "bad_column_metadata.parquet": (fastpq.FormatError, "lacks 5 of the 10 rows"),
    "nested-unsigned-malformed.parquet": (fastpq.FormatError, "more rows than its row group, which has 2"),
    # nobody reads it: the number of its encoding was altered
    "delta_encoding.parquet": (fastpq.UnsupportedError, "encoding 15"),
}

pytestmark = needs_data


@dataclass(frozen=True)
class Case:
    """A file, whether it is corrupt, and who reads it rightly."""

    path: Path
    is_bad: bool
    reader: str | None

    @property
    def name(self) -> str:
        return self.path.name if "parquet-testing" in self.path.parts else self.path.name.partition("-")[2]


def cases() -> list[Any]:
    """The files of parquet-testing (but its encrypted ones) and those of the wild by their class."""
    root, found = DATA / "parquet-testing", []
    for folder in ("data", "shredded_variant", "bad_data"):
        for path in sorted((root / folder).rglob("*.parquet")):
            is_bad = folder == "bad_data" and path.name != LEGAL_AFTER_ALL
            found.append(Case(path, is_bad, "duckdb" if path.name == OPTIONAL_KEYS else "pyarrow"))
    manifest = DATA / "wild/manifest.json"
    entries = json.loads(manifest.read_text()) if manifest.exists() else []
    found += [Case(DATA / "wild" / entry["file"], entry["class"] == "bad", entry.get("oracle")) for entry in entries]
    return [pytest.param(case, id=str(case.path.relative_to(DATA))) for case in found]


def read_in_every_way(path: Path, **options: Any) -> tuple[list[str], pa.Table]:
    """The names of the columns and the table: all at once, in batches, and with strings in every layout the same.

    Values of Spark's old calendar are as stored, since other libraries do not know this calendar.
    """
    options["legacy_calendar"] = "keep"
    with fastpq.ParquetFile(path, **options) as file:
        names = list(file.schema.names)
        whole = pa.table(file.read())
        batches = [pa.table(batch) for batch in file.iter_batches(BATCH_SIZE)]
        if batches:
            assert_same(pa.concat_tables(batches), whole)
        for strings in ("offsets", "dictionary"):
            assert_same(pa.table(fastpq.read_table(path, **options | {"strings": strings})), whole)
    return names, whole


def oracle(path: Path, names: list[str], reader: str = "pyarrow", int96_unit: str = "ns") -> pa.Table:
    """The same columns as another library reads them."""
    if reader == "duckdb":
        columns = ", ".join(f'"{name}"' for name in names)
        with duckdb.connect() as connection:
            return connection.sql(f"SELECT {columns} FROM read_parquet('{path}')").to_arrow_table()
    return pq.read_table(path, columns=names, coerce_int96_timestamp_unit=int96_unit)


def check(path: Path, reader: str) -> None:
    """Compare with what the reader reads."""
    names, table, unit = read_in_some_unit(path)
    table.validate(full=True)
    if names:
        truth = oracle(path, names, reader, unit).select(names)
        if path.name == WRAPPED_BY_SPARK:
            table, truth = table.slice(0, table.num_rows - 1), truth.slice(0, table.num_rows - 1)
        assert_same(table, truth)


def check_alone(path: Path) -> None:
    """A file that no other reads: every row is there, and valid where Arrow can hold it."""
    with fastpq.ParquetFile(path) as file:
        table = file.read()
        assert len(table.to_pylist()) == table.num_rows == file.metadata.num_rows
    try:
        arrow = pa.table(table)
    except pa.ArrowInvalid as error:
        if str(error) != NESTED_TOO_DEEP:
            raise
    else:
        arrow.validate(full=True)


def read_in_some_unit(path: Path) -> tuple[list[str], pa.Table, str]:
    """Names and table, with INT96 timestamps in the finest unit that holds them all."""
    *finer_units, coarsest = INT96_UNITS
    for unit in finer_units:
        try:
            return *read_in_every_way(path, coerce_int96_timestamp_unit=unit), unit
        except fastpq.UnsupportedError as error:
            if "INT96 timestamp outside" not in str(error):
                raise
            _, coarse = read_in_every_way(path, coerce_int96_timestamp_unit=coarsest)
            if not any(beyond(column, unit) for column in coarse.columns):
                raise
    return *read_in_every_way(path, coerce_int96_timestamp_unit=coarsest), coarsest


def beyond(column: pa.ChunkedArray, unit: str) -> bool:
    """Whether a column of milliseconds has values that 64 bits of a finer unit do not hold."""
    if column.type != pa.timestamp("ms"):
        return False
    factor = {"us": 1_000, "ns": 1_000_000}[unit]
    extremes = pc.min_max(column.cast(pa.int64())).as_py()
    return any(value is not None and not -(2**63) <= value * factor < 2**63 for value in extremes.values())


@pytest.mark.parametrize("case", cases())
def test_file(case: Case) -> None:
    if case.name in REFUSED:
        kind, reason = REFUSED[case.name]
        with pytest.raises(kind, match=reason):
            fastpq.read_table(case.path)
    elif case.is_bad:
        with pytest.raises(fastpq.ParquetError):
            fastpq.read_table(case.path)
    elif case.reader is None:
        check_alone(case.path)
    else:
        check(case.path, case.reader)


def test_every_refused_file_is_there() -> None:
    names = {param.values[0].name for param in cases()}
    assert REFUSED.keys() <= names


def test_corrupt_checksums_are_read_on_request() -> None:
    """Without verification both read what the altered bytes say."""
    unchecked = fastpq.ReaderProperties(verify_checksums=False)
    for name in CORRUPT_CHECKSUMS:
        path = DATA / "parquet-testing/data" / name
        assert_same(pa.table(fastpq.read_table(path, properties=unchecked)), pq.read_table(path))


def test_decimals_over_their_precision_are_read_on_request() -> None:
    (path,) = (DATA / "wild/files").rglob("*-_flow.parquet")
    as_stored = fastpq.ReaderProperties(verify_decimals=False)
    assert_same(pa.table(fastpq.read_table(path, properties=as_stored)), pq.read_table(path))
