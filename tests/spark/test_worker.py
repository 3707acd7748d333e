"""What fastpq does to Spark's Python workers."""

from __future__ import annotations

import gc
import json
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from pyspark.sql import types as st

import fastpq
import fastpq.spark
from fastpq.spark import worker_memory as keeping
from fastpq.spark.jvm import file_reading, segments, worker
from fastpq.spark.jvm.batch_layout import BatchLayout
from fastpq.spark.jvm.file_reading import FilePart, LaidOutBatch
from fastpq.spark.options import read_options
from fastpq.spark.scan.dataset_footers import Footers
from fastpq.spark.scan.reader import plan_scan
from fastpq.spark.sent import present_versions
from fastpq.spark.tables.listing import list_files

PAUSE = 0.3         # seconds that a slow JVM waits before it opens the segments
PLAN = json.dumps({
    "options": {}, "session": {}, "schema": st.StructType().json(), "table": st.StructType().json(), "filters": [],
    "rowIndex": "", "pushdown": {}, "versions": present_versions(),
}).encode()
QUESTION = json.dumps({"ask": "nothing", "options": {"path": "/"}, "session": {}}).encode()
PART = json.dumps({"path": "/nowhere", "start": 0, "length": 1, "size": 1}).encode()
TASK = bytes(8) + len(PLAN).to_bytes(4, "little") + PLAN + PART     # tests replace the batches of the file
FROZEN = st.StructType([st.StructField("frozen", st.BooleanType())])


