"""ModuleCipher: how the page loop uses a column chunk's cipher. The base class is the null cipher."""

from libc.stdint cimport int64_t, uint8_t


cdef class ModuleCipher:
    # A cipher belongs to one column chunk (row group ordinal and column ordinal). Only one thread at a time may use it.

    # Moves the cipher to the same column's chunk in another row group. The key stays the same.
    cdef int move_to(self, int64_t row_group) except -1 nogil

    # A module's stored size minus its plaintext size, in bytes: 4 + 12 + 16 for GCM, 0 for the null cipher.
    cdef readonly int64_t overhead
    # A page body's stored size minus its compressed_page_size, in bytes: 0 except in DuckDB's dialect.
    cdef readonly int64_t uncounted
    # Whether page bodies are authenticated. Their CRC-32 then adds nothing.
    cdef readonly bint authenticates

    # Opens the module at data, for example a page header, whose size is unknown but at most available bytes. Returns the
    # plaintext: data itself (null cipher), or the cipher's scratch memory. Sets plain_size to the byte count for the parser. Sets
    # stored_size to the module's stored size, or to -1 if only the parser can find its end (null cipher).
    cdef const uint8_t* open_framed(self, int module, int page, const uint8_t* data, int64_t available,
                                    int64_t* plain_size, int64_t* stored_size) except NULL nogil
    # Opens the page header at data, like open_framed. The AAD depends on the page type: dictionary is the type that the caller
    # expects (1 for a dictionary page), and is set to the actual type.
    cdef const uint8_t* open_header(self, bint* dictionary, int page, const uint8_t* data, int64_t available,
                                    int64_t* plain_size, int64_t* stored_size) except NULL nogil
    # Opens a V2 data page's body, which has exactly size stored bytes and levels_size bytes with levels. Returns the values and
    # sets levels. Both stay valid as long as what open_sized returns. If values_size becomes negative, the body is shorter than
    # its levels.
    cdef const uint8_t* open_v2(self, int page, const uint8_t* data, int64_t size, int64_t levels_size,
                                const uint8_t** levels, int64_t* values_size) except NULL nogil
    # Opens a module that has exactly `size` stored bytes, for example a page body. Returns the plaintext, which is in `data` or
    # in the cipher's memory. It is valid until the cipher is called again.
    cdef const uint8_t* open_sized(self, int module, int page, const uint8_t* data, int64_t size,
                                   int64_t* plain_size) except NULL nogil
    # Opens a module that has exactly `size` stored bytes. Writes the plaintext to `out`, which has room for `size` bytes, and
    # returns how many bytes it wrote.
    cdef int64_t open_into(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil

    # Returns the stored size of a module whose plaintext has `size` bytes. The null cipher adds nothing.
    cdef int64_t sealed_size(self, int module, int64_t size) noexcept nogil
    # Encrypts `size` plaintext bytes to `out`, which has room for sealed_size bytes. `levels_size` is the size of the levels,
    # which are at the front of a V2 data page. It is 0 for other modules.
    cdef int seal_to(self, int module, int page, const uint8_t* plain, int64_t size, int64_t levels_size,
                     uint8_t* out) except -1 nogil
    # Returns a module's stored form. The null cipher returns `plain` itself.
    cpdef object seal(self, int module, int page, object plain)
    # Returns a page body's stored form. `levels_size` is as in seal_to.
    cpdef object seal_body(self, int module, int page, object plain, int64_t levels_size)
