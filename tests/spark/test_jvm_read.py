"""Reading through the jar: the same rows as Spark's native source, conditions and columns in the plan, errors by name."""

from __future__ import annotations

import base64
import os
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException

from tests.encryption.keys.peers import MASTER_KEYS
from tests.spark.conftest import CLIENT
from tests.spark.daemon import jvm_workers

FORMAT = "io.fastpq.spark.FastpqFileFormat"
COLUMNS = (
    "id", "cast(id % 100 as tinyint) i8", "cast(id as smallint) i16", "cast(id as int) i32", "cast(id as float) f32",
    "id * 1.5d f64",
    "id % 3 = 0 flag", "cast(id as string) text", "cast(cast(id as string) as binary) bytes", "cast(id as decimal(7, 2)) small",
    "cast(id as decimal(18, 4)) long", "cast(id * -3 as decimal(38, 10)) wide", "date'1969-12-01' + cast(id as int) day",
    "timestamp_micros(id - 500) instant", "cast(timestamp_micros(id) as timestamp_ntz) local", "array(id, null, -id) list",
    "map(cast(id as string), id) pairs", "named_struct('x', id, 'y', array(named_struct('z', cast(id as string)))) nested",
    "array(array(cast(id as decimal(38, 2))), array()) lists",
)
NULLS = [f"if(id % 7 = {number % 7}, null, {text.rpartition(' ')[0]}) {text.rpartition(' ')[2]}"
         for number, text in enumerate(COLUMNS[1:])]


@pytest.fixture(scope="module")
def native(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str]:
    """A DataFrame of every type from Spark's native source, with nulls, and its folder."""
    path = str(tmp_path_factory.mktemp("jvm") / "rows")
    spark.range(1000).repartition(2, "id").selectExpr("id", *NULLS).write.parquet(path)
    return spark.read.parquet(path), path


def rows_of(frame: Any) -> list[Any]:
    return sorted(frame.collect(), key=lambda row: row.id)


def test_every_type(spark: Any, native: tuple[Any, str]) -> None:
    expected, path = native
    found = spark.read.format(FORMAT).load(path)
    assert found.schema == expected.schema
    assert rows_of(found) == rows_of(expected)


def test_filters_and_columns_are_in_the_plan(spark: Any, native: tuple[Any, str]) -> None:
    expected, path = native
    condition = "i32 > 500 and text like '9%' and (small < 990 or day is null) and not (i8 <=> i16)"
    found = spark.read.format(FORMAT).load(path).filter(condition).select("id", "nested.x")
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "GreaterThan(i32,500)" in plan.split("PushedFilters")[1]
    assert "pairs" not in plan
    narrow = spark.read.format(FORMAT).load(path).select("nested.x")._jdf.queryExecution().executedPlan().toString()
    assert "ReadSchema: struct<nested:struct<x:bigint>>" in narrow
    assert rows_of(found) == rows_of(expected.filter(condition).select("id", "nested.x"))


