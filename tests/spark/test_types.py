"""Every type of Spark that its own Parquet source has, nullable and not, goes through fastpq and through the native source,
either way, plaintext and encrypted in each mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as st

import fastpq
import fastpq.spark
from fastpq.errors import UnsupportedError
from fastpq.spark.options import WriteOptions
from fastpq.spark.scan.file_scan import ScanPlan, read_split
from fastpq.spark.scan.splits import Split
from fastpq.spark.tables.listing import list_files
from fastpq.spark.tables.spark_types import spark_schema
from fastpq.spark.write.write_checks import check_schema
from tests.spark.conftest import CLIENT

# Of a row with the number id: an expression of each type, which is never null.
TYPES = {
    "boolean": "id > 3",
    "tinyint": "cast(id - 5 as tinyint)",
    "smallint": "cast(id * 1000 as smallint)",
    "int": "cast(id * -100000 as int)",
    "bigint": "id * 10000000000",
    "float": "cast(id as float) * cast(0.3 as float)",
    "double": "if(id = 4, 1e308d * 1e308d * 0d, if(id = 5, -0d, id * 0.3d))",
    "decimal9": "if(id > 3, 1234567.89bd, -0.01bd)",
    "decimal18": "if(id > 3, 12345678901234.5678bd, -0.0001bd)",
    "decimal38": "if(id > 3, 12345678901234567890.123456789012345678bd, -0.000000000000000001bd)",
    "string": "concat('größe ', id)",
    "collated": "cast(id as string) collate UTF8_LCASE",
    "char": "cast(id as char(3))",
    "varchar": "cast(id as varchar(5))",
    "binary": "cast(concat('a', id) as binary)",
    "date": "date_add(date '0001-01-03', cast(id as int) * 300000)",
    "timestamp": "timestampadd(microsecond, id * 1234567, timestamp '1969-12-31 23:59:58.123456')",
    "ntz": "timestampadd(microsecond, id * 1234567, timestamp_ntz '1969-12-31 23:59:58.123456')",
    "time": "time '01:02:03.000004'",
    "days": "interval 1 second * id",
    "list": "array(id, id + 1)",
    "list_of_null": "array(id, null)",
    "lists": "array(array(id), array())",
    "pairs": "map(cast(id as string), id)",
    "pairs_of_null": "map(id, cast(null as string))",
    "record": "named_struct('a', id, 'b', array(named_struct('c', time '23:59:59.5', 'd', interval 1 day * id)))",
    "variant": "parse_json(concat('{\"a\": ', id, ', \"b\": [\"x\", 1.5]}'))",
    "point": "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040', 4326)",
    "place": "st_geogfromwkb(X'0101000000000000000000F03F0000000000000040')",
    "variants": "array(parse_json(cast(id as string)))",
}
COLUMN_KEYS = {
    "parquet.encryption.footer.key": "kf",
    "parquet.encryption.column.keys": "kc1:bigint,maybe_string;kc2:list.list.element",
}
# What files do not tell, and of WKB what it is to a session that may have no geometries.
UNTOLD = ("point", "place")
MODES: dict[str, dict[str, str]] = {
    "plaintext": {},
    "uniform": {"parquet.encryption.uniform.key": "kf"},
    "columns": COLUMN_KEYS,
    "complete": {**COLUMN_KEYS, "parquet.encryption.complete.columns": "true", "parquet.encryption.data.key.length.bits": "256"},
    "signed footer": {**COLUMN_KEYS, "parquet.encryption.plaintext.footer": "true", "parquet.encryption.unlisted": "plaintext"},
    "CTR": {**COLUMN_KEYS, "parquet.encryption.algorithm": "AES_GCM_CTR_V1"},
}


@pytest.fixture(scope="module")
def rows(source: Any) -> tuple[Any, list[str]]:
    """A row for each id, each type twice: never null, and null in every third row; and the rows as text."""
    never = [f"{expression} as {name}" for name, expression in TYPES.items()] + ["null as nothing"]
    maybe = [f"if(id % 3 = 0, null, {expression}) as maybe_{name}" for name, expression in TYPES.items()]
    frame = source.range(8, numPartitions=1).selectExpr(*never, *maybe)
    assert [name for name in TYPES if frame.schema[name].nullable] == []
    assert all(frame.schema[f"maybe_{name}"].nullable for name in TYPES)
    return frame, shown(frame)


def shown(frame: Any) -> list[str]:
    """Rows as text; variants as JSON, for their encoding may differ, geometries as WKB."""
    variants = [f"to_json({name}) as {name}" if "variant" in name and "variants" not in name else name for name in frame.columns]
    texts = [f"transform({name}, x -> to_json(x)) as {name}" if "variants" in name else name for name in variants]
    texts = [f"st_asbinary({name}) as {name}" if name.endswith(("point", "place")) else name for name in texts]
    return sorted(map(repr, frame.selectExpr(*texts).collect()))


@pytest.mark.parametrize("mode", MODES)
def test_both_ways(source: Any, rows: tuple[Any, list[str]], tmp_path: Path, mode: str) -> None:
    frame, expected = rows
    options = MODES[mode]
    service = {"kms.client": CLIENT} if options else {}
    algorithm = {name: value for name, value in options.items() if name.endswith("algorithm")}     # CTR must be asked for
    frame.write.format("fastpq").mode("append").options(**options, **service).save(str(tmp_path / "ours"))
    native = source.read.parquet(str(tmp_path / "ours"))
    assert native.dtypes == frame.dtypes
    assert shown(native) == expected
    frame.write.options(**options).parquet(str(tmp_path / "native"))
    both = [str(tmp_path / "ours"), str(tmp_path / "native")]
    assert shown(fastpq.spark.read(source, both, schema=native.schema, **service, **algorithm)) == sorted(expected * 2)


def test_types_as_files_tell_them(source: Any, rows: tuple[Any, list[str]], tmp_path: Path) -> None:
    """Without a schema."""
    frame = rows[0]
    names = [name for name in frame.columns if name.removeprefix("maybe_") not in UNTOLD]
    frame.select(*names).write.parquet(str(tmp_path / "native"))
    found = source.read.format("fastpq").load(str(tmp_path / "native"))
    assert found.dtypes == frame.select(*names).dtypes
    assert shown(found) == shown(frame.select(*names))


@pytest.mark.parametrize(
    "type_", [st.CalendarIntervalType(), st.YearMonthIntervalType(), st.GeometryType("ANY"), st.GeographyType("ANY")]
)
def test_types_that_are_refused(type_: st.DataType) -> None:
    """No file of Spark's has the first, PySpark's Arrow not the second, and a column of Parquet one CRS."""
    for nested in (type_, st.ArrayType(type_), st.MapType(st.StringType(), type_), st.StructType([st.StructField("a", type_)])):
        with pytest.raises(fastpq.UnsupportedError, match="column x"):
            check_schema(st.StructType([st.StructField("x", nested), st.StructField("y", st.LongType())]), WriteOptions("t"))


ARROW_ONLY: dict[str, tuple[pa.Array, list[Any]]] = {
    "fixed_size_list": (pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), [[1, 2], None]),
    "list_view": (pa.array([[1], []], pa.list_view(pa.int32())), [[1], []]),
    "dictionary": (pa.array([5, 6]).dictionary_encode(), [5, 6]),
    "duration": (pa.array([1, None], pa.duration("s")), [1, None]),
    "bool8": (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8())), [1, 0]),
    "uuid": (pa.array([bytes(16), None], pa.uuid()), [bytes(16), None]),
    "json": (pa.array(["{}", None], pa.json_()), ["{}", None]),
}


@pytest.mark.parametrize("name", ARROW_ONLY)
def test_what_columns_were_in_arrow_is_nothing_to_spark(tmp_path: Path, name: str) -> None:
    array, truth = ARROW_ONLY[name]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": array, "s": pa.StructArray.from_arrays([array], ["x"])}), path)
    (file,) = list_files([str(path)])
    plan = ScanPlan(spark_schema(fastpq.read_schema(path)))
    (batch,) = read_split(Split(file, None, file.size), plan)
    assert batch.column(0).to_pylist() == truth
    assert batch.column(1).to_pylist() == [{"x": value} for value in truth]


def test_types_of_row_metadata(source: Any, tmp_path: Path) -> None:
    """Intervals and collations stand in Spark's metadata alone: read alike from files of Spark and of fastpq, by both ways in."""
    frame = source.sql(
        """select id, make_dt_interval(id, 1, 2, 3.5) as i, array(make_dt_interval(id)) as a,
           named_struct('s', cast(id as string) collate UNICODE_CI, 'd', make_dt_interval(1)) as n,
           map('k', make_dt_interval(id)) as m, concat('A', id) collate UTF8_LCASE as c from range(3)"""
    )
    frame.write.parquet(str(tmp_path / "theirs"))
    frame.write.format("fastpq").mode("append").save(str(tmp_path / "ours"))
    wanted = sorted(map(str, frame.collect()))
    for path in (str(tmp_path / "theirs"), str(tmp_path / "ours")):
        native = source.read.parquet(path)
        for found in (source.read.format("fastpq").load(path), fastpq.spark.read(source, path), native):
            assert found.schema == native.schema
            assert sorted(map(str, found.collect())) == wanted
            assert found.where("c = 'a1'").count() == 1


