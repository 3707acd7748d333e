"""What fastpq does to Spark's Python workers."""

from __future__ import annotations

import gc
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as st

import fastpq
import fastpq.spark
from fastpq.spark import worker as keeping
from fastpq.spark.jvm import worker
from fastpq.spark.scanning import plan

FROZEN = st.StructType([st.StructField("frozen", st.BooleanType())])


def test_modules_are_kept_in_workers_alone(source: Any, tmp_path: Path) -> None:
    fastpq.write_table({"x": np.arange(10)}, tmp_path / "a.parquet")
    [partition] = plan(source, {"path": str(tmp_path)}, ["x"]).partitions

    def reads(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gc.unfreeze()       # as in a worker of PySpark's own daemon, before the first task of its life
        keeping._kept = False
        for _ in batches:
            assert sum(len(batch) for batch in partition.batches()) == 10
            yield pa.record_batch([pa.array([gc.get_freeze_count() > 10_000])], names=FROZEN.names)

    assert [row.frozen for row in source.range(0, 2, 1, 2).mapInArrow(reads, FROZEN).collect()] == [True, True]
    list(partition.batches())
    assert gc.get_freeze_count() == 0


def test_answers_do_not_wait_for_acknowledgements() -> None:
    """Small messages of a worker leave at once: without TCP_NODELAY each task of the jar takes up to 40 ms more."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as jvm:
        end, _ = server.accept()
        with end:
            thread = threading.Thread(target=worker.serve, args=(end,), daemon=True)
            thread.start()
            connection = worker.Connection(jvm)
            connection.send_json(worker.ASK, {"ask": "nothing", "options": {"path": "/"}, "session": {}})
            kind, payload = connection.receive()
            assert kind == worker.FAILURE
            assert "nothing" in json.loads(payload)["message"]
            assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            jvm.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            assert not thread.is_alive()
