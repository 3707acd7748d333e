"""Shared memory that a worker and the JVM both map.

On Linux the memory has no name in any folder, and the size of /dev/shm does not limit it. The system frees it when the last
process that maps it ends, in whatever way. Where the system refuses such memory, it is a file in the folder for temporary files.
So it is if the variable FASTPQ_SEGMENT_FOLDER names a folder for these files, for containers in which the JVM cannot open the
descriptors of a worker. The worker removes the file at the end of the task. A worker that is killed leaves the file there.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import tempfile
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64          # bytes in a cache line
SMALLEST_SIZE = 1 << 20         # bytes in a segment, which grows by doubling
LARGEST_BATCH_SIZE = 256 << 20      # bytes in a batch of several rows
LARGEST_SIZE = (1 << 31) - SMALLEST_SIZE        # bytes in a segment: Java maps less than 2 GiB at once
LARGEST_REUSED_SIZE = 64 << 20      # bytes in a segment that a worker keeps for its next task
FOLDER_VARIABLE = "FASTPQ_SEGMENT_FOLDER"
_F_ADD_SEALS, _F_SEAL_SHRINK = 1033, 2


class Segment:
    """A piece of shared memory. It never shrinks, because a process that reads a removed page is killed.

    Attributes:
        size: size in bytes.
        path: the file that another process of the same user opens. After ``close`` the path may name another file, because the
            system reuses descriptor numbers. The JVM must open the file before that.
        is_mapped: whether the JVM was told to map the segment in its present size.
    """

    def __init__(self) -> None:
        self.size = 0
        self.is_mapped = False
        self._file_name = ""
        descriptor = anonymous_memory()
        if descriptor is not None:
            self._descriptor = descriptor
            self.path = f"/proc/{os.getpid()}/fd/{self._descriptor}"
        else:
            self._descriptor, self._file_name = tempfile.mkstemp(prefix="fastpq-", dir=os.environ.get(FOLDER_VARIABLE))
            self.path = self._file_name
        self._bytes: NDArray[np.uint8] = np.empty(0, np.uint8)

    @property
    def is_reusable(self) -> bool:
        """Whether the worker keeps the segment for its next task."""
        return not self._file_name and self.size <= LARGEST_REUSED_SIZE

    def reserve(self, size: int) -> None:
        """Make the segment at least ``size`` bytes large. A segment that grows is not mapped.

        Raises:
            OSError: the disk has no room for the file.
            MemoryError: the size is above LARGEST_SIZE.
        """
        if size <= self.size:
            return
        if size > LARGEST_SIZE:
            raise MemoryError(f"a batch of {size:,} bytes: the JVM and a Python worker share at most {LARGEST_SIZE:,}")
        larger = SMALLEST_SIZE
        while larger < size:
            larger = min(larger * 2, LARGEST_SIZE)
        if self._file_name:
            self._allocate(larger)
        else:
            os.ftruncate(self._descriptor, larger)
        self._bytes = np.frombuffer(mmap.mmap(self._descriptor, larger), np.uint8)
        self.size = larger
        self.is_mapped = False

    def _allocate(self, size: int) -> None:
        """Fill the file with zeros up to a size. Without blocks on the disk, a store to a page would kill the process."""
        try:
            for start in range(self.size, size, SMALLEST_SIZE):
                os.pwrite(self._descriptor, bytes(SMALLEST_SIZE), start)
            if os.fstat(self._descriptor).st_size < size:       # the system wrote a part of the last piece
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}: a Python worker shares {size:,} bytes with the JVM in a file below "
                f"{os.path.dirname(self._file_name)}. {FOLDER_VARIABLE} in the environment of the executors names another folder",
            ) from error

    def write(self, place: int, data: NDArray[np.uint8]) -> None:
        """Copy bytes to an offset in the segment."""
        self._bytes[place : place + len(data)] = data

    def view(self) -> NDArray[np.uint8]:
        """Return the segment's bytes, to which the JVM may write."""
        return self._bytes

    def close(self) -> None:
        """Release the memory. Processes that have mapped it keep it."""
        if self._file_name:
            os.unlink(self._file_name)
            self._file_name = ""
        self._bytes = np.empty(0, np.uint8)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def anonymous_memory() -> int | None:
    """Return the descriptor of new memory without a name. Return None where the memory of a segment has to be a file."""
    if FOLDER_VARIABLE in os.environ or not hasattr(os, "memfd_create"):
        return None
    try:
        descriptor = os.memfd_create("fastpq", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM, errno.EACCES):     # a sandbox refuses the call
            raise
        return None
    fcntl.fcntl(descriptor, _F_ADD_SEALS, _F_SEAL_SHRINK)
    return descriptor


def segment_places(buffers: Sequence[NDArray[np.uint8]]) -> tuple[list[int], int]:
    """Return the byte offset for each buffer, when they follow each other in a segment, and the total size in bytes."""
    places, end = [], 0
    for buffer in buffers:
        places.append(end)
        end += -(-len(buffer) // ALIGNMENT) * ALIGNMENT
    return places, end
