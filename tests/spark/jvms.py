"""Options by which the JVMs of the tests start in half of the processor time, and the archive of Spark's classes.

``python -m tests.spark.jvms FILE`` makes the archive: of the classes of a session that does some work, as they lie in memory.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
# For sessions of minutes: C2 and G1 take more time than they save, the small code cache of C1 alone is swept again and again, and
# a small first bound of class metadata makes collections of the whole heap. A sixth of the time of a start verifies bytecode.
QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:-UseCodeCacheFlushing -XX:MetaspaceSize=256m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
VERIFY = "-XX:+BytecodeVerificationRemote"      # behind QUICK: bytecode is verified, as users' JVMs do; without the archive
TIMEOUT = 600           # seconds for making the archive: a last guard
RUN_LOCALLY = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
}


def quick_jvm() -> str:
    """Options of a JVM of Spark, with the archive of classes if one is there."""
    archive = _archive()
    # a JVM with another class path goes without the archive, silently: Spark reads the output of its launcher
    return f"{QUICK} -XX:SharedArchiveFile={archive} -Xlog:disable" if archive is not None and archive.exists() else QUICK


def make_archive() -> None:
    """Make the archive of classes, if a JDK is there, and the archive is not; wait for a process that makes the archive."""
    archive = _archive()
    if archive is None:
        return
    BUILD.mkdir(exist_ok=True)
    with (BUILD / "spark-classes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if archive.exists():
            return
        for old in BUILD.glob("spark-classes-*"):
            old.unlink()
        whole = archive.with_suffix(".new")
        command = [sys.executable, "-m", "tests.spark.jvms", str(whole)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        if done.returncode:
            raise RuntimeError(f"no archive of Spark's classes was made: {done.stderr[-4000:]}")
        whole.replace(archive)


def _archive() -> Path | None:
    """Where the archive of this JDK and this PySpark is; None without a JDK, or where an option of a JVM cannot name the file."""
    java = shutil.which("java")
    if java is None or shutil.which("jcmd") is None or " " in str(BUILD):
        return None
    program, home = Path(java).resolve(), Path(pyspark.__file__).parent
    changes = [path.stat().st_mtime_ns for path in (program, home / "jars")]        # of jars that changed a JVM takes no archive
    known = f"{program} {home} {pyspark.__version__} {changes} {QUICK}"
    return BUILD / f"spark-classes-{hashlib.sha256(known.encode()).hexdigest()[:16]}.jsa"


def work(target: Path) -> None:
    """Write the classes of a session that reads and writes to an archive."""
    from pyspark.sql import SparkSession

    import fastpq.spark
    from tests.narrowing import present

    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "512m")
    settings = {**RUN_LOCALLY, "spark.driver.extraJavaOptions": f"{QUICK} -XX:+RecordDynamicDumpInfo -Xlog:disable"}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        events = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": folder.as_uri(), "spark.sql.shuffle.partitions": "2"}
        for name, value in (settings | events).items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        fastpq.spark.register(spark)
        rows = spark.range(1000).selectExpr("id", "string(id) as text", "id % 3 as part", "array(id, null) as list")
        rows.write.partitionBy("part").parquet(str(folder / "native"))
        rows.repartition(2).write.format("fastpq").mode("append").save(str(folder / "ours"))
        native = spark.read.parquet(str(folder / "native"))
        ours = spark.read.format("fastpq").load(str(folder / "ours"))
        joined = native.join(ours.selectExpr("id", "text as other"), "id").where("text < '5' and other > '1'")
        joined.groupBy("part").agg({"id": "sum", "text": "max"}).orderBy("part").collect()
        spark.createDataFrame([(1, "a")], "id long, text string").collect()
        stream = spark.readStream.format("fastpq").schema(rows.schema).load(str(folder / "ours")).writeStream.format("fastpq")
        query = stream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
        query.start(str(folder / "streamed")).awaitTermination()
        jvm = present(spark._jvm).ProcessHandle.current().pid()
        subprocess.run(["jcmd", str(jvm), "VM.cds", "dynamic_dump", str(target)], check=True, stdout=sys.stderr)
        if not target.exists():     # jcmd succeeds all the same
            raise RuntimeError(f"the JVM wrote no {target}")
        spark.stop()


if __name__ == "__main__":
    work(Path(sys.argv[1]))
