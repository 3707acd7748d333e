"""Reading datasets: schema, projection, partitions of work and of folders, filters, what is missing."""

from __future__ import annotations

import datetime
import decimal
import os
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as f
from pyspark.sql import types as st

import fastpq
import fastpq.spark
from fastpq.spark.scan.splits import plan_partitions
from fastpq.spark.tables.listing import ListedFile, list_files
from tests.io.range_server import serving
from tests.spark.conftest import CLIENT

EVERY_TYPE = """
    id % 2 = 0 as flag, cast(id as byte) as tiny, cast(id as short) as small, cast(id as int) as number, id as big,
    cast(id / 4 as float) as single, id / 4 as double, cast(id / 4 as decimal(9, 2)) as cents,
    cast(id as decimal(38, 10)) as wide,
    cast(id as string) as text, cast(cast(id as string) as binary) as bytes, date_add(date '1969-12-20', cast(id as int)) as day,
    timestamp '1969-12-31 23:59:59.123456' + make_interval(0, 0, 0, 0, 0, 0, id) as moment,
    timestamp_ntz '2024-02-29 01:02:03.000004' as local, array(id, null, id + 1) as list, array(array(id), array()) as lists,
    map(cast(id as string), id) as pairs, struct(id as a, cast(id as string) as b, array(struct(id as c)) as d) as nested,
    if(id % 3 = 0, null, id) as maybe, if(id % 3 = 0, null, struct(id as a)) as maybe_nested
"""


def rows_of(frame: Any) -> list[Any]:
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=lambda row: row["big"])


