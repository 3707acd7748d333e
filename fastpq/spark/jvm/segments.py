"""Shared memory of a worker: written here, mapped by the JVM.

On Linux the memory has no name in any folder, and is gone with the last process that holds it, however that process ends.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import tempfile
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64          # bytes; of a line of a cache
LEAST = 1 << 20         # bytes of a segment; it grows by doubling
KEPT = 64 << 20         # bytes of a segment that a worker keeps for its next task
_NAMELESS = hasattr(os, "memfd_create")
_F_ADD_SEALS, _F_SEAL_SHRINK = 1033, 2


class Segment:
    """A piece of shared memory. It never shrinks, for a process that has it mapped would die of a missing page.

    Attributes:
        size: bytes.
        path: the file for other processes of the same user to open.
    """

    def __init__(self) -> None:
        self.size = 0
        self._name = ""
        if _NAMELESS:
            self._descriptor = os.memfd_create("fastpq", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            fcntl.fcntl(self._descriptor, _F_ADD_SEALS, _F_SEAL_SHRINK)
            self.path = f"/proc/{os.getpid()}/fd/{self._descriptor}"
        else:
            self._descriptor, self._name = tempfile.mkstemp(prefix="fastpq-")
            self.path = self._name
        self._bytes: NDArray[np.uint8] = np.empty(0, np.uint8)

    def reserve(self, size: int) -> bool:
        """Make the segment at least ``size`` bytes large.

        Returns:
            Whether it has grown, so that others must map it anew.
        """
        if size <= self.size:
            return False
        larger = LEAST
        while larger < size:
            larger *= 2
        os.ftruncate(self._descriptor, larger)
        self._bytes = np.frombuffer(mmap.mmap(self._descriptor, larger), np.uint8)
        self.size = larger
        return True

    def write(self, place: int, data: NDArray[np.uint8]) -> None:
        """Copy bytes to a place."""
        self._bytes[place : place + len(data)] = data

    def view(self) -> NDArray[np.uint8]:
        """The bytes, which the JVM may write."""
        return self._bytes

    def opened(self) -> None:
        """Remove the file name of the segment, if any; called once the JVM has mapped the segment."""
        if self._name:
            os.unlink(self._name)
            self._name = ""

    def close(self) -> None:
        """Let go of the memory; processes that have it mapped keep it."""
        self.opened()
        self._bytes = np.empty(0, np.uint8)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def segment_places(buffers: Sequence[NDArray[np.uint8]]) -> tuple[list[int], int]:
    """The place of each buffer in a segment, one behind the other, and the bytes of all."""
    places, end = [], 0
    for buffer in buffers:
        places.append(end)
        end += -(-len(buffer) // ALIGNMENT) * ALIGNMENT
    return places, end
