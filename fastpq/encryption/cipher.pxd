"""ModuleCipher, the page loop's interface to the cipher of one column chunk; the base class is the null cipher."""

from libc.stdint cimport int64_t, uint8_t


cdef class ModuleCipher:
    # Bound to one column chunk (row group and column ordinals) and to one thread at a time.

    # Binds the cipher to the chunk of the same column in another row group, under the same key.
    cdef int move_to(self, int64_t row_group) except -1 nogil

    # Stored size of a module minus its plaintext size, in bytes (GCM: 4 + 12 + 16; null: 0).
    cdef readonly int64_t overhead
    # Stored size of a page body minus its compressed_page_size, in bytes: 0 except in DuckDB's dialect.
    cdef readonly int64_t uncounted
    # Whether page bodies are authenticated, and their CRC-32 adds nothing.
    cdef readonly bint authenticates

    # Opens the module at data, a header of unknown size within available bytes. Returns the plaintext: data itself (null
    # cipher), or scratch memory, grown by the cipher as needed. Sets plain_size to the number of bytes for the parser, and
    # stored_size to the stored length of the module, or to -1 if only the parser can find the end (null cipher).
    cdef const uint8_t* open_framed(self, int module, int page, const uint8_t* data, int64_t available,
                                    int64_t* plain_size, int64_t* stored_size) except NULL nogil
    # Opens the page header at data; arguments and result as of open_framed. The AAD depends on the kind of page: dictionary is
    # the kind expected by the caller (1 for a dictionary page), and is set to the actual kind.
    cdef const uint8_t* open_header(self, bint* dictionary, int page, const uint8_t* data, int64_t available,
                                    int64_t* plain_size, int64_t* stored_size) except NULL nogil
    # Opens the body of a data page V2 of exactly size stored bytes, with levels_size bytes of levels. Returns the values and
    # sets levels, both valid as in open_sized. A negative values_size means a body shorter than its levels.
    cdef const uint8_t* open_v2(self, int page, const uint8_t* data, int64_t size, int64_t levels_size,
                                const uint8_t** levels, int64_t* values_size) except NULL nogil
    # Opens a module of exactly size stored bytes (a page body). Returns the plaintext, in data itself or in memory of the
    # cipher, valid until the cipher's next call.
    cdef const uint8_t* open_sized(self, int module, int page, const uint8_t* data, int64_t size,
                                   int64_t* plain_size) except NULL nogil
    # Opens a module of exactly size stored bytes into out, a buffer of size bytes; returns the size of the plaintext.
    cdef int64_t open_into(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil

    # The stored size of a module; equal to size under the null cipher alone.
    cdef int64_t sealed_size(self, int module, int64_t size) noexcept nogil
    # Seals a module to out, of sealed_size bytes.
    #   levels_size: bytes of levels at the front of a data page V2; 0 for other modules
    cdef int seal_to(self, int module, int page, const uint8_t* plain, int64_t size, int64_t levels_size,
                     uint8_t* out) except -1 nogil
    # The stored form of a module: plain itself (null cipher) or new bytes.
    cpdef object seal(self, int module, int page, object plain)
    # Returns the stored form of a page body. levels_size: bytes of levels at the front of a data page V2; 0 for other pages.
    cpdef object seal_body(self, int module, int page, object plain, int64_t levels_size)
