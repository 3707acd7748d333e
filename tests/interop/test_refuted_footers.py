"""Footers in contradiction to themselves: a FormatError where the peers refuse the file, too."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.schema.types import Type
from tests.index.forging import Forgery
from tests.requirements import DATA, needs_data, peer

duckdb, polars = peer("duckdb"), peer("polars")

VALUES = {
    Type.BOOLEAN: pa.array([True, False]),
    Type.INT32: pa.array([1, 2], pa.int32()),
    Type.INT64: pa.array([1, 2], pa.int64()),
    Type.FLOAT: pa.array([1, 2], pa.float32()),
    Type.DOUBLE: pa.array([1, 2], pa.float64()),
    Type.BYTE_ARRAY: pa.array([b"1", b"2"]),
    Type.FIXED_LEN_BYTE_ARRAY: pa.array([b"1", b"2"], pa.binary(1)),
}
BYTES = (Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY)
# Physical types of each converted type (parquet.thrift, ConvertedType). DuckDB's files broken_*.parquet hold pairs outside.
ALLOWED: dict[fmt.ConvertedType, tuple[Type, ...]] = {
    fmt.ConvertedType.UTF8: BYTES,
    fmt.ConvertedType.ENUM: BYTES,
    fmt.ConvertedType.JSON: BYTES,
    fmt.ConvertedType.BSON: BYTES,
    fmt.ConvertedType.DATE: (Type.INT32,),
    fmt.ConvertedType.TIME_MILLIS: (Type.INT32,),
    fmt.ConvertedType.TIME_MICROS: (Type.INT64,),
    fmt.ConvertedType.TIMESTAMP_MILLIS: (Type.INT64,),
    fmt.ConvertedType.TIMESTAMP_MICROS: (Type.INT64,),
    fmt.ConvertedType.INT_8: (Type.INT32,),
    fmt.ConvertedType.INT_16: (Type.INT32,),
    fmt.ConvertedType.INT_32: (Type.INT32,),
    fmt.ConvertedType.INT_64: (Type.INT64,),
    fmt.ConvertedType.UINT_8: (Type.INT32,),
    fmt.ConvertedType.UINT_16: (Type.INT32,),
    fmt.ConvertedType.UINT_32: (Type.INT32,),
    fmt.ConvertedType.UINT_64: (Type.INT64,),
}


@pytest.mark.parametrize("physical", VALUES, ids=lambda physical: physical.name)
@pytest.mark.parametrize("converted", ALLOWED, ids=lambda converted: converted.name)
def test_converted_types_of_other_physical_types(converted: fmt.ConvertedType, physical: Type, tmp_path: Path) -> None:
    path = tmp_path / "forged.parquet"
    pq.write_table(pa.table({"x": VALUES[physical]}), path, write_page_index=True)
    forgery = Forgery(path.read_bytes())
    forgery.metadata.schema[1].converted_type, forgery.metadata.schema[1].logicalType = converted, None
    path.write_bytes(forgery.written())
    if physical in ALLOWED[converted]:
        assert fastpq.read_table(path).num_rows == 2
        return
    with pytest.raises(fastpq.FormatError, match="may not annotate"):
        fastpq.read_table(path)
    with pytest.raises(OSError, match="can only annotate"):
        pq.read_table(path)


@pytest.mark.parametrize("converted", [fmt.ConvertedType.DATE, fmt.ConvertedType.INT_8, fmt.ConvertedType.UTF8])
def test_duckdb_and_polars_refuse_converted_types_too(converted: fmt.ConvertedType, tmp_path: Path) -> None:
    path = tmp_path / "forged.parquet"
    pq.write_table(pa.table({"x": VALUES[Type.INT64]}), path, write_page_index=True)
    forgery = Forgery(path.read_bytes())
    forgery.metadata.schema[1].converted_type = converted
    path.write_bytes(forgery.written())
    with pytest.raises(duckdb.Error, match="converted type"):
        duckdb.sql(f"FROM read_parquet('{path}')").fetchall()
    with pytest.raises(polars.exceptions.PolarsError):
        polars.read_parquet(path)


@pytest.mark.parametrize("rows", [0, 99, 101, -1, 1 << 40])
def test_another_number_of_rows_in_the_footer(rows: int, tmp_path: Path) -> None:
    sink = io.BytesIO()
    fastpq.write_table({"x": np.arange(100)}, sink)
    forgery = Forgery(sink.getvalue())
    forgery.metadata.num_rows = rows
    data = forgery.written()
    with fastpq.ParquetFile(data) as file:
        for read in (
            file.read,
            file.count,
            lambda: file.count([("x", ">", 5)]),
            lambda: list(file.iter_batches(10)),
            lambda: file.take([3]),
            lambda: file.head(3),
            lambda: file.read(filters=[("x", "==", 7)]),
        ):
            with pytest.raises(fastpq.FormatError, match=f"the footer says {rows} rows, but its row groups have 100"):
                read()
        assert file.read(row_groups=[0]).num_rows == 100
    assert fastpq.read_table(data, on_error="skip").num_rows == 100
    (tmp_path / "part.parquet").write_bytes(data)
    with pytest.raises(fastpq.FormatError, match="the footer says"):
        fastpq.read_dataset(tmp_path)


@needs_data
def test_rows_that_parquet_rs_did_not_count() -> None:
    """parquet-rs 0.3.0 wrote 0 rows."""
    path = DATA / "parquet-testing/data/repeated_no_annotation.parquet"
    assert fastpq.read_metadata(path).num_rows == 0
    assert fastpq.read_table(path).num_rows == pq.read_table(path).num_rows == 6
    assert fastpq.ParquetFile(path).count() == 6
