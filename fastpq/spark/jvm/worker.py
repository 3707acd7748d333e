"""A worker of the JVM: answers questions of planning, and reads tasks into shared memory.

A message is its kind and the bytes of its payload (int32 each, little-endian), then the payload. Worker.java is the other side.

From the JVM:
    ASK     a question of planning, as JSON: answered by ANSWER
    READ    a task: answered by BATCH after BATCH, then END. There are two segments; the worker fills both unasked
    NEXT    the JVM has read the oldest BATCH: its segment may be filled again
    STOP    the JVM wants no further BATCH: answered by END
From the worker:
    ANSWER  JSON
    FAILURE an error in the place of any answer, as JSON: its class and its message
    SEGMENT a segment to be mapped, anew if it was mapped: its number, path and size, as JSON
    BATCH   numbers (int64): of the segment, of the rows, and the layout of each column (fastpq.spark.jvm.layout)
    END     no further BATCH

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

from fastpq.spark.jvm import planning, scan
from fastpq.spark.jvm.layout import BatchLayout
from fastpq.spark.jvm.segments import KEPT, Segment, segment_places

ASK, READ, NEXT, STOP, WRITE = range(1, 6)
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
            if kind in (NEXT, STOP):        # sent before the JVM saw the last answer
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
            for number, segment in enumerate(self.segments):
                segment.opened()
                if segment.size > KEPT:
                    segment.close()
                    self.segments[number] = Segment()

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
    Worker(Connection(sock)).run()
