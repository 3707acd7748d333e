"""ChunkPlan: a column chunk of a read, or some of its rows.

A file may have a million chunks: their plans are made without the interpreter, and are no work for the garbage collector.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int64_t

import numpy as np

from fastpq.format.plain_chunk cimport ChunkEntries, PlainChunk


@cython.final
@cython.no_gc               # plans are dropped with their read
cdef class ChunkPlan:
    """A column chunk of a read, or some of its rows.

    Args, attributes:
        column: descriptor of the chunk's column.
        row_group: index of the chunk's row group.
        row_offset: number of the chunk's first row in the output.
        num_rows: number of the chunk's rows in the output.
        num_values: number of values in the pages to read; nulls and empty lists of a nested column count. An upper bound
            if some pages of a nested column are left out.
        start, length: place of the whole chunk in the file.
        metadata: metadata of the chunk, decoded on first use.
        codec: compression codec, a number of ``CompressionCodec``.
        is_encrypted: whether the chunk is encrypted.
        has_dictionary: whether the bytes to read may begin with a dictionary page.
        v2_is_compressed: whether data pages V2 are compressed even where is_compressed of their headers is False.
        file_path: path of the chunk's file; None for the file of the footer.
        pages: the pages to read, a PageSelection; None for all.

    Attributes:
        kept: the rows in the output, RowRanges within the pages to read; None for all.
        chunk_values: number of values in the whole chunk, as stored; nulls and empty lists count.
        uncompressed_size: bytes of the chunk's pages, uncompressed; 0 where unknown.
        num_bytes: number of bytes to read.
        dictionary_size: stored bytes of the chunk's dictionary page; 0 without one before the data pages.
        ranges: byte ranges to read, as (offset, length).
        under_footer_key: whether the chunk is known to be encrypted with the footer key, without its metadata.
        row_group_ordinal: ordinal of the row group in AADs.
    """

    def __init__(self, column, int64_t row_group, int64_t row_offset, int64_t num_rows, int64_t num_values, int64_t start,
                 int64_t length, metadata, int codec, bint is_encrypted, bint has_dictionary, bint v2_is_compressed=False,
                 file_path=None, pages=None):
        self.column = column
        self.row_group = row_group
        self.row_offset = row_offset
        self.num_rows = num_rows
        self.num_values = num_values
        self.start = start
        self.length = self.num_bytes = length
        self.stored = metadata
        self.chunk_values = metadata.num_values
        self.uncompressed_size = max(0, metadata.total_uncompressed_size)
        first = metadata.dictionary_page_offset
        self.dictionary_size = metadata.data_page_offset - first if first and 0 < first < metadata.data_page_offset else 0
        self.codec = codec
        self.is_encrypted = is_encrypted
        self.has_dictionary = has_dictionary
        self.v2_is_compressed = v2_is_compressed
        self.file_path = file_path
        self.pages = pages
        if pages is not None:
            self.parts, self.num_bytes = pages.ranges, pages.num_bytes

    @property
    def metadata(self):
        if self.stored is None:
            self.stored = self.file.row_group(self.row_group).column(self.column.index)
        return self.stored

    @property
    def row_group_ordinal(self):
        return self.file.row_group_ordinals[self.row_group] if self.stored is None else self.stored.row_group_ordinal

    @property
    def ranges(self):
        return ((self.start, self.length),) if self.parts is None else self.parts

    @property
    def kept_rows(self):
        """Ranges of the rows in the output, counted within the pages to read; shape (n, 2), int64."""
        return np.array([[0, self.num_rows]], np.int64) if self.kept is None else self.kept.bounds

    def of_rows(self, int64_t row_offset, int64_t num_rows, int64_t num_values, pages=None, kept=None):
        """A plan of some rows of the chunk; parameters as the attributes."""
        cdef ChunkPlan plan = self.copy()
        plan.row_offset, plan.num_rows, plan.num_values = row_offset, num_rows, num_values
        plan.pages, plan.kept = pages, kept
        if pages is None:
            plan.parts, plan.num_bytes = None, self.length
        else:
            plan.parts, plan.num_bytes = pages.ranges, pages.num_bytes
            plan.has_dictionary = self.has_dictionary and pages.has_dictionary
        return plan

    def keeping(self, kept, int64_t num_rows):
        """A plan of the same pages with other rows in the output; parameters as the attributes."""
        cdef ChunkPlan plan = self.copy()
        plan.kept, plan.num_rows = kept, num_rows
        return plan

    cdef ChunkPlan copy(self):
        cdef ChunkPlan plan = ChunkPlan.__new__(ChunkPlan)
        plan.column = self.column
        plan.row_group = self.row_group
        plan.row_offset = self.row_offset
        plan.num_rows = self.num_rows
        plan.num_values = self.num_values
        plan.chunk_values = self.chunk_values
        plan.uncompressed_size = self.uncompressed_size
        plan.start = self.start
        plan.length = self.length
        plan.num_bytes = self.num_bytes
        plan.dictionary_size = self.dictionary_size
        plan.codec = self.codec
        plan.is_encrypted = self.is_encrypted
        plan.under_footer_key = self.under_footer_key
        plan.has_dictionary = self.has_dictionary
        plan.v2_is_compressed = self.v2_is_compressed
        plan.file_path = self.file_path
        plan.pages = self.pages
        plan.kept = self.kept
        plan.file = self.file
        plan.stored = self.stored
        plan.parts = self.parts
        return plan


def plan_plain_chunks(file, ChunkEntries entries not None, column, list groups not None, int64_t file_size, int64_t slack,
                      bint v2_is_compressed, check not None, plan_other not None):
    """Plans of all rows of a column's chunks.

    Args:
        file: the FileMetaData.
        entries: the entries in its footer.
        column: descriptor of the column.
        groups: row group, number of rows and number of the first row in the output, of each chunk.
        file_size: size of the file in bytes.
        slack: most bytes of a chunk beyond its stored size.
        v2_is_compressed: as of ChunkPlan.
        check: called with the first row group whose chunk is not encrypted, and the first one under the footer key, and with
            whether this is the latter; raises the error of a column that must not be read so.
        plan_other: plans a chunk by its row group and first row, or says what is wrong with it: a chunk with a key of its own, in
            another file, in another place than the column's, broken, or in contradiction to the schema or the file's size.
    """
    cdef PlainChunk stored
    cdef ChunkPlan plan
    cdef list plans = []
    cdef bytes path = entries.path_of(column)
    cdef int64_t index, num_rows, offset, start, length, number = column.index
    cdef bint repeated = column.max_repetition_level > 0
    cdef bint[2] checked = [False, False]
    cdef int physical = column.element.type
    for index, num_rows, offset in groups:
        if not entries.read(index, number, path, &stored):
            plans.append(plan_other(index, offset))
            continue
        start, length = stored.data_page_offset, stored.total_compressed_size
        if 0 < stored.dictionary_page_offset < start:
            start = stored.dictionary_page_offset
        if (stored.type != physical or stored.num_values < num_rows or start < 0 or length < 0 or length > file_size
                or start > file_size - length):
            plans.append(plan_other(index, offset))
            continue
        if not checked[stored.under_footer_key]:
            check(index, stored.under_footer_key)
            checked[stored.under_footer_key] = True
        plan = ChunkPlan.__new__(ChunkPlan)
        plan.column = column
        plan.row_group = index
        plan.row_offset = offset
        plan.num_rows = num_rows
        plan.num_values = stored.num_values if repeated else num_rows
        plan.chunk_values = stored.num_values
        plan.uncompressed_size = max(0, stored.total_uncompressed_size)
        plan.start = start
        plan.length = plan.num_bytes = min(length + slack, file_size - start)
        plan.dictionary_size = stored.data_page_offset - start
        plan.codec = stored.codec
        plan.is_encrypted = plan.under_footer_key = stored.under_footer_key
        plan.has_dictionary = stored.dictionary_page_offset != 0
        plan.v2_is_compressed = v2_is_compressed
        plan.file = file
        plans.append(plan)
    return plans


def claimed_sizes(list chunks not None, bint repeated, int64_t width, int64_t large):
    """What the chunks of a column take by their metadata.

    Args:
        chunks: their plans.
        repeated: whether a row of the column may have several values.
        width: bytes of a value in memory.
        large: bytes of the values of a large chunk.

    Returns:
        (bytes of all values in memory, at most 2^63 - 1; bytes to read; numbers of chunks with more than large bytes of values).
    """
    cdef ChunkPlan chunk
    cdef Py_ssize_t number
    cdef int64_t values = 0, size = 0, count, most = INT64_MAX // max(width, <int64_t>1), few = large // max(width, <int64_t>1)
    cdef list larger = []
    for number in range(len(chunks)):
        chunk = <ChunkPlan?>chunks[number]
        count = chunk.num_values if repeated else chunk.num_rows
        values += min(count, most - values)
        size += min(chunk.num_bytes, INT64_MAX - size)
        if chunk.num_values > few:
            larger.append(number)
    return values * width, size, larger
