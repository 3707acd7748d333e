# cython: auto_pickle=False
"""Column chunks: encode the rows of a leaf as pages, and place the pages in the new file."""

cimport cython
from libc.stdint cimport int64_t

from fastpq.column.chunk_writer cimport ChunkWriter
from fastpq.column.input cimport ColumnInput
from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.format.slots cimport untrack

from fastpq.errors import ParquetError
from fastpq.write.chunk_metadata import chunk_metadata, geospatial_statistics, has_geospatial_values, written_pages
from fastpq.write.row_groups import PlacedChunk


@cython.final
cdef class ChunkToWrite:
    """Rows from a leaf that become a column chunk.

    Args:
        leaf: the LeafToWrite.
        path: column path.
        spec: the ColumnSpec, which says how to write the column.
        cipher: chunk cipher.
        row_group: row group ordinal, for errors.
        start, stop: the leaf's rows [start, stop).
        cuts: shape (cuts,), int64: rows of the chunk at which a new page begins. None cuts pages by their size alone.
    """

    cdef object leaf
    cdef tuple path
    cdef object spec
    cdef ModuleCipher cipher
    cdef int64_t row_group
    cdef int64_t start
    cdef int64_t stop
    cdef object cuts

    def __cinit__(self, leaf, tuple path not None, spec, ModuleCipher cipher not None, int64_t row_group, int64_t start,
                  int64_t stop, cuts=None):
        self.leaf = leaf
        self.path = path
        self.spec = spec
        self.cipher = cipher
        self.row_group = row_group
        self.start = start
        self.stop = stop
        self.cuts = cuts


def encode_chunk(ChunkToWrite chunk not None, give):
    """Encode, compress and encrypt a column chunk.

    Args:
        chunk: the rows, and how to write them.
        give: function that is called with lists of stored pages, in order, while the chunk is encoded. The last pages stay in the
            chunk.

    Returns:
        An EncodedChunk.

    Raises:
        SchemaError: a null in a required column, text that is not UTF-8, or a geometry that is not ISO WKB.
        LimitError: too many levels or pages for one chunk.
    """
    cdef ColumnInput values
    cdef ChunkWriter writer
    cdef int64_t rows = chunk.stop - chunk.start
    spec = chunk.spec
    try:
        layout = spec.layout
        values = chunk.leaf.rows(layout, chunk.start, chunk.stop)
        writer = ChunkWriter(values, spec.codec, chunk.cipher, spec.settings, give, chunk.cuts)
        entries = chunk.leaf.entries(layout, rows)
        if entries is not None:
            writer.begin_dictionary(entries)
        writer.write(0, rows)
        geospatial = geospatial_statistics(spec, values) if has_geospatial_values(spec) else None
        return EncodedChunk(chunk.path, spec, chunk.cipher, writer, geospatial)
    except ParquetError as error:
        if "path" not in error.context:     # an error with a path comes from the file, in ``give``
            error.at(column=".".join(chunk.path), row_group=chunk.row_group)
        raise


@cython.final
@cython.no_gc
cdef class EncodedChunk:
    """A column chunk whose last pages are still in memory.

    Args:
        path: column path.
        spec: the ColumnSpec, which says how the column is written.
        cipher: chunk cipher.
        writer: the last pages, and counts for all pages.
        geospatial: GeospatialStatistics of GEOMETRY and GEOGRAPHY columns; None for other columns.
    """

    cdef tuple path
    cdef readonly object spec
    cdef ModuleCipher cipher
    cdef readonly ChunkWriter writer
    cdef object geospatial

    def __cinit__(self, tuple path not None, spec, ModuleCipher cipher not None, ChunkWriter writer not None, geospatial):
        self.path = path
        self.spec = spec
        self.cipher = cipher
        self.writer = writer
        self.geospatial = geospatial

    def place(self, sink):
        """Write the last pages after the others, and return the file offset where the first page begins.

        Args:
            sink: the new file's Sink.
        """
        sink.write_together(self.writer.pieces.take())
        return sink.size - self.writer.stored_size

    def written_pages(self):
        """Return counts and bounds for each data page, as WrittenPages."""
        return written_pages(self.spec, self.writer)

    def placed(self, int64_t start, pattern=None):
        """Return the chunk with its metadata and indexes, as a PlacedChunk.

        Args:
            start: file offset where the first page begins.
            pattern: what encodes the entries of ordinary chunks without structs (``entry_pattern``), or None.

        Raises:
            SchemaError: a decimal with more digits than its type allows, or a time that is not within a day.
        """
        cdef ChunkWriter writer = self.writer
        spec = self.spec
        plain = None if pattern is None else pattern.entry(self.path, writer, start)
        if plain is not None:
            placed_chunk = PlacedChunk(plain, plain, self.cipher, plain.column_index, plain.offset_index, None)
            untrack(placed_chunk)
            return placed_chunk
        pages = self.written_pages()
        metadata = chunk_metadata(self.path, spec, writer, pages, start, self.geospatial)
        column_index = offset_index = None
        if spec.has_page_index:
            offset_index = pages.offset_index(start + writer.dictionary_page_size)
            column_index = pages.column_index(spec.truncation) if spec.settings.statistics else None
        return PlacedChunk.of_structs(metadata, self.cipher, column_index, offset_index, writer.bloom_filter)