def test_modules_are_kept_in_workers_alone(source: Any, tmp_path: Path) -> None:
    fastpq.write_table({"x": np.arange(10)}, tmp_path / "a.parquet")
    schema = st.StructType([st.StructField("x", st.LongType())])
    [partition] = plan_scan(list_files([str(tmp_path)]), schema, read_options({"path": str(tmp_path)}), Footers(None))

    def reads(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gc.unfreeze()       # as in a worker of PySpark's own daemon, before the first task of its life
        keeping._is_frozen = False
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
            connection.send(worker.ASK, bytes(8) + len(QUESTION).to_bytes(4, "little") + QUESTION)
            kind, payload = connection.receive()
            assert kind == worker.FAILURE
            assert "nothing" in json.loads(payload)["message"]
            assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            jvm.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            assert not thread.is_alive()


class SlowJvm:
    """The other end of a worker, which receives all messages that the worker sends at once before it opens a segment."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self.connection = worker.Connection(connection)

    def received(self) -> list[tuple[int, bytes]]:
        """Return the messages that the worker sends before it waits."""
        messages = [self.connection.receive()]
        while select.select([self._socket], [], [], PAUSE)[0]:
            messages.append(self.connection.receive())
        return messages

    def values(self, messages: list[tuple[int, bytes]]) -> list[list[int]]:
        """Open the segments, and return the values of each batch: one column of int64."""
        maps: dict[int, NDArray[np.int64]] = {}
        found = []
        for kind, payload in messages:
            if kind == worker.SEGMENT:
                segment = json.loads(payload)
                maps[segment["segment"]] = np.fromfile(segment["path"], np.int64, segment["size"] // 8)
            elif kind == worker.BATCH:
                number, rows, *layout = np.frombuffer(payload, np.int64).tolist()
                first = layout[4] // 8
                found.append(maps[number][first : first + rows].tolist())
        return found


@contextmanager
def slow_jvm() -> Iterator[SlowJvm]:
    """A slow JVM, connected with a worker in a thread of this process."""
    jvm, end = socket.socketpair()
    with jvm, end:
        thread = threading.Thread(target=worker.serve, args=(end,), daemon=True)
        thread.start()
        yield SlowJvm(jvm)
        jvm.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        assert not thread.is_alive()


def batches_of(*batches: list[int]) -> Iterator[LaidOutBatch]:
    for values in batches:
        layout = BatchLayout()
        layout.add(pa.array(values, pa.int64()))
        yield len(values), layout


def failing_batches() -> Iterator[LaidOutBatch]:
    yield from batches_of([1, 2], [3])
    raise OSError("the file is damaged")


@pytest.fixture(params=["memory", "files"])
def closed_segments(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No segment is kept for the next task: it is too large, or a file. Returns the folder of segments that are files."""
    if request.param == "files":
        monkeypatch.setenv(segments.FOLDER_VARIABLE, str(tmp_path))
    else:
        monkeypatch.setattr(segments, "LARGEST_REUSED_SIZE", 0)
    return tmp_path


def test_large_segments_stay_until_the_jvm_has_read_them(closed_segments: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that closes a segment early gives its descriptor number, and so its path, to an empty segment."""
    monkeypatch.setattr(FilePart, "batches", lambda part: batches_of([1, 2], [3]))
    with slow_jvm() as jvm:
        for _ in range(2):      # the second task has new segments
            jvm.connection.send(worker.READ, TASK)
            messages = jvm.received()
            assert jvm.values(messages) == [[1, 2], [3]]
            for _ in range(2):
                jvm.connection.send(worker.NEXT)
            assert [kind for kind, _ in jvm.received()] == [worker.END]
    assert not list(closed_segments.iterdir())


def test_an_error_comes_after_the_batches_before_it(closed_segments: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FilePart, "batches", lambda part: failing_batches())
    with slow_jvm() as jvm:
        jvm.connection.send(worker.READ, TASK)
        assert jvm.values(jvm.received()) == [[1, 2], [3]]
        for _ in range(2):
            jvm.connection.send(worker.NEXT)
        [(kind, payload)] = jvm.received()
        assert kind == worker.FAILURE
        assert json.loads(payload)["message"] == "the file is damaged"


def test_a_jvm_that_stops_is_not_waited_for(closed_segments: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FilePart, "batches", lambda part: batches_of([1, 2], [3]))
    with slow_jvm() as jvm:
        jvm.connection.send(worker.READ, TASK)
        jvm.received()
        jvm.connection.send(worker.STOP)
        assert [kind for kind, _ in jvm.received()] == [worker.END]


@pytest.fixture
def kept_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments are memory without a name, which a worker keeps for its next task."""
    monkeypatch.delenv(segments.FOLDER_VARIABLE, raising=False)


@pytest.mark.usefixtures("kept_segments")
@pytest.mark.parametrize("count", [1, 5], ids=["after the end", "before the end"])
def test_memory_of_a_stopped_task_is_not_filled_again(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Another thread of the JVM may still read it."""
    monkeypatch.setattr(FilePart, "batches", lambda part: batches_of(*[[1, 2]] * count))
    with slow_jvm() as jvm:
        jvm.connection.send(worker.READ, TASK)
        [(_, payload), *_] = jvm.received()
        with open(json.loads(payload)["path"], "rb") as memory:
            jvm.connection.send(worker.STOP)
            monkeypatch.setattr(FilePart, "batches", lambda part: batches_of(*[[7, 8]] * count))
            jvm.connection.send(worker.READ, TASK)
            jvm.received()
            assert np.frombuffer(memory.read(16), np.int64).tolist() == [1, 2]
            jvm.connection.send(worker.STOP)


@pytest.mark.usefixtures("kept_segments")
def test_further_parts_use_the_plan_and_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker does not send the places of segments again that the JVM has mapped since the last READ."""
    plans = []
    monkeypatch.setattr(FilePart, "__init__", lambda part, plan, about, fetch: plans.append((plan, about)))
    monkeypatch.setattr(FilePart, "batches", lambda part: batches_of([1, 2], [3]))
    monkeypatch.setattr(FilePart, "counts", lambda part: {})
    with slow_jvm() as jvm:
        first, batch, end = [worker.SEGMENT, worker.BATCH], [worker.BATCH], [worker.END]
        for kind, payload, kinds in (
            (worker.READ, TASK, first * 2 + end), (worker.PART, PART, batch * 2 + end), (worker.READ, TASK, first * 2 + end),
        ):
            jvm.connection.send(kind, payload)
            assert [kind for kind, _ in jvm.received()] == kinds
            for _ in range(2):
                jvm.connection.send(worker.NEXT)
    assert plans == [(PLAN, PART)] * 3


@pytest.mark.usefixtures("kept_segments")
def test_a_segment_with_another_number_is_mapped_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large segment is closed after its part. The segment behind it then gets its number."""
    monkeypatch.setattr(segments, "LARGEST_REUSED_SIZE", segments.SMALLEST_SIZE)
    large = list(range(2 * segments.SMALLEST_SIZE // 8))
    monkeypatch.setattr(FilePart, "batches", lambda part: batches_of(large, [3]))
    with slow_jvm() as jvm:
        jvm.connection.send(worker.READ, TASK)
        assert jvm.values(jvm.received()) == [large, [3]]
        for _ in range(2):
            jvm.connection.send(worker.NEXT)
        assert [kind for kind, _ in jvm.received()] == [worker.END]
        monkeypatch.setattr(FilePart, "batches", lambda part: batches_of([4], [5]))
        jvm.connection.send(worker.PART, PART)
        assert jvm.values(jvm.received()) == [[4], [5]]


def test_a_large_batch_is_split(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limit, rows = 20_000, 3000
    monkeypatch.setattr(file_reading, "LARGEST_BATCH_SIZE", limit)
    texts = [f"text of row {number}" for number in range(rows)]
    lists = pa.array([[number] * (number % 5) for number in range(rows)], pa.list_(pa.int64()))
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"text": texts, "list": lists, "id": range(rows)}), path)
    schema = st.StructType().add("text", "string").add("list", st.ArrayType(st.LongType())).add("id", "long").json()
    plan = json.dumps(json.loads(PLAN) | {"schema": schema, "table": schema}).encode()
    size = path.stat().st_size
    part = json.dumps({"path": str(path), "start": 0, "length": size, "size": size}).encode()
    batches = [*FilePart(plan, part, lambda request: b"").batches()]
    assert sum(count for count, _ in batches) == rows
    assert all(segments.segment_places(layout.buffers)[1] <= limit for _, layout in batches)
    joined = b"".join(buffer.tobytes() for _, layout in batches for buffer in layout.buffers)
    for text in texts:
        assert text.encode() in joined
