"""Before a job's first task, check that a session's Python workers can make the key service client (require_service)."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from fastpq.spark.core import KeyAccessError, ParquetError
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.tables.spark_types import reader_schema
from fastpq.spark.versions import map_in_arrow

_ANSWER = st.StructType([st.StructField("problem", st.StringType())])
_services: WeakKeyDictionary[SparkSession, set[ServiceOptions]] = WeakKeyDictionary()


def require_service(spark: SparkSession, service: ServiceOptions | None) -> None:
    """Require that the driver and the workers can make the key service client. Each session is asked once per service.

    Args:
        spark: the session.
        service: key service options. With None, nothing is checked.

    Raises:
        KeyAccessError: the client cannot be imported, or a keyring or token cannot be read. The message names the option and says
            what to do.
    """
    if service is None:
        return
    services = _services.setdefault(spark, set())
    if service in services:
        return
    service.check()

    def answers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            problem = _problem(service)
            yield pa.RecordBatch.from_pylist([{"problem": problem}] * len(batch), schema=reader_schema(_ANSWER))

    context = getattr(spark, "_sc", None)      # with Spark Connect the core count is unknown
    workers = 1 if context is None else int(context.defaultParallelism)
    for row in map_in_arrow(spark.range(0, workers, 1, workers), answers, _ANSWER).collect():
        if row.problem is not None:
            raise KeyAccessError(f"in a Python worker of Spark: {row.problem}")
    services.add(service)


def _problem(service: ServiceOptions) -> str | None:
    try:
        service.check()
    except ParquetError as error:
        return str(error)
    return None
