"""Columns that Python lays out in shared memory, read back by the jar's own classes, without Spark: values equal bit by bit."""

from __future__ import annotations

import datetime
import decimal
import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as st

import fastpq
from fastpq.spark.jvm import batch_layout
from fastpq.spark.jvm.batch_layout import BatchLayout
from fastpq.spark.jvm.jar import JAR, RELEASE, build, spark_jars
from fastpq.spark.jvm.memory_types import memory_schema
from fastpq.spark.jvm.segments import segment_places
from tests.requirements import java_jars

SOURCE = Path(__file__).with_name("java") / "PrintVectors.java"
LAYOUTS = ("NULLS", "FIXED", "BITS", "TEXT", "VIEWS", "LIST", "MAP", "STRUCT", "MISSING")
LONG_TEXT = "a text of more than twelve bytes, so that its view names a buffer"
UTC = datetime.UTC
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
VALUES: dict[str, tuple[st.DataType, list[Any]]] = {
    "boolean": (st.BooleanType(), [True, None, False, True]),
    "byte": (st.ByteType(), [-128, None, 127, 0]),
    "short": (st.ShortType(), [-(1 << 15), None, (1 << 15) - 1, 0]),
    "integer": (st.IntegerType(), [-(1 << 31), None, (1 << 31) - 1, 0]),
    "long": (st.LongType(), [-(1 << 63), None, (1 << 63) - 1, 0]),
    "float": (st.FloatType(), [-0.0, None, float("inf"), float("nan")]),
    "double": (st.DoubleType(), [-0.0, None, 1e-300, float("nan")]),
    "small": (st.DecimalType(9, 2), [decimal.Decimal("-1234567.89"), None, decimal.Decimal("0.01"), decimal.Decimal("0.00")]),
    "middle": (st.DecimalType(18, 0), [decimal.Decimal(10**18 - 1), None, decimal.Decimal(1 - 10**18), decimal.Decimal(0)]),
    "large": (st.DecimalType(38, 1), [decimal.Decimal(10**37 - 1), None, decimal.Decimal(1 - 10**37), decimal.Decimal("-0.1")]),
    "text": (st.StringType(), ["", None, "äöü", LONG_TEXT]),
    "binary": (st.BinaryType(), [b"", None, b"\x00\xff", LONG_TEXT.encode()]),
    "date": (st.DateType(), [datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31), datetime.date(1970, 1, 1)]),
    "time": (
        st.TimestampType(),
        [datetime.datetime(1, 1, 1, tzinfo=UTC), None, datetime.datetime(2026, 1, 1, 1, 2, 3, 4, UTC), EPOCH],
    ),
    "local": (
        st.TimestampNTZType(),
        [datetime.datetime(1969, 12, 31, 23), None, datetime.datetime(2026, 1, 1), EPOCH.replace(tzinfo=None)],
    ),
    "nothing": (st.NullType(), [None, None, None, None]),
    "list": (st.ArrayType(st.StringType()), [["a", None, LONG_TEXT], None, [], ["b"]]),
    "nested": (st.ArrayType(st.ArrayType(st.LongType())), [[[1, None], None, []], None, [], [[2]]]),
    "map": (st.MapType(st.StringType(), st.DoubleType()), [{"a": 1.5, "b": None}, None, {}, {LONG_TEXT: -0.0}]),
    "struct": (
        st.StructType([st.StructField("a", st.IntegerType()), st.StructField("b", st.ArrayType(st.BooleanType()))]),
        [{"a": 1, "b": [True, None]}, None, {"a": None, "b": None}, {"a": -1, "b": []}],
    ),
}
SCHEMA = st.StructType([st.StructField(name, type_) for name, (type_, _) in VALUES.items()])
ARROW = memory_schema(SCHEMA)
TABLE = pa.table([pa.array(values, part.type) for (_, values), part in zip(VALUES.values(), ARROW, strict=True)], schema=ARROW)
ROWS = TABLE.num_rows


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The class path of PrintVectors."""
    java_jars()
    assert build()
    folder = tmp_path_factory.mktemp("classes")
    jars = f"{JAR}:{spark_jars()}/*"
    subprocess.run(["javac", "-proc:none", "--release", RELEASE, "-cp", jars, "-d", folder, SOURCE], check=True)
    return f"{folder}:{jars}"


def printed(classes: str, folder: Path, layout: BatchLayout, schema: st.StructType) -> list[str]:
    """Return what the JVM reads: the numbers of its layouts, and a line for each column."""
    places, size = segment_places(layout.buffers)
    memory = np.zeros(max(size, 1), np.uint8)
    for place, buffer in zip(places, layout.buffers, strict=True):
        memory[place : place + len(buffer)] = buffer
    memory.tofile(folder / "memory")
    segment = {"path": str(folder / "memory"), "size": len(memory)}
    batch = {"schema": schema.json(), "numbers": layout.placed(places), "segment": segment, "rows": ROWS}
    (folder / "batch").write_text(json.dumps(batch))
    command = ["java", "-cp", classes, "io.fastpq.spark.PrintVectors", str(folder / "batch")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def line_of(array: pa.Array, type_: st.DataType) -> str:
    values = array.to_pylist()
    nulls = sum(value is None for value in values)
    return f"{nulls} {str(nulls > 0).lower()}: {' '.join(text_of(value, type_) for value in values)}"


def text_of(value: Any, type_: st.DataType) -> str:
    """Return a value as PrintVectors prints it."""
    if value is None:
        return "null"
    match type_:
        case st.BooleanType():
            return str(value).lower()
        case st.FloatType():
            return f"{struct.unpack('<I', struct.pack('<f', value))[0]:x}"
        case st.DoubleType():
            return f"{struct.unpack('<Q', struct.pack('<d', value))[0]:x}"
        case st.DecimalType():
            return f"{value:f}"
        case st.StringType():
            return f"x{value.encode().hex()}"
        case st.BinaryType():
            return f"x{value.hex()}"
        case st.DateType():
            return str((value - EPOCH.date()).days)
        case st.TimestampType() | st.TimestampNTZType():
            return str((value.replace(tzinfo=UTC) - EPOCH) // datetime.timedelta(microseconds=1))
        case st.ArrayType():
            return f"[{''.join(text_of(one, type_.elementType) + ';' for one in value)}]"
        case st.MapType():
            keys, values = zip(*value, strict=True) if value else ((), ())
            return text_of(keys, st.ArrayType(type_.keyType)) + "->" + text_of(values, st.ArrayType(type_.valueType))
        case st.StructType():
            return f"({''.join(text_of(value[part.name], part.dataType) + ';' for part in type_.fields)})"
    return str(value)


def test_columns_of_arrow(classes: str, tmp_path: Path) -> None:
    """Whole arrays, and slices, whose buffers begin in the middle of a byte of a bitmap."""
    layout = BatchLayout()
    for column in TABLE.columns:
        layout.add(column.chunk(0))
    for column in TABLE.columns:
        layout.add(pa.concat_arrays([column.chunk(0).slice(0, 3), column.chunk(0)]).slice(3))
    layout.add_missing(ROWS)
    doubled = [*SCHEMA.fields, *SCHEMA.fields, st.StructField("absent", st.LongType())]
    numbers, *lines = printed(classes, tmp_path, layout, st.StructType(doubled))
    assert dict(zip(LAYOUTS, map(int, numbers.split()), strict=True)) == {name: getattr(batch_layout, name) for name in LAYOUTS}
    expected_lines = [line_of(column.chunk(0), part.dataType) for column, part in zip(TABLE.columns, SCHEMA.fields, strict=True)]
    assert lines[-1] == "missing"
    for line, expected_line, part in zip(lines, expected_lines * 2, doubled, strict=False):
        if isinstance(part.dataType, st.NullType):
            assert line == f"{ROWS} true: {' '.join(['null'] * ROWS)}"
        else:
            assert line == expected_line, part.name


def test_columns_of_fastpq(classes: str, tmp_path: Path) -> None:
    """Columns in the layouts in which fastpq decodes them, text and bytes as views."""
    table = TABLE.drop_columns(["nothing"])
    pq.write_table(table, tmp_path / "file.parquet", store_decimal_as_integer=True)
    columns = fastpq.read_table(tmp_path / "file.parquet", strings="views", arrow_schema=False)
    layout = BatchLayout()
    fields = [part for part in SCHEMA.fields if part.name in table.column_names]
    direct = [part for part in fields if layout.add_column(columns[part.name], part.dataType)]
    assert {part.name for part in fields} - {part.name for part in direct} <= {"boolean", "large"}      # these are converted
    _, *lines = printed(classes, tmp_path, layout, st.StructType(direct))
    assert lines == [line_of(table.column(part.name).chunk(0), part.dataType) for part in direct]
