"""ChunkPlan: how a read takes a column chunk, or some rows of it, from the file. PageSelection: the pages for these rows.

A file may have a million chunks. Therefore plans are made by compiled code, and the garbage collector does not track them.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, int64_t, uint8_t

from fastpq.format.plain_chunk cimport ChunkEntries, PlainChunk, read_opened_metadata
from fastpq.format.slots cimport untrack

from typing import NamedTuple

import numpy as np

from fastpq.index.ranges import RowRanges


class PageSelection(NamedTuple):
    """Selected pages of one column chunk.

    Attributes:
        rows: the row group's rows that are in the selected pages.
        ranges: byte ranges in the file, as ascending (offset, length). The first is the dictionary page, if there is one. Each
            other range has one or more consecutive data pages.
        directory: shape (pages, 4), int64: ordinal, stored size, value count and row count for each selected data page. Unknown
            numbers are -1.
        num_pages: number of all data pages in the chunk.
    """

    rows: RowRanges
    ranges: list
    directory: np.ndarray
    num_pages: int

    @property
    def num_bytes(self):
        """Stored size of the selected pages in bytes."""
        return sum(length for _, length in self.ranges)

    @property
    def has_dictionary(self):
        """Whether the ranges include the dictionary page. If so, they have more bytes than the data pages."""
        return self.num_bytes > int(self.directory[:, 1].sum())


@cython.final
@cython.no_gc               # plans are in no reference cycle
cdef class ChunkPlan:
    """Plan for reading one column chunk, or some of its rows.

    Args, attributes:
        column: the chunk's column.
        row_group: row group index.
        row_offset: number of the chunk's first row in the output.
        num_rows: how many of the chunk's rows are in the output.
        num_values: number of values in the pages to read. A nested column's nulls and empty lists count too. It is an upper
            bound if some pages of a nested column are left out.
        start, length: offset and length of the whole chunk in the file, in bytes.
        metadata: the chunk's metadata, decoded on first use.
        codec: compression codec, a number of ``CompressionCodec``.
        is_encrypted: whether the chunk is encrypted.
        has_dictionary: whether the bytes to read may begin with a dictionary page.
        v2_is_compressed: whether data pages V2 are compressed even if their headers say is_compressed=False.
        file_path: path of the file that holds the chunk, or None for the file that has the footer.
        pages: PageSelection of the pages to read, or None for all.

    Attributes:
        kept: RowRanges of the output rows, counted within the pages to read, or None for all.
        chunk_values: number of stored values in the whole chunk, including nulls and empty lists.
        uncompressed_size: size of the chunk's uncompressed pages in bytes, or 0 if unknown.
        num_bytes: number of bytes to read.
        dictionary_size: stored size of the chunk's dictionary page in bytes, or 0 if none is before the data pages.
        ranges: byte ranges to read, as (offset, length).
        under_footer_key: whether it is known, without the chunk's metadata, that the footer key encrypts the chunk.
        under_own_key: whether it is known, without the chunk's metadata, that the chunk is encrypted with a key of its own.
        key_metadata: that key's key metadata, or None.
        row_group_ordinal: the row group's ordinal in AADs.
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
        """Row ranges in the output, counted within the pages to read. Shape (n, 2), int64."""
        return np.array([[0, self.num_rows]], np.int64) if self.kept is None else self.kept.bounds

    def of_rows(self, int64_t row_offset, int64_t num_rows, int64_t num_values, pages=None, kept=None):
        """Return a copy of this plan for some rows of the chunk. Each argument becomes the copy's attribute of that name."""
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
        """Return a copy of this plan for the same pages, with other rows in the output. The arguments become its attributes."""
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
        plan.under_own_key = self.under_own_key
        plan.key_metadata = self.key_metadata
        plan.has_dictionary = self.has_dictionary
        plan.v2_is_compressed = self.v2_is_compressed
        plan.file_path = self.file_path
        plan.pages = self.pages
        plan.kept = self.kept
        plan.file = self.file
        plan.stored = self.stored
        plan.parts = self.parts
        return plan


