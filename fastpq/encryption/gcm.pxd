"""Modules as AES_GCM_V1 stores them: the cipher of one column chunk, or of the footer."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.encryption.evp cimport GcmContext

cdef enum:
    LENGTH_SIZE = 4         # Encryption.md, 5.1: length | nonce | ciphertext | tag
    MODULE_OVERHEAD = 32    # all of them but the ciphertext


cdef class GcmModuleCipher(ModuleCipher):
    cdef GcmContext context
    cdef object file_aad
    cdef const uint8_t* file_aad_data
    cdef size_t file_aad_size
    cdef uint8_t* aad                   # room for the AAD of one module
    cdef int64_t row_group
    cdef int64_t column
    cdef object column_name
    cdef uint8_t* scratch               # the plaintext that was opened last
    cdef size_t scratch_size
    cdef int busy                       # a module is being sealed or opened; atomic

    cdef int _enter(self) except -1 nogil
    cdef int64_t _build_aad(self, int module, int page) except -1 nogil
    cdef uint8_t* _reserve(self, size_t size) except NULL nogil
    cdef int _check_framing(self, int module, int page, const uint8_t* data, int64_t size) except -1 nogil
    cdef int _open(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil
    cdef int _seal(self, int module, int page, const uint8_t* plain, int64_t size, uint8_t* out) except -1 nogil
    cdef dict _place(self, int module, int page)
