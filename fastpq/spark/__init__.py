"""Spark: executors read and write datasets, encrypted or not, with fastpq (extra ``spark``).

    import fastpq.spark
    fastpq.spark.register(spark)
    spark.read.format("fastpq").option("kms.client", "keyring").load(path)
"""

from fastpq.errors import UnsupportedError

try:
    import pyarrow as _pyarrow  # noqa: F401 - what Spark's Python sources speak
    import pyspark as _pyspark  # noqa: F401
except ImportError as error:
    raise UnsupportedError(f"fastpq.spark needs the package {error.name} (pip install fastpq[spark])") from error

from fastpq.spark.compaction import compact_dataset
from fastpq.spark.jobs import rotate_keys, verify_dataset
from fastpq.spark.rewriting import decrypt_dataset, encrypt_dataset
from fastpq.spark.running import JobError
from fastpq.spark.scanning import read, scan
from fastpq.spark.session import clean, register
from fastpq.spark.source import FastpqDataSource

__all__ = [
    "FastpqDataSource",
    "JobError",
    "clean",
    "compact_dataset",
    "decrypt_dataset",
    "encrypt_dataset",
    "read",
    "register",
    "rotate_keys",
    "scan",
    "verify_dataset",
]