@cython.final
cdef class ChunkPlanner:
    """Maker of plans for all rows of some row groups.

    Args:
        file: the FileMetaData.
        entries: the chunk entries in its footer, or None if no chunk may be planned from the bytes of its entry.
        groups: for each chunk of a column, the row group index, the row count, and the number of the first row in the output.
        file_size: file size in bytes.
        slack: number of bytes that a chunk may have beyond its stored size.
        v2_is_compressed: as for ChunkPlan.
        check: raises an error if the reader's keys do not allow a column to be unencrypted, or to be encrypted with the footer
            key. None if they allow every column. Its arguments are the column, a row group index, and True for "encrypted with
            the footer key". It is called for a column's first chunk of each of the two kinds.
        open_metadata: opens the metadata of a chunk that has its own key. Its arguments are the column, a row group index, the
            key metadata or None, and the stored module. It returns None if plan_other has to plan the chunk. None without keys.
        plan_other: plans one chunk, or raises an error. Its arguments are the column, the row group index and the number of the
            chunk's first row in the output. It is called for chunks whose own key is missing or audited, that are in another
            file, are not at the column's place in the row group, are broken, or contradict the schema or the file size.
    """

    def __init__(self, file, ChunkEntries entries, list groups not None, int64_t file_size, int64_t slack,
                 bint v2_is_compressed, check, open_metadata, plan_other not None):
        self.file = file
        self.entries = entries
        self.groups = groups
        self.file_size = file_size
        self.slack = slack
        self.v2_is_compressed = v2_is_compressed
        self.check = check
        self.open_metadata = open_metadata
        self.plan_other = plan_other

    cpdef list chunks(self, column):
        """Return the plans for a column's chunks."""
        cdef PlainChunk stored
        cdef ChunkPlan plan
        cdef list plans = []
        cdef bytes path
        cdef int64_t index, num_rows, offset, start = 0, number = column.index
        cdef bint repeated = column.max_repetition_level > 0
        cdef bint[2] checked = [False, False]
        cdef int physical
        if self.entries is None:
            return [self.plan_other(column, index, offset) for index, _, offset in self.groups]
        path = self.entries.path_of(column)
        physical = column.element.type
        for index, num_rows, offset in self.groups:
            plan = ChunkPlan.__new__(ChunkPlan)
            if not self.read_entry(index, number, path, physical, num_rows, &stored, &start):
                if not self.open_entry(column, index, path, physical, num_rows, &stored, &start, plan):
                    plans.append(self.plan_other(column, index, offset))
                    continue
            elif self.check is not None and not checked[stored.under_footer_key]:
                self.check(column, index, stored.under_footer_key)
                checked[stored.under_footer_key] = True
            plan.column = column
            plan.row_group = index
            plan.row_offset = offset
            plan.num_rows = num_rows
            plan.num_values = stored.num_values if repeated else num_rows
            plan.chunk_values = stored.num_values
            plan.uncompressed_size = max(0, stored.total_uncompressed_size)
            plan.start = start
            plan.length = plan.num_bytes = min(stored.total_compressed_size + self.slack, self.file_size - start)
            plan.dictionary_size = stored.data_page_offset - start
            plan.codec = stored.codec
            plan.under_footer_key = stored.under_footer_key
            plan.is_encrypted = plan.under_footer_key or plan.under_own_key
            plan.has_dictionary = stored.dictionary_page_offset != 0
            plan.v2_is_compressed = self.v2_is_compressed
            plan.file = self.file
            plans.append(plan)
        return plans

    cdef bint read_entry(self, int64_t row_group, int64_t column, bytes path, int physical, int64_t num_rows, PlainChunk* stored,
                         int64_t* start):
        return self.entries is not None and self.entries.read(row_group, column, path, stored) and self.fits(
            physical, num_rows, stored, start)

    cdef bint open_entry(self, column, int64_t row_group, bytes path, int physical, int64_t num_rows, PlainChunk* stored,
                         int64_t* start, ChunkPlan plan) except -1:
        cdef bytes plain, key_metadata = None
        if self.open_metadata is None or not stored.is_sealed:
            return False
        if stored.key_metadata != NULL:
            key_metadata = PyBytes_FromStringAndSize(<const char*>stored.key_metadata, <Py_ssize_t>stored.key_metadata_size)
        module = PyBytes_FromStringAndSize(<const char*>stored.sealed_metadata, <Py_ssize_t>stored.sealed_metadata_size)
        plain = self.open_metadata(column, row_group, key_metadata, module)
        if plain is None or not read_opened_metadata(
                <const uint8_t*>PyBytes_AS_STRING(plain), <size_t>len(plain), <const uint8_t*>PyBytes_AS_STRING(path),
                <size_t>len(path), stored):
            return False
        plan.under_own_key, plan.key_metadata = True, key_metadata
        return self.fits(physical, num_rows, stored, start)

    cdef bint fits(self, int physical, int64_t num_rows, const PlainChunk* stored, int64_t* start) noexcept:
        cdef int64_t size = stored.total_compressed_size
        start[0] = stored.data_page_offset
        if 0 < stored.dictionary_page_offset < start[0]:
            start[0] = stored.dictionary_page_offset
        return (stored.type == physical and stored.num_values >= num_rows and start[0] >= 0 and 0 <= size <= self.file_size
                and start[0] <= self.file_size - size)

    def columns(self, leaves, kind):
        """Return the plans for output columns. The leaves of one nested column become one column, in the place of the first leaf.

        Args:
            leaves: the leaves to read.
            kind: the class ColumnPlan. An instance is made from a node, and a list of leaves with their chunk plans.
        """
        cdef dict outputs = {}
        cdef list plans = [], chunks
        cdef tuple of_leaf
        for leaf in leaves:
            chunks = self.chunks(leaf)
            of_leaf = (leaf, chunks)
            untrack(chunks)
            untrack(of_leaf)
            node = leaf.top
            if node is not leaf and node in outputs:
                outputs[node].leaves.append(of_leaf)
                continue
            chunks = [of_leaf]
            output = tuple.__new__(kind, (node, chunks))
            untrack(chunks)
            untrack(output)
            plans.append(output)
            if node is not leaf:
                outputs[node] = output
        for output in outputs.values():
            if len(output.leaves) > 1:
                output.leaves.sort(key=index_of_leaf)
        return plans


def index_of_leaf(leaf_and_chunks):
    """Return the number of a leaf that is in a tuple with its chunks."""
    return leaf_and_chunks[0].index


def claimed_sizes(list chunks not None, bint repeated, int64_t width, int64_t large):
    """Return how much memory and how many stored bytes a column's chunks need, according to their metadata.

    Args:
        chunks: plans for the chunks.
        repeated: whether one row may have several values.
        width: size of a value in memory, in bytes.
        large: a chunk is large if its values take more than this many bytes in memory.

    Returns:
        (size of the values of all chunks in memory, number of bytes to read, positions of the large chunks in ``chunks``). Sizes
        are in bytes, and at most 2^63 - 1.
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
