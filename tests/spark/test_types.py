"""Every type of Spark that its own Parquet source has, nullable and not, goes through fastpq and through the native source,
either way, plaintext and encrypted in each mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as st

import fastpq
import fastpq.spark
from fastpq.spark.options import WriteOptions
from fastpq.spark.writer import check_schema
from tests.spark.conftest import CLIENT

# Of a row with the number id: an expression of each type, which is never null.
TYPES = {
    "boolean": "id % 2 = 0",
    "tinyint": "cast(id - 5 as tinyint)",
    "smallint": "cast(id * 1000 as smallint)",
    "int": "cast(id * -100000 as int)",
    "bigint": "id * 10000000000",
    "float": "cast(id / 3 as float)",
    "double": "if(id = 4, double('NaN'), if(id = 5, -0d, id / 3))",
    "decimal9": "cast(id - 2.5 as decimal(9, 2))",
    "decimal18": "cast(id * -1234567890.5 as decimal(18, 4))",
    "decimal38": "cast(id as decimal(38, 18)) * -1",
    "string": "concat('größe ', id)",
    "collated": "cast(id as string) collate UTF8_LCASE",
    "char": "cast(id as char(3))",
    "varchar": "cast(id as varchar(5))",
    "binary": "cast(concat('a', id) as binary)",
    "date": "date_add(date '0001-01-03', cast(id as int) * 300000)",
    "timestamp": "timestamp '1969-12-31 23:59:58.123456' + make_interval(0, 0, 0, 0, 0, 0, id)",
    "ntz": "timestamp_ntz '1969-12-31 23:59:58.123456' + make_interval(0, 0, 0, 0, 0, 0, id)",
    "time": "time '01:02:03.000004'",
    "days": "interval 1 second * id",
    "list": "array(id, id + 1)",
    "list_of_null": "array(id, null)",
    "lists": "array(array(id), array())",
    "pairs": "map(cast(id as string), id)",
    "pairs_of_null": "map(id, cast(null as string))",
    "record": "named_struct('a', id, 'b', array(named_struct('c', time '23:59:59.5', 'd', interval 1 day * id)))",
    "variant": "parse_json(concat('{\"a\": ', id, ', \"b\": [\"x\", 1.5]}'))",
    "variants": "array(parse_json(cast(id as string)))",
}
COLUMN_KEYS = {
    "parquet.encryption.footer.key": "kf",
    "parquet.encryption.column.keys": "kc1:bigint,maybe_string;kc2:list.list.element",
}
UNTOLD = ("days", "record", "collated", "char", "varchar")      # what files do not tell: intervals are INT64 in them
MODES: dict[str, dict[str, str]] = {
    "plaintext": {},
    "uniform": {"parquet.encryption.uniform.key": "kf"},
    "columns": COLUMN_KEYS,
    "complete": {**COLUMN_KEYS, "parquet.encryption.complete.columns": "true", "parquet.encryption.data.key.length.bits": "256"},
    "signed footer": {**COLUMN_KEYS, "parquet.encryption.plaintext.footer": "true"},
    "CTR": {**COLUMN_KEYS, "parquet.encryption.algorithm": "AES_GCM_CTR_V1"},
}


@pytest.fixture(scope="module")
def rows(source: Any) -> tuple[Any, list[str]]:
    """A row for each id, each type twice: never null, and null in every third row; and the rows as text."""
    never = [f"{expression} as {name}" for name, expression in TYPES.items()]
    maybe = [f"if(id % 3 = 0, null, {expression}) as maybe_{name}" for name, expression in TYPES.items()]
    frame = source.range(8, numPartitions=1).selectExpr(*never, *maybe)
    assert not any(frame.schema[name].nullable for name in ("boolean", "bigint", "string", "date", "list", "record"))
    assert all(frame.schema[f"maybe_{name}"].nullable for name in TYPES)
    return frame, shown(frame)


def shown(frame: Any) -> list[str]:
    """Rows as text; variants as JSON, for their encoding may differ."""
    variants = [f"to_json({name}) as {name}" if "variant" in name and "variants" not in name else name for name in frame.columns]
    texts = [f"transform({name}, x -> to_json(x)) as {name}" if "variants" in name else name for name in variants]
    return sorted(map(repr, frame.selectExpr(*texts).collect()))


@pytest.mark.parametrize("mode", MODES)
def test_both_ways(source: Any, java_kms: str, rows: tuple[Any, list[str]], tmp_path: Path, mode: str) -> None:
    if MODES[mode] and not java_kms:
        pytest.skip("the native source needs the KMS client in Java, and there is no javac")
    frame, expected = rows
    options = MODES[mode]
    service = {"kms.client": CLIENT} if options else {}
    algorithm = {name: value for name, value in options.items() if name.endswith("algorithm")}     # CTR must be asked for
    frame.write.format("fastpq").mode("append").options(**options, **service).save(str(tmp_path / "ours"))
    native = source.read.parquet(str(tmp_path / "ours"))
    assert native.dtypes == frame.dtypes
    assert shown(native) == expected
    frame.write.options(**options).parquet(str(tmp_path / "native"))
    for written in ("ours", "native"):
        ours = fastpq.spark.read(source, str(tmp_path / written), schema=native.schema, **service, **algorithm)
        assert shown(ours) == expected


def test_types_as_files_tell_them(source: Any, rows: tuple[Any, list[str]], tmp_path: Path) -> None:
    """Without a schema."""
    frame = rows[0]
    names = [name for name in frame.columns if name.removeprefix("maybe_") not in UNTOLD]
    frame.select(*names).write.parquet(str(tmp_path / "native"))
    found = source.read.format("fastpq").load(str(tmp_path / "native"))
    assert found.dtypes == frame.select(*names).dtypes
    assert shown(found) == shown(frame.select(*names))


@pytest.mark.parametrize(
    "type_", [st.NullType(), st.CalendarIntervalType(), st.YearMonthIntervalType(), st.GeometryType(4326), st.GeographyType(4326)]
)
def test_types_that_are_refused(type_: st.DataType) -> None:
    """By Spark's native source, or by its Arrow."""
    for nested in (type_, st.ArrayType(type_), st.MapType(st.StringType(), type_), st.StructType([st.StructField("a", type_)])):
        with pytest.raises(fastpq.UnsupportedError, match="column x"):
            check_schema(st.StructType([st.StructField("x", nested), st.StructField("y", st.LongType())]), WriteOptions("t"))
