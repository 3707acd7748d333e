"""FileObjectSource: reads from a file object that the caller has opened."""

from __future__ import annotations

import io
import threading
from typing import Any

import numpy as np

from fastpq.errors import SchemaError, UnsupportedError
from fastpq.io.counts import checked_count
from fastpq.io.file_version import FileVersion
from fastpq.io.source import Bytes, Source


class FileObjectSource(Source):
    """A seekable binary file object. Only one thread reads at a time, because the object has only one position.

    Args:
        file: the file object.
        name: name for messages. None takes the object's own name.
        is_owned: whether ``close`` closes the object.
    """

    def __init__(self, file: Any, name: str | None = None, *, is_owned: bool = False) -> None:
        self._file = file
        self._is_owned = is_owned
        self._reading = threading.Lock()
        if not getattr(file, "seekable", lambda: True)():
            raise UnsupportedError("reading from a file object that cannot seek")
        file.seek(0, io.SEEK_END)
        name = name or str(getattr(file, "name", type(file).__name__))
        super().__init__(name, checked_count(file.tell(), None, "tell", name))
        self._version = FileVersion.of_object(file)

    def _fetch(self, offset: int, length: int) -> Bytes:
        with self._reading:
            self._file.seek(offset)
            data = self._read_into(length) if hasattr(self._file, "readinto") else self._read_pieces(length)
            if self._version is not None:
                self._version.check_unchanged(FileVersion.of_object(self._file), self.name)
        return data

    def _read_into(self, length: int) -> Bytes:
        data = np.zeros(length, np.uint8)   # zeros: an object may fill less than it says, and old memory must not show
        view = data.data
        position = 0
        while position < length:
            count = checked_count(self._file.readinto(view[position:]), length - position, "readinto", self.name)
            if not count:
                break
            position += count
        return data[:position]

    def _read_pieces(self, length: int) -> Bytes:
        pieces: list[bytes] = []
        missing = length
        while missing > 0:
            piece = self._file.read(missing)
            if piece is None:
                checked_count(None, missing, "read", self.name)
            if not isinstance(piece, bytes | bytearray | memoryview):
                raise SchemaError(f"a file object returned a {type(piece).__name__} from read", path=self.name)
            if not checked_count(memoryview(piece).nbytes, missing, "read", self.name):
                break
            pieces.append(bytes(piece))
            missing -= len(pieces[-1])
        return np.frombuffer(pieces[0] if len(pieces) == 1 else b"".join(pieces), np.uint8)

    def close(self) -> None:
        super().close()
        if self._is_owned:
            with self._reading:
                self._file.close()
