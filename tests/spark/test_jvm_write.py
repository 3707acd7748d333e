"""Writing through the jar: the rows that Spark wrote are the rows that Spark's native source, pyarrow and DuckDB read."""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException

from tests.encryption.keys.peers import MASTER_KEYS
from tests.spark.conftest import CLIENT
from tests.spark.daemon import jvm_workers
from tests.spark.test_jvm_read import COLUMNS, FORMAT, NULLS, rows_of

MORE = (
    "cast(id as varchar(20)) short", "if(id = 3, null, '') empty", "cast(array() as array<int>) no_element",
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
    shown = [name for name in rows.columns if name != "any"]
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
    with pytest.raises(AnalysisException, match=r"there is no option 'partitionby': use df\.write\.partitionBy"):
        save(rows, path, "append", partitionBy="name")
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
    assert not list(path.rglob("_temporary"))


def test_modes_for_what_exists(spark: Any, tmp_path: Path) -> None:
    """The modes error, Spark's default, and ignore."""
    rows, fewer = spark.range(10).selectExpr("id", "id % 2 as part"), spark.range(3).selectExpr("id", "0 as part")
    path = tmp_path / "rows"
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


@pytest.fixture(params=["with an authority", "without an authority"])
def other_filesystem(request: pytest.FixtureRequest, spark: Any, tmp_path: Path) -> Iterator[str]:
    """A folder's URL on a filesystem of Hadoop that is not the local one, although its files are there."""
    name = f"m{uuid.uuid4().hex}"
    is_named = request.param == "with an authority"
    setting = f"fs.viewfs.mounttable.{name if is_named else 'default'}.link./{name}"
    spark._jsc.hadoopConfiguration().set(setting, tmp_path.as_uri())
    yield f"viewfs://{name}/{name}" if is_named else f"viewfs:/{name}"
    spark._jsc.hadoopConfiguration().unset(setting)


def test_other_filesystems(spark: Any, other_filesystem: str, tmp_path: Path) -> None:
    """Bytes pass through the JVM, which knows the filesystem."""
    rows = spark.range(1000).repartition(2).selectExpr(*COLUMNS, "id % 3 as part", "repeat('x', 20000) as wide_text")
    save(rows, f"{other_filesystem}/rows", "append", "part", **FIELD, **{"kms.client": CLIENT})
    assert len(list((tmp_path / "rows").rglob("*.parquet"))) == 6
    found = spark.read.format(FORMAT).option("kms.client", CLIENT).load(f"{other_filesystem}/rows")
    assert rows_of(found.select(rows.columns)) == rows_of(rows)
    assert rows_of(found.where("id > 990").select("id", "text")) == rows_of(rows.where("id > 990").select("id", "text"))
    few = spark.read.format(FORMAT).options(**{"kms.client": CLIENT, "batchRows": "7"}).load(f"{other_filesystem}/rows")
    assert few.limit(3).count() == 3
    assert few.count() == 1000
    next((tmp_path / "rows").rglob("*.parquet")).unlink()
    with pytest.raises(Exception, match="FILE_NOT_EXIST"):
        found.collect()


@pytest.mark.parametrize("other_filesystem", ["with an authority"], indirect=True)     # Hadoop keeps the other's first mounts
def test_a_worker_that_does_not_start_leaves_no_open_file(spark: Any, other_filesystem: str, tmp_path: Path) -> None:
    jvm = int(spark._jvm.ProcessHandle.current().pid())
    spark.conf.set("spark.fastpq.python", str(tmp_path / "no_python"))
    try:
        with pytest.raises(Exception, match="does not run fastpq's Python worker"):
            save(spark.range(10).coalesce(1), f"{other_filesystem}/rows")     # an interrupted second task leaks in Hadoop itself
    finally:
        spark.conf.unset("spark.fastpq.python")
    assert not [name for name in open_files(jvm) if name.startswith(str(tmp_path / "rows"))]


def open_files(process: int) -> list[str]:
    """Return the paths of the files that a process has open."""
    names = []
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):         # closed meanwhile
            names.append(os.readlink(link))
    return names


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
        spark.range(2).selectExpr("id", "'x' as name").write.insertInto("jvm_empty")
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


