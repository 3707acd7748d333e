"""Decoding of several chunks of a flat column, one after another, without the interpreter between the chunks.

Between two chunks the interpreter finds nothing of its own in the processor's caches any more, and takes twice as long.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from fastpq.column.chunk_reader cimport ChunkReader
from fastpq.column.code_reader cimport CodeReader
from fastpq.column.column_output cimport ColumnOutput

from fastpq.errors import LimitError


def read_chunks(list readers not None, ColumnOutput output not None, int64_t offset):
    """Decode all values of chunks into output, one chunk behind the other.

    Args:
        readers: a ChunkReader of each chunk, before its first value; not of codes. Memory of a reader is given back after its
            last value.
        output: the target.
        offset: row of the output for the first value.

    Returns:
        The number of nulls among the values.

    Raises:
        FormatError, UnsupportedError, LimitError: as ``ChunkReader.read``, of the first reader with values remaining.
    """
    cdef tuple held = tuple(readers)
    cdef Py_ssize_t count = len(held), number
    cdef int64_t nulls = 0, stop = offset
    cdef ChunkReader reader
    cdef void** chunks = <void**>malloc(max(1, count) * sizeof(void*))
    if chunks == NULL:
        raise MemoryError
    try:
        for number in range(count):
            reader = <ChunkReader?>held[number]
            if isinstance(reader.values, CodeReader):
                raise TypeError("a reader of codes, whose dictionary is asked for after the last value")
            reader._check(output, stop, reader.remaining)
            reader._attach(output)
            stop += reader.remaining
            chunks[number] = <void*>reader
        with nogil:
            for number in range(count):
                stop = (<ChunkReader>chunks[number]).remaining
                nulls += (<ChunkReader>chunks[number])._read(output, offset, stop)
                (<ChunkReader>chunks[number]).free()
                (<ChunkReader>chunks[number]).values.free()
                (<ChunkReader>chunks[number]).pages.free()
                offset += stop
    except MemoryError as error:
        if isinstance(error, LimitError):
            raise
        raise LimitError("no memory for a page") from error
    finally:
        free(chunks)
    return nulls
