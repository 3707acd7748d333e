"""Run the probe on every executor of a session."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark import SparkContext, cloudpickle
from pyspark.sql import SparkSession

from fastpq.spark.check import probe
from fastpq.spark.check.probe import Description
from fastpq.spark.core import UnsupportedError
from fastpq.spark.keyservice import ServiceOptions

MOST_ROUNDS = 6             # jobs that look for executors which had no task yet
SECONDS_IN_TASK = 0.3       # so that a fast executor does not take all tasks
TASKS_PER_CORE = 2


def describe_executors(
    spark: SparkSession, service: ServiceOptions | None = None, master_key: str | None = None
) -> tuple[list[Description], int]:
    """Run the probe on each executor of a session.

    Args:
        spark: the session.
        service: key service options. Each executor makes the client.
        master_key: identifier of a master key that each executor wraps and unwraps a random key with.

    Returns:
        One description for each executor that ran a task, and the number of executors that the session has.

    Raises:
        UnsupportedError: the session is one of Spark Connect, which does not show its executors.
    """
    context: SparkContext | None = getattr(spark, "_sc", None)
    if context is None:
        raise UnsupportedError("Spark Connect does not show its executors: run the check on the server, or by spark-submit")
    fields = None if service is None else dataclasses.asdict(service)
    descriptions: dict[str, Description] = {}
    count = 1
    by_value: Any = cloudpickle
    by_value.register_pickle_by_value(probe)        # executors may have no fastpq
    try:
        ask = _question(fields, master_key)
        for _ in range(MOST_ROUNDS):
            tasks = max(TASKS_PER_CORE * int(context.defaultParallelism), count)
            for text in context.parallelize(range(tasks), tasks).mapPartitions(ask).collect():
                description = json.loads(text)
                descriptions[description["executor"]] = description
            count = _executor_count(context)
            if len(descriptions) >= count:
                break
    finally:
        by_value.unregister_pickle_by_value(probe)
    return [descriptions[name] for name in sorted(descriptions)], count


def _question(service: dict[str, Any] | None, master_key: str | None) -> Callable[[Iterable[int]], Iterator[str]]:
    """Return the function of a task. It is made here because pickles hold functions inside functions by value."""
    describe, pause = probe.describe, SECONDS_IN_TASK

    def ask(numbers: Iterable[int]) -> Iterator[str]:
        yield json.dumps(describe(service, master_key))
        time.sleep(pause)

    return ask


def _executor_count(context: SparkContext) -> int:
    """Return the number of executors. In a local session the driver is the only one."""
    infos: Any = context._jsc.sc().statusTracker().getExecutorInfos()
    return max(1, len(infos) - 1)
