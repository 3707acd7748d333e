"""Bytes that others may change: read into memory of the reader, never used in place.

A file may be overwritten or truncated by another process at any time, and memory of the caller changed by another thread.
Authenticated bytes must not change before their use, and a truncated memory map ends the process (SIGBUS).
"""

from libc.errno cimport EINTR, errno
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from posix.unistd cimport close

cdef extern from "c/read_ahead.h" nogil:
    int64_t read_ahead(int file, uint8_t* out, size_t size, int64_t offset, int64_t behind) noexcept

import os

import numpy as np

from fastpq.errors import FormatError


cdef class Origin:
    """A file, or memory of the caller; read_at is for compiled code."""

    cdef int64_t read_at(self, int64_t offset, uint8_t* out, int64_t size, int64_t behind=0) except -1 nogil:
        with gil:
            raise NotImplementedError

    def read(self, int64_t offset, uint8_t[::1] out not None):
        """Copy bytes into out.

        Args:
            offset: first byte to copy, from 0 to the size.
            out: uint8, written from its begin.

        Returns:
            The number of copied bytes, less than the size of out only at the end.

        Raises:
            OSError: as reported by the file.
        """
        cdef int64_t size = out.shape[0], count = 0
        if offset < 0:
            raise ValueError(f"a read at offset {offset}")
        if size:
            with nogil:
                count = self.read_at(offset, &out[0], size)
        return count


cdef class FileOrigin(Origin):
    """A local file; the last reference closes the file.

    Args:
        path: its path.

    Raises:
        OSError: the file cannot be opened.
    """

    cdef int descriptor

    def __cinit__(self, str path not None):
        self.descriptor = -1
        with open(path, "rb", buffering=0) as file:     # a directory is refused here
            self.descriptor = os.dup(file.fileno())
        self.size = os.fstat(self.descriptor).st_size

    def __dealloc__(self):
        if self.descriptor >= 0:
            close(self.descriptor)

    @property
    def fileno(self):
        """Number of the file descriptor, valid as long as this object."""
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
                    raise OSError(errno, os.strerror(errno))
        return filled


cdef class MemoryOrigin(Origin):
    """Memory of the caller.

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
    """Ranges of an origin, one behind the other, to be read piece by piece.

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
        """All bytes as an array.

        Raises:
            FormatError: the origin ends before.
            OSError: as reported by the file.
        """
        cdef uint8_t[::1] out = np.empty(self.size, np.uint8)
        if self.size:
            with nogil:
                self.copy(0, &out[0], self.size)
        return np.asarray(out)

    cdef int copy(self, int64_t position, uint8_t* out, int64_t size) except -1 nogil:
        cdef int64_t skipped, left, wanted, count
        cdef int low = 0, high = self.count - 1, middle
        while low < high:       # the last piece that begins at the position or before
            middle = (low + high + 1) // 2
            if self.pieces[middle].position <= position:
                low = middle
            else:
                high = middle - 1
        while size:
            skipped = position - self.pieces[low].position
            left = self.pieces[low].size - skipped
            wanted = min(size, left)
            count = self.origin.read_at(self.pieces[low].start + skipped, out, wanted, left - wanted)
            if count != wanted:
                with gil:
                    raise ends_early(count, wanted, self.pieces[low].start + skipped)
            out += count
            position += count
            size -= count
            low += 1
        return 0


def ends_early(int64_t count, int64_t size, int64_t offset):
    """The FormatError of a file that gave count bytes of size at an offset."""
    return FormatError(
        f"{count} bytes came where {size} were asked for; was the file truncated while it was read?", offset=offset)


def total_within(list ranges not None, int64_t size):
    """Add up ranges of a file.

    Args:
        ranges: (offset, length) each.
        size: bytes of the file.

    Returns:
        (bytes of all ranges, None); or, where one is outside of the file, (0, the first such range).
    """
    cdef object first, length           # a footer may claim any number
    cdef int64_t total = 0
    for first, length in ranges:
        if not 0 <= first <= size or not 0 <= length <= size - first:
            return 0, (first, length)
        total += <int64_t>length
    return total, None
