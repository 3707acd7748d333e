"""The cipher of one column chunk, as the page loop sees it; the base class is the null cipher."""

from libc.stdint cimport int64_t, uint8_t


cdef class ModuleCipher:
    # Bound to one column chunk (row group and column ordinals) and to one thread at a time.

    # Bytes that a sealed module is longer than its plaintext (GCM: 4 + 12 + 16; null: 0).
    cdef readonly int64_t overhead
    # Bytes that a stored page body is longer than compressed_page_size says: 0 but in DuckDB's dialect.
    cdef readonly int64_t uncounted
    # Whether a page body that opens is proven to be what was sealed, so that its CRC-32 adds nothing.
    cdef readonly bint authenticates

    # A module that starts at data, of which at most available bytes may belong to it (a header, whose length is not known
    # beforehand). Returns the plaintext: data itself (null cipher) or scratch, grown as needed by the cipher. plain_size is
    # set to the bytes that may be parsed, stored_size to the stored length of the module, or to -1 where only parsing tells
    # (null cipher).
    cdef const uint8_t* open_framed(self, int module, int page, const uint8_t* data, int64_t available,
                                    int64_t* plain_size, int64_t* stored_size) except NULL nogil
    # The page header that starts at data; arguments and result as of open_framed. dictionary says whether the header is
    # believed to be a dictionary page's, which its AAD depends on; it is set to what the header turned out to be.
    cdef const uint8_t* open_header(self, bint* dictionary, int page, const uint8_t* data, int64_t available,
                                    int64_t* plain_size, int64_t* stored_size) except NULL nogil
    # The body of a data page V2 of exactly size stored bytes, of which levels_size are levels; a negative values_size says
    # that it does not hold as many. Returns the values and sets levels, both valid as in open_sized.
    cdef const uint8_t* open_v2(self, int page, const uint8_t* data, int64_t size, int64_t levels_size,
                                const uint8_t** levels, int64_t* values_size) except NULL nogil
    # A module of exactly size stored bytes (a page body). Returns the plaintext, in data itself or in memory of the cipher
    # that is valid until its next call.
    cdef const uint8_t* open_sized(self, int module, int page, const uint8_t* data, int64_t size,
                                   int64_t* plain_size) except NULL nogil
    # The same into out, which holds size bytes; returns the plaintext's size.
    cdef int64_t open_into(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil

    # The stored form of a module: plain itself (null cipher) or new bytes.
    cpdef object seal(self, int module, int page, object plain)
    # The stored form of a page body that begins with levels_size bytes of levels, if it is of a data page V2; else of 0.
    cpdef object seal_body(self, int module, int page, object plain, int64_t levels_size)
