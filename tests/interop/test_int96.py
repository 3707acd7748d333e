"""INT96 columns written by fastpq: bare, and read by the peers as the same instants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.schema.types import ColumnType, Timestamp, TimeUnitName, Type
from tests.index.forging import Forgery
from tests.requirements import DATA, needs_data, peer

duckdb, polars, datafusion = peer("duckdb"), peer("polars"), peer("datafusion")

UNITS: tuple[TimeUnitName, ...] = ("ms", "us", "ns")
INSTANTS = np.array(["2009-03-01T00:01:02.345", "1969-12-31T23:59:59.999", "NaT", "2200-01-01"], "M8[ms]")


def instants(values: list[Any]) -> list[Any]:
    """Moments of any reader as numpy.datetime64 in milliseconds, null as None."""
    return [None if value is None or np.isnat(found := np.datetime64(value, "ms")) else found for value in values]


def _moments(column: pa.ChunkedArray) -> list[Any]:
    found: list[Any] = column.cast(pa.timestamp("ms")).to_pylist()
    return found


def peers_read(path: Path, select: str = "t") -> dict[str, list[Any]]:
    """A column as each peer reads it."""
    read = {
        "pyarrow": _moments(pq.read_table(path)[select]),
        "duckdb": [row[0] for row in duckdb.sql(f"SELECT {select} FROM read_parquet('{path}')").fetchall()],
        "polars": polars.read_parquet(path)[select].to_list(),
        "datafusion": _moments(datafusion.SessionContext().read_parquet(str(path)).to_arrow_table()[select]),
    }
    return {name: instants(values) for name, values in read.items()}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_peers_read_int96(unit: TimeUnitName, version: Any, tmp_path: Path) -> None:
    path = tmp_path / "int96.parquet"
    values = np.ma.MaskedArray(INSTANTS.astype(f"M8[{unit}]"), np.isnat(INSTANTS))
    type_ = ColumnType(Type.INT96, None, Timestamp(unit))
    fastpq.write_table({"t": values}, path, schema={"t": type_}, data_page_version=version)
    expected = instants(INSTANTS.tolist())
    for name, found in peers_read(path).items():
        assert found == expected, name
    element = fastpq.read_schema(path).column("t").element
    assert (element.type, element.logicalType, element.converted_type) == (Type.INT96, None, None)
    for other in UNITS:
        read = fastpq.read_table(path, coerce_int96_timestamp_unit=other)
        assert instants(read["t"].to_pylist()) == expected


@needs_data
@pytest.mark.parametrize("unit", UNITS)
def test_int96_of_impala_written_again(unit: TimeUnitName, tmp_path: Path) -> None:
    source, path = DATA / "parquet-testing/data/alltypes_plain.parquet", tmp_path / "again.parquet"
    fastpq.write_table(fastpq.read_table(source, coerce_int96_timestamp_unit=unit), path)
    expected = instants(pq.read_table(source)["timestamp_col"].to_pylist())
    for name, found in peers_read(path, "timestamp_col").items():
        assert found == expected, name


@pytest.mark.parametrize("unit", UNITS)
def test_nested_int96(unit: TimeUnitName, tmp_path: Path) -> None:
    source, path = tmp_path / "source", tmp_path / "nested.parquet"
    known = [[{"t": INSTANTS[0]}, {"t": None}], None, [], [{"t": INSTANTS[3]}]]
    rows = [None if row is None else [{"t": None if each["t"] is None else each["t"].item()} for each in row] for row in known]
    nested = pa.array(rows, pa.list_(pa.struct({"t": pa.timestamp("ms")})))
    pq.write_table(pa.table({"x": nested}), source, use_deprecated_int96_timestamps=True)
    fastpq.write_table(fastpq.read_table(source, coerce_int96_timestamp_unit=unit), path)
    assert {leaf.element.logicalType for leaf in fastpq.read_schema(path).columns} == {None}
    plain = pq.read_table(path)["x"].cast(nested.type).to_pylist()
    assert plain == nested.to_pylist()
    assert duckdb.sql(f"SELECT x FROM read_parquet('{path}')").fetchall() == [(row,) for row in rows]
    assert polars.read_parquet(path)["x"].to_list() == rows


@pytest.mark.parametrize("unit", UNITS)
def test_int96_as_int64_timestamps(unit: TimeUnitName, tmp_path: Path) -> None:
    """The caller's schema makes INT64 timestamps of INT96 columns."""
    source, path = tmp_path / "source", tmp_path / "int64.parquet"
    pq.write_table(pa.table({"t": INSTANTS}), source, use_deprecated_int96_timestamps=True)
    read = fastpq.read_table(source, coerce_int96_timestamp_unit=unit)
    fastpq.write_table(read, path, schema={"t": ColumnType(Type.INT64, None, Timestamp("us"))})
    assert pq.read_schema(path).field("t").type == pa.timestamp("us")
    for name, found in peers_read(path).items():
        assert found == instants(INSTANTS.tolist()), name


def test_tables_of_several_units(tmp_path: Path) -> None:
    """Rows of one file, read in other units, wait together for their row group."""
    path = tmp_path / "several"
    values = INSTANTS[:2]
    with fastpq.ParquetWriter(path) as writer:
        for unit in UNITS:
            type_ = ColumnType(Type.INT96, None, Timestamp(unit))
            column = fastpq.Column(type_, values.astype(f"M8[{unit}]").view(np.int64), nullable=False)
            writer.write_table(fastpq.Table({"t": column}))
    assert instants(pq.read_table(path)["t"].cast(pa.timestamp("ms")).to_pylist()) == instants([*values, *values, *values])


def test_annotated_int96_is_read_by_its_pages_alone(tmp_path: Path) -> None:
    """TIMESTAMP(MICROS) has no effect on INT96; the column is written again without the annotation."""
    values = np.array([0, 10**15], "M8[ns]")
    fastpq.write_table({"t": values}, tmp_path / "bare", schema={"t": ColumnType(Type.INT96)})
    forgery = Forgery((tmp_path / "bare").read_bytes())
    micros = fmt.TimestampType(isAdjustedToUTC=False, unit=fmt.TimeUnit(MICROS=fmt.MicroSeconds()))
    forgery.metadata.schema[1].logicalType = fmt.LogicalType(TIMESTAMP=micros)
    read = fastpq.read_table(forgery.written())
    assert read["t"].to_numpy().tolist() == values.tolist()
    fastpq.write_table(read, tmp_path / "written")
    assert fastpq.read_schema(tmp_path / "written").column("t").element.logicalType is None
