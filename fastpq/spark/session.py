"""Other driver functions: register the data source, and clean up after failed jobs."""

from __future__ import annotations

import logging
import sys
from functools import lru_cache
from typing import Any

from pyspark.sql import SparkSession

from fastpq.spark.core import VERSION, UnsupportedError, records
from fastpq.spark.data_source import FastpqDataSource, PushdownDataSource
from fastpq.spark.jvm.jar import FORMAT, JAR
from fastpq.spark.sent import VersionError
from fastpq.spark.tables import journal
from fastpq.spark.tables.listing import local_path, store_of

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
TIME_ZONE = "spark.sql.session.timeZone"
TIMESTAMP_TYPE = "spark.sql.timestampType"
BESIDE_JAR = "fastpq_python"
OUR_CLASSES = "io.fastpq."
FORMATS_WITH_DEFAULTS = "spark.sql.defaultColumn.allowedProviders"      # formats whose tables may have columns with defaults
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def pushdown_enabled(spark: SparkSession) -> bool:
    return str(spark.conf.get(PUSHDOWN, "false")).lower() == "true"


def partition_time_zone(spark: SparkSession) -> str | None:
    """Return the time zone for timestamps in folder names. None if the session prefers timestamps without a time zone."""
    if str(spark.conf.get(TIMESTAMP_TYPE, "TIMESTAMP_LTZ")).upper() == "TIMESTAMP_NTZ":
        return None
    return str(spark.conf.get(TIME_ZONE, "UTC"))


def register(spark: SparkSession) -> None:
    """Make ``fastpq`` a format of a session.

    Spark does not show its settings to Python sources, so the format keeps the present settings. Filters are taken from plans if
    the session lets Python sources do so. ``spark.sql.session.timeZone`` and ``spark.sql.timestampType`` replace a missing option
    ``timeZone``. ``spark.sql.sources.partitionOverwriteMode``, if dynamic, replaces a missing ``partitionOverwriteMode``.
    Register again after changing one of these settings.

    Each Python thread must register before ``df.write``. Spark looks up formats in the thread's active session, and a new thread
    has none.

    In a session with fastpq's jar (``jar_path``), ``fastpq`` is the jar's format, which Spark's own file source reads and writes.
    The Python source is then ``fastpq_python``. The logger ``fastpq.spark`` says once which way the session reads.

    Args:
        spark: the session.

    Raises:
        VersionError: the session has the jar from another version of fastpq.
    """
    base = PushdownDataSource if pushdown_enabled(spark) else FastpqDataSource
    zone, mode = partition_time_zone(spark), str(spark.conf.get(OVERWRITE_MODE, "static"))
    reading = {} if zone is None else {"timeZone": zone}
    writing = {"partitionOverwriteMode": "dynamic"} if mode.lower() == "dynamic" else {}
    _activate(spark)
    with_jar = _has_same_jar(spark)
    members: dict[str, object] = {"read_defaults": reading, "write_defaults": writing}
    if with_jar:
        members["name"] = classmethod(lambda cls: BESIDE_JAR)
    spark.dataSource.register(type(base.__name__, (base,), members))
    if with_jar:
        spark.conf.set("spark.fastpq.driver.python", sys.executable)
        spark.conf.set("spark.fastpq.python", str(spark.sparkContext.pythonExec))
        formats = str(spark.conf.get(FORMATS_WITH_DEFAULTS))
        if "fastpq" not in formats.split(","):
            spark.conf.set(FORMATS_WITH_DEFAULTS, f"{formats},fastpq")
    _say(with_jar)


def has_jar(spark: SparkSession) -> bool:
    """Whether the name ``fastpq`` leads Spark to the jar's format. Spark then refuses a Python source with this name."""
    source = _class_of_format(spark)
    return source is not None and bool(source.getName() == FORMAT)


def _has_same_jar(spark: SparkSession) -> bool:
    """Do the same as has_jar, but refuse a jar from another version of fastpq, whose classes ask this package other questions."""
    source = _class_of_format(spark)
    if source is None or not source.getName().startswith(OUR_CLASSES):
        return False
    package = source.getPackage()
    version = None if package is None else package.getImplementationVersion()       # from the manifest
    if (source.getName(), version) != (FORMAT, VERSION):
        place = source.getProtectionDomain().getCodeSource().getLocation()
        origin = "an earlier fastpq" if version is None else f"fastpq {version}"
        raise VersionError(
            f"the jar in the session is of another version: {place} is from {origin}, and Python runs fastpq {VERSION}. Start a "
            f"new session with spark.jars set to {JAR}, which fastpq.spark.jar_path() returns"
        )
    return True


def _class_of_format(spark: SparkSession) -> Any:
    """Return the Java class that the name ``fastpq`` leads Spark to. Return None without one."""
    if not hasattr(spark, "_jsparkSession"):        # Spark Connect
        return None
    # imported here because PySpark for Spark Connect has no py4j
    from py4j.java_gateway import JavaClass
    from py4j.protocol import Py4JJavaError

    client = spark.sparkContext._gateway._gateway_client    # type: ignore[union-attr]
    sources = JavaClass("org.apache.spark.sql.execution.datasources.DataSource", client)
    try:
        return sources.lookupDataSource("fastpq", spark._jsparkSession.sessionState().conf())
    except Py4JJavaError:       # the name has no source
        return None


@lru_cache
def _say(with_jar: bool) -> None:
    way = "in columns, by the jar" if with_jar else "through Python, without the jar (fastpq.spark.jar_path)"
    logging.getLogger("fastpq.spark").info("the format fastpq reads %s", way)


def _activate(spark: SparkSession) -> None:
    """Make a session active in this thread. With Spark Connect this does nothing, since the server looks up formats."""
    if hasattr(spark, "_jsparkSession"):
        machine: Any = spark._jvm
        machine.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)


def jar_path() -> str:
    """Return the path of fastpq's jar. A new session that has it in ``spark.jars`` reads ``fastpq`` in columns.

    Raises:
        UnsupportedError: this installation was built with FASTPQ_NO_JAR=1 and has no jar.
    """
    if not JAR.exists():
        raise UnsupportedError("this fastpq was built without its jar for Spark (FASTPQ_NO_JAR=1), which needs pyspark and javac")
    return str(JAR)


def clean(path: str, older_than: float = 0.0) -> list[str]:
    """Finish a dataset's interrupted commits, and remove what failed jobs have left behind, those of Spark's committers too.

    Args:
        path: the dataset's folder, local or in S3.
        older_than: minimum age in seconds of a removed job's newest file. Use 0 only if no other job is writing. In S3, the
            minimum age of aborted uploads.

    Returns:
        The names of the finished and removed jobs. In S3, also the paths of aborted uploads.
    """
    store = store_of(path)
    if store is not None:
        return records.clean_up(store, older_than)
    folder = local_path(path)
    return journal.finish_commits(folder, older_than) + journal.remove_spark_jobs(folder, older_than)
