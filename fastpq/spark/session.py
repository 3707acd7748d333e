"""What a driver calls beside reading: registering the source, and cleaning up."""

from __future__ import annotations

from pyspark.sql import SparkSession

from fastpq.spark import journal
from fastpq.spark.listing import local_path
from fastpq.spark.source import FastpqDataSource, PushdownDataSource

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def pushdown_enabled(spark: SparkSession) -> bool:
    return str(spark.conf.get(PUSHDOWN, "false")).lower() == "true"


def register(spark: SparkSession) -> None:
    """Make ``fastpq`` a format of a session; it takes filters from plans if the session lets Python sources do so now.

    Args:
        spark: the session.
    """
    spark.dataSource.register(PushdownDataSource if pushdown_enabled(spark) else FastpqDataSource)


def clean(path: str, older_than: float = 0.0) -> list[str]:
    """Finish commits of a dataset that a driver left unfinished, and remove what failed jobs left.

    Args:
        path: the dataset's folder.
        older_than: seconds for which a job's files have not changed; 0 if no other job writes now.

    Returns:
        The names of the jobs.
    """
    return journal.finish_commits(local_path(path), older_than)
