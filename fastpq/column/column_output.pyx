"""The memory that all chunks of a column are decoded into."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.arrays import memory
from fastpq.errors import LimitError


cdef class Output:
    """What a read fills: values, and the buffers that string views among them point into."""


cdef class ColumnOutput(Output):
    """What a read fills for one flat column.

    Args:
        rows: row count.
        width: bytes that a value takes in memory.
        nullable: whether to have a validity bitmap.
        values: uint8 array with rows * width bytes, empty or already filled; None to allocate it.
    """

    def __cinit__(self, int64_t rows, int64_t width, bint nullable, object values=None):
        cdef const uint8_t[::1] view
        self.rows = rows
        self.width = width
        try:
            self.values = memory.empty(rows * width) if values is None else values
            self.validity = memory.zeros((rows + 7) // 8) if nullable else None
        except (MemoryError, ValueError) as error:
            raise LimitError(f"no memory for {rows} values of {width} bytes") from error
        self.buffers = []
        view = self.values
        if view.shape[0] != rows * width:
            raise ValueError(f"an output with {view.shape[0]} bytes for {rows} values with {width} bytes each")
        if rows * width and self.values.flags.writeable:
            self.data = <uint8_t*>&view[0]
        if nullable and rows:
            view = self.validity
            self.bits = <uint8_t*>&view[0]
