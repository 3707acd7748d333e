"""GcmModuleCipher: AES_GCM_V1 for the modules of one column chunk, or for the footer."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.encryption.evp cimport GcmContext

cdef extern from * nogil:
    """
    #define fastpq_take(flag) __atomic_exchange_n((flag), 1, __ATOMIC_ACQUIRE)
    #define fastpq_give(flag) __atomic_store_n((flag), 0, __ATOMIC_RELEASE)
    """
    int fastpq_take(int* flag)
    void fastpq_give(int* flag)


cdef inline uint32_t load_u32(const uint8_t* data) noexcept nogil:
    return data[0] | <uint32_t>data[1] << 8 | <uint32_t>data[2] << 16 | <uint32_t>data[3] << 24


cdef inline void store_u32(uint8_t* out, uint32_t value) noexcept nogil:
    out[0], out[1], out[2], out[3] = value & 0xff, value >> 8 & 0xff, value >> 16 & 0xff, value >> 24


cdef enum:
    LENGTH_SIZE = 4         # bytes; Encryption.md, 5.1: length | nonce | ciphertext | tag
    MODULE_OVERHEAD = 32    # bytes of length, nonce and tag


cdef class GcmModuleCipher(ModuleCipher):
    cdef GcmContext context
    cdef bint levels_in_clear           # writes data pages V2 with their levels in front of the module, not inside
    cdef object file_aad
    cdef const uint8_t* file_aad_data
    cdef size_t file_aad_size
    cdef uint8_t* aad                   # buffer for the AAD of one module
    cdef int64_t row_group
    cdef int64_t column
    cdef object column_name
    cdef uint8_t* scratch               # plaintext of the module opened last
    cdef size_t scratch_size
    cdef int busy                       # a module is being sealed or opened; atomic

    cdef int _enter(self) except -1 nogil
    cdef uint8_t* _reserve(self, size_t size) except NULL nogil
    cdef int _check_plain(self, int module, int page, int64_t size) except -1 nogil
    cdef int _check_framing(self, int module, int page, const uint8_t* data, int64_t size) except -1 nogil
    cdef int64_t _framed_size(self, int module, int page, const uint8_t* data, int64_t available) except -1 nogil
    cdef int _open(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil
    cdef int _refuse(self, int module, int page) except -1 nogil
    cdef dict _place(self, int module, int page)

    # Overridden for the other layouts of modules (variants.pyx).
    # Stored size of a module minus its ciphertext, in bytes.
    cdef int64_t _overhead_of(self, int module) noexcept nogil
    cdef int64_t _build_aad(self, int module, int page) except -1 nogil
    # Opens a module of checked framing. Returns 1 if the module is authentic; else 0, with out zeroed.
    cdef int _try_open(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil
    cdef int _seal(self, int module, int page, const uint8_t* plain, int64_t size, uint8_t* out) except -1 nogil
    # Whether the body of a data page V2 is one module, if the length fields fit both layouts of page bodies.
    cdef int _is_one_module(self, int page, const uint8_t* data, int64_t size) except -1 nogil
