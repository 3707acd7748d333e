"""Origin: bytes that others may change. They are copied into the reader's memory, and are never used in place.

Another process may overwrite or truncate a file at any time, and another thread may change the caller's memory. Authenticated
bytes must not change before their use, and a truncated memory map would end the process (SIGBUS).
"""

from libc.errno cimport EINTR, EISDIR, ESPIPE, errno
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from posix.unistd cimport close

cdef extern from "c/read_ahead.h" nogil:
    int64_t read_ahead(int file, uint8_t* out, size_t size, int64_t offset, int64_t behind) noexcept

import os
import stat

import numpy as np

from fastpq.errors import FormatError

# O_NONBLOCK opens a pipe at once, even if nobody writes to it. It changes nothing for files.
_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)


cdef class Origin:
    """A file, or the caller's memory. Compiled code calls read_at. This base class is an origin without bytes."""

    cdef int64_t read_at(self, int64_t offset, uint8_t* out, int64_t size, int64_t behind=0) except -1 nogil:
        return 0

    def read(self, int64_t offset, uint8_t[::1] out not None):
        """Copy bytes into out.

        Args:
            offset: where to begin, from 0 to the origin's size.
            out: uint8, filled from its beginning.

        Returns:
            How many bytes were copied. They are fewer than out can hold only at the origin's end.

        Raises:
            OSError: the file reported an error.
        """
        cdef int64_t size = out.shape[0], count = 0
        if offset < 0:
            raise ValueError(f"the offset of a read is {offset}")
        if size:
            with nogil:
                count = self.read_at(offset, &out[0], size)
        return count


cdef class FileOrigin(Origin):
    """A local file. It is closed when the last reference to this object is gone.

    Args:
        path: its path.

    Attributes:
        identity: device, inode, size, and times of the last change, when the file was opened. They are equal for a file that was
            opened again and did not change.

    Raises:
        OSError: the file cannot be opened, or is a pipe.
    """

    cdef int descriptor
    cdef str path
    cdef readonly tuple identity

    def __cinit__(self, str path not None):
        self.path = path
        self.descriptor = -1
        self.descriptor = os.open(path, _READ_FLAGS)
        status = os.fstat(self.descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR), path)
        if stat.S_ISFIFO(status.st_mode):
            raise OSError(ESPIPE, "A pipe cannot be read as a file", path)
        self.size = status.st_size
        self.identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def __dealloc__(self):
        if self.descriptor >= 0:
            close(self.descriptor)

    @property
    def fileno(self):
        """The file descriptor, which is valid as long as this object lives."""
        return self.descriptor

    cdef int64_t read_at(self, int64_t offset, uint8_t* out, int64_t size, int64_t behind=0) except -1 nogil:
        cdef int64_t filled = 0, count
        while filled < size:
            count = read_ahead(self.descriptor, out + filled, <size_t>(size - filled), offset + filled, behind)
            if count == 0:
                break
            if count > 0:
                filled += count
            elif errno != EINTR:
                with gil:
                    raise OSError(errno, os.strerror(errno), self.path)
        return filled


def read_small_file(str path not None, Py_ssize_t most):
    """Return a local file's first bytes.

    Args:
        path: the file. A pipe is refused, because nobody might ever write to it.
        most: largest number of bytes. A caller who passes one more than it allows can tell that the file is too large.

    Raises:
        OSError: the file cannot be read, or is a pipe.
    """
    content = np.empty(most, np.uint8)
    return content[:FileOrigin(path).read(0, content)].tobytes()


cdef class MemoryOrigin(Origin):
    """The caller's memory.

    Args:
        data: uint8.
    """

    cdef const uint8_t[::1] view
    cdef const uint8_t* data

    def __cinit__(self, const uint8_t[::1] data not None):
        self.view = data
        self.size = data.shape[0]
        self.data = &data[0] if self.size else NULL

    cdef int64_t read_at(self, int64_t offset, uint8_t* out, int64_t size, int64_t behind=0) except -1 nogil:
        cdef int64_t count = min(size, self.size - offset) if offset < self.size else 0
        if count:
            memcpy(out, self.data + offset, <size_t>count)
        return count


cdef class StoredBytes:
    """Ranges in an origin that follow one another, and are read piece by piece.

    Args:
        origin: file or memory.
        ranges: (offset, length) each, inside the origin.
    """

    def __cinit__(self, Origin origin not None, ranges):
        cdef int64_t start, size
        self.origin = origin
        self.pieces = <Piece*>malloc(max(1, len(ranges)) * sizeof(Piece))
        if self.pieces == NULL:
            raise MemoryError()
        for start, size in ranges:
            if start < 0 or size < 0:
                raise ValueError(f"{size} bytes at offset {start}")
            if size:
                self.pieces[self.count] = Piece(self.size, start, size)
                self.count += 1
                self.size += size

    def __dealloc__(self):
        free(self.pieces)

    def read(self):
        """Return all bytes as an array.

        Raises:
            FormatError: the origin ends early.
            OSError: the file reported an error.
        """
        cdef uint8_t[::1] out = np.empty(self.size, np.uint8)
        if self.size:
            with nogil:
                self.copy(0, &out[0], self.size)
        return np.asarray(out)

    cdef int copy(self, int64_t position, uint8_t* out, int64_t size) except -1 nogil:
        cdef int64_t skipped, rest, part, count
        cdef int low = 0, high = self.count - 1, middle
        while low < high:       # find the last piece that begins at the position or before it
            middle = (low + high + 1) // 2
            if self.pieces[middle].position <= position:
                low = middle
            else:
                high = middle - 1
        while size:
            skipped = position - self.pieces[low].position
            rest = self.pieces[low].size - skipped
            part = min(size, rest)
            count = self.origin.read_at(self.pieces[low].start + skipped, out, part, rest - part)
            if count != part:
                with gil:
                    raise ends_early(count, part, self.pieces[low].start + skipped)
            out += count
            position += count
            size -= count
            low += 1
        return 0


def ends_early(int64_t count, int64_t size, int64_t offset):
    """Return the FormatError for a read that gave only `count` bytes where `size` bytes were expected."""
    return FormatError(
        f"{count} bytes came where {size} were asked for; was the file truncated while it was read?", offset=offset)


def total_within(list ranges not None, int64_t size):
    """Return how many bytes ranges have together, if all of them are inside the file.

    Args:
        ranges: (offset, length) each.
        size: file size in bytes.

    Returns:
        (the sum of the lengths, None). If a range is outside the file: (0, the first such range).
    """
    cdef object first, length           # a footer may claim any number
    cdef int64_t total = 0
    for first, length in ranges:
        if not 0 <= first <= size or not 0 <= length <= size - first:
            return 0, (first, length)
        total += <int64_t>length
    return total, None
