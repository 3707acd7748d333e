"""Memory for columns: large blocks are kept after their arrays are gone, and serve the next read without being cleared.

A fresh page costs more to clear than a value costs to decode. A block whose last array is gone is kept, up to a limit, for
the next array of about its size. Meanwhile the operating system may take the pages of the block when memory is short
(MADV_FREE). All idle blocks are freed when an allocation fails.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

cimport cython

import os

import numpy as np

from fastpq.common.process_memory import granted_memory

cdef extern from "<sys/resource.h>" nogil:
    ctypedef unsigned long long rlim_t
    cdef struct rlimit:
        rlim_t rlim_cur
    int RLIMIT_AS, RLIMIT_DATA
    int getrlimit(int resource, rlimit* limits)

cdef extern from "c/blocks.h" nogil:
    bint FASTPQ_BLOCKS_ARE_KEPT
    void* block_allocate(size_t size)
    void block_offer(void* block, size_t size)

cdef enum:
    SMALLEST_SHIFT = 18             # smaller blocks are malloc's
    LARGEST_SHIFT = 40              # larger ones too
    CLASSES = (LARGEST_SHIFT - SMALLEST_SHIFT) * 4
    KEPT_PER_CLASS = 256
    SMALLEST_OFFERED = 2 << 20      # smaller idle blocks are soon taken again; offering them costs more than it gives
    PIECE_SIZE = 1 << SMALLEST_SHIFT    # of the blocks of Pieces
    # Bytes unused at the front: a copy from block to block is slow where both places have the same last 12 bits of their address.
    PIECE_BEGIN = 1 << 11
    SMALLEST_PIECE = 1 << 14        # bytes; fewer are copied out of their block
    SHARE = 8                       # idle blocks take one part of as many of the usable memory

cdef struct Shelf:
    # the idle blocks of one size class
    void* blocks[KEPT_PER_CLASS]
    int count

cdef cython.pymutex lock            # over the shelves, idle, limit and share
cdef Shelf[CLASSES] shelves
cdef int64_t idle = 0
cdef int64_t granted = granted_memory()         # by the machine and its control groups
# In a control group, memory that cannot be taken back ends the process: all idle blocks are offered.
cdef size_t offered = SMALLEST_OFFERED if granted >= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") else 0
cdef int64_t limit = -1                         # set by the caller; otherwise a share of the usable memory
cdef int64_t share = usable() // SHARE          # of the resource limits when a block was got last, which may change at any time


cdef int64_t usable() noexcept nogil:
    # As usable_memory of fastpq.common.process_memory, without the interpreter; resource limits may change at any time.
    cdef rlimit bound
    cdef int64_t least = granted
    if getrlimit(RLIMIT_AS, &bound) == 0 and bound.rlim_cur < <rlim_t>least:
        least = <int64_t>bound.rlim_cur
    if getrlimit(RLIMIT_DATA, &bound) == 0 and bound.rlim_cur < <rlim_t>least:
        least = <int64_t>bound.rlim_cur
    return least


cdef int64_t idle_limit() noexcept nogil:
    return limit if limit >= 0 else share


cdef void* block_new(size_t size) noexcept nogil:
    global share
    cdef int64_t part = usable() // SHARE
    with lock:
        share = part
    return block_allocate(size)


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
        block = malloc(size)
        if block == NULL and free_idle(0):
            block = malloc(size)
        return block
    capacity[0] = class_size(index)
    with lock:
        if shelves[index].count:
            shelves[index].count -= 1
            block = shelves[index].blocks[shelves[index].count]
            idle -= <int64_t>capacity[0]
    if block == NULL:
        block = block_new(capacity[0])
    if block == NULL and free_idle(0):
        block = block_new(capacity[0])
    return block


cdef void* block_reuse(size_t size, size_t* capacity) noexcept nogil:
    # As block_take, from a larger idle block, of less than twice the size, where there is none of the very class.
    global idle
    cdef void* block = NULL
    cdef int first = class_of(size), index
    if FASTPQ_BLOCKS_ARE_KEPT and size >= <size_t>1 << SMALLEST_SHIFT:
        with lock:
            for index in range(first, min(first + 4, <int>CLASSES)):
                if shelves[index].count:
                    shelves[index].count -= 1
                    block = shelves[index].blocks[shelves[index].count]
                    capacity[0] = class_size(index)
                    idle -= <int64_t>capacity[0]
                    break
    return block if block != NULL else block_take(size, capacity)


cdef int64_t free_idle(int64_t keep) noexcept nogil:
    # Frees idle blocks, the largest first, until keep bytes are left; returns the number of freed bytes.
    global idle
    cdef int64_t before
    cdef int index
    with lock:
        before = idle
        for index in range(CLASSES - 1, -1, -1):
            while idle > keep and shelves[index].count:
                shelves[index].count -= 1
                free(shelves[index].blocks[shelves[index].count])
                idle -= <int64_t>class_size(index)
        return before - idle


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
    if capacity >= offered:
        block_offer(block, capacity)
    with lock:
        if shelves[index].count < KEPT_PER_CLASS and idle + <int64_t>capacity <= idle_limit():
            shelves[index].blocks[shelves[index].count] = block
            shelves[index].count += 1
            idle += <int64_t>capacity
            kept = True
    if not kept:
        free(block)


cdef class Block:
    """A block as a buffer of writable bytes; the last array to view the block gives the memory back."""

    def __cinit__(self, size_t size):
        if size < SMALLEST_OFFERED:
            self.data = block_take(size, &self.capacity)
        else:
            with nogil:         # the operating system takes long to map memory
                self.data = block_take(size, &self.capacity)
        if self.data == NULL:
            raise MemoryError(f"no memory for {size} bytes")

    def __dealloc__(self):
        if self.capacity < SMALLEST_OFFERED:
            block_give(self.data, self.capacity)
        else:
            with nogil:         # the operating system takes long to unmap memory
                block_give(self.data, self.capacity)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, <Py_ssize_t>self.capacity, 0, flags | PyBUF_WRITABLE)


cdef class Pieces:
    """Bytes one behind the other, in pieces.

    Args:
        give: called with lists of pieces, some at a time, in order, while others are appended; None lets all wait.
    """

    def __cinit__(self, give=None):
        self.give = give
        self.waiting = []

    def take(self):
        """The waiting pieces, a list; the pieces wait no more."""
        pieces, self.waiting, self.waiting_size = self.waiting, [], 0
        return pieces

    cdef int append(self, const uint8_t* data, size_t size) except -1 nogil:
        cdef size_t part
        while size:
            if self.room == 0:
                with gil:
                    self._begin_block()
            part = min(size, self.room)
            memcpy(self.end, data, part)
            self.end += part
            self.room -= part
            data += part
            size -= part
            if self.room == 0:
                with gil:
                    self.finish()
        return 0

    cdef int append_buffer(self, object buffer, int64_t size) except -1:
        self.finish()
        return self._add(buffer, size)

    cdef int finish(self) except -1:
        cdef Block block = self.block
        cdef size_t filled
        if block is None:
            return 0
        filled = PIECE_SIZE - PIECE_BEGIN - self.room
        self.block = None
        self.room = 0
        if filled < SMALLEST_PIECE:     # a block would wait for the sake of few bytes
            return self._add(PyBytes_FromStringAndSize(<char*>self.end - filled, <Py_ssize_t>filled), <int64_t>filled)
        return self._add(memoryview(block)[PIECE_BEGIN:PIECE_BEGIN + <Py_ssize_t>filled], <int64_t>filled)

    cdef int _begin_block(self) except -1:
        self.block = Block(PIECE_SIZE)
        self.end = <uint8_t*>self.block.data + PIECE_BEGIN
        self.room = PIECE_SIZE - PIECE_BEGIN
        return 0

    cdef int _add(self, object buffer, int64_t size) except -1:
        self.waiting.append(buffer)
        self.size += size
        self.waiting_size += size
        if self.give is not None and self.waiting_size >= PIECE_SIZE - PIECE_BEGIN:
            self.give(self.take())
        return 0


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


def zeros(int64_t size):
    """A writable array of zeros, as ``empty``; the GIL is not held while a large array is cleared.

    Args:
        size: bytes.

    Raises:
        MemoryError: there is no memory.
    """
    cdef Block block
    if size < <int64_t>1 << SMALLEST_SHIFT:
        return np.zeros(size, np.uint8)
    block = Block(<size_t>size)
    with nogil:
        memset(block.data, 0, <size_t>size)
    return np.frombuffer(block, np.uint8, size)


def idle_bytes():
    """Bytes of idle blocks: kept, and used by no array."""
    with lock:
        return idle


def set_idle_limit(bytes: int | None):
    """Set the limit of idle blocks; blocks over the limit are freed at once.

    Args:
        bytes: most bytes in idle blocks; 0 for none. None, the limit at first, follows an eighth of the memory that the process
            may use, by the machine, its control groups and its resource limits.

    Returns:
        The limit before.
    """
    global limit, share
    cdef int64_t wanted = -1, before, keep
    if bytes is not None:
        if bytes < 0:
            raise ValueError(f"a limit of {bytes} bytes")
        wanted = bytes
    with lock:
        before = limit
        limit = wanted
        share = usable() // SHARE
        keep = idle_limit()
    release(keep)
    return None if before < 0 else before


def release(int64_t keep=0):
    """Free idle blocks, the largest first.

    Args:
        keep: most bytes left in idle blocks.
    """
    free_idle(keep)
