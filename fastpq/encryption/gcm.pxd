"""GcmModuleCipher: AES_GCM_V1 for the modules in one column chunk, or for the footer."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.encryption.evp cimport GcmContext

cdef extern from * nogil:
    """
    #define fastpq_acquire(flag) __atomic_exchange_n((flag), 1, __ATOMIC_ACQUIRE)
    #define fastpq_release(flag) __atomic_store_n((flag), 0, __ATOMIC_RELEASE)
    """
    int fastpq_acquire(int* flag)
    void fastpq_release(int* flag)


cdef inline uint32_t load_u32(const uint8_t* data) noexcept nogil:
    return data[0] | <uint32_t>data[1] << 8 | <uint32_t>data[2] << 16 | <uint32_t>data[3] << 24


cdef inline void store_u32(uint8_t* out, uint32_t value) noexcept nogil:
    out[0], out[1], out[2], out[3] = value & 0xff, value >> 8 & 0xff, value >> 16 & 0xff, value >> 24


cdef enum:
    LENGTH_SIZE = 4         # size of the length field in bytes (Encryption.md, 5.1: length | nonce | ciphertext | tag)
    MODULE_OVERHEAD = 32    # total size of length, nonce and tag in bytes


cdef class GcmModuleCipher(ModuleCipher):
    cdef GcmContext context
    cdef bint levels_in_clear           # write V2 data pages with their levels in front of the module, not inside
    cdef object file_aad
    cdef const uint8_t* file_aad_data
    cdef size_t file_aad_size
    cdef uint8_t* aad                   # buffer for one module's AAD
    cdef int64_t row_group
    cdef int64_t column
    cdef object column_name
    cdef uint8_t* scratch               # plaintext from the module that was opened last
    cdef size_t scratch_size
    cdef int busy                       # 1 while a module is sealed or opened. Atomic

    cdef int _enter(self) except -1 nogil
    cdef uint8_t* _reserve(self, size_t size) except NULL nogil
    cdef int _check_plain(self, int module, int page, int64_t size) except -1 nogil
    cdef int _check_framing(self, int module, int page, const uint8_t* data, int64_t size) except -1 nogil
    cdef int64_t _framed_size(self, int module, int page, const uint8_t* data, int64_t available) except -1 nogil
    cdef int _open(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil
    cdef int _refuse(self, int module, int page) except -1 nogil
    cdef dict _place(self, int module, int page)

    # Subclasses for other module layouts override these functions (variants.pyx).
    # Returns a module's stored size minus its ciphertext's size, in bytes.
    cdef int64_t _overhead_of(self, int module) noexcept nogil
    cdef int64_t _build_aad(self, int module, int page) except -1 nogil
    # Opens a module whose framing was checked. Returns 1 if the module is authentic. Otherwise zeroes out, returns 0.
    cdef int _try_open(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil
    cdef int _seal(self, int module, int page, const uint8_t* plain, int64_t size, uint8_t* out) except -1 nogil
    # Returns whether a V2 data page's body is one module. Called if its length fields fit both page body layouts.
    cdef int _is_one_module(self, int page, const uint8_t* data, int64_t size) except -1 nogil
