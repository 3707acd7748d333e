"""A driver on a cluster that has bad luck: ``python -m tests.spark.cluster_driver MASTER FOLDER WAY SCENARIO ...``.

WAY is python, jar or native: how Spark reads and writes. Native is Spark's own Parquet source, without keys. SCENARIO is the name
of a table, whose part before an ``@`` is that of a function. Tables are in FOLDER; those whose names end with @s3 are in the
bucket of FASTPQ_TEST_BUCKET. Prints a line of JSON for each one that the driver survives. Each table begins with the rows BEFORE;
rows are appended that make it AFTER.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import WriterCommitMessage

import fastpq.spark
from fastpq.spark.data_source import FastpqDataSource
from fastpq.spark.tables import journal
from fastpq.spark.write.folder_writer import Writer
from tests.narrowing import present
from tests.spark.cluster import WORKERS
from tests.spark.daemon import JVM
from tests.spark.jvms import quick_jvm
from tests.spark.traces import PLANTED, gather

BEFORE, AFTER = 50, 100
BUCKET = "FASTPQ_TEST_BUCKET"       # variable
FORMAT = "fastpq"
PATIENCE = 600          # seconds: a last guard against a hang
CLIENT = "tests.spark.kms:client"
SERVICE: dict[str, Any] = {"kms.client": CLIENT}
KEYS: dict[str, Any] = {"kms.client": CLIENT, "parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:id"}
COMMITTER = "FASTPQ_TEST_COMMITTER"      # variable: the folder with the class FaultyCommitter
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": str(WORKERS),
    "spark.driver.extraJavaOptions": quick_jvm(),
    "spark.executor.extraJavaOptions": quick_jvm(),
    "spark.ui.port": "0",
    "spark.shuffle.compress": "false",              # so that a search finds what is there
    "spark.shuffle.spill.compress": "false",
    "spark.shuffle.spill.numElementsForceSpillThreshold": "5000",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.sql.shuffle.partitions": "2",
}


@dataclass(frozen=True)
class Place:
    """Where a scenario happens: the table, and a prefix of local files for marks."""

    table: str
    marks: Path

    def mark(self, name: str) -> Path:
        return self.marks.with_suffix(f".{name}")


def place_of(folder: Path, scenario: str) -> Place:
    bucket = os.environ[BUCKET]
    return Place(f"s3a://{bucket}/{scenario}" if scenario.endswith("@s3") else str(folder / scenario), folder / scenario)


def session(master: str, events: Path, way: str) -> SparkSession:
    events.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder.master(master).config("spark.eventLog.dir", events.as_uri())
    if way == "jar":
        builder = builder.config("spark.jars", fastpq.spark.jar_path())
    builder = builder.config(f"spark.executorEnv.{PLANTED}", os.environ[PLANTED])
    if COMMITTER in os.environ:
        for process in ("driver", "executor"):
            builder = builder.config(f"spark.{process}.extraClassPath", os.environ[COMMITTER])
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    fastpq.spark.register(spark)
    return spark


def first_time(marker: Path) -> bool:
    """Whether nobody came here before."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def new_rows(spark: SparkSession, trouble: Any = None) -> Any:
    """The rows that are appended, in four tasks; trouble happens in that of partition 1, after its first rows."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.slice(0, 2)
            if trouble is not None and task().partitionId() == 1:
                trouble()
            yield batch.slice(2)

    return spark.range(BEFORE, AFTER, 1, 4).mapInArrow(pass_on, "id long")


def append(frame: Any, place: Place, source: str | None = None) -> None:
    frame.write.format(source or FORMAT).mode("append").options(**KEYS).save(place.table)


def table_of(spark: SparkSession, place: Place) -> Any:
    return spark.read.format(FORMAT).options(**SERVICE).load(place.table)


def killed_reader(spark: SparkSession, place: Place) -> None:
    """Kill -9 of the executor's JVM in the middle of a read."""
    marker = place.mark("killed")

    def kill(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.slice(0, 2)
            if first_time(marker):
                os.kill(int(os.environ[JVM]), signal.SIGKILL)
                time.sleep(60)
            yield batch.slice(2)

    append(spark.range(BEFORE, AFTER, 1, 2), place)
    rows = [row.id for row in table_of(spark, place).mapInArrow(kill, "id long").collect()]
    assert sorted(rows) == list(range(AFTER)), rows


def faulty_committer(spark: SparkSession, place: Place, where: str) -> None:
    """Append with a committer that ends its process once, behind the commit of a task or before that of the job."""
    fault = place.mark("fault")
    fault.touch()
    settings = {
        "spark.sql.parquet.output.committer.class": "FaultyCommitter", "fastpq.test.dies": where, "fastpq.test.fault": str(fault),
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    append(new_rows(spark), place)
    assert not fault.exists(), "nothing has died"
    for name in settings:
        spark.conf.unset(name)


def lost_after_output(spark: SparkSession, place: Place) -> None:
    """An executor that ends after it committed a task, and before the driver learns of it."""
    faulty_committer(spark, place, "task")


def driver_lost_before_job_commit(spark: SparkSession, place: Place) -> None:
    """A driver that ends after all tasks were committed."""
    faulty_committer(spark, place, "job")
    raise SystemExit("the driver should be dead")


def cancelled(spark: SparkSession, place: Place) -> None:
    """A job that is cancelled while a task writes."""
    marker = place.mark("writing")

    def wait() -> None:
        marker.touch()
        time.sleep(PATIENCE)

    def cancel() -> None:
        while not marker.exists():
            time.sleep(0.1)
        spark.sparkContext.cancelJobGroup("cancelled")

    spark.sparkContext.setJobGroup("cancelled", "a write that is cancelled", interruptOnCancel=True)
    thread = threading.Thread(target=cancel, daemon=True)
    thread.start()
    try:
        append(new_rows(spark, wait), place)
    except Exception as error:
        if "cancelled" not in str(error).lower():
            raise
    else:
        raise SystemExit("the job was not cancelled")
    finally:
        thread.join()
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        spark.sparkContext.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


def two_writers(spark: SparkSession, place: Place) -> None:
    """Two appends at the same time, each of one task, which waits for the task of the other."""
    middle = (BEFORE + AFTER) // 2

    def rows(start: int, end: int, mine: Path, other: Path) -> Any:
        def meet(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            mine.touch()
            deadline = time.monotonic() + PATIENCE
            while not other.exists() and time.monotonic() < deadline:
                time.sleep(0.1)
            yield from batches

        return spark.range(start, end, 1, 1).mapInArrow(meet, "id long")

    def write(start: int, end: int, mine: str, other: str) -> None:
        fastpq.spark.register(spark)        # the formats of a thread
        append(rows(start, end, place.mark(mine), place.mark(other)), place)

    with ThreadPoolExecutor() as pool:
        first = pool.submit(write, BEFORE, middle, "first", "second")
        second = pool.submit(write, middle, AFTER, "second", "first")
        for writer in (first, second):
            writer.result()


def killed_executor(spark: SparkSession, place: Place) -> None:
    """Kill -9 of the executor's JVM in the middle of a write."""
    marker = place.mark("killed")

    def kill() -> None:
        if first_time(marker):
            os.kill(int(os.environ[JVM]), signal.SIGKILL)
            time.sleep(60)

    append(new_rows(spark, kill), place)


def task() -> TaskContext:
    """The task that runs in this process."""
    return present(TaskContext.get())


def failing_task(spark: SparkSession, place: Place) -> None:
    def fail() -> None:
        if task().attemptNumber() < 2:
            raise OSError(errno.EIO, "bad luck")

    append(new_rows(spark, fail), place)


def speculation(spark: SparkSession, place: Place) -> None:
    """The first attempt of a task waits for the second one, which Spark starts, and for the commit of its rows."""
    marker, second = place.mark("slow"), place.mark("second")

    def wait() -> None:
        if not first_time(marker):
            second.touch()
            return
        deadline = time.monotonic() + PATIENCE
        while not second.exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"Spark started no second attempt within {PATIENCE} s")
            time.sleep(0.1)
        while len(list(Path(place.table).glob("*.parquet"))) == 2:      # Spark kills this attempt, now or after the other one
            time.sleep(0.1)

    append(new_rows(spark, wait), place)


class FullDisk(Writer):
    """Every file on a disk without room for it; where no file system can be made so small."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        import fastpq.io.sink

        def refuse(sink: Any, buffer: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), sink.name)

        fastpq.io.sink.FileSink.write = refuse  # type: ignore[assignment,method-assign]
        try:
            return super().write(iterator)
        finally:
            del fastpq.io.sink.FileSink.write


class DyingDriver(Writer):
    """Kills the driver's JVM when its commit comes to the renaming of a number, or before all."""

    jvm = 0
    step = 0

    def commit(self, messages: Any) -> None:
        calls = 0

        def dying(work: Any) -> Any:
            def do(one: Any, other: Any) -> None:
                nonlocal calls
                if calls == self.step:
                    os.kill(self.jvm, signal.SIGKILL)
                    os.kill(os.getpid(), signal.SIGKILL)
                calls += 1
                work(one, other)

            return do

        journal.replace_json, os.replace = dying(journal.replace_json), dying(os.replace)
        super().commit(messages)


def source_with(kind: type[Writer], called: str) -> type[FastpqDataSource]:
    """A data source whose writer is another."""

    class Source(FastpqDataSource):
        @classmethod
        def name(cls) -> str:
            return called

        def writer(self, schema: Any, overwrite: bool) -> Any:
            usual = super().writer(schema, overwrite)
            usual.__class__ = kind
            return usual

    return Source


def disk_full(spark: SparkSession, place: Place) -> None:
    """On a file system of 64 KiB where there is one, mounted by the test; else with a sink that finds no room."""
    name = "fastpq"
    if not os.path.ismount(place.table):
        name = "full"
        spark.dataSource.register(source_with(FullDisk, name))
    wide = new_rows(spark).selectExpr("id", "array_join(transform(sequence(1, 2000), x -> uuid()), '') as text")
    frame = wide if os.path.ismount(place.table) else new_rows(spark)
    try:
        append(frame, place, name)
    except Exception as error:
        if "No space left" not in str(error):
            raise
        return
    raise SystemExit("there was room enough")


def _dies(spark: SparkSession, place: Place, step: int) -> None:
    DyingDriver.jvm, DyingDriver.step = present(spark._jvm).ProcessHandle.current().pid(), step
    spark.dataSource.register(source_with(DyingDriver, "dying"))
    append(new_rows(spark), place, "dying")
    raise SystemExit("the driver should be dead")


def driver_killed_before_commit(spark: SparkSession, place: Place) -> None:
    _dies(spark, place, 0)


def driver_killed_in_commit(spark: SparkSession, place: Place) -> None:
    _dies(spark, place, 2)


def jobs(spark: SparkSession, place: Place) -> None:
    """Everything that can be done, with its plans on standard output: to look for keys in what it leaves behind."""
    append(new_rows(spark), place)
    with_filters = fastpq.spark.read(spark, place.table, filters=[("id", ">=", 0)], **SERVICE)
    frame = spark.read.format("fastpq").options(**SERVICE).load(place.table)
    for found in (with_filters, frame.where("id >= 0")):
        found.explain(True)
        print(found._jdf.queryExecution().toString())
        assert found.count() == AFTER
    for job in (fastpq.spark.verify_dataset, fastpq.spark.rotate_keys, fastpq.spark.compact_dataset):
        report = job(spark, place.table, **(KEYS if job is not fastpq.spark.verify_dataset else SERVICE))
        assert {row.status for row in report.collect()} == {"ok"}, report.collect()
    frame = spark.read.format("fastpq").options(**SERVICE).load(place.table)
    assert frame.count() == AFTER
    gather(spark, frame.select("id"), place.mark("traces"))


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        killed_executor, killed_reader, failing_task, speculation, disk_full, cancelled, two_writers, lost_after_output,
        driver_lost_before_job_commit, driver_killed_before_commit, driver_killed_in_commit, jobs,
    )
}


def main() -> int:
    global FORMAT
    master, folder, way, *names = sys.argv[1:]
    spark = session(master, Path(folder) / "events", way)
    for options in (SERVICE, KEYS):
        options["kms.token.file"] = str(Path(folder) / "token")
        if way == "native":
            options.clear()
    if way == "native":
        FORMAT = "parquet"
    for name in names:
        place = place_of(Path(folder), name)
        append(spark.range(BEFORE, numPartitions=2), place)
        SCENARIOS[name.partition("@")[0]](spark, place)
        rows = sorted(row.id for row in table_of(spark, place).collect())
        print(json.dumps({"scenario": name, "rows": rows}), flush=True)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
