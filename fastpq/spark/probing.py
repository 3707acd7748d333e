"""require_service: whether Python workers of a session can make the client of a key service, asked before a job's first task."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from fastpq.errors import KeyAccessError, ParquetError
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.types import reader_schema

_ANSWER = st.StructType([st.StructField("problem", st.StringType())])
_answered: WeakKeyDictionary[SparkSession, set[ServiceOptions]] = WeakKeyDictionary()


def require_service(spark: SparkSession, service: ServiceOptions | None) -> None:
    """Require a client of the key service on the driver and in workers; each session is asked once for each service.

    Args:
        spark: the session.
        service: options of the key service; None asks nobody.

    Raises:
        KeyAccessError: the client cannot be imported, or a keyring or token cannot be read; names the option and the mend.
    """
    if service is None:
        return
    asked = _answered.setdefault(spark, set())
    if service in asked:
        return
    service.check()

    def answers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            problem = _problem(service)
            yield pa.RecordBatch.from_pylist([{"problem": problem}] * len(batch), schema=reader_schema(_ANSWER))

    context = getattr(spark, "_sc", None)      # with Spark Connect the number of cores is unknown
    workers = 1 if context is None else int(context.defaultParallelism)
    for row in spark.range(0, workers, 1, workers).mapInArrow(answers, _ANSWER).collect():
        if row.problem is not None:
            raise KeyAccessError(f"in a Python worker of Spark: {row.problem}")
    asked.add(service)


def _problem(service: ServiceOptions) -> str | None:
    try:
        service.check()
    except ParquetError as error:
        return str(error)
    return None
