"""The JVM's Python worker: it answers questions, and it reads and writes the rows of files in shared memory.

A message is its kind and the size of its payload in bytes (int32 each, little-endian), then the payload. Worker.java is the other
side.

From the JVM:
    ASK     a question, as JSON, in the form of a task. The answer is ANSWER
    READ    a plan, and a part of a file to read by it. The answer is each BATCH, then END. The worker fills two segments at once
    PART    a further part to read by the last READ's plan. The JVM still maps the segments that it was sent since then
    NEXT    the JVM has read the oldest BATCH, so that the worker may fill its segment again
    STOP    the JVM wants no further BATCH, or gives up what it writes. The answer is END. A thread of the JVM may still read
            batches, so the next task gets other segments
    WRITE   a file to write. The answer after its last batch is ANSWER
    RESERVE the size in bytes (int64) that the next BATCH of a write needs. The answer is SEGMENT
    BATCH   rows to write, which are in the segment: int64 numbers for the row count, the size in bytes, and each column's layout.
            The answer is NEXT, after which the JVM may fill the segment again
    END     a write has no further BATCH
    DATA    the answer to FETCH: bytes
    PROBLEM the answer to FETCH if the JVM cannot read the file, as JSON: class and message
From the worker:
    ANSWER  JSON
    FAILURE an error instead of any answer, as JSON: its class and its message
    SEGMENT a segment that the JVM must map, or map again: its number, path and size, as JSON
    BATCH   int64 numbers: the segment's number, the row count, and each column's layout (fastpq.spark.jvm.batch_layout)
    END     no further BATCH. After a read, the payload is JSON with what the worker has counted (fastpq.spark.jvm.part_counts)
    NEXT    the JVM may fill the segment again for a write
    FETCH   bytes of a file that is not local, as JSON: path, offset and size. The answer is DATA or PROBLEM
    STORE   bytes that the JVM appends to the file that is written, if it is not local

A worker holds the credentials of its environment, but it never sends them. Errors hold no keys (fastpq.errors).
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

from fastpq.spark.jvm.batch_layout import BatchLayout
from fastpq.spark.jvm.file_reading import FilePart
from fastpq.spark.jvm.file_writing import FileTask
from fastpq.spark.jvm.gathered import batch_of
from fastpq.spark.jvm.questions import answer
from fastpq.spark.jvm.segments import Segment, segment_places
from fastpq.spark.keyservice import name_task

ASK, READ, NEXT, STOP, WRITE, RESERVE, DATA, PROBLEM, PART = range(1, 10)
ANSWER, FAILURE, SEGMENT, BATCH, END, FETCH, STORE = range(16, 23)
SEGMENTS = 2
_HEADER = struct.Struct("<ii")
_TASK_SIZES = struct.Struct("<iii")     # bytes that the folder's path, the task's name and the plan take


class Connection:
    """Messages over the socket to the JVM."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def send(self, kind: int, payload: bytes = b"") -> None:
        self._socket.sendall(_HEADER.pack(kind, len(payload)) + payload)

    def send_json(self, kind: int, value: Any) -> None:
        self.send(kind, json.dumps(value).encode())

    def receive(self) -> tuple[int, bytes]:
        """Return the kind and the payload of the next message.

        Raises:
            EOFError: the JVM has closed the connection.
        """
        kind, size = _HEADER.unpack(self._receive_bytes(_HEADER.size))
        return kind, self._receive_bytes(size)

    def _receive_bytes(self, size: int) -> bytes:
        payload = bytearray()
        while len(payload) < size:
            part = self._socket.recv(size - len(payload))
            if not part:
                raise EOFError
            payload += part
        return bytes(payload)


class TaskStopped(Exception):
    """The JVM has given up the task."""


