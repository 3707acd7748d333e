"""SmallColumns: reads flat columns that have one small chunk each, with one reader for all columns of the same kind.

A wide file has thousands of such columns. For each of them, the objects of an ordinary read (FlatReading, ChunkReader,
PageReader, ColumnOutput) take ten times as long as the decoding of a few values.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from fastpq.column.chunk_reader cimport ChunkReader
from fastpq.column.column_output cimport ColumnOutput
from fastpq.read.chunk_plan cimport ChunkPlan

import numpy as np

from fastpq.arrays.flat_column import Column
from fastpq.arrays.layouts import VIEW_DTYPE, BinaryViews
from fastpq.errors import LimitError, ParquetError
from fastpq.format.slots import make_instance, place_of
from fastpq.read.costs import ROWS_WORTH_CODES, WORTH_A_TASK
from fastpq.schema.types import Type, Unknown

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyArray_Descr:
        pass
    object PyArray_NewFromDescr(PyTypeObject* cls, PyArray_Descr* descr, int nd, const cnp.npy_intp* dims,
                                const cnp.npy_intp* strides, void* data, int flags, PyObject* obj)
    PyTypeObject PyArray_Type

cdef enum:
    LARGEST_READ = 1 << 20          # bytes of neighbouring chunks that are read from the file at once

cdef int64_t FEW_ROWS = ROWS_WORTH_CODES        # a small column has fewer rows
cdef int64_t FEW_BYTES = WORTH_A_TASK           # and fewer stored and decoded bytes

cdef dict COLUMN_PLACES = {name: place_of(getattr(Column, name)) for name in Column.__match_args__}
cdef dict VIEWS_PLACES = {name: place_of(getattr(BinaryViews, name)) for name in BinaryViews.__match_args__}


@cython.final
cdef class SmallColumnKind:
    """A column type, as the columns of one read have it.

    Attributes:
        type: the type in memory.
        layout: the layout of its values.
        is_read: whether SmallColumns reads such columns.
        is_variable: whether its values are views.
        width: size of a value in memory, in bytes.
        dtype: the values' dtype. For views it is the dtype of a view.
        readers: the ChunkReaders and their outputs, by codec, largest definition level, and treatment of V2 pages.
    """


cdef SmallColumnKind kind_of(opener, dict kinds, leaf):
    type_ = opener.type_of(leaf) if opener.types else leaf.type
    # id() is quicker than the hash of a type. Columns share type objects.
    cdef SmallColumnKind kind = kinds.get(id(type_))
    if kind is not None:
        return kind
    kind = SmallColumnKind.__new__(SmallColumnKind)
    kind.type, kind.readers = type_, {}
    kinds[id(type_)] = kind
    if type_.physical is Type.INT96 or isinstance(type_.logical, Unknown):
        return kind
    if opener.calendar is not None and opener.calendar.rule(type_) is not None:
        return kind
    kind.dtype, kind.is_variable = type_.dtype, type_.dtype is None
    if kind.is_variable:
        kind.dtype = VIEW_DTYPE
        if opener.strings != "views":
            return kind
    kind.layout = opener.layout(leaf)
    kind.width = kind.layout.width
    kind.is_read = kind.width == kind.dtype.itemsize
    return kind


cdef object column_of(SmallColumnKind kind, values, list buffers, validity, int64_t nulls, bint nullable):
    if kind.is_variable:
        values = make_instance(BinaryViews, VIEWS_PLACES, (values, buffers))
    return make_instance(Column, COLUMN_PLACES, (kind.type, values, validity, nulls, nullable, None))


cdef int share_bytes(ChunkReader reader, array, const uint8_t* data, int64_t size, int64_t to_retain) except -1:
    reader.pages.owner, reader.pages.data = array, data
    reader.pages.extended = None
    reader.pages.to_retain = to_retain          # as in ChunkReader.share_arrays
    reader.pages.size = size
    reader.values.restart()                     # forgets the dictionary of the column before
    return 0


@cython.final
cdef class SmallColumn:
    """A column to read: its place among the requested columns, its schema leaf, its chunk and its kind."""

    cdef Py_ssize_t place
    cdef object leaf
    cdef ChunkPlan chunk
    cdef SmallColumnKind kind


@cython.final
cdef class SmallColumns:
    """The small columns among the columns of a read.

    A small column is flat, and has one whole, unencrypted chunk in the file itself. The chunk's stored and decoded bytes are too
    few for a task of their own (``WORTH_A_TASK``).

    Args:
        opener: opens the file's chunks. Its source must walk late and give no views.
        requested_columns: column plans, each with the output's row count.

    Attributes:
        others: the requested columns that are not small.
        size: how many bytes the values of the small columns take in memory.
    """

    cdef object opener
    cdef dict kinds
    cdef list columns
    cdef list results
    cdef readonly list others
    cdef readonly int64_t size

    def __init__(self, opener, requested_columns):
        cdef Py_ssize_t place
        cdef SmallColumn column
        self.opener = opener
        self.kinds = {}
        self.columns = []
        self.others = []
        self.results = [None] * len(requested_columns)
        for place, request in enumerate(requested_columns):
            column = self._small(request)
            if column is None:
                self.others.append(request)
                continue
            column.place = place
            self.columns.append(column)
            self.size += column.chunk.num_rows * column.kind.width
            if column.leaf.nullable:
                self.size += (column.chunk.num_rows + 7) // 8

    def __len__(self):
        return len(self.columns)

    cdef SmallColumn _small(self, request):
        """Return the SmallColumn for a requested column, or None for a column that is not small."""
        cdef SmallColumn column
        cdef ChunkPlan chunk
        cdef list leaves = request[0].leaves, chunks
        if len(leaves) != 1:
            return None
        leaf, chunks = leaves[0]
        if len(chunks) != 1 or not leaf.is_flat:
            return None
        chunk = <ChunkPlan?>chunks[0]
        if (chunk.is_encrypted or chunk.kept is not None or chunk.pages is not None or chunk.file_path is not None
                or chunk.row_offset or chunk.num_rows != request[1] or chunk.num_rows >= FEW_ROWS
                or chunk.num_bytes >= FEW_BYTES):
            return None
        kind = kind_of(self.opener, self.kinds, leaf)
        if not kind.is_read or chunk.num_bytes + chunk.num_rows * kind.width >= FEW_BYTES:
            return None
        if self.opener.becomes_dictionary is not None and self.opener.becomes_dictionary(leaf):
            return None
        column = SmallColumn.__new__(SmallColumn)
        column.leaf, column.chunk, column.kind = leaf, chunk, kind
        return column

    def read(self):
        """Decode all small columns.

        Raises:
            ParquetError: as for ``FlatReading``.
        """
        cdef Py_ssize_t first = 0, stop
        cdef int64_t start, end
        cdef ChunkPlan chunk
        while first < len(self.columns):
            chunk = (<SmallColumn>self.columns[first]).chunk
            start, end, stop = chunk.start, chunk.start + chunk.length, first + 1
            while stop < len(self.columns):
                chunk = (<SmallColumn>self.columns[stop]).chunk
                if not start <= chunk.start <= end or chunk.start + chunk.length - start > LARGEST_READ:
                    break
                end = max(end, chunk.start + chunk.length)
                stop += 1
            self._decode(first, stop, start, end - start)
            first = stop

    cdef int _decode(self, Py_ssize_t first, Py_ssize_t stop, int64_t start, int64_t size) except -1:
        """Decode the columns ``first`` to ``stop - 1``, whose chunks lie in one range of bytes."""
        cdef SmallColumn column = self.columns[first]
        cdef Py_ssize_t number
        cdef const uint8_t[::1] data
        try:
            [stored_bytes] = self.opener.source.walk([[(start, size)]], authentic=False)
            array = stored_bytes.read()
            data = array
            for number in range(first, stop):
                column = <SmallColumn>self.columns[number]
                self.results[column.place] = self._column(column, array, &data[0] if size else NULL, start, size)
        except ParquetError as error:
            self.opener.place(error, column.chunk)
            raise

    cdef object _column(self, SmallColumn column, array, const uint8_t* data, int64_t start, int64_t size):
        """Return one column.

        Args:
            column: the column.
            array: bytes from the file, as an array.
            data: the first of these bytes.
            start, size: the place of these bytes in the file.
        """
        cdef ChunkPlan chunk = column.chunk
        cdef SmallColumnKind kind = column.kind
        cdef ColumnOutput output
        cdef ChunkReader reader
        cdef int64_t nulls = 0
        cdef bint nullable = column.leaf.nullable
        cdef cnp.npy_intp rows = chunk.num_rows
        reader, output = self._reader(column, array)
        share_bytes(reader, array, data, size, chunk.uncompressed_size)
        values = new_array(rows, kind.dtype)
        output.rows, output.data, output.bits = rows, <uint8_t*>cnp.PyArray_DATA(<cnp.ndarray>values), NULL
        output.buffers = []
        if nullable:
            output.bits = <uint8_t*>cnp.PyArray_DATA(<cnp.ndarray>output.validity)
            memset(output.bits, 0, <size_t>(rows + 7) // 8)
        reader.output = None
        reader.begin(output, 0, rows)
        try:
            with nogil:
                nulls = reader.read_chunk(output, 0, chunk.start - start, chunk.length, chunk.has_dictionary, rows)
        except MemoryError as error:
            if isinstance(error, LimitError):
                raise
            raise LimitError("no memory for a page") from error
        validity = output.validity[:(rows + 7) // 8].copy() if nulls else None
        return column_of(kind, values, output.buffers, validity, nulls, nullable)

    cdef tuple _reader(self, SmallColumn column, array):
        """Return the reader for a column, and the output that it fills."""
        cdef ChunkPlan chunk = column.chunk
        cdef tuple key = (chunk.codec, column.leaf.max_definition_level, chunk.v2_is_compressed), made
        made = column.kind.readers.get(key)
        if made is None:
            reader = self.opener.flat(chunk, array, column.kind.layout)
            output = ColumnOutput(0, column.kind.width, False)
            (<ColumnOutput>output).validity = np.zeros((FEW_ROWS + 7) // 8, np.uint8)
            made = column.kind.readers[key] = (reader, output)
        return made

    def merged(self, other_columns):
        """Return all requested columns in their order.

        Args:
            other_columns: the columns for ``others``.
        """
        cdef list merged = self.results
        others = iter(other_columns)
        if len(self.columns) == len(merged):
            return merged
        return [next(others) if column is None else column for column in merged]


cdef object new_array(cnp.npy_intp count, dtype):
    """Return an array with room for ``count`` values."""
    Py_INCREF(dtype)            # the array takes a reference
    return PyArray_NewFromDescr(&PyArray_Type, <PyArray_Descr*><PyObject*>dtype, 1, &count, NULL, NULL, 0, NULL)
