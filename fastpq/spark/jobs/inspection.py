"""The job that tells how a dataset's files are encrypted (inspect_dataset_encryption)."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from fastpq.spark import core
from fastpq.spark.jobs.running import ERROR, Progress, TaskOutcome, Work, run_tasks
from fastpq.spark.tables.listing import ListedFile, list_files

_TEXTS = ("path", "footer", "algorithm", "part", "column", "key", "master_key_id", "wrapping", "kms_instance_url")
PROTECTION = st.StructType(
    [
        *(st.StructField(name, st.StringType()) for name in _TEXTS),
        st.StructField("is_external", st.BooleanType()),
        st.StructField("error", st.StringType()),
    ]
)


def inspect_dataset_encryption(spark: SparkSession, path: str, *, progress: Progress | None = None) -> DataFrame:
    """Tell how each file in a dataset is encrypted, and which master keys open it. No key is needed or used.

    What is told comes from unencrypted bytes, which anybody may have altered. Do not base a decision about trust on it.

    Args:
        spark: the session.
        path: a file, a folder or a glob.
        progress: called on the driver as ``progress(done, total)``, in files. The last call is ``(total, total)``. An exception
            from it cancels the job. With None, the numbers are logged.

    Returns:
        A row for each footer and each column in each file, as ``fastpq.inspect_encryption(path).table()`` has it, and a column
        ``error``. A file that cannot be inspected has one row, with its error.
    """
    work: Work[ListedFile] = Work("inspect", lambda file: (file.path, file.size), lambda file: _inspected(file.path))
    rows: list[tuple[Any, ...]] = []
    for result in run_tasks(spark, list_files([path]), work, progress):
        if result.status == ERROR:
            rows.append((result.path, *[None] * (len(PROTECTION) - 2), result.error))
        else:
            rows += [(*part, None) for part in json.loads(result.made)]
    return spark.createDataFrame(rows, PROTECTION)


def _inspected(path: str) -> TaskOutcome:
    table = core.inspect_encryption(path).table()
    columns = [table[name].to_pylist() for name in PROTECTION.names[:-1]]
    return TaskOutcome(message=json.dumps(list(zip(*columns, strict=True))))
