"""StackedColumns: reads flat columns of many small files that have one schema, all files into one output for each column.

A file with 20 rows costs more Python objects than values: plans, readers, columns, and their concatenation. Here a chunk is
planned as a C struct, decoded by a reader that all columns of its type share, and leaves no object behind.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc

from fastpq.column.chunk_reader cimport ChunkReader
from fastpq.column.column_output cimport ColumnOutput
from fastpq.format.plain_chunk cimport PlainChunk
from fastpq.read.chunk_plan cimport ChunkPlanner
from fastpq.read.small_columns cimport SmallColumnKind, column_of, kind_of, share_bytes

from fastpq.errors import LimitError
from fastpq.format.plain_chunk import stored_path

cdef enum:
    LARGEST_READ = 1 << 20          # bytes of neighbouring chunks that are read from a file at once
    LARGEST_GAP = 1 << 12           # bytes between two chunks that are read along with them


cdef struct StackedChunk:
    int64_t start
    int64_t size
    int64_t uncompressed_size
    int codec
    bint has_dictionary


@cython.final
cdef class StackedColumn:
    """A column: its schema leaf with the facts that are needed for each chunk, its kind, its output and its null count."""

    cdef object leaf
    cdef int64_t index
    cdef int physical
    cdef bint nullable
    cdef bytes path
    cdef SmallColumnKind kind
    cdef ColumnOutput output
    cdef int64_t nulls
    cdef int codec                  # the codec for which `reader` is. -1 before the first chunk
    cdef ChunkReader reader


@cython.final
cdef class StackedColumns:
    """Columns of many files that have one schema object. The rows of each file follow those of the file before.

    Args:
        opener: opens chunks, with the types in memory that the columns have in all files.
        leaves: the columns.
        num_rows: row count of all files together.

    Attributes:
        is_possible: whether all columns can be read in this way: flat, not INT96, and without a conversion after decoding.
        size: how many bytes the values take in memory.
    """

    cdef object opener
    cdef list columns
    cdef StackedChunk* chunks
    cdef int64_t num_rows
    cdef readonly bint is_possible
    cdef readonly int64_t size

    def __cinit__(self, opener, leaves, int64_t num_rows):
        cdef StackedColumn column
        cdef dict kinds = {}
        self.opener = opener
        self.num_rows = num_rows
        self.columns = []
        self.is_possible = not opener.source.gives_views and opener.source.walks_late
        for leaf in leaves:
            if not self.is_possible:
                return
            column = StackedColumn.__new__(StackedColumn)
            column.leaf, column.index, column.physical = leaf, leaf.index, leaf.element.type
            column.nullable, column.codec = leaf.nullable, -1
            column.kind = kind_of(opener, kinds, leaf)
            becomes = opener.becomes_dictionary
            if not leaf.is_flat or not column.kind.is_read or (becomes is not None and becomes(leaf)):
                self.is_possible = False
                return
            column.path = stored_path(leaf.path)
            self.size += num_rows * column.kind.width + ((num_rows + 7) // 8 if column.nullable else 0)
            self.columns.append(column)
        self.chunks = <StackedChunk*>malloc(max(1, len(self.columns)) * sizeof(StackedChunk))
        if self.chunks == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.chunks)

    def allocate(self):
        """Take memory for the values.

        Raises:
            LimitError: there is not enough memory.
        """
        cdef StackedColumn column
        for column in self.columns:
            column.output = ColumnOutput(self.num_rows, column.kind.width, column.nullable)

    def read(self, ChunkPlanner planner not None, source):
        """Decode the columns of one file.

        Args:
            planner: plans the file's chunks. Its row groups have the numbers of their first rows in the output.
            source: the file.

        Returns:
            False if a chunk has to be read in another way, for example because it is encrypted. The output is then incomplete.

        Raises:
            ParquetError: the bytes break the specification. The error does not say where.
        """
        cdef int64_t row_group, num_rows, offset
        for row_group, num_rows, offset in planner.groups:
            if not self._plan(planner, row_group, num_rows):
                return False
            self._read_group(planner, source, row_group, num_rows, offset)
        return True

    cdef bint _plan(self, ChunkPlanner planner, int64_t row_group, int64_t num_rows) except -1:
        """Fill ``chunks`` for a row group. Return False if a chunk has to be read in another way."""
        cdef Py_ssize_t number
        cdef StackedColumn column
        cdef StackedChunk* chunk
        cdef PlainChunk stored
        for number in range(len(self.columns)):
            column = <StackedColumn>self.columns[number]
            chunk = &self.chunks[number]
            if not planner.read_entry(row_group, column.index, column.path, column.physical, num_rows, &stored, &chunk.start):
                return False
            if stored.under_footer_key:
                return False
            chunk.size = min(stored.total_compressed_size + planner.slack, planner.file_size - chunk.start)
            chunk.uncompressed_size = max(<int64_t>0, stored.total_uncompressed_size)
            chunk.codec = stored.codec
            chunk.has_dictionary = stored.dictionary_page_offset != 0
        return True

    cdef int _read_group(self, ChunkPlanner planner, source, int64_t row_group, int64_t num_rows, int64_t offset) except -1:
        """Read and decode the chunks of a row group, from row ``offset`` of the output on. Neighbours are read at once."""
        cdef Py_ssize_t first = 0, stop, number
        cdef int64_t start, end
        cdef StackedChunk* chunk
        cdef const uint8_t[::1] data
        while first < len(self.columns):
            start, end, stop = self.chunks[first].start, self.chunks[first].start + self.chunks[first].size, first + 1
            while stop < len(self.columns):
                chunk = &self.chunks[stop]
                if not start <= chunk.start <= end + LARGEST_GAP or chunk.start + chunk.size - start > LARGEST_READ:
                    break
                end = max(end, chunk.start + chunk.size)
                stop += 1
            array = source.read(start, end - start)
            data = array
            for number in range(first, stop):
                self._decode(
                    planner, <StackedColumn>self.columns[number], &self.chunks[number], array,
                    &data[0] if end > start else NULL, start, end - start, row_group, num_rows, offset)
            first = stop

    cdef int _decode(self, ChunkPlanner planner, StackedColumn column, StackedChunk* chunk, array, const uint8_t* data,
                     int64_t start, int64_t size, int64_t row_group, int64_t num_rows, int64_t offset) except -1:
        """Decode a chunk whose bytes are among ``size`` bytes at ``data``, which come from offset ``start`` of the file."""
        cdef ChunkReader reader = column.reader
        cdef ColumnOutput output = column.output
        if column.codec != chunk.codec:
            reader = column.reader = self._reader(planner, column, chunk.codec, array, row_group)
            column.codec = chunk.codec
        share_bytes(reader, array, data, size, chunk.uncompressed_size)
        reader.begin(output, offset, num_rows)
        try:
            with nogil:
                column.nulls += reader.read_chunk(
                    output, offset, chunk.start - start, chunk.size, chunk.has_dictionary, num_rows)
        except MemoryError as error:
            if isinstance(error, LimitError):
                raise
            raise LimitError("no memory for a page") from error

    cdef ChunkReader _reader(self, ChunkPlanner planner, StackedColumn column, int codec, array, int64_t row_group):
        """Return the reader for a codec, which the columns of one kind and one level share."""
        cdef tuple key = (codec, column.leaf.max_definition_level, planner.v2_is_compressed)
        reader = column.kind.readers.get(key)
        if reader is None:
            groups = [index for index, _, _ in planner.groups]
            plan = planner.chunks(column.leaf)[groups.index(row_group)]
            reader = column.kind.readers[key] = self.opener.flat(plan, array, column.kind.layout)
        return reader

    def finish(self):
        """Return the columns. All files must be read."""
        cdef StackedColumn column
        columns = []
        for column in self.columns:
            output = column.output
            validity = output.validity if column.nulls else None
            columns.append(column_of(
                column.kind, output.values.view(column.kind.dtype), output.buffers, validity, column.nulls, column.nullable))
        return columns
