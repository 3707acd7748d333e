"""Memory for columns: large blocks are kept after their arrays are gone, and serve the next read without being cleared.

A fresh page costs more to clear than a value costs to decode. A block whose last array is gone is kept, up to a limit, for
the next array of about its size. Meanwhile the operating system may take the pages of the block when memory is short
(MADV_FREE).
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_FillInfo
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cimport cython

import os

import numpy as np

cdef extern from "c/blocks.h" nogil:
    bint FASTPQ_BLOCKS_ARE_KEPT
    void* block_allocate(size_t size)
    void block_offer(void* block, size_t size)

cdef enum:
    SMALLEST_SHIFT = 18             # smaller blocks are malloc's
    LARGEST_SHIFT = 40              # larger ones too
    CLASSES = (LARGEST_SHIFT - SMALLEST_SHIFT) * 4
    KEPT_PER_CLASS = 256
    SMALLEST_OFFERED = 2 << 20      # smaller idle blocks are soon taken again

cdef struct Shelf:
    # the idle blocks of one size class
    void* blocks[KEPT_PER_CLASS]
    int count

cdef cython.pymutex lock            # over the shelves, idle and limit
cdef Shelf[CLASSES] shelves
cdef int64_t idle = 0
cdef int64_t limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 8


cdef size_t class_size(int index) noexcept nogil:
    # four classes to a power of two: 4/4, 5/4, 6/4, 7/4
    return (<size_t>(4 + index % 4)) << (SMALLEST_SHIFT - 2 + index // 4)


cdef int class_of(size_t size) noexcept nogil:
    # the smallest class of at least size bytes; CLASSES where none is so large
    cdef int index = 0
    while index < CLASSES and (<size_t>8 << (SMALLEST_SHIFT - 2 + index // 4)) < size:
        index += 4
    while index < CLASSES and class_size(index) < size:
        index += 1
    return index


cdef void* block_take(size_t size, size_t* capacity) noexcept nogil:
    # A block of at least size bytes, contents undefined; NULL where there is no memory.
    global idle
    cdef void* block = NULL
    cdef int index = class_of(size)
    if not FASTPQ_BLOCKS_ARE_KEPT or size < <size_t>1 << SMALLEST_SHIFT or index == CLASSES:
        capacity[0] = size
        return malloc(size)
    capacity[0] = class_size(index)
    with lock:
        if shelves[index].count:
            shelves[index].count -= 1
            block = shelves[index].blocks[shelves[index].count]
            idle -= <int64_t>capacity[0]
    return block_allocate(capacity[0]) if block == NULL else block


cdef void block_give(void* block, size_t capacity) noexcept nogil:
    # Takes back a block of block_take, with its capacity.
    global idle
    cdef int index = class_of(capacity)
    cdef bint kept = False
    if block == NULL:
        return
    if not FASTPQ_BLOCKS_ARE_KEPT or capacity < <size_t>1 << SMALLEST_SHIFT or index == CLASSES:
        free(block)
        return
    if capacity >= SMALLEST_OFFERED:
        block_offer(block, capacity)
    with lock:
        if shelves[index].count < KEPT_PER_CLASS and idle + <int64_t>capacity <= limit:
            shelves[index].blocks[shelves[index].count] = block
            shelves[index].count += 1
            idle += <int64_t>capacity
            kept = True
    if not kept:
        free(block)


cdef class Block:
    """A block as a buffer of writable bytes; the last array to view the block gives the memory back."""

    cdef void* data
    cdef size_t capacity

    def __cinit__(self, size_t size):
        self.data = block_take(size, &self.capacity)
        if self.data == NULL:
            raise MemoryError(f"no memory for {size} bytes")

    def __dealloc__(self):
        block_give(self.data, self.capacity)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, <Py_ssize_t>self.capacity, 0, flags | PyBUF_WRITABLE)


cdef class GrowingBuffer:
    def __dealloc__(self):
        block_give(self.data, self.capacity)

    cdef uint8_t* room(self, size_t count) except NULL nogil:
        cdef size_t capacity
        cdef uint8_t* larger
        if self.data == NULL or count > self.capacity - self.size:
            if self.viewed or count > (<size_t>1 << LARGEST_SHIFT):
                with gil:
                    raise MemoryError(f"{count} bytes more than {self.size}, in {self.capacity}")
            larger = <uint8_t*>block_take(max(self.size + count, 2 * self.size) + 64, &capacity)
            if larger == NULL:
                with gil:
                    raise MemoryError(f"no memory for {self.size + count} bytes")
            if self.size:
                memcpy(larger, self.data, self.size)
            block_give(self.data, self.capacity)
            self.data = larger
            self.capacity = capacity
        return self.data + self.size

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        self.viewed = True      # the bytes stay where they are from now on
        PyBuffer_FillInfo(buffer, self, self.data, <Py_ssize_t>self.size, 0, flags | PyBUF_WRITABLE)

    def array(self, dtype="u1"):
        """The bytes so far as an array. The array keeps the memory, and the buffer grows no more.

        Args:
            dtype: of the array.
        """
        if self.size == 0:
            return np.empty(0, dtype)
        return np.frombuffer(self, dtype)


def empty(int64_t size):
    """A writable array of size bytes (uint8, contents undefined), from an idle block where one fits.

    Args:
        size: bytes.

    Raises:
        MemoryError: there is no memory.
    """
    if size < <int64_t>1 << SMALLEST_SHIFT:
        return np.empty(size, np.uint8)
    return np.frombuffer(Block(<size_t>size), np.uint8, size)


def idle_bytes():
    """Bytes of idle blocks: kept, and used by no array."""
    return idle


def set_idle_limit(int64_t bytes):
    """Set the limit of idle blocks, an eighth of the machine's memory at first; blocks over the limit are freed at once.

    Args:
        bytes: most bytes in idle blocks; 0 for none.

    Returns:
        The limit before.
    """
    global limit
    before = limit
    limit = bytes
    release(bytes)
    return before


def release(int64_t keep=0):
    """Free idle blocks, the largest first.

    Args:
        keep: most bytes left in idle blocks.
    """
    global idle
    cdef int index
    with lock:
        for index in range(CLASSES - 1, -1, -1):
            while idle > keep and shelves[index].count:
                shelves[index].count -= 1
                free(shelves[index].blocks[shelves[index].count])
                idle -= <int64_t>class_size(index)
