"""Writing through the jar: the rows that Spark wrote are the rows that Spark's native source, pyarrow and DuckDB read."""

from __future__ import annotations

import os
import signal
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import s3fs
from pyspark.errors import AnalysisException

from tests.encryption.keys.peers import MASTER_KEYS
from tests.spark.conftest import CLIENT
from tests.spark.daemon import jvm_workers
from tests.spark.test_jvm_read import COLUMNS, FORMAT, NULLS, rows_of

MORE = (
    "cast(id as varchar(20)) short", "null as nothing", "if(id = 3, null, '') empty", "cast(array() as array<int>) no_element",
    "if(id % 3 = 0, null, array(named_struct('a', id, 'b', map('k', array(id, null))))) deep",
    "map(id, named_struct('x', cast(id as decimal(9, 1)), 'y', if(id % 2 = 0, null, id % 5 = 0))) by_id",
    "make_dt_interval(id, 1, 2, 3.5) span", "cast('9999-12-31 23:59:59.999999' as timestamp) last",
    "cast(repeat('9', 38) as decimal(38, 0)) - id as most", "cast(-5 as decimal(20, 3)) as below",
    "parse_json(concat('{\"id\": ', id, '}')) as any", "cast('nan' as double) odd", "cast('-0.0' as float) zero",
)
FIELD = {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:text,wide"}


def save(frame: Any, path: object, mode: str = "append", *folders: str, **options: str) -> None:
    frame.write.format(FORMAT).mode(mode).partitionBy(*folders).options(**options).save(str(path))


@pytest.mark.parametrize("columns", [COLUMNS, ("id", *NULLS)], ids=["values", "nulls"])
def test_every_type(spark: Any, tmp_path: Path, columns: tuple[str, ...]) -> None:
    rows = spark.range(1000).repartition(3).selectExpr(*columns, *MORE)
    save(rows, tmp_path / "rows")
    found = spark.read.parquet(str(tmp_path / "rows"))
    shown = [name for name in rows.columns if name not in ("any", "nothing")]
    assert str(rows_of(found.select(shown))) == str(rows_of(rows.select(shown)))      # a NaN equals no other
    assert str(rows_of(found.selectExpr("id", "to_json(any)"))) == str(rows_of(rows.selectExpr("id", "to_json(any)")))
    assert found.select(shown).dtypes == rows.select(shown).dtypes
    files = list((tmp_path / "rows").glob("*.parquet"))
    assert len(files) == 3
    stored = {column.name: column.physical_type for column in pq.ParquetFile(files[0]).schema}
    assert (stored["small"], stored["long"], stored["wide"]) == ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")
    assert sum(pq.read_table(file, columns=["id", "text", "list", "wide"]).num_rows for file in files) == 1000
    read = spark.read.format(FORMAT).load(str(tmp_path / "rows"))
    assert str(rows_of(read.select(shown))) == str(rows_of(rows.select(shown)))


def test_rows_that_no_generated_code_made(spark: Any, tmp_path: Path) -> None:
    """Rows of Python objects come as other rows than those of compiled queries."""
    rows = [(1, "a", None), (2, None, [1, 2]), (3, "ü" * 100, [])]
    frame = spark.createDataFrame(rows, "id bigint, text string, list array<int>")
    save(frame, tmp_path / "rows")
    assert [tuple(row) for row in rows_of(spark.read.parquet(str(tmp_path / "rows")))] == rows


def test_batches_and_row_groups(spark: Any, tmp_path: Path) -> None:
    """Batches of 32 MiB, whose wide rows make the shared memory grow, and of 65,536 rows follow one another."""
    wide = "id < 60000 and id % 10000 = 0"
    rows = spark.range(0, 200_000, 1, 1).selectExpr("id", f"if({wide}, repeat(char(97 + id % 26), 9000000), 'x') as text")
    save(rows, tmp_path / "rows", "append", rowGroupSize="70000", compression="zstd")
    (file,) = (tmp_path / "rows").glob("*.parquet")
    metadata = pq.ParquetFile(file).metadata
    assert metadata.num_rows == 200_000
    assert metadata.num_row_groups >= 3
    sums = "sum(id)", "sum(length(text))", "sum(hash(id, text))", "count(*)"
    assert spark.read.parquet(str(tmp_path / "rows")).selectExpr(*sums).first() == rows.selectExpr(*sums).first()


def test_modes_and_folders(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(90).selectExpr("id", "id % 3 as part", "if(id % 2 = 0, null, concat('n ', id % 5)) as name")
    path = tmp_path / "rows"
    save(rows, path, "append", "part", "name")
    assert (path / "part=1" / "name=n 1").is_dir()

    def found() -> list[Any]:
        return rows_of(spark.read.parquet(str(path)).select("id", "part", "name"))

    expected = rows_of(rows)
    assert [tuple(row) for row in found()] == [tuple(row) for row in expected]
    save(rows.where("id < 9"), path, "append", "part", "name")
    assert len(found()) == 99
    with pytest.raises(Exception, match="SchemaError: partitionBy names columns that the rows have not: nothing"):
        save(rows, path, "append", partitionBy="nothing")
    with pytest.raises(Exception, match="give one"):
        save(rows, path, "append", "part", partitionBy="name")
    save(rows.where("part = 2 and id > 50"), path, "overwrite", "part", "name", partitionOverwriteMode="dynamic")
    assert {row.part for row in found()} == {0, 1, 2}
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        save(rows.where("part = 1 and id > 50"), path, "overwrite", "part", "name")
        assert {row.part for row in found()} == {0, 1, 2}
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    save(rows.where("part = 0"), path, "overwrite", "part", "name")     # the session's static mode counts
    assert {row.part for row in found()} == {0}
    assert not list(path.rglob("_fastpq*"))


def test_modes_for_what_exists(spark: Any, tmp_path: Path, moto_url: str) -> None:
    """The modes error, Spark's default, and ignore."""
    bucket = f"bucket-{uuid.uuid4().hex}"
    s3fs.S3FileSystem(key="test", secret="test", endpoint_url=moto_url).mkdir(bucket)
    rows, fewer = spark.range(10).selectExpr("id", "id % 2 as part"), spark.range(3).selectExpr("id", "0 as part")
    for path in (tmp_path / "rows", f"s3a://{bucket}/rows"):
        rows.write.format(FORMAT).partitionBy("part").save(str(path))
        with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
            save(fewer, path, "error")
        save(fewer, path, "ignore")
        found = spark.read.format(FORMAT).load(str(path))
        assert found.count() == 10
        assert {row.part for row in found.collect()} == {0, 1}
        keys = {**FIELD, "parquet.encryption.column.keys": "kc1:id", "kms.client": CLIENT}
        save(fewer, f"{path} of ignore", "ignore", **keys)
        assert spark.read.format(FORMAT).option("kms.client", CLIENT).load(f"{path} of ignore").count() == 3
    (tmp_path / "empty").mkdir()
    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        save(rows, tmp_path / "empty", "errorifexists")
    with pytest.raises(AnalysisException, match="SchemaError: the option 'password' would carry a secret"):
        save(rows, tmp_path / "with a secret", "error", password="x")


def test_managed_tables(spark: Any) -> None:
    """Tables whose folder the catalog chooses."""
    spark.range(4).selectExpr("id", "string(id % 2) as part").write.format(FORMAT).partitionBy("part").saveAsTable("jvm_managed")
    try:
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
            spark.range(4).write.format(FORMAT).saveAsTable("jvm_managed")
        spark.sql("insert into jvm_managed values (7, '1')")
        assert {tuple(row) for row in spark.table("jvm_managed").collect()} == {(0, "0"), (1, "1"), (2, "0"), (3, "1"), (7, "1")}
        spark.sql(f"create table jvm_selected using {FORMAT} as select id from jvm_managed where id > 2")
        assert [row.id for row in spark.sql("select id from jvm_selected order by id").collect()] == [3, 7]
        spark.sql(f"create table jvm_empty (id bigint, name string) using {FORMAT}")
        assert spark.table("jvm_empty").collect() == []
        spark.range(2).selectExpr("id", "'x' as name").writeTo("jvm_empty").append()
        warehouse = spark.conf.get("spark.sql.warehouse.dir")
        assert spark.read.parquet(f"{warehouse}/jvm_empty").count() == 2
    finally:
        for name in ("jvm_managed", "jvm_selected", "jvm_empty"):
            spark.sql(f"drop table if exists {name}")


def test_tables(spark: Any, tmp_path: Path) -> None:
    spark.sql(f"create table jvm_written (id bigint, text string) using {FORMAT} options (path '{tmp_path / 'table'}')")
    try:
        spark.sql("insert into jvm_written select id, concat('t', id) from range(10)")
        spark.sql("insert into jvm_written values (77, null)")
        assert spark.sql("select count(*), max(id), count(text) from jvm_written").first() == (11, 77, 10)
        spark.sql("insert overwrite jvm_written select id, 'new' from range(3)")
        assert spark.read.parquet(str(tmp_path / "table")).count() == 3
    finally:
        spark.sql("drop table jvm_written")


def test_encrypted(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(1000).selectExpr(*COLUMNS)
    save(rows, tmp_path / "secret", **FIELD, **{"kms.client": CLIENT})
    assert rows_of(spark.read.parquet(str(tmp_path / "secret"))) == rows_of(rows)       # Spark has the keys, too
    for file in (tmp_path / "secret").glob("*.parquet"):
        assert file.read_bytes()[-4:] == b"PARE"
        for key in MASTER_KEYS.values():
            assert key not in file.read_bytes()
    with pytest.raises(Exception, match=r"SchemaError: encryption needs the option kms\.client"):
        save(rows, tmp_path / "no service", **FIELD)
    with pytest.raises(Exception, match="SchemaError: the option 'password' would carry a secret"):
        save(rows, tmp_path / "with a secret", password="x")
    with pytest.raises(Exception, match="names 'other'"):
        keys = {**FIELD, "parquet.encryption.column.keys": "kc1:other"}
        save(rows, tmp_path / "other columns", **keys, **{"kms.client": CLIENT})


def test_types_that_are_not_gathered_go_through_python(spark: Any, tmp_path: Path) -> None:
    """This session has no Python source behind the jar: its name in the error tells the way."""
    with pytest.raises(Exception, match="Data source 'fastpq_python' not found"):
        save(spark.range(3).selectExpr("id", "make_ym_interval(1, 2) as months"), tmp_path / "months")


def test_a_failed_task_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(0, 1000, 1, 2).selectExpr("id", "if(id = 900, raise_error('broken on purpose'), id) as value")
    with pytest.raises(Exception, match="broken on purpose"):
        save(rows, tmp_path / "rows")
    assert not [path for path in (tmp_path / "rows").rglob("*") if path.is_file()]
    save(spark.range(10), tmp_path / "rows")
    assert spark.read.parquet(str(tmp_path / "rows")).count() == 10
    with pytest.raises(Exception, match="SchemaError"):
        save(spark.range(10).selectExpr("id", "id as other"), tmp_path / "wrong", compression="none", compressionLevel="3",
             columnEncoding='{"nowhere": "PLAIN"}')


def test_a_killed_worker_fails_its_task_alone(spark: Any, tmp_path: Path) -> None:
    before = set(os.listdir(tempfile.gettempdir()))
    jvm = int(spark._jvm.ProcessHandle.current().pid())
    slow = "if(id % 1000 = 0, reflect('java.lang.Thread', 'sleep', 30L + id * 0), 'x') as slow"
    rows = spark.range(0, 140_000, 1, 2).selectExpr("id", slow)     # two batches of each task, the first after two seconds
    with ThreadPoolExecutor(1) as pool:
        saved = pool.submit(save, rows, tmp_path / "rows")
        while not spark.sparkContext.statusTracker().getActiveStageIds():
            time.sleep(0.1)
        time.sleep(0.5)
        killed = jvm_workers(jvm)
        assert killed
        for process in killed:
            os.kill(process, signal.SIGKILL)
        with pytest.raises(Exception, match=r"worker was lost|FastpqException"):
            saved.result()
    assert not [path for path in (tmp_path / "rows").rglob("*.parquet") if "_fastpq_temporary" not in str(path)]
    save(spark.range(10), tmp_path / "rows")
    assert spark.read.parquet(str(tmp_path / "rows")).count() == 10
    assert not {name for name in set(os.listdir(tempfile.gettempdir())) - before if name.startswith("fastpq-")}



@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_folders_of_rows_written_through_python(spark: Any, tmp_path: Path, mode: str) -> None:
    """Spark tells the Python source nothing of partitionBy(): rows that no Gatherer takes are refused, not put elsewhere."""
    point = "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040') as point"
    points = spark.range(4).selectExpr("id", point, "id % 2 as part")
    with pytest.raises(Exception, match="give the columns in the option partitionBy instead"):
        save(points, tmp_path / "points", mode, "part")
    assert not (tmp_path / "points").exists()


def test_streams_into_tables_with_folders(spark: Any, tmp_path: Path) -> None:
    """Streams go through Python, which Spark tells nothing of the folders of a table: refused, not put elsewhere."""
    spark.sql(f"create table jvm_streamed (value bigint, part bigint) using {FORMAT} partitioned by (part)")
    try:
        stream = spark.readStream.format("rate").load().selectExpr("value", "value % 2 as part")
        writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        with pytest.raises(Exception, match="give the columns in the option partitionBy instead"):
            writer.toTable("jvm_streamed").processAllAvailable()
        assert spark.table("jvm_streamed").collect() == []
    finally:
        spark.sql("drop table jvm_streamed")
