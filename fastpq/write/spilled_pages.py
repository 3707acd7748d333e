"""SpilledPages: stored pages that wait in an unnamed file beside the target, because there are too many for memory."""

from __future__ import annotations

import mmap
import tempfile
import weakref
from collections.abc import Iterable
from typing import NamedTuple


class SpilledRange(NamedTuple):
    """Where some pages are in the file.

    Attributes:
        start, stop: offsets in the file.
    """

    start: int
    stop: int


class SpilledPages:
    """Stored pages in a file without a name, which vanishes with the process. An encrypted file's pages are encrypted here, too.

    Args:
        folder: folder of the file that the pages are for. None takes the system's temporary folder.
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = tempfile.gettempdir() if folder is None else folder
        self._file = tempfile.TemporaryFile(dir=self._folder)       # noqa: SIM115 - it stays open
        weakref.finalize(self, self._file.close)        # also after an error
        self._size = 0

    def add(self, pieces: Iterable[bytes | memoryview]) -> SpilledRange:
        """Write pieces of pages to the file, and return their place.

        Raises:
            OSError: the disk is full, or writing failed for another reason. The error names the folder.
        """
        start = self._size
        try:
            for piece in pieces:
                self._file.write(piece)
                self._size += len(piece)
            self._file.flush()
        except OSError as error:
            error.filename = error.filename or self._folder
            raise
        return SpilledRange(start, self._size)

    def pages(self) -> memoryview:
        """Return the file's bytes as a map, and close the file. The map stays while a slice needs it."""
        with self._file:
            return memoryview(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) if self._size else b"")