def test_row_metadata_of_hostile_files() -> None:
    """Broken metadata are passed over, and no class named by a file is imported."""
    from pyspark.sql import types as st

    from fastpq.spark.tables.row_metadata import refined

    schema = st.StructType([st.StructField("x", st.LongType()), st.StructField("s", st.StringType())])
    udt = {"type": "udt", "pyClass": "this.This", "sqlType": "interval day to second", "class": None}
    for stored in ("", "[", "null", "[]", '{"type": "struct"}', '{"type": "struct", "fields": [{"name": "x"}]}', "[" * 100_000):
        assert refined(schema, stored) == schema
    field = {"name": "x", "type": udt, "nullable": True, "metadata": {}}
    stated = json.dumps({"type": "struct", "fields": [field, {**field, "name": "s"}, {**field, "name": "other"}]})
    assert refined(schema, stated) == st.StructType([st.StructField("x", st.DayTimeIntervalType()), schema["s"]])
    months = st.StructType([st.StructField("x", st.YearMonthIntervalType())])
    with pytest.raises(UnsupportedError, match="year-month"):
        refined(st.StructType([st.StructField("x", st.IntegerType())]), months.json())


def test_shredded_variants_in_other_columns(source: Any, tmp_path: Path) -> None:
    """Spark shreds variants at every level; fastpq merges the parts."""
    value = """parse_json(concat('{"a":', id, ',"b":"t', id, '"', if(id % 2 = 0, ',"c":[1,2]', ''), '}'))"""
    frame = source.range(20, numPartitions=1).selectExpr(
        f"named_struct('v', {value}, 'w', if(id % 3 = 0, null, named_struct('v', {value}))) as s",
        f"array({value}, null, parse_json('3')) as l",
        f"map('k', {value}) as m",
    )
    settings = {
        "spark.sql.variant.writeShredding.enabled": "true",
        "spark.sql.variant.forceShreddingSchemaForTest": "a bigint, b string, c array<int>",
    }
    try:
        for name, setting in settings.items():
            source.conf.set(name, setting)
        frame.write.mode("append").parquet(str(tmp_path))
    finally:
        for name in settings:
            source.conf.unset(name)
    assert "typed_value" in str(fastpq.read_schema(next(tmp_path.glob("*.parquet"))))
    values = fastpq.read_table(next(tmp_path.glob("*.parquet")))["s"].to_pylist()
    assert [row["v"]["a"] for row in values] == list(range(20))
    assert [row["w"] and row["w"]["v"]["a"] for row in values] == [None if number % 3 == 0 else number for number in range(20)]
    texts = ["to_json(s)", "to_json(l)", "to_json(m)"]
    wanted = sorted(map(str, frame.selectExpr(*texts).collect()))
    for found in (source.read.format("fastpq").load(str(tmp_path)), fastpq.spark.read(source, str(tmp_path))):
        assert sorted(map(str, found.selectExpr(*texts).collect())) == wanted
