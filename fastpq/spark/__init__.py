"""PySpark data source ``fastpq``, and jobs over plaintext or encrypted datasets. Executors run fastpq's codec (extra ``spark``).

``tables`` knows a dataset's files, types and commits. ``scan`` reads it and ``write`` writes it. ``streams`` does both for
Structured Streaming, and ``jobs`` rewrites whole datasets. ``jvm`` has the jar, and the Python workers that its format uses.
``core`` imports everything that this room needs from the rest of fastpq.

The driver lists files, reads footers and plans partitions. Executors read and write files with one thread for each task. The
writer and the rewriting jobs end with an atomic commit: ``tables.journal``, or fastpq.datasets.records in object stores.
With the jar, the format is one of Spark's own file source: Spark lists files, plans and commits. Plans and options hold the names
of master keys, but never a key or a token (``keyservice``).

    import fastpq.spark
    fastpq.spark.register(spark)
    spark.read.format("fastpq").option("kms.client", "keyring").load(path)
"""

import sys as _sys

from fastpq.spark.core import UnsupportedError

try:
    import pyarrow as _pyarrow  # noqa: F401 - PySpark's Python data sources exchange batches of pyarrow
    import pyspark as _pyspark
except ImportError as error:
    raise UnsupportedError(
        f"fastpq.spark needs the package {error.name}, which {_sys.executable} does not find (pip install pyspark pyarrow; "
        "Spark's workers run the interpreter of the variable PYSPARK_PYTHON)"
    ) from error

if int(_pyspark.__version__.partition(".")[0]) < 4:
    raise UnsupportedError(
        f"fastpq.spark needs PySpark 4.0 or later, and {_sys.executable} has PySpark {_pyspark.__version__} "
        "(pip install 'pyspark>=4.0,<5')"
    )

from fastpq.spark.data_source import FastpqDataSource
from fastpq.spark.jobs.compaction import compact_dataset
from fastpq.spark.jobs.inspection import inspect_dataset_encryption
from fastpq.spark.jobs.key_rotation import rotate_keys
from fastpq.spark.jobs.reencryption import decrypt_dataset, encrypt_dataset
from fastpq.spark.jobs.running import JobError
from fastpq.spark.jobs.verification import verify_dataset
from fastpq.spark.scan.frames import read
from fastpq.spark.session import clean, jar_path, register

__all__ = [
    "FastpqDataSource",
    "JobError",
    "clean",
    "compact_dataset",
    "decrypt_dataset",
    "encrypt_dataset",
    "inspect_dataset_encryption",
    "jar_path",
    "read",
    "register",
    "rotate_keys",
    "verify_dataset",
]