def test_intervals_and_void(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(3).selectExpr(
        "id", "make_ym_interval(1, cast(id as int)) as months", "array() as nothing", "array(make_ym_interval(0, 5)) as list"
    )
    save(rows, tmp_path / "months")
    texts = "id", "string(months)", "size(nothing)", "string(list)"
    expected = rows_of(rows.selectExpr(*texts))
    for source in ("parquet", FORMAT):
        found = spark.read.format(source).load(str(tmp_path / "months"))
        assert rows_of(found.selectExpr(*texts)) == expected
        assert found.where("months > interval '1-1' year to month").count() == 1


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


def test_streams(spark: Any, tmp_path: Path) -> None:
    """Spark's own file streams read and write the format, folders included."""
    save(spark.range(10).selectExpr("id", "id % 2 as part"), tmp_path / "first", "append")
    spark.sql(f"create table jvm_streamed (id bigint, part bigint) using {FORMAT} partitioned by (part)")
    try:
        for expected in (10, 13):
            stream = spark.readStream.format(FORMAT).schema("id bigint, part bigint").load(str(tmp_path / "first"))
            writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
            writer.format(FORMAT).toTable("jvm_streamed").awaitTermination()
            assert spark.table("jvm_streamed").count() == expected
            save(spark.range(3).selectExpr("id", "7L as part"), tmp_path / "first", "append")
        assert {row.part for row in spark.table("jvm_streamed").collect()} == {0, 1, 7}
    finally:
        spark.sql("drop table jvm_streamed")


def test_names_of_files_have_the_codec(spark: Any, tmp_path: Path) -> None:
    for number, (codec, end) in enumerate((("zstd", ".zstd"), ("none", ""), ("gzip", ".gz"), ('{"id": "zstd"}', ""))):
        path = tmp_path / str(number)
        save(spark.range(3).coalesce(1), path, "append", compression=codec)
        [file] = path.glob("*.parquet")
        assert file.name.partition("-c000")[2] == f"{end}.parquet"
        assert spark.read.parquet(str(path)).count() == 3


@contextmanager
def hadoop_settings(spark: Any, **settings: str) -> Iterator[None]:
    """Hadoop's settings have these values in the block. The names are without ``parquet.encryption.``, with ``_`` for a dot."""
    hadoop = spark._jsc.hadoopConfiguration()
    names = {f"parquet.encryption.{name.replace('_', '.')}": value for name, value in settings.items()}
    for name, value in names.items():
        hadoop.set(name, value)
    try:
        yield
    finally:
        for name in names:
            hadoop.unset(name)


def test_encryption_by_settings_of_hadoop(spark: Any, tmp_path: Path) -> None:
    """Spark's own format encrypts if Hadoop's settings name keys. So the jar's format must not write plaintext."""
    with hadoop_settings(spark, uniform_key="kf"):
        with pytest.raises(AnalysisException, match=r"SchemaError: encryption needs the option kms\.client"):
            save(spark.range(3), tmp_path / "rows")
        save(spark.range(3), tmp_path / "rows", **{"kms.client": CLIENT})
    for file in (tmp_path / "rows").glob("*.parquet"):
        assert file.read_bytes()[-4:] == b"PARE"
    assert spark.read.parquet(str(tmp_path / "rows")).count() == 3


def key_material(file: Path) -> dict[str, Any]:
    """The key material of a uniformly encrypted file, which its footer has as JSON."""
    found = re.search(rb'\{"keyMaterialType".*?\}', file.read_bytes())
    assert found is not None
    material: dict[str, Any] = json.loads(found[0])
    return material


def test_audits_have_the_task(spark: Any, tmp_path: Path) -> None:
    """A worker of the jar has no TaskContext. The JVM tells it which task it works for."""
    folder = tmp_path / "rows"
    rows = spark.range(40).repartition(2).selectExpr("id", "cast(id as string) text", "id wide")
    save(rows, folder, **FIELD, **{"kms.client": CLIENT})
    audited = {"kms.client": CLIENT, "kms.audit": "tests.spark.kms:audit"}
    for _ in range(2):      # the second read has the workers of the first, for other tasks
        assert spark.read.format(FORMAT).options(**audited).load(str(folder)).select("text").distinct().count() == 40
    records = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    tasks = {record["task"] for record in records if record["column"] == "text"}
    assert len(tasks) >= 2
    assert all(re.fullmatch(r"stage \d+, partition \d+, attempt \d+", task) for task in tasks)
    assert len({task.partition(",")[0] for task in tasks}) == 2        # one stage for each read


def test_every_encryption_setting_of_hadoop_counts(spark: Any, tmp_path: Path) -> None:
    """No setting that Spark's own format obeys is left out, so that no file is encrypted less strongly than asked for."""
    service = {"kms.client": CLIENT}
    with hadoop_settings(spark, uniform_key="kf", double_wrapping="false", kms_instance_url="https://kms", kms_instance_id="eu"):
        save(spark.range(3).coalesce(1), tmp_path / "hadoop", **service)
        save(spark.range(3).coalesce(1), tmp_path / "option", **service, **{"parquet.encryption.double.wrapping": "true"})
        assert spark.read.format(FORMAT).options(**service).load(str(tmp_path / "hadoop")).collect() == spark.range(3).collect()
    [file], [other] = (list((tmp_path / name).glob("*.parquet")) for name in ("hadoop", "option"))
    material = key_material(file)
    assert (material["doubleWrapping"], material["kmsInstanceURL"], material["kmsInstanceID"]) == (False, "https://kms", "eu")
    assert key_material(other)["doubleWrapping"] is True       # an option comes before the setting
    with hadoop_settings(spark, uniform_key="kf", data_key_length_bits="257"), pytest.raises(AnalysisException, match="length"):
        save(spark.range(3), tmp_path / "wrong", **service)
    with hadoop_settings(spark, uniform_key="kf", wrap_locally="true"):
        with pytest.raises(AnalysisException, match=r"there is no option 'parquet\.encryption\.wrap\.locally'"):
            save(spark.range(3), tmp_path / "unknown", **service)
    with hadoop_settings(spark, double_wrapping="false", wrap_locally="true"):      # settings without a key ask for no encryption
        save(spark.range(3).coalesce(1), tmp_path / "plain", **service)
    [plain] = (tmp_path / "plain").glob("*.parquet")
    assert plain.read_bytes()[-4:] == b"PAR1"


def test_key_material_beside_files(spark: Any, tmp_path: Path) -> None:
    """Spark moves only the data file into a partition that has a folder of its own. The key material would be lost."""
    options = {"kms.client": CLIENT, "parquet.encryption.uniform.key": "kf",
               "parquet.encryption.key.material.store.internally": "false"}
    path = tmp_path / "rows"
    rows = spark.range(10).selectExpr("id", "id % 2 as part")
    save(rows, path, "append", "part", **options)
    save(rows.where("part = 1"), path, "overwrite", "part", partitionOverwriteMode="dynamic", **options)
    assert spark.read.format(FORMAT).option("kms.client", CLIENT).load(str(path)).count() == 10
    texts = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    spark.sql(f"create table jvm_located (id bigint, part int) using {FORMAT} options ({texts}) partitioned by (part) "
              f"location '{tmp_path / 'table'}'")
    try:
        spark.sql(f"alter table jvm_located add partition (part = 1) location '{tmp_path / 'elsewhere'}'")
        with pytest.raises(Exception, match=r"UnsupportedError: .*key\.material\.store\.internally"):
            spark.sql("insert into jvm_located partition (part = 1) select id from range(5)")
        assert not list((tmp_path / "elsewhere").glob("*"))
        spark.sql("insert into jvm_located partition (part = 2) select id from range(5)")
        assert spark.sql("select count(id), sum(id) from jvm_located").first() == (5, 10)
    finally:
        spark.sql("drop table jvm_located")


def test_a_job_that_begins_keeps_its_folder(spark: Any, tmp_path: Path) -> None:
    """A job that ends removes the folder of all jobs only if the folder is empty at that instant."""
    jvm = spark._jvm
    hadoop = jvm.org.apache.hadoop
    job = hadoop.mapreduce.Job.getInstance(spark._jsc.hadoopConfiguration())
    task = hadoop.mapreduce.task.TaskAttemptContextImpl(job.getConfiguration(), hadoop.mapreduce.TaskAttemptID())
    committer = jvm.io.fastpq.spark.FastpqCommitter(hadoop.fs.Path(tmp_path.as_uri()), task)
    ends, lost = threading.Event(), []

    def begin_jobs() -> None:
        folder = tmp_path / "_temporary" / "other"
        while not ends.is_set():
            with suppress(FileNotFoundError, FileExistsError):       # removed before the folder of the job was there
                folder.parent.mkdir(exist_ok=True)
                folder.mkdir()
                for _ in range(20):
                    if not folder.exists():
                        lost.append(folder)
                        break
                with suppress(FileNotFoundError):
                    folder.rmdir()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(begin_jobs)
        for _ in range(3000):
            committer.cleanupJob(job)
        ends.set()
        running.result()
    assert not lost


def test_checks_of_options_are_kept_in_bounds(spark: Any, tmp_path: Path) -> None:
    """A driver that reads many folders for days holds few answers of the check of options."""
    loader = spark._jvm.Thread.currentThread().getContextClassLoader()
    field = spark._jvm.java.lang.Class.forName("io.fastpq.spark.Settings", True, loader).getDeclaredField("CHECKED")
    field.setAccessible(True)
    for number in range(4):
        save(spark.range(number), tmp_path / str(number))

    def read(number: int, **options: str) -> None:
        frame = spark.read.format(FORMAT).schema("id bigint").options(**options).load(str(tmp_path / str(number)))
        frame._jdf.queryExecution().toRdd()

    read(0)
    before = field.get(None).size()
    for number in range(4):
        read(number)
    assert field.get(None).size() == before
    for rows in range(1, 120):
        read(0, batchRows=str(rows))
    assert field.get(None).size() <= 100
