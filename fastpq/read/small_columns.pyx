"""SmallColumns: reads columns without lists whose leaves have one small chunk each. Leaves that are alike share a reader.

A wide file has thousands of such leaves. For each of them, the objects of an ordinary read (FlatReading, ChunkReader,
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
from fastpq.column.nested_reader cimport StructLeafReader
from fastpq.read.chunk_plan cimport ChunkPlan

import numpy as np

from fastpq.arrays.flat_column import Column
from fastpq.arrays.layouts import VIEW_DTYPE, BinaryViews
from fastpq.arrays.nested_columns import StructColumn
from fastpq.errors import LimitError, ParquetError
from fastpq.format.slots import make_instance, place_of
from fastpq.read.costs import ROWS_WORTH_CODES, WORTH_A_TASK
from fastpq.schema.shape import StructShape, shape_of
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
cdef class SmallLeaf:
    """A leaf to read: its number among these, its place in the schema, its chunk and its kind."""

    cdef Py_ssize_t number
    cdef object leaf
    cdef ChunkPlan chunk
    cdef SmallColumnKind kind

    cdef int64_t num_bytes(self):
        """Return how many bytes the leaf's values take in memory, with their validity."""
        cdef int64_t rows = self.chunk.num_rows
        return rows * self.kind.width + ((rows + 7) // 8 if self.leaf.max_definition_level else 0)


@cython.final
cdef class SmallColumns:
    """The small columns among the columns of a read.

    A small column is flat, or a struct without lists. Each leaf has one whole, unencrypted chunk in the file itself, whose stored
    and decoded bytes are too few for their own task (``WORTH_A_TASK``).

    Args:
        opener: opens the file's chunks. Its source must walk late and give no views.
        requested_columns: column plans, each with the output's row count.

    Attributes:
        others: the requested columns that are not small. After ``read`` they include each struct that is null in a row.
        size: how many bytes the values of the small columns take in memory. After ``read`` it does not count such structs.
    """

    cdef object opener
    cdef dict kinds
    cdef list requested_columns
    cdef list leaves
    cdef list results               # a column for each leaf, or None if a struct above it is null in a row
    cdef list first_leaves          # for each requested column, the number of its first leaf, or None if it is not small
    cdef readonly list others
    cdef readonly int64_t size

    def __init__(self, opener, requested_columns):
        cdef SmallLeaf leaf
        cdef list leaves
        self.opener = opener
        self.kinds = {}
        self.requested_columns = [*requested_columns]
        self.leaves = []
        self.first_leaves = []
        self.others = []
        for request in self.requested_columns:
            leaves = self._small(request)
            if leaves is None:
                self.others.append(request)
                self.first_leaves.append(None)
                continue
            self.first_leaves.append(len(self.leaves))
            for leaf in leaves:
                leaf.number = len(self.leaves)
                self.leaves.append(leaf)
                self.size += leaf.num_bytes()
        self.results = [None] * len(self.leaves)

    def __len__(self):
        return len(self.leaves)

    cdef list _small(self, request):
        """Return a requested column's leaves, or None if the column is not small."""
        cdef SmallLeaf small
        cdef ChunkPlan chunk
        cdef list small_leaves = [], leaves = request[0].leaves, chunks
        for leaf, chunks in leaves:
            if len(chunks) != 1 or leaf.max_repetition_level:
                return None
            chunk = <ChunkPlan?>chunks[0]
            if (chunk.is_encrypted or chunk.kept is not None or chunk.pages is not None or chunk.file_path is not None
                    or chunk.row_offset or chunk.num_rows != request[1] or chunk.chunk_values != chunk.num_rows
                    or chunk.num_rows >= FEW_ROWS or chunk.num_bytes >= FEW_BYTES):
                return None
            kind = kind_of(self.opener, self.kinds, leaf)
            if not kind.is_read or chunk.num_bytes + chunk.num_rows * kind.width >= FEW_BYTES:
                return None
            if leaf.is_flat and self.opener.becomes_dictionary is not None and self.opener.becomes_dictionary(leaf):
                return None
            small = SmallLeaf.__new__(SmallLeaf)
            small.leaf, small.chunk, small.kind = leaf, chunk, kind
            small_leaves.append(small)
        return small_leaves

    def read(self):
        """Decode all small columns.

        Structs that are null in a row join ``others``: their leaves have to be compared.

        Raises:
            ParquetError: as for ``FlatReading``.
        """
        cdef Py_ssize_t first = 0, stop
        cdef int64_t start, end
        cdef ChunkPlan chunk
        while first < len(self.leaves):
            chunk = (<SmallLeaf>self.leaves[first]).chunk
            start, end, stop = chunk.start, chunk.start + chunk.length, first + 1
            while stop < len(self.leaves):
                chunk = (<SmallLeaf>self.leaves[stop]).chunk
                if not start <= chunk.start <= end or chunk.start + chunk.length - start > LARGEST_READ:
                    break
                end = max(end, chunk.start + chunk.length)
                stop += 1
            self._decode(first, stop, start, end - start)
            first = stop
        self.others = [
            request for request, number in zip(self.requested_columns, self.first_leaves)
            if number is None or self._drops_null_struct(number, number + len(request[0].leaves))]

    cdef bint _drops_null_struct(self, Py_ssize_t first, Py_ssize_t stop) except -1:
        """Return whether a struct is null in a row. If so, forget what its leaves ``first`` to ``stop - 1`` have."""
        cdef SmallLeaf leaf
        if None not in self.results[first:stop]:
            return False
        for leaf in self.leaves[first:stop]:
            self.results[leaf.number] = None
            self.size -= leaf.num_bytes()
        return True

    cdef int _decode(self, Py_ssize_t first, Py_ssize_t stop, int64_t start, int64_t size) except -1:
        """Decode the leaves ``first`` to ``stop - 1``, whose chunks lie in one range of bytes."""
        cdef SmallLeaf leaf = self.leaves[first]
        cdef Py_ssize_t number
        cdef const uint8_t[::1] data
        try:
            [stored_bytes] = self.opener.source.walk([[(start, size)]], authentic=False)
            array = stored_bytes.read()
            data = array
            for number in range(first, stop):
                leaf = <SmallLeaf>self.leaves[number]
                self.results[number] = self._column(leaf, array, &data[0] if size else NULL, start, size)
        except ParquetError as error:
            self.opener.place(error, leaf.chunk)
            raise

    cdef object _column(self, SmallLeaf leaf, array, const uint8_t* data, int64_t start, int64_t size):
        """Return the values of one leaf, or None if a struct above it is null in a row.

        Args:
            leaf: the leaf.
            array: bytes from the file, as an array.
            data: the first of these bytes.
            start, size: the place of these bytes in the file.
        """
        cdef ChunkPlan chunk = leaf.chunk
        cdef SmallColumnKind kind = leaf.kind
        cdef ColumnOutput output
        cdef ChunkReader reader
        cdef int64_t nulls = 0
        cdef int levels = leaf.leaf.max_definition_level
        cdef bint nullable = leaf.leaf.nullable, has_null_struct
        cdef cnp.npy_intp rows = chunk.num_rows
        reader, output = self._reader(leaf, array)
        share_bytes(reader, array, data, size, chunk.uncompressed_size)
        values = new_array(rows, kind.dtype)
        output.rows, output.data, output.bits = rows, <uint8_t*>cnp.PyArray_DATA(<cnp.ndarray>values), NULL
        output.buffers = []
        if levels:
            output.bits = <uint8_t*>cnp.PyArray_DATA(<cnp.ndarray>output.validity)
            memset(output.bits, 0, <size_t>(rows + 7) // 8)
        if levels > 1:
            (<StructLeafReader>reader).lowest_level = levels
        reader.output = None
        reader.begin(output, 0, rows)
        try:
            with nogil:
                nulls = reader.read_chunk(output, 0, chunk.start - start, chunk.length, chunk.has_dictionary, rows)
        except MemoryError as error:
            if isinstance(error, LimitError):
                raise
            raise LimitError("no memory for a page") from error
        if levels > 1:
            has_null_struct = (<StructLeafReader>reader).lowest_level < levels - nullable
        else:
            has_null_struct = nulls > 0 and not nullable
        if has_null_struct:
            return None
        validity = output.validity[:(rows + 7) // 8].copy() if nulls else None
        return column_of(kind, values, output.buffers, validity, nulls, nullable)

    cdef tuple _reader(self, SmallLeaf leaf, array):
        """Return the reader for a leaf, and the output that it fills."""
        cdef ChunkPlan chunk = leaf.chunk
        cdef int levels = leaf.leaf.max_definition_level
        cdef tuple key = (chunk.codec, levels, chunk.v2_is_compressed), made
        made = leaf.kind.readers.get(key)
        if made is None:
            if levels > 1:
                reader = self.opener.in_structs(chunk, array, leaf.kind.layout)
            else:
                reader = self.opener.flat(chunk, array, leaf.kind.layout)
            output = ColumnOutput(0, leaf.kind.width, False)
            (<ColumnOutput>output).validity = np.zeros((FEW_ROWS + 7) // 8, np.uint8)
            made = leaf.kind.readers[key] = (reader, output)
        return made

    def merged(self, other_columns):
        """Return all requested columns in their order.

        Args:
            other_columns: the columns for ``others``, as it is after ``read``.
        """
        cdef list columns = []
        others, first_other = iter(other_columns), iter(self.others)
        waiting = next(first_other, None)
        for request, number in zip(self.requested_columns, self.first_leaves):
            if request is waiting:
                columns.append(next(others))
                waiting = next(first_other, None)
            elif request[0].leaves[0][0].is_flat:
                columns.append(self.results[number])
            else:
                columns.append(self._struct(request[0], number))
        return columns

    cdef object _struct(self, plan, number):
        """Return a struct column. number: its first leaf's number."""
        shape = shape_of(plan.node, [leaf.index for leaf, _ in plan.leaves], self.opener.types)
        return struct_of(shape, iter(self.results[number:number + len(plan.leaves)]), plan.leaves[0][1][0].num_rows)


cdef object struct_of(shape, leaves, rows):
    """Return a shape's column. The next leaves are in an iterator, and no struct is null."""
    if not isinstance(shape, StructShape):
        return next(leaves)
    children = tuple([struct_of(child, leaves, rows) for child in shape.children])
    return StructColumn._made(shape.type, children, rows, nullable=shape.nullable)


cdef object new_array(cnp.npy_intp count, dtype):
    """Return an array with room for ``count`` values."""
    Py_INCREF(dtype)            # the array takes a reference
    return PyArray_NewFromDescr(&PyArray_Type, <PyArray_Descr*><PyObject*>dtype, 1, &count, NULL, NULL, 0, NULL)
