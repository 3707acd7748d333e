"""Decodes consecutive chunks of a flat column with one reader, without running the interpreter between the chunks.

Decoding a chunk evicts the interpreter's own data from the processor's caches. The interpreter's work between two chunks then
takes twice as long.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from fastpq.column.chunk_reader cimport ChunkReader
from fastpq.column.code_reader cimport VerdictReader
from fastpq.column.column_output cimport ColumnOutput
from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.read.chunk_plan cimport ChunkPlan

from fastpq.errors import LimitError


@cython.final
@cython.no_gc
cdef class RunPlan:
    """Plan for a run: one chunk of a flat column, or consecutive chunks that are decoded together.

    Attributes:
        chunks: their plans.
        first: number of the first chunk among the column's chunks.
        row_offset: number of the first row in the output.
        num_rows: number of rows in the output.
        is_encrypted: whether a chunk is encrypted.
        under_footer_key: whether all chunks are known to be encrypted with the footer key.
        ranges: byte range of each whole chunk in the file, as (offset, length).
    """

    cdef readonly list chunks
    cdef readonly Py_ssize_t first
    cdef readonly int64_t row_offset
    cdef readonly int64_t num_rows
    cdef readonly bint is_encrypted
    cdef readonly bint under_footer_key

    @property
    def ranges(self):
        cdef ChunkPlan chunk
        cdef list places = []
        for chunk in self.chunks:
            places.append((chunk.start, chunk.length))
        return places


cdef RunPlan run_of(list chunks, Py_ssize_t first):
    """Return the RunPlan for consecutive chunks. ``first`` is the number of the first one among the column's chunks."""
    cdef ChunkPlan chunk = chunks[0]
    cdef RunPlan run = RunPlan.__new__(RunPlan)
    run.chunks, run.first, run.row_offset, run.under_footer_key = chunks, first, chunk.row_offset, True
    for chunk in chunks:
        run.num_rows += chunk.num_rows
        run.is_encrypted |= chunk.is_encrypted
        run.under_footer_key &= chunk.under_footer_key
    return run


def cut_runs(list chunks not None, int64_t width, bint variable, int64_t largest, int64_t most):
    """Cut a column's chunks into runs of consecutive chunks that are decoded together.

    A run may have several chunks if they are whole, in one file, and have the same codec. Other chunks are decoded alone.

    Args:
        chunks: their plans.
        width: size of a value in memory, in bytes.
        variable: whether values have a variable length. Their bytes are then counted as the size of the pages.
        largest: upper bound of a run in bytes (stored + decoded). A run of one chunk may have more.
        most: largest number of chunks in a run.

    Returns:
        A RunPlan for each run.
    """
    cdef list runs = []
    cdef Py_ssize_t number, first = 0
    cdef int64_t size = 0, added
    cdef ChunkPlan chunk, before = None
    for number in range(len(chunks)):
        chunk = <ChunkPlan?>chunks[number]
        added = largest + 1
        if chunk.kept is None and chunk.pages is None and chunk.file_path is None and chunk.num_values == chunk.num_rows:
            added = chunk.num_bytes + chunk.num_rows * width
            if variable:            # a footer may claim any size, so the size is cut to one byte above a run's bound
                added += min(chunk.uncompressed_size, max(largest, <int64_t>0) + 1)
        if number > first and (size + added > largest or number - first == most or chunk.codec != before.codec):
            runs.append(run_of(chunks[first:number], first))
            first, size = number, 0
        size += added
        before = chunk
    if chunks:
        runs.append(run_of(chunks[first:], first))
    return runs


cdef enum:
    LARGEST_CHUNK = 0x7FFFFFFF          # a chunk counts with at most this many bytes, since a footer may claim any size


cdef struct RunChunk:
    int64_t position            # offset of the chunk's first byte in the reader's bytes
    int64_t size
    int64_t num_values
    int64_t ordinal             # its row group's ordinal in AADs, unused if each chunk has its own cipher
    bint has_dictionary


@cython.final
cdef class ChunkRun:
    """Run of chunks that one reader decodes.

    Args:
        reader: a ChunkReader for values or codes, over the bytes of all chunks. It stands before the first chunk. Its cipher is
            right for all chunks, except for the row group ordinal.
        plan: plan for the run.
        in_place: True if the reader's bytes are those of the whole file, False if they are the chunks one after another.
        ciphers: a ModuleCipher for each chunk, or None if the reader's cipher serves for all chunks.

    Attributes:
        reader: the reader.
        current: number of the chunk that was read last. After an error, this is the broken chunk.
    """

    cdef readonly ChunkReader reader
    cdef list ciphers
    cdef RunChunk* parts
    cdef Py_ssize_t count
    cdef int64_t num_values
    cdef readonly Py_ssize_t current

    def __init__(self, ChunkReader reader not None, RunPlan plan not None, bint in_place, list ciphers=None):
        cdef Py_ssize_t number
        cdef ChunkPlan chunk
        cdef RunChunk* part
        cdef int64_t behind = 0, values_size = 0
        cdef bint moves = plan.is_encrypted and ciphers is None
        if isinstance(reader.values, VerdictReader):
            raise TypeError("a reader of verdicts cannot read several chunks")
        if ciphers is not None and len(ciphers) != len(plan.chunks):
            raise ValueError(f"{len(ciphers)} ciphers for {len(plan.chunks)} chunks")
        self.reader = reader
        self.ciphers = ciphers
        self.count = len(plan.chunks)
        self.parts = <RunChunk*>malloc(max(1, self.count) * sizeof(RunChunk))
        if self.parts == NULL:
            raise MemoryError
        for number in range(self.count):
            chunk = plan.chunks[number]
            part = &self.parts[number]
            part[0] = RunChunk(chunk.start if in_place else behind, chunk.length, chunk.num_values,
                               chunk.row_group_ordinal if moves else 0, chunk.has_dictionary)
            if part.position < 0 or part.size < 0 or part.position > reader.pages.size - part.size:
                raise ValueError(f"a chunk of {part.size} bytes at {part.position} of {reader.pages.size}")
            if ciphers is not None and not isinstance(ciphers[number], ModuleCipher):
                raise TypeError(f"{ciphers[number]!r} is not a cipher")
            behind += part.size
            self.num_values += part.num_values
            values_size += min(max(chunk.uncompressed_size, <int64_t>0), <int64_t>LARGEST_CHUNK)
        reader.share_arrays(values_size)

    def __dealloc__(self):
        free(self.parts)

    def read(self, ColumnOutput output not None, int64_t offset):
        """Decode all values into the output, chunk after chunk, from row ``offset`` on.

        Returns:
            The null count.

        Raises:
            FormatError, UnsupportedError, LimitError: as ``ChunkReader.read``.
        """
        cdef int64_t nulls = 0
        cdef RunChunk* part
        cdef ChunkReader reader = self.reader
        reader.begin(output, offset, self.num_values)
        try:
            with nogil:
                for self.current in range(self.count):
                    part = &self.parts[self.current]
                    if self.ciphers is None:
                        reader.pages.cipher.move_to(part.ordinal)
                    else:
                        with gil:
                            reader.pages.cipher = <ModuleCipher>self.ciphers[self.current]
                    nulls += reader.read_chunk(
                        output, offset, part.position, part.size, part.has_dictionary, part.num_values)
                    offset += part.num_values
        except MemoryError as error:
            if isinstance(error, LimitError):
                raise
            raise LimitError("no memory for a page") from error
        return nulls
