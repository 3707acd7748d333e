"""A file for each column type and each encoding that encoding="auto" may choose for the type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal as Dec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import fastpq
from fastpq import ColumnType
from fastpq.arrays.table import AnyColumn
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.encodings.registry import automatic_encodings
from fastpq.schema.types import Decimal, Type

ROWS = 300


def _numbers(type_: pa.DataType, storage: pa.DataType | None = None) -> pa.Array:
    values = [None if i % 10 == 3 else i % 100 for i in range(ROWS)]
    return pa.array(values, storage or type_).cast(type_)


def _decimals(physical: Type, precision: int) -> AnyColumn:
    type_ = ColumnType(physical, None, Decimal(precision, 2))
    return column_from_numpy(np.array([Dec(i) / 100 for i in range(ROWS)], object), type=type_)


TEXTS = [f"value {i // 7}" for i in range(ROWS)]
BLOBS = [text.encode() for text in TEXTS]
FIXED = pa.array([f"{i // 7:08}".encode() for i in range(ROWS)], pa.binary(8))
# Column types that Spark has too.
COLUMNS: dict[str, Any] = {
    "bool": pa.array([i % 3 == 0 for i in range(ROWS)]),
    **{str(type_): _numbers(type_) for type_ in (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32())},
    **{str(type_): _numbers(type_) for type_ in (pa.int64(), pa.uint64(), pa.float32(), pa.float64())},
    "date": _numbers(pa.date32(), pa.int32()),
    "timestamp ms": _numbers(pa.timestamp("ms"), pa.int64()),
    "timestamp us": _numbers(pa.timestamp("us"), pa.int64()),
    "string": pa.array(TEXTS),
    "binary": pa.array(BLOBS),
    "fixed": FIXED,
    "decimal fixed": pa.array([Dec(i) / 100 for i in range(ROWS)], pa.decimal128(20, 2)),
    "decimal int32": _decimals(Type.INT32, 9),
    "decimal int64": _decimals(Type.INT64, 18),
    "decimal bytes": _decimals(Type.BYTE_ARRAY, 20),
    "dictionary of strings": pa.array(TEXTS).dictionary_encode(),
    "dictionary of binary": pa.array(BLOBS).dictionary_encode(),
    "dictionary of fixed": FIXED.dictionary_encode(),
    "dictionary of numbers": _numbers(pa.int64()).dictionary_encode(),
}


def files(folder: Path, versions: Sequence[Literal["1.0", "2.0"]]) -> Iterator[tuple[str, Path, list[Any]]]:
    """Name, path and values of each file, with data pages of some versions."""
    for name, given in COLUMNS.items():
        column = column_from_numpy(given)
        assert not column.is_nested
        encodings = automatic_encodings(column.type, is_dictionary=name.startswith("dictionary"))
        chosen = [encoding.name for encoding in encodings] + ["RLE_DICTIONARY"] * (name != "bool")
        for encoding in chosen:
            for version in versions:
                path = folder / f"{name}-{encoding}-{version}.parquet"
                fastpq.write_table(
                    {"x": column}, path, column_encoding={"x": encoding}, data_page_version=version, data_page_rows=70,
                    arrow_schema=True,
                )
                yield f"{name} {encoding} {version}", path, column.to_pylist()
