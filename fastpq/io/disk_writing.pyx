"""Starts to write a new file's bytes to disk while more bytes come."""

from libc.stdint cimport int64_t

cdef extern from "c/write_behind.h" nogil:
    void write_behind(int file, int64_t offset, int64_t size) noexcept


def start_writing(int descriptor, int64_t offset, int64_t size):
    """Ask the operating system to start writing a part of a file to disk. This is only a hint, and has no errors.

    Args:
        descriptor: the open file.
        offset: where the part begins.
        size: how many bytes the part has.
    """
    with nogil:
        write_behind(descriptor, offset, size)
