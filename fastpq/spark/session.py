"""Driver functions beside reading: register the data source, and clean up after failed jobs."""

from __future__ import annotations

from pyspark.sql import SparkSession

from fastpq.spark import journal
from fastpq.spark.listing import local_path
from fastpq.spark.source import FastpqDataSource, PushdownDataSource

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
TIME_ZONE = "spark.sql.session.timeZone"
TIMESTAMP_TYPE = "spark.sql.timestampType"
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

    Args:
        spark: the session.
    """
    base = PushdownDataSource if pushdown_enabled(spark) else FastpqDataSource
    zone, mode = partition_time_zone(spark), str(spark.conf.get(OVERWRITE_MODE, "static"))
    reading = {} if zone is None else {"timeZone": zone}
    writing = {"partitionOverwriteMode": "dynamic"} if mode.lower() == "dynamic" else {}
    spark.dataSource.register(type(base.__name__, (base,), {"read_defaults": reading, "write_defaults": writing}))


def clean(path: str, older_than: float = 0.0) -> list[str]:
    """Finish interrupted commits of a dataset, and remove leftovers of failed jobs.

    Args:
        path: the dataset's folder.
        older_than: least age in seconds of the newest file of a job to remove; 0 only if no other job is writing.

    Returns:
        The names of the finished and removed jobs.
    """
    return journal.finish_commits(local_path(path), older_than)
