"""Driver functions beside reading: register the data source, and clean up after failed jobs."""

from __future__ import annotations

import logging
import sys
from functools import lru_cache
from typing import Any

from pyspark.sql import SparkSession

from fastpq.datasets import records
from fastpq.errors import UnsupportedError
from fastpq.spark import journal
from fastpq.spark.jvm.jar import JAR, PROVIDER
from fastpq.spark.listing import local_path, store_of
from fastpq.spark.source import FastpqDataSource, PushdownDataSource

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
TIME_ZONE = "spark.sql.session.timeZone"
TIMESTAMP_TYPE = "spark.sql.timestampType"
CATALOG = "spark.sql.catalog.fastpq"
BEHIND_JAR = "fastpq_python"        # FastpqTable.java asks for this name
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def pushdown_enabled(spark: SparkSession) -> bool:
    return str(spark.conf.get(PUSHDOWN, "false")).lower() == "true"


def partition_time_zone(spark: SparkSession) -> str | None:
    """The time zone of timestamps in the names of folders; None where the session prefers timestamps without a time zone."""
    if str(spark.conf.get(TIMESTAMP_TYPE, "TIMESTAMP_LTZ")).upper() == "TIMESTAMP_NTZ":
        return None
    return str(spark.conf.get(TIME_ZONE, "UTC"))


def register(spark: SparkSession) -> None:
    """Make ``fastpq`` a format of a session.

    Spark shows its settings to no Python source. The present settings are kept with the format: filters are taken from plans if
    Python sources may do so; ``spark.sql.session.timeZone``, ``spark.sql.timestampType`` and
    ``spark.sql.sources.partitionOverwriteMode`` (dynamic) stand for the options ``timeZone`` and ``partitionOverwriteMode``.
    Register again after changing one of the settings.

    A Python thread registers for itself before ``df.write``: Spark looks up formats in the active session of the thread, and a
    new thread has none.

    In a session with fastpq's jar (``jar_path``) the jar reads the format in columns, with this interpreter for planning; SQL
    takes paths as tables of the catalog ``fastpq``. The logger ``fastpq.spark`` says once which way the session reads.

    Args:
        spark: the session.
    """
    base = PushdownDataSource if pushdown_enabled(spark) else FastpqDataSource
    zone, mode = partition_time_zone(spark), str(spark.conf.get(OVERWRITE_MODE, "static"))
    reading = {} if zone is None else {"timeZone": zone}
    writing = {"partitionOverwriteMode": "dynamic"} if mode.lower() == "dynamic" else {}
    _activate(spark)
    has_jar = _reads_with_jar(spark)
    members: dict[str, object] = {"read_defaults": reading, "write_defaults": writing}
    if has_jar:     # whose source has the name; it gives streams and writes to the source in Python
        members["name"] = classmethod(lambda cls: BEHIND_JAR)
    spark.dataSource.register(type(base.__name__, (base,), members))
    if has_jar:
        spark.conf.set("spark.fastpq.driver.python", sys.executable)
        spark.conf.set("spark.fastpq.python", str(spark.sparkContext.pythonExec))
        if spark.conf.get(CATALOG, None) is None:
            spark.conf.set(CATALOG, "io.fastpq.spark.FastpqCatalog")
    _say(has_jar)


def _reads_with_jar(spark: SparkSession) -> bool:
    """Whether Spark takes the jar's source for the name ``fastpq``; Spark then refuses a source in Python of this name."""
    if not hasattr(spark, "_jsparkSession"):        # Spark Connect
        return False
    # imported here: PySpark for Spark Connect comes without py4j
    from py4j.java_gateway import JavaClass
    from py4j.protocol import Py4JJavaError

    client = spark.sparkContext._gateway._gateway_client    # type: ignore[union-attr]
    sources = JavaClass("org.apache.spark.sql.execution.datasources.DataSource", client)
    try:
        found = sources.lookupDataSource("fastpq", spark._jsparkSession.sessionState().conf())
    except Py4JJavaError:       # of a name without a source
        return False
    return bool(found.getName() == PROVIDER)


@lru_cache
def _say(has_jar: bool) -> None:
    way = "in columns, by the jar" if has_jar else "through Python, without the jar (fastpq.spark.jar_path)"
    logging.getLogger("fastpq.spark").info("the format fastpq reads %s", way)


def _activate(spark: SparkSession) -> None:
    """Make a session the active one of this thread; a client of Spark Connect looks up formats on the server."""
    if hasattr(spark, "_jsparkSession"):
        machine: Any = spark._jvm
        machine.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)


def jar_path() -> str:
    """The path of fastpq's jar for Spark, for the setting ``spark.jars`` of a new session: ``fastpq`` is then read in columns.

    Raises:
        UnsupportedError: this installation has no jar: it was built without PySpark or javac.
    """
    if not JAR.exists():
        raise UnsupportedError("this fastpq was installed without its jar for Spark: building the jar needs pyspark and javac")
    return str(JAR)


def clean(path: str, older_than: float = 0.0) -> list[str]:
    """Finish interrupted commits of a dataset, and remove leftovers of failed jobs.

    Args:
        path: the dataset's folder, local or in S3.
        older_than: least age in seconds of the newest file of a job to remove; 0 only if no other job is writing. In S3, least
            age of uploads to abort.

    Returns:
        The names of the finished and removed jobs; in S3 also the paths of aborted uploads.
    """
    store = store_of(path)
    return journal.finish_commits(local_path(path), older_than) if store is None else records.clean_up(store, older_than)
