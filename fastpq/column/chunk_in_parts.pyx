"""ChunkInParts: a ChunkWriter whose rows come in parts, so that nobody has to keep them until the chunk is complete.

All pages wait until the last part. The dictionary page stands before them, and it is complete only then.
"""

from libc.stdint cimport int64_t, uint32_t

from fastpq.column.chunk_writer cimport ChunkWriter
from fastpq.column.input cimport ColumnInput
from fastpq.column.scratch cimport scratch_reserve


cdef class ChunkInParts(ChunkWriter):
    """Encodes one column's rows part by part as a column chunk. It takes ChunkWriter's arguments, for the first part.

    A bloom filter needs ``bloom_filter_ndv`` in the settings, because the values are not counted before it is filled.
    """

    cdef int64_t index_pages            # pages with indices into the dictionary

    def write_part(self, ColumnInput input not None):
        """Encode all rows in an input as pages, which wait in ``pieces``. More parts may follow, until ``end_parts`` is called.

        The pages do not keep the input's memory.

        Args:
            input: the rows, in the same layout as the first part.

        Raises:
            LimitError, SchemaError: as for ``write``.
        """
        input.dense_in_place = False
        self.input = self.page_writer.column = input
        with nogil:
            self._write_part()
            self._free()
            self.page_writer.free()
            input.free()
        self.input = self.page_writer.column = None
        if self.dictionary_has_ended and self.index_pages == 0:
            self.dictionary = None
        self.page_writer.pieces.pause()

    def take_pages(self):
        """Return the waiting pages in pieces, and forget them. The caller gives them back to ``end_parts``."""
        self.page_writer.pieces.finish()
        return self.page_writer.pieces.take()

    def end_parts(self, ColumnInput input not None, list taken_pages not None):
        """Put the dictionary page before all other pages, and set the counters.

        Args:
            input: an input without rows, in the same layout as the parts.
            taken_pages: all pieces that ``take_pages`` has returned, in their order.
        """
        self.input = self.page_writer.column = input
        pages = taken_pages + self.take_pages()
        if self.index_pages:
            if not self.dictionary_has_ended:
                self.distinct_count = self.dictionary.table.count
            with nogil:
                self._write_dictionary()
                self._free()
                self.page_writer.free()
        self.input = self.page_writer.column = None
        self._end()
        self.page_writer.pieces.waiting += pages

    cdef int _write_part(self) except -1 nogil:
        """Write a part's pages: with indices while there is a dictionary, then with values."""
        cdef int64_t row = 0, stop = self.input.rows, rows
        self._count_rows(0, stop)
        if self.has_bloom_filter and self.bloom_filter is None:
            self._begin_bloom_filter(0)         # the settings tell its size
        if self.dictionary is not None and not self.dictionary_has_ended:
            row = self._dictionary_part()
        while row < stop:
            rows = self._page_rows(row, stop)
            self._write_values(row, rows)
            row += rows
        return 0

    cdef int64_t _dictionary_part(self) except -1 nogil:
        """Write a part's rows as pages with indices, and return the first row that is not written.

        Each page has the bit width that the dictionary needs at that time.
        """
        cdef int64_t row = 0, stop = self.input.rows, rows, present = 0
        cdef uint32_t count
        cdef uint32_t* codes
        if stop and self.pages.count() == 0:
            self.dictionary_has_ended = self._is_mostly_distinct(0, stop)
        codes = <uint32_t*>scratch_reserve(&self.codes, <size_t>self._entries(0, stop) * sizeof(uint32_t))
        while row < stop and not self.dictionary_has_ended:
            count = self.dictionary.table.count
            rows = self._encode_page(row, stop, codes, &present)
            if rows == 0:
                break
            if self.input.variable:
                self._check_text(self.dictionary.slice_values() + count, self.dictionary.table.count - count)
            self._write_indices(row, rows, codes, present)
            self.index_pages += 1
            row += rows
        return row
