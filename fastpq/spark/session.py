"""Driver functions beside reading: register the data source, and clean up after failed jobs."""

from __future__ import annotations

from pyspark.sql import SparkSession

from fastpq.spark import journal
from fastpq.spark.listing import local_path
from fastpq.spark.source import FastpqDataSource, PushdownDataSource

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def pushdown_enabled(spark: SparkSession) -> bool:
    return str(spark.conf.get(PUSHDOWN, "false")).lower() == "true"


def register(spark: SparkSession) -> None:
    """Make ``fastpq`` a format of a session, taking filters from plans if the session now lets Python sources do so.

    Args:
        spark: the session.
    """
    spark.dataSource.register(PushdownDataSource if pushdown_enabled(spark) else FastpqDataSource)


def clean(path: str, older_than: float = 0.0) -> list[str]:
    """Finish interrupted commits of a dataset, and remove leftovers of failed jobs.

    Args:
        path: the dataset's folder.
        older_than: least age in seconds of the newest file of a job to remove; 0 only if no other job is writing.

    Returns:
        The names of the finished and removed jobs.
    """
    return journal.finish_commits(local_path(path), older_than)
