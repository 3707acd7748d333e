"""Everything that a running Spark application leaves where others may look: files of shuffles, spills and checkpoints, pages and
REST answers of its web servers, and heaps of its JVMs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.narrowing import present

PLANTED = "FASTPQ_TEST_PLANTED"     # variable of driver and executors, with a text that a search has to find
PLAINTEXT = "a value in plaintext"
PAGES = ("jobs/", "stages/", "storage/", "environment/", "executors/", "SQL/")
ANSWERS = ("jobs", "stages", "executors", "environment", "storage/rdd", "sql?details=true&planDescription=true&length=1000")
TIMEOUT = 120       # seconds for a page, or a heap dump


def gather(spark: SparkSession, frame: Any, folder: Path) -> None:
    """Copy all traces of an application into a folder, while the application runs.

    Args:
        spark: the session on a standalone cluster; logs of the cluster's daemons are beside the folder.
        frame: rows to be shuffled, sorted and checkpointed.
        folder: a new folder; the traces of each kind get a folder in it.
    """
    spark.sparkContext.setCheckpointDir(str(folder / "checkpoint"))
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    text = f"concat('{PLAINTEXT} ', id, repeat('.', 300)) as text"     # more than the buffers between JVM and worker hold
    many = frame.selectExpr("*", text, "explode(sequence(1, 400)) as number")
    rows = many.repartition(2, "number").sortWithinPartitions("text")
    files = folder / "files"

    def copy(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Copy the files of executors while the sorted rows are read from spills."""
        first = next(batches)
        shutil.copytree(os.environ["SPARK_LOCAL_DIRS"], files / str(os.getpid()), ignore_dangling_symlinks=True)
        yield first
        yield from batches

    copied = rows.mapInArrow(copy, rows.schema)
    assert copied.checkpoint().count() == 400 * frame.count()
    _web(spark, folder)
    context = present(spark.sparkContext._jsc).sc()
    jvms = {"driver": int(present(spark._jvm).ProcessHandle.current().pid())}
    jvms |= {f"executor-{process}": process for process in _executors(str(context.applicationId()))}
    assert len(jvms) == 3, jvms
    (folder / "heaps").mkdir()
    for name, process in jvms.items():
        dump = str(folder / "heaps" / name)
        subprocess.run(["jcmd", str(process), "GC.heap_dump", "-all", dump], check=True, capture_output=True, timeout=TIMEOUT)


def _web(spark: SparkSession, folder: Path) -> None:
    """Pages and REST answers of the driver, the master and the workers."""
    driver, name = present(spark.sparkContext.uiWebUrl), spark.sparkContext.applicationId
    urls = [f"{driver}/{page}" for page in PAGES]
    urls += [f"{driver}/api/v1/applications/{name}/{answer}" for answer in ANSWERS]
    for log in (path for path in folder.parent.glob("*.log")):
        for server in re.findall(r"WebUI.* started at (http://\S+)", log.read_text()):
            urls += [f"{server}/", f"{server}/json/"]
    opener = build_opener(ProxyHandler({}))
    (folder / "web").mkdir()
    for number, url in enumerate(urls):
        with opener.open(url, timeout=TIMEOUT) as answer:
            (folder / "web" / f"{number}.txt").write_bytes(f"{url}\n".encode() + answer.read())


def _executors(application: str) -> list[int]:
    """Process ids of the executors' JVMs of an application."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{entry}/cmdline").read_text()
        except OSError:     # it ended
            continue
        if "CoarseGrainedExecutorBackend" in command and application in command and "java" in command.split("\0")[0]:
            found.append(int(entry))
    return found
