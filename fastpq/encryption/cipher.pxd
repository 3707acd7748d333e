"""The cipher of one column chunk, as the page loop sees it; the base class is the null cipher."""

from libc.stdint cimport int64_t, uint8_t


cdef class ModuleCipher:
    # Bound to one column chunk (row group and column ordinals) and to one thread at a time.

    # Bytes that a sealed module is longer than its plaintext (GCM: 4 + 12 + 16; null: 0).
    cdef readonly int64_t overhead

    # A module that starts at data, of which at most available bytes may belong to it (a header, whose length is not known
    # beforehand). Returns the plaintext: data itself (null cipher) or scratch, grown as needed by the cipher. plain_size is
    # set to the bytes that may be parsed, stored_size to the stored length of the module, or to -1 where only parsing tells
    # (null cipher).
    cdef const uint8_t* open_framed(self, int module, int page, const uint8_t* data, int64_t available,
                                    int64_t* plain_size, int64_t* stored_size) except NULL nogil
    # A module of exactly size stored bytes (a page body). Returns the plaintext, in data itself or in memory of the cipher
    # that is valid until its next call.
    cdef const uint8_t* open_sized(self, int module, int page, const uint8_t* data, int64_t size,
                                   int64_t* plain_size) except NULL nogil
    # The same into out, which holds size bytes; returns the plaintext's size.
    cdef int64_t open_into(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil

    # The stored form of a module: plain itself (null cipher) or new bytes.
    cpdef object seal(self, int module, int page, object plain)
