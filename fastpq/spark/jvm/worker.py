"""A worker of the JVM: answers questions of planning, reads tasks into shared memory, and writes tasks out of it.

A message is its kind and the bytes of its payload (int32 each, little-endian), then the payload. Worker.java is the other side.

From the JVM:
    ASK     a question of planning, as JSON: answered by ANSWER
    READ    a task: answered by BATCH after BATCH, then END. There are two segments; the worker fills both unasked
    NEXT    the JVM has read the oldest BATCH: its segment may be filled again
    STOP    the JVM wants no further BATCH, or gives up what it writes: answered by END
    WRITE   a task that writes: answered by ANSWER, after its batches
    RESERVE bytes (int64) that the next BATCH of a write needs: answered by SEGMENT
    BATCH   rows of a write, in the segment: numbers (int64) of rows, of bytes, and the layout of each column; answered by NEXT as
            soon as the segment may be filled again
    END     no further BATCH of a write
From the worker:
    ANSWER  JSON
    FAILURE an error in the place of any answer, as JSON: its class and its message
    SEGMENT a segment to be mapped, anew if it was mapped: its number, path and size, as JSON
    BATCH   numbers (int64): of the segment, of the rows, and the layout of each column (fastpq.spark.jvm.layout)
    END     no further BATCH
    NEXT    the segment of a write may be filled again

A worker holds the credentials of its environment, and sends none: errors carry no keys (fastpq.errors).
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from fastpq.spark.jvm import planning, scan
from fastpq.spark.jvm.gathered import batch_of
from fastpq.spark.jvm.layout import BatchLayout
from fastpq.spark.jvm.segments import KEPT, Segment, segment_places
from fastpq.spark.jvm.writing import TaskOfRows

ASK, READ, NEXT, STOP, WRITE, RESERVE = range(1, 7)
ANSWER, FAILURE, SEGMENT, BATCH, END = range(16, 21)
SEGMENTS = 2
_HEADER = struct.Struct("<ii")


class Connection:
    """Messages over the socket to the JVM."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def send(self, kind: int, payload: bytes = b"") -> None:
        self._socket.sendall(_HEADER.pack(kind, len(payload)) + payload)

    def send_json(self, kind: int, value: Any) -> None:
        self.send(kind, json.dumps(value).encode())

    def receive(self) -> tuple[int, bytes]:
        """The next message.

        Raises:
            EOFError: the JVM has closed the connection.
        """
        kind, size = _HEADER.unpack(self._exactly(_HEADER.size))
        return kind, self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            part = self._socket.recv(size - len(found))
            if not part:
                raise EOFError
            found += part
        return bytes(found)


class GivenUp(Exception):
    """The JVM has given up the task."""


class Worker:
    """Answers the messages of one JVM, one after the other; the segments serve every task."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.segments: list[Segment] = []

    def run(self) -> None:
        """Answer until the JVM closes the connection."""
        while True:
            try:
                kind, payload = self.connection.receive()
            except EOFError:
                return
            if kind in (NEXT, STOP, RESERVE, BATCH, END):       # sent before the JVM saw the last answer
                continue
            try:
                self._answer(kind, payload)
            except (BrokenPipeError, ConnectionError, EOFError):
                return
            except Exception as error:
                self.connection.send_json(FAILURE, {"class": type(error).__name__, "message": str(error)})

    def _answer(self, kind: int, payload: bytes) -> None:
        match kind:
            case 1:
                self.connection.send_json(ANSWER, planning.answer(json.loads(payload)))
            case 2:
                files, plan = struct.unpack_from("<ii", payload)
                task = memoryview(payload)[8:]
                add_files(str(task[:files], "utf-8"))
                self._read(scan.batches(bytes(task[files : files + plan]), bytes(task[files + plan :])))
                self.connection.send(END)
            case 5:
                number, attempt, files, size = struct.unpack_from("<iqii", payload)
                task = memoryview(payload)[20:]
                add_files(str(task[:files], "utf-8"))
                self._write(TaskOfRows(bytes(task[files : files + size]), number, attempt))
            case _:
                raise ValueError(f"a message of kind {kind}: the jar and fastpq are of different versions")

    def _read(self, batches: Iterator[tuple[int, BatchLayout]]) -> None:
        """Send the batches of a task, each in the segment that the JVM has read."""
        while len(self.segments) < SEGMENTS:
            self.segments.append(Segment())
        try:
            for number, (rows, layout) in enumerate(batches):
                if number >= SEGMENTS and not self._may_go_on():
                    return
                self._send_batch(number % SEGMENTS, number < SEGMENTS, rows, layout)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """End the use of the segments by a task."""
        for number, segment in enumerate(self.segments):
            segment.opened()
            if segment.size > KEPT:
                segment.close()
                self.segments[number] = Segment()

    def _write(self, task: TaskOfRows) -> None:
        """Write the batches of a task; a task that the JVM gives up leaves nothing."""
        try:
            self.connection.send_json(ANSWER, task.write(self._batches(task.schema)))
        except GivenUp:
            self.connection.send(END)
        finally:
            self._let_go()

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        if not self.segments:
            self.segments.append(Segment())
        segment = self.segments[0]
        while True:
            kind, payload = self.connection.receive()
            if kind == RESERVE:
                segment.reserve(int.from_bytes(payload, "little"))
                self.connection.send_json(SEGMENT, {"segment": 0, "path": segment.path, "size": segment.size})
            elif kind == BATCH:
                segment.opened()
                batch = batch_of(np.frombuffer(payload, "<i8").tolist(), segment.view(), schema)
                self.connection.send(NEXT)
                yield batch
            elif kind == END:
                return
            else:
                raise GivenUp

    def _may_go_on(self) -> bool:
        kind, _ = self.connection.receive()
        return kind == NEXT

    def _send_batch(self, number: int, is_first: bool, rows: int, layout: BatchLayout) -> None:
        segment = self.segments[number]
        places, size = segment_places(layout.buffers)
        if segment.reserve(size) or (is_first and segment.size):
            self.connection.send_json(SEGMENT, {"segment": number, "path": segment.path, "size": segment.size})
        for place, buffer in zip(places, layout.buffers, strict=True):
            segment.write(place, buffer)
        self.connection.send(BATCH, np.array([number, rows, *layout.placed(places)], "<i8").tobytes())


def add_files(folder: str) -> None:
    """Make modules that Spark brought to this machine importable: ``--py-files``, ``SparkContext.addPyFile``."""
    if not os.path.isdir(folder):
        return
    archives = (os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith((".zip", ".egg", ".whl")))
    for path in (folder, *archives):
        if path not in sys.path:
            sys.path.insert(1, path)


def serve(sock: socket.socket) -> None:
    """Answer the JVM at the other end of a socket until it closes the connection."""
    sock.settimeout(None)
    if sock.family != socket.AF_UNIX:       # the last of several small messages would wait up to 40 ms for an acknowledgement
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    Worker(Connection(sock)).run()