@pytest.fixture(scope="module")
def floats(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a column of floats. The float nearest to 0.1 is above the double."""
    path = tmp_path_factory.mktemp("floats")
    for number, values in enumerate(("0.1", "0.1, 0.5, 0.05", "cast('NaN' as double), -0.0, null", "3e38, -3e38")):
        spark.sql(f"select cast(v as float) f32 from (select explode(array({values})) v)").coalesce(1).write.parquet(
            str(path / f"part={number}"))
    return str(path)


OF_FLOATS = (
    "f32 = 0.1D", "f32 <> 0.1D", "f32 < 0.1D", "f32 <= 0.1D", "f32 > 0.1D", "f32 >= double(float(0.1))",
    "f32 = double(float(0.1))", "f32 in (0.1D, 0.5D)", "f32 > double('NaN')", "f32 = double('NaN')", "f32 <=> 0.5D",
    "f32 < 1e39D", "f32 = cast(0.1 as float)",
)


def test_doubles_against_a_column_of_floats(spark: Any, floats: str) -> None:
    """Rows and whole row groups are compared as doubles."""
    judged = spark.read.parquet(floats).selectExpr("*", *(f"{text} as c{n}" for n, text in enumerate(OF_FLOATS))).collect()
    for number, condition in enumerate(OF_FLOATS):
        found = spark.read.format(FORMAT).load(floats).where(condition)
        expected = sorted(str(tuple(row[:2])) for row in judged if row[f"c{number}"])
        assert sorted(str(tuple(row)) for row in found.collect()) == expected, condition
        assert found.count() == len(expected), condition


def test_a_table(spark: Any, native: tuple[Any, str]) -> None:
    expected, path = native
    spark.sql(f"create table jvm_rows using {FORMAT} options (path '{path}')")
    try:
        found = spark.sql("select sum(small), max(text), count(*), count(nested.x) from jvm_rows").collect()
    finally:
        spark.sql("drop table jvm_rows")
    assert found == expected.selectExpr("sum(small)", "max(text)", "count(*)", "count(nested.x)").collect()


def test_batches_follow_one_another(spark: Any, native: tuple[Any, str]) -> None:
    expected, path = native
    found = spark.read.format(FORMAT).option("batchRows", "7").load(path)
    assert rows_of(found) == rows_of(expected)
    assert found.limit(3).count() == 3      # stopped early: the worker goes back to the pool
    assert found.count() == 1000


def test_files_of_one_task(spark: Any, tmp_path: Path) -> None:
    """A task reads many small files with one worker. Their columns differ, and a conjunct that excludes nulls counts in some."""
    numbers, texts = pa.array([1, None, 3], pa.int64()), pa.array(["x", "y", None])
    schemas = [
        {"id": numbers, "text": texts}, {"text": texts, "id": numbers}, {"id": pa.array([4, 5, 6], pa.int32())}, {"text": texts},
        {"id": pa.nulls(3, pa.int64()), "text": texts}, {"other": texts, "id": pa.array([7, 8, 9])},
    ]
    for number in range(24):
        columns = schemas[number // 2 % len(schemas)]
        pq.write_table(pa.table(columns), tmp_path / f"{number:02}.parquet")
    frames = [spark.read.schema("id bigint, text string").format(name).load(str(tmp_path)) for name in ("parquet", FORMAT)]
    assert frames[1].rdd.getNumPartitions() <= 2
    for condition in (
        "true", "id is not null", "text is not null", "id is null", "id > 3", "id > 3 and text is null",
        "id is not null and text is not null", "id is not null or text = 'x'",
    ):
        native, ours = (sorted(map(str, frame.where(condition).collect())) for frame in frames)
        assert ours == native, condition


def test_a_script_reads_on_after_the_end_of_its_task(spark: Any, tmp_path: Path) -> None:
    """Another thread of Spark feeds the script. The memory that it reads must stay mapped, and no other task may fill it."""
    path = str(tmp_path / "rows")
    spark.range(0, 400_000, 1, 2).selectExpr("id", "concat('value number ', id, repeat('x', 30)) text").write.parquet(path)
    spark.read.format(FORMAT).load(path).createOrReplaceTempView("jvm_scripted")
    scripted = "select transform(text) using 'cat' as (text) from jvm_scripted"
    for _ in range(8):
        assert spark.sql(f"select count(*) from ({scripted} limit 1)").head()[0] == 1
    assert spark.sql(f"select count(distinct text) from ({scripted})").head()[0] == 400_000


def test_an_error_bears_its_name(spark: Any, native: tuple[Any, str], tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match=r"PATH_NOT_FOUND.*nowhere"):
        spark.read.format(FORMAT).load(str(tmp_path / "nowhere"))
    with pytest.raises(Exception, match="SchemaError: the option 'password' would carry a secret"):
        spark.read.format(FORMAT).option("password", "x").load(native[1])
    (tmp_path / "torn").mkdir()
    for file in Path(native[1]).glob("*.parquet"):
        whole = file.read_bytes()
        (tmp_path / "torn" / file.name).write_bytes(whole[:200] + bytes(400) + whole[600:])
    with pytest.raises(Exception, match=r"FastpqException: (Format|Limit|Unsupported)Error: ") as raised:
        spark.read.format(FORMAT).load(str(tmp_path / "torn")).collect()
    assert "torn" in str(raised.value)


def test_partitions(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(300).selectExpr("id", "id % 3 as part", "if(id % 2 = 0, null, cast(id % 5 as string)) as name")
    rows.write.partitionBy("part", "name").parquet(str(tmp_path / "rows"))
    expected = spark.read.parquet(str(tmp_path / "rows"))
    found = spark.read.format(FORMAT).load(str(tmp_path / "rows"))
    assert found.schema == expected.schema
    assert rows_of(found) == rows_of(expected)
    chosen = "part = 1 and name is not null and id > 100"
    plan = found.where(chosen)._jdf.queryExecution().executedPlan().toString()
    assert "part#" in plan.split("PartitionFilters")[1].split("PushedFilters")[0]
    assert rows_of(found.where(chosen)) == rows_of(expected.where(chosen))


def test_encrypted_files(spark: Any, native: tuple[Any, str], tmp_path: Path) -> None:
    path = str(tmp_path / "secret")
    keys = {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:text,wide"}
    native[0].write.options(**keys).parquet(path)
    with pytest.raises(Exception, match="KeyAccessError"):
        spark.read.format(FORMAT).load(path)
    found = spark.read.format(FORMAT).option("kms.client", CLIENT).load(path)
    assert rows_of(found) == rows_of(native[0])
    plan = found._jdf.queryExecution().toString()
    for key in MASTER_KEYS.values():
        assert key.hex() not in plan
        assert base64.b64encode(key).decode() not in plan


def test_a_killed_worker_fails_its_task_alone(spark: Any, native: tuple[Any, str]) -> None:
    """The task is told so, the next one gets another worker, and no memory with a name is left."""
    before = set(os.listdir("/dev/shm")), set(os.listdir(tempfile.gettempdir()))

    slow = "reflect('java.lang.Thread', 'sleep', 20L + id * 0)"     # in Spark's loop over the rows of a batch
    found = spark.read.format(FORMAT).option("batchRows", "5").load(native[1]).select("id")
    jvm = int(spark._jvm.ProcessHandle.current().pid())
    with ThreadPoolExecutor(1) as pool:
        counted = pool.submit(found.selectExpr(slow).collect)
        killed: list[int] = []
        while not spark.sparkContext.statusTracker().getActiveStageIds():
            time.sleep(0.1)
        time.sleep(1)       # of ten that the tasks take; idle workers of earlier tests hold memory, too
        while not killed and not counted.done():
            killed = [process for process in jvm_workers(jvm) if holds_memory(process)]
        assert killed
        for process in killed:
            os.kill(process, signal.SIGKILL)
        with pytest.raises(Exception, match="worker was lost"):
            counted.result()
    assert found.count() == 1000
    names = {name for name in set(os.listdir("/dev/shm")) - before[0] if "fastpq" in name}
    assert not names
    assert not {name for name in set(os.listdir(tempfile.gettempdir())) - before[1] if name.startswith("fastpq-")}


@pytest.mark.slow
def test_rows_of_more_bytes_than_java_maps_at_once(spark: Any, tmp_path: Path) -> None:
    rows, width = 100_000, 1400         # 1.1 GB of int64
    offsets, zeros = pa.array(range(0, rows * width + 1, width), pa.int32()), pa.array(np.zeros(rows * width, np.int64))
    lists = pa.ListArray.from_arrays(offsets, zeros)
    pq.write_table(pa.table({"id": range(rows), "list": lists}), tmp_path / "rows.parquet", row_group_size=rows)
    del zeros, lists
    found = spark.read.format(FORMAT).option("batchRows", str(rows)).load(str(tmp_path))
    assert list(found.selectExpr("sum(id)", f"sum(list[{width - 1}] + size(list))").head()) == [sum(range(rows)), rows * width]


def holds_memory(process: int) -> bool:
    """Whether the process is a worker that has read: it holds shared memory."""
    with suppress(OSError):
        return any("memfd:fastpq" in os.readlink(f"/proc/{process}/fd/{number}") for number in os.listdir(f"/proc/{process}/fd"))
    return False