@pytest.fixture(scope="module")
def every_type(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("native") / "types"
    spark.sql(f"select {EVERY_TYPE} from range(50)").write.parquet(str(path))
    return path


def test_every_type_of_spark(source: Any, every_type: Path) -> None:
    ours, native = source.read.format("fastpq").load(str(every_type)), source.read.parquet(str(every_type))
    assert ours.schema == native.schema
    assert rows_of(ours) == rows_of(native)


def test_projection(source: Any, every_type: Path) -> None:
    schema = "nested struct<b: string>, BIG bigint, new int, number bigint"
    frame = source.read.format("fastpq").schema(schema).load(str(every_type))
    row = frame.orderBy("big").first()
    assert row.asDict(recursive=True) == {"nested": {"b": "0"}, "BIG": 0, "new": None, "number": 0}
    assert fastpq.spark.read(source, str(every_type), ["big"]).columns == ["big"]
    with pytest.raises(fastpq.SchemaError, match="nothing_such"):
        fastpq.spark.read(source, str(every_type), ["nothing_such"])


def test_a_schema_that_does_not_fit(source: Any, every_type: Path) -> None:
    for schema in ("text int", "big bigint, maybe int"):
        with pytest.raises(Exception, match=r"ConversionError.*\.parquet, column (text|maybe)"):
            source.read.format("fastpq").schema(schema).load(str(every_type)).collect()


def test_count(source: Any, every_type: Path) -> None:
    assert source.read.format("fastpq").load(str(every_type)).count() == 50


def test_filters(source: Any, every_type: Path) -> None:
    day = datetime.date(1969, 12, 25)
    for filters, expected in (
        ([("big", ">=", 40)], 10),
        ([[("day", "==", day)], [("cents", "==", decimal.Decimal("2.50"))]], 2),
        ([("text", "in", ["7", "11"]), ("maybe", "is not null")], 2),
    ):
        assert fastpq.spark.read(source, str(every_type), ["text"], filters).count() == expected
    with pytest.raises(fastpq.SchemaError):
        fastpq.spark.read(source, str(every_type), filters=object())


def test_filters_of_plans(source: Any, tmp_path: Path) -> None:
    fastpq.write_table({"x": np.arange(10_000), "y": np.arange(10_000) % 7}, tmp_path / "a.parquet", row_group_size=1000)
    fastpq.write_table({"y": np.arange(10) % 7}, tmp_path / "b.parquet")
    source.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = fastpq.spark.read(source, str(tmp_path)).where("x = 4321 or false").where(f.col("x").isNotNull())
        assert [row.x for row in frame.collect()] == [4321]
        assert fastpq.spark.read(source, str(tmp_path)).where("x is null and y > 2").count() == 4
        frame = fastpq.spark.read(source, str(tmp_path)).where("not x in (1, 2) and not y = 3")
        assert frame.count() == sum(x not in (1, 2) and x % 7 != 3 for x in range(10_000))
    finally:
        source.conf.set("spark.sql.python.filterPushdown.enabled", "false")
        fastpq.spark.register(source)


def test_hive_partitions(source: Any, tmp_path: Path) -> None:
    frame = source.range(20).selectExpr("id", "id % 3 as k", "if(id % 5 = 0, null, concat('a=/', id % 5)) as s")
    frame.write.partitionBy("k", "s").parquet(str(tmp_path / "t"))
    ours, native = source.read.format("fastpq").load(str(tmp_path / "t")), source.read.parquet(str(tmp_path / "t"))
    assert ours.schema == native.schema
    assert sorted(ours.collect(), key=str) == sorted(native.collect(), key=str)
    assert fastpq.spark.read(source, str(tmp_path / "t"), ["id"], [("k", "==", 1), ("id", ">", 10)]).count() == 3
    assert fastpq.spark.read(source, str(tmp_path / "t" / "k=*"), ["id"]).count() == 20


def test_plan_of_partitions() -> None:
    small = [ListedFile(f"s{number}", 1 << 20) for number in range(10)]
    large = ListedFile("l", 100 << 20)
    plan = plan_partitions([*small, large], lambda file: [30 << 20] * 3 + [10 << 20], 64 << 20)
    assert [[split.row_groups for split in part] for part in plan if part[0].file is large] == [[(0, 1)], [(2, 3), *[None] * 4]]
    assert sum(len(part) for part in plan) == 12
    assert len(plan) == 3
    assert plan_partitions([], lambda file: [], 1) == []


def test_large_and_small_files(source: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"row_group_size": 10_000, "compression": None, "use_dictionary": False}
    fastpq.write_table({"x": np.arange(100_000)}, tmp_path / "large.parquet", **options)
    for number in range(5):
        fastpq.write_table({"x": np.arange(number)}, tmp_path / f"{number}.parquet")
    frame = source.read.format("fastpq").option("maxPartitionBytes", 200_000).load(str(tmp_path))
    assert frame.rdd.getNumPartitions() == 10       # two row groups each; a small file costs more to open than it has
    assert source.read.format("fastpq").load(str(tmp_path)).rdd.getNumPartitions() == 1
    assert frame.agg(f.sum("x")).first()[0] == sum(range(100_000)) + sum(sum(range(number)) for number in range(5))


def test_merged_schema(source: Any, tmp_path: Path) -> None:
    fastpq.write_table({"x": np.arange(3, dtype=np.int32)}, tmp_path / "a.parquet")
    fastpq.write_table({"x": np.arange(4), "y": np.arange(4) / 2}, tmp_path / "b.parquet")
    frame = source.read.format("fastpq").option("mergeSchema", True).load(str(tmp_path))
    assert frame.dtypes == [("x", "bigint"), ("y", "double")]
    assert frame.where("y is null").count() == 3


def test_nothing_and_what_vanished(source: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="there is no file below"):
        source.read.format("fastpq").load(str(tmp_path))
    assert source.read.format("fastpq").schema("x int").load(str(tmp_path)).collect() == []
    with pytest.raises(Exception, match="there is no file or folder"):
        source.read.format("fastpq").load(str(tmp_path / "none"))
    for name in "ab":
        fastpq.write_table({"x": np.arange(4)}, tmp_path / f"{name}.parquet")
    plans = [
        source.read.format("fastpq").option("ignoreMissingFiles", ignore).load(str(tmp_path)) for ignore in (True, False)
    ]
    for frame in plans:
        assert frame.rdd.getNumPartitions() == 1        # planned
    (tmp_path / "b.parquet").unlink()
    assert plans[0].count() == 4
    with pytest.raises(Exception, match=r"b\.parquet vanished"):
        plans[1].collect()


def test_columns_and_filters(source: Any, every_type: Path) -> None:
    names = ["big", "nested", "cents", "maybe_nested"]
    ours = fastpq.spark.read(source, str(every_type), names, [("big", "<", 20)])
    native = source.read.parquet(str(every_type)).select(names).where("big < 20")
    assert ours.schema == native.schema
    assert rows_of(ours) == rows_of(native)


def test_decimals_of_several_widths(source: Any, tmp_path: Path) -> None:
    most = 10**18 - 1
    digits = "if(id % 7 = 3, null, (id - 50) * 19999999999999999)"
    source.sql(
        f"""select id as big, cast({digits} as decimal(18, 0)) as whole, cast((id - 50) / 100 as decimal(3, 2)) as `a.b``c`,
        cast(if(id % 2 = 0, {most}, -{most}) as decimal(18, 0)) as most, cast(id as decimal(19, 2)) as wide,
        struct(cast(id as decimal(5, 1)) as inner) as nested from range(100)"""
    ).write.parquet(str(tmp_path / "table" / "part=1"))
    # a file of a narrower type, without one of the columns
    source.sql("select id + 100 as big, cast(-id as decimal(7, 0)) as whole from range(3)").write.parquet(
        str(tmp_path / "table" / "part=2")
    )
    path = str(tmp_path / "table")
    schema = source.read.parquet(f"{path}/part=1").schema.add("part", "integer")
    native = source.read.schema(schema).parquet(path)
    ours = fastpq.spark.read(source, path, schema=schema)
    assert ours.schema == native.schema
    assert rows_of(ours) == rows_of(native)
    some = fastpq.spark.read(source, path, ["big", "whole"], [("whole", "<", decimal.Decimal(-(10**17)))], schema)
    assert rows_of(some) == rows_of(native.select("big", "whole").where(f"whole < -{10**17}"))
    assert fastpq.spark.read(source, path, ["whole"], schema=schema).where("whole is null").count() == 14


def test_decimals_beside_names_of_another_case(source: Any, tmp_path: Path) -> None:
    cents = pa.array([decimal.Decimal("1.23")], pa.decimal128(3, 2))
    pq.write_table(pa.table({"d": cents, "D": [5], "x": cents}), tmp_path / "a.parquet")
    read = fastpq.spark.read(source, str(tmp_path))
    assert [tuple(row) for row in read.collect()] == [(decimal.Decimal("1.23"), 5, decimal.Decimal("1.23"))]
    # of one column each, and of the same
    both = st.StructType([st.StructField("d", st.DecimalType(3, 2)), st.StructField("D", st.DecimalType(20, 2))])
    path = str(tmp_path / "one.parquet")
    pq.write_table(pa.table({"d": cents}), path, store_decimal_as_integer=True)
    assert [tuple(row) for row in fastpq.spark.read(source, path, schema=both).collect()] == [(decimal.Decimal("1.23"),) * 2]
    kind = st.DecimalType(3, 2)
    schema = st.StructType([st.StructField("x", kind, True, {"comment": "in euros"}), st.StructField("d", kind)])
    read = fastpq.spark.read(source, str(tmp_path / "a.parquet"), schema=schema)
    assert read.schema == schema
    assert read.schema["x"].metadata == {"comment": "in euros"}
    with pytest.raises(fastpq.SchemaError, match="twice"):
        fastpq.spark.read(source, str(tmp_path), ["x", "x"])


def test_errors_name_the_place(source: Any, tmp_path: Path) -> None:
    path = tmp_path / "broken.parquet"
    fastpq.write_table({"a": np.arange(1000), "b": np.arange(1000)}, path, row_group_size=500)
    with fastpq.ParquetFile(path) as file:
        start, size = file.metadata.row_group(1).column(1).byte_range
    data = bytearray(path.read_bytes())
    data[start + size - 8] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(Exception, match=r"FormatError.*broken\.parquet, row group 1, column b"):
        source.read.format("fastpq").load(str(tmp_path)).collect()


def test_types_of_others(source: Any, tmp_path: Path) -> None:
    """Unsigned integers, float16, milliseconds, times and fixed bytes, which Spark does not write."""
    moment = datetime.datetime(1960, 1, 2, 3, 4, 5, 6000)
    table = pa.table({
        "u8": pa.array([255, None], pa.uint8()), "u64": pa.array([2**64 - 1, 0], pa.uint64()),
        "f16": pa.array([0.5, None], pa.float16()),
        "ms": pa.array([moment, None], pa.timestamp("ms")), "time": pa.array([datetime.time(1, 2, 3, 4), None], pa.time64("us")),
        "fixed": pa.array([b"abcd", None], pa.binary(4)),
    })
    pq.write_table(table, tmp_path / "a.parquet")
    frame = source.read.format("fastpq").load(str(tmp_path))
    assert [kind for _, kind in frame.dtypes] == ["smallint", "decimal(20,0)", "float", "timestamp_ntz", "time(6)", "binary"]
    first = frame.first()
    assert (first.u8, first.u64, first.f16, first.ms, first.time, bytes(first.fixed)) == (
        255, decimal.Decimal(2**64 - 1), 0.5, moment, datetime.time(1, 2, 3, 4), b"abcd",
    )


def test_remote_files(source: Any, tmp_path: Path) -> None:
    for name in "ab":
        fastpq.write_table({"x": np.arange(4), "name": [name] * 4}, tmp_path / f"{name}.parquet")
    with serving(tmp_path) as server:
        urls = [f"{server.url}/{name}.parquet" for name in "ab"]
        rows = fastpq.spark.read(source, urls, ["name", "x"], [("x", ">=", 3)]).collect()
        assert sorted((row.name, row.x) for row in rows) == [("a", 3), ("b", 3)]
        assert {row.status for row in fastpq.spark.verify_dataset(source, urls[0]).collect()} == {"ok"}
        with pytest.raises(FileNotFoundError):
            fastpq.spark.read(source, f"{server.url}/none.parquet")
    options: dict[str, Any] = {"parquet.encryption.uniform.key": "k", "kms.client": CLIENT}
    for path, error in (("memory://nothing", fastpq.UnsupportedError), ("s3://me:secret@bucket/x", fastpq.SchemaError)):
        with pytest.raises(error) as caught:
            fastpq.spark.encrypt_dataset(source, path, **options)
        assert "secret" not in str(caught.value)


def test_remote_folders() -> None:
    memory = fsspec.filesystem("memory")
    for name in ("k=1/a.parquet", "k=1/_hidden.parquet", "k=2/b.parquet"):
        memory.pipe(f"/folder/{name}", b"1234")
    found = {file.path: (file.size, file.partition) for file in list_files(["memory://folder"])}
    assert found == {f"memory:///folder/k={k}/{name}.parquet": (4, (("k", str(k)),)) for k, name in ((1, "a"), (2, "b"))}
    assert [file.path for file in list_files(["memory://folder/k=*/b*"], "memory://folder")] == ["memory:///folder/k=2/b.parquet"]


def test_hidden_names(tmp_path: Path) -> None:
    for name in ("_SUCCESS", ".hidden", "a.parquet", "_folder/b.parquet", "sub/c.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    assert [os.path.relpath(file.path, tmp_path) for file in list_files([str(tmp_path)])] == ["a.parquet", "sub/c.parquet"]
    assert [file.path for file in list_files([tmp_path.as_uri()])] == [file.path for file in list_files([str(tmp_path)])]