class WorkerLoop:
    """Answers the messages of one JVM, one after the other. Its segments serve every task."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.segments: list[Segment] = []
        self._plan = b""      # the last READ's plan
        self._unread_batches = 0        # batches sent for which the JVM has not sent NEXT yet

    def run(self) -> None:
        """Answer messages until the JVM closes the connection."""
        while True:
            try:
                kind, payload = self.connection.receive()
            except EOFError:
                return
            if kind == STOP:        # the last answer was on its way
                self._close_segments()
                continue
            if kind in (NEXT, RESERVE, BATCH, END, DATA, PROBLEM):       # sent before the JVM received the last answer
                continue
            try:
                self._answer(kind, payload)
            except (BrokenPipeError, ConnectionError, EOFError):
                return
            except Exception as error:
                self.connection.send_json(FAILURE, {"class": type(error).__name__, "message": str(error)})

    def _answer(self, kind: int, payload: bytes) -> None:
        if kind == ASK:
            question, _ = _task_of(payload)
            self.connection.send_json(ANSWER, answer(json.loads(question), self._fetch))
        elif kind == READ:
            self._plan, part = _task_of(payload)
            for segment in self.segments:
                segment.is_mapped = False
            self._read(FilePart(self._plan, part, self._fetch))
        elif kind == PART:
            self._read(FilePart(self._plan, payload, self._fetch))
        elif kind == WRITE:
            plan, path = _task_of(payload)
            self._write(FileTask(plan, path, self._store))
        else:
            raise ValueError(f"a message of kind {kind}: the jar and fastpq are of different versions")

    def _read(self, part: FilePart) -> None:
        """Send the batches of a part of a file. The worker fills one segment while the JVM reads the other."""
        while len(self.segments) < SEGMENTS:
            self.segments.append(Segment())
        self._unread_batches = 0
        try:
            for number, (rows, layout) in enumerate(part.batches()):
                if self._unread_batches == SEGMENTS and not self._await_next():
                    break
                self._send_batch(number % SEGMENTS, rows, layout)
                self._unread_batches += 1
        except TaskStopped:
            self._stop_reading()
        finally:
            self._await_reading()
            self._end_task()
        self.connection.send_json(END, part.counts())

    def _fetch(self, request: dict[str, Any]) -> bytes:
        """Return the JVM's answer to a request for bytes of a file.

        Raises:
            FileNotFoundError: the JVM found no file.
            OSError: the JVM could not read the file.
            TaskStopped: the JVM wants no further batch.
        """
        self.connection.send_json(FETCH, request)
        while True:
            kind, payload = self.connection.receive()
            if kind == DATA:
                return payload
            if kind == NEXT:
                self._unread_batches -= 1
            elif kind == PROBLEM:
                about = json.loads(payload)
                raise (FileNotFoundError if about["class"] == "FileNotFoundError" else OSError)(about["message"])
            else:
                raise TaskStopped

    def _store(self, data: bytes) -> None:
        self.connection.send(STORE, data)

    def _await_next(self) -> bool:
        """Wait until the JVM has read the oldest batch. Return False if the JVM wants no further batch."""
        kind, _ = self.connection.receive()
        if kind != NEXT:
            self._stop_reading()
            return False
        self._unread_batches -= 1
        return True

    def _stop_reading(self) -> None:
        """Let go of the segments without waiting. A thread of the JVM may still read them, so no task fills them again."""
        self._unread_batches = 0
        self._close_segments()

    def _await_reading(self) -> None:
        """Wait until the JVM has read all batches, if a segment is to be closed.

        The JVM opens a segment by its path when it reads the SEGMENT message. If the worker closed the segment before, the path
        would name the next segment, which gets the same descriptor number.
        """
        while self._unread_batches and not all(segment.is_reusable for segment in self.segments):
            self._await_next()

    def _end_task(self) -> None:
        """Close the segments that the next task cannot reuse."""
        reusable = [segment for segment in self.segments if segment.is_reusable]
        if len(reusable) == len(self.segments):
            return
        for segment in self.segments:
            segment.is_mapped = False       # it may get another number
            if segment not in reusable:
                segment.close()
        self.segments = reusable

    def _close_segments(self) -> None:
        for segment in self.segments:
            segment.close()
        self.segments = []

    def _write(self, task: FileTask) -> None:
        """Write the batches of a file. A file that the JVM gives up is removed."""
        try:
            task.write(self._batches(task.schema))
            self.connection.send_json(ANSWER, {})
        except TaskStopped:
            self.connection.send(END)
        finally:
            self._end_task()        # the JVM has mapped each segment already, because it sends batches in it

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
                batch = batch_of(np.frombuffer(payload, "<i8").tolist(), segment.view(), schema)
                self.connection.send(NEXT)
                yield batch
            elif kind == END:
                return
            else:
                raise TaskStopped

    def _send_batch(self, number: int, rows: int, layout: BatchLayout) -> None:
        segment = self.segments[number]
        places, size = segment_places(layout.buffers)
        segment.reserve(size)
        if segment.size and not segment.is_mapped:
            segment.is_mapped = True
            self.connection.send_json(SEGMENT, {"segment": number, "path": segment.path, "size": segment.size})
        for place, buffer in zip(places, layout.buffers, strict=True):
            segment.write(place, buffer)
        self.connection.send(BATCH, np.array([number, rows, *layout.placed(places)], "<i8").tobytes())


def _task_of(payload: bytes) -> tuple[bytes, bytes]:
    """Make the modules of the application importable, and return a task's plan and what it is about.

    Audit records have the task's name from then on.
    """
    files, name, plan = _TASK_SIZES.unpack_from(payload)
    task = memoryview(payload)[_TASK_SIZES.size :]
    add_files(str(task[:files], "utf-8"))
    name_task(str(task[files : files + name], "utf-8"))
    task = task[files + name :]
    return bytes(task[:plan]), bytes(task[plan:])


def add_files(folder: str) -> None:
    """Make modules importable that Spark copied to this machine (``--py-files``, ``SparkContext.addPyFile``)."""
    if not os.path.isdir(folder):
        return
    archives = (os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith((".zip", ".egg", ".whl")))
    for path in (folder, *archives):
        if path not in sys.path:
            sys.path.insert(1, path)


def serve(sock: socket.socket) -> None:
    """Answer the JVM at the other end of a socket until it closes the connection."""
    sock.settimeout(None)
    if sock.family != socket.AF_UNIX:       # otherwise the last small message waits up to 40 ms for an acknowledgement
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    WorkerLoop(Connection(sock)).run()
