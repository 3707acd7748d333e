"""PySpark data source ``fastpq`` and jobs over datasets, encrypted or plaintext; executors run fastpq's codec (extra ``spark``).

The room: reader (the data source) and scanning (read and scan) plan on the driver with listing, footers and planning; batches
reads in executors; staging, running and journal carry the jobs.

The driver lists files, reads footers and plans partitions. Executors read and write files with one thread for each task. The
writer and the rewriting jobs end with an atomic commit (fastpq.spark.journal; the writer in S3: fastpq.datasets.records). With
the jar of fastpq.spark.jvm, Spark reads columns from shared memory. Plans and options name master keys, and never hold keys or
tokens (fastpq.spark.keyservice).

    import fastpq.spark
    fastpq.spark.register(spark)
    spark.read.format("fastpq").option("kms.client", "keyring").load(path)
"""

import sys as _sys

from fastpq.errors import UnsupportedError

try:
    import pyarrow as _pyarrow  # noqa: F401 - PySpark's Python data sources exchange batches of pyarrow
    import pyspark as _pyspark  # noqa: F401
except ImportError as error:
    raise UnsupportedError(
        f"fastpq.spark needs the package {error.name}, which {_sys.executable} does not find (pip install pyspark pyarrow; "
        "Spark's workers run the interpreter of the variable PYSPARK_PYTHON)"
    ) from error

from fastpq.spark.compaction import compact_dataset
from fastpq.spark.jobs import rotate_keys, verify_dataset
from fastpq.spark.rewriting import decrypt_dataset, encrypt_dataset
from fastpq.spark.running import JobError
from fastpq.spark.scanning import read, scan
from fastpq.spark.session import clean, jar_path, register
from fastpq.spark.source import FastpqDataSource

__all__ = [
    "FastpqDataSource",
    "JobError",
    "clean",
    "compact_dataset",
    "decrypt_dataset",
    "encrypt_dataset",
    "jar_path",
    "read",
    "register",
    "rotate_keys",
    "scan",
    "verify_dataset",
]
