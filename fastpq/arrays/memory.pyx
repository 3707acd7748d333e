"""Memory for columns. Large blocks stay after their arrays are gone, so that the next read can use them without clearing.

The operating system must clear a fresh memory page, which takes longer than decoding values into it. When a block's last array
is gone, the block becomes idle and waits for the next array that has about its size. The total size of idle blocks has a limit.
The operating system may take their pages when memory is short (MADV_FREE). All idle blocks are freed when an allocation fails.
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
    SMALLEST_SHIFT = 18             # smaller blocks come from malloc
    LARGEST_SHIFT = 40              # larger blocks come from malloc too
    CLASSES = (LARGEST_SHIFT - SMALLEST_SHIFT) * 4
    IDLE_PER_CLASS = 256            # largest number of idle blocks in one size class
    # Smallest idle block whose pages the operating system may take, in bytes. Smaller blocks are soon used again, so that the
    # offer would cost more than it gains.
    SMALLEST_OFFERED = 2 << 20
    PIECE_SIZE = 1 << SMALLEST_SHIFT    # size of a block in Pieces, in bytes
    # Unused bytes at the front. A copy between two addresses with the same last 12 bits is slow.
    PIECE_BEGIN = 1 << 11
    SMALLEST_PIECE = 1 << 14        # smaller pieces are copied out of their block
    SHARE = 8                       # idle blocks take one eighth of the usable memory

# The idle blocks in one size class.
cdef struct Shelf:
    void* blocks[IDLE_PER_CLASS]
    int count

cdef cython.pymutex lock            # guards shelves, idle, limit and share
cdef Shelf[CLASSES] shelves
cdef int64_t idle = 0
cdef int64_t granted = granted_memory()         # memory that the machine and its control groups grant
# Idle blocks with at least this size in bytes are offered to the operating system. In a control group it is 0, so that all are
# offered, because a process that holds too much memory is killed there.
cdef size_t least_offered = SMALLEST_OFFERED if granted >= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") else 0
cdef int64_t limit = -1                         # the caller's limit in bytes, or -1 for a share of the usable memory
cdef int64_t share = usable() // SHARE          # the share, computed when the last fresh block was allocated


cdef int64_t usable() noexcept nogil:
    # Like usable_memory in fastpq.common.process_memory, but without the interpreter. Resource limits may change at any time.
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
    # Each power of two has four classes: 4/4, 5/4, 6/4 and 7/4.
    return (<size_t>(4 + index % 4)) << (SMALLEST_SHIFT - 2 + index // 4)


cdef int class_of(size_t size) noexcept nogil:
    # Return the smallest class with at least size bytes, or CLASSES if there is none.
    cdef int index = 0
    while index < CLASSES and (<size_t>8 << (SMALLEST_SHIFT - 2 + index // 4)) < size:
        index += 4
    while index < CLASSES and class_size(index) < size:
        index += 1
    return index


cdef void* block_take(size_t size, size_t* capacity) noexcept nogil:
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
    # Free idle blocks, largest first, until at most keep bytes are left. Return how many bytes were freed.
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
    global idle
    cdef int index = class_of(capacity)
    cdef bint is_idle = False
    if block == NULL:
        return
    if not FASTPQ_BLOCKS_ARE_KEPT or capacity < <size_t>1 << SMALLEST_SHIFT or index == CLASSES:
        free(block)
        return
    if capacity >= least_offered:
        block_offer(block, capacity)
    with lock:
        if shelves[index].count < IDLE_PER_CLASS and idle + <int64_t>capacity <= idle_limit():
            shelves[index].blocks[shelves[index].count] = block
            shelves[index].count += 1
            idle += <int64_t>capacity
            is_idle = True
    if not is_idle:
        free(block)


cdef class Block:
    """A block as a writable buffer. The memory goes back when the last array that views the block is gone."""

    def __cinit__(self, size_t size):
        if size < SMALLEST_OFFERED:
            self.data = block_take(size, &self.capacity)
        else:
            with nogil:         # mapping memory can take long
                self.data = block_take(size, &self.capacity)
        if self.data == NULL:
            raise MemoryError(f"no memory for {size} bytes")

    def __dealloc__(self):
        if self.capacity < SMALLEST_OFFERED:
            block_give(self.data, self.capacity)
        else:
            with nogil:         # unmapping memory can take long
                block_give(self.data, self.capacity)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, <Py_ssize_t>self.capacity, 0, flags | PyBUF_WRITABLE)


cdef class Pieces:
    """Bytes that are appended and handed over in pieces.

    Args:
        give: function that is called with lists of pieces, in order, while bytes are appended. If it is None, all pieces wait.
    """

    def __cinit__(self, give=None):
        self.give = give
        self.waiting = []

    def take(self):
        """Return the waiting pieces, and forget them."""
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
        cdef size_t used
        if block is None:
            return 0
        used = PIECE_SIZE - PIECE_BEGIN - self.room
        self.block = None
        self.room = 0
        if used < SMALLEST_PIECE:     # a whole block must not wait for few bytes
            return self._add(PyBytes_FromStringAndSize(<char*>self.end - used, <Py_ssize_t>used), <int64_t>used)
        return self._add(memoryview(block)[PIECE_BEGIN:PIECE_BEGIN + <Py_ssize_t>used], <int64_t>used)

    cdef int pause(self) except -1:
        cdef size_t used
        if self.block is None or self.room < PIECE_SIZE // 8:
            return self.finish()
        used = PIECE_SIZE - PIECE_BEGIN - self.room
        piece = PyBytes_FromStringAndSize(<char*>self.end - used, <Py_ssize_t>used)
        self.block = None
        self.room = 0
        return self._add(piece, <int64_t>used)

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
            if self.has_views or count > (<size_t>1 << LARGEST_SHIFT):
                with gil:
                    raise MemoryError(f"the buffer of {self.size} bytes cannot grow by {count} bytes")
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
        self.has_views = True       # the bytes must not move from now on
        PyBuffer_FillInfo(buffer, self, self.data, <Py_ssize_t>self.size, 0, flags | PyBUF_WRITABLE)

    def array(self, dtype="u1"):
        """Return the bytes in use as an array. It keeps the memory, and the buffer cannot grow any more.

        Args:
            dtype: the array's dtype.
        """
        if self.size == 0:
            return np.empty(0, dtype)
        return np.frombuffer(self, dtype)


def empty(int64_t size):
    """Return a writable uint8 array whose contents are undefined. It uses an idle block if one fits.

    Args:
        size: size in bytes.

    Raises:
        MemoryError: there is no memory.
    """
    if size < <int64_t>1 << SMALLEST_SHIFT:
        return np.empty(size, np.uint8)
    return np.frombuffer(Block(<size_t>size), np.uint8, size)


def zeros(int64_t size):
    """Return a writable uint8 array with zeros. A large array is cleared without the GIL.

    Args:
        size: size in bytes.

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
    """Return the total size in bytes of the idle blocks, which wait for an array."""
    with lock:
        return idle


def set_idle_limit(bytes: int | None):
    """Set the limit for idle blocks. Blocks over the limit are freed at once.

    Args:
        bytes: largest total size of idle blocks, in bytes. 0 keeps none. None, which is the default, means an eighth of the
            memory that the process may use (machine, control groups and resource limits).

    Returns:
        The previous limit.
    """
    global limit, share
    cdef int64_t new_limit = -1, previous, keep
    if bytes is not None:
        if bytes < 0:
            raise ValueError(f"the limit must not be negative: {bytes} bytes")
        new_limit = bytes
    with lock:
        previous = limit
        limit = new_limit
        share = usable() // SHARE
        keep = idle_limit()
    release(keep)
    return None if previous < 0 else previous


def release(int64_t keep=0):
    """Free idle blocks, largest first.

    Args:
        keep: largest total size of the idle blocks that stay, in bytes.
    """
    free_idle(keep)
