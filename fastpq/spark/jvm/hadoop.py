"""Files of Hadoop's filesystems, whose bytes pass through the JVM. A worker opens local files itself."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

Fetch = Callable[[dict[str, Any]], bytes]
Store = Callable[[bytes], None]
MOST_BYTES = 8 << 20        # in one message


def is_local(path: str) -> bool:
    """Return whether the JVM named a local file, by its absolute path. Any other file has a URL, which begins with a scheme."""
    return path.startswith("/")


class HadoopFile(io.RawIOBase):
    """A file that the JVM reads.

    Args:
        fetch: function that sends a request to the JVM, and returns the answer (HadoopFiles.java).
        path: the file's URL.
    """

    def __init__(self, fetch: Fetch, path: str) -> None:
        self._fetch = fetch
        self.name = path
        self._size = int.from_bytes(fetch({"path": path}), "little")
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Change the position, and return it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the position on. Return how many bytes it got, 0 at the end."""
        view = memoryview(buffer).cast("B")
        size = max(0, min(len(view), self._size - self._position, MOST_BYTES))
        if size:
            view[:size] = self._fetch({"path": self.name, "offset": self._position, "size": size})
            self._position += size
        return size


class HadoopOutput:
    """A file that the JVM writes. The JVM has created it.

    Args:
        store: function that sends bytes to the JVM.
        path: the file's URL.
    """

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self.name = path

    def write(self, data: Any) -> int:
        """Append bytes, and return their number."""
        view = memoryview(data).cast("B")
        for start in range(0, len(view), MOST_BYTES):
            self._store(bytes(view[start : start + MOST_BYTES]))
        return len(view)

    def flush(self) -> None:
        """Do nothing: the JVM completes the file when it closes it."""
