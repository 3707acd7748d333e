"""Targets of reads: the caller's memory, into which all chunks of a column are decoded."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.arrays import memory
from fastpq.errors import LimitError


cdef class Output:
    """The target of a read; string views point into the buffers."""


cdef class ColumnOutput(Output):
    """The target of a read of one flat column.

    Args:
        rows: number of rows.
        width: bytes of one value in memory.
        nullable: whether to keep a validity bitmap.
        values: uint8 array of rows * width bytes, to fill or filled already; None to allocate the array.
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
            raise ValueError(f"an output of {view.shape[0]} bytes for {rows} values of {width}")
        if rows * width and self.values.flags.writeable:
            self.data = <uint8_t*>&view[0]
        if nullable and rows:
            view = self.validity
            self.bits = <uint8_t*>&view[0]
