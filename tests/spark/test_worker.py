"""What fastpq does to Spark's Python workers."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import types as st

import fastpq
import fastpq.spark
from fastpq.spark import worker
from fastpq.spark.scanning import plan

FROZEN = st.StructType([st.StructField("frozen", st.BooleanType())])


def test_modules_are_kept_in_workers_alone(source: Any, tmp_path: Path) -> None:
    fastpq.write_table({"x": np.arange(10)}, tmp_path / "a.parquet")
    [partition] = plan(source, {"path": str(tmp_path)}, ["x"]).partitions

    def reads(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            assert sum(len(batch) for batch in partition.batches()) == 10
            yield pa.record_batch([pa.array([gc.get_freeze_count() > 10_000])], names=FROZEN.names)

    assert [row.frozen for row in source.range(0, 2, 1, 2).mapInArrow(reads, FROZEN).collect()] == [True, True]
    list(partition.batches())
    assert gc.get_freeze_count() == 0


@pytest.mark.linux        # TCP_QUICKACK
def test_connections_stay_open_when_they_acknowledge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskContext, "get", object)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        connection, _ = server.accept()
        one, other = socket.socketpair()        # not of the internet
        with connection, one, other:
            client.sendall(b"task")
            assert connection.recv(4) == b"task"
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
            before = len(os.listdir("/proc/self/fd"))
            socket.setdefaulttimeout(30)        # which is for connections that are made, not for those that there are
            try:
                for _ in range(100):
                    worker.acknowledge()
            finally:
                socket.setdefaulttimeout(None)
            assert len(os.listdir("/proc/self/fd")) < before + 100      # other threads may open some
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 1
            assert os.get_blocking(connection.fileno())
            client.sendall(b"input")
            assert connection.recv(5) == b"input"
