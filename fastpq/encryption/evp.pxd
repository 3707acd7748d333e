"""AES-GCM over OpenSSL's EVP interface: keys, and the cipher of one column chunk."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.encryption.openssl cimport EVP_CIPHER_CTX

cdef enum:
    LENGTH_SIZE = 4         # Encryption.md, 5.1: length | nonce | ciphertext | tag
    NONCE_SIZE = 12
    TAG_SIZE = 16
    MODULE_OVERHEAD = 32    # of a stored module: all of them but the ciphertext


cdef class AesKey:
    cdef uint8_t bytes[32]
    cdef size_t size
    cdef uint64_t sealed                # invocations of the authenticated encryption function; atomic
    cdef EVP_CIPHER_CTX* encryption     # keyed once; only ever copied
    cdef EVP_CIPHER_CTX* decryption
    cdef object large                   # a backend.LargeAead of this key, once one is needed

    cdef EVP_CIPHER_CTX* _keyed(self, bint encrypt) except NULL
    cdef object _large(self)
    cdef int count(self) except -1 nogil


cdef class GcmModuleCipher(ModuleCipher):
    cdef AesKey key
    cdef EVP_CIPHER_CTX* encryption     # copies of the key's, made when first needed
    cdef EVP_CIPHER_CTX* decryption
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
    cdef uint8_t* _reserve(self, size_t size) except NULL nogil
    cdef int _check_framing(self, int module, int page, const uint8_t* data, int64_t size) except -1 nogil
    cdef int _open(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil
    cdef int _open_body(self, const uint8_t* data, int64_t size, int64_t aad_size, uint8_t* out) except -1 nogil
    cdef int _seal(self, int module, int page, const uint8_t* plain, int64_t size, uint8_t* out) except -1 nogil
    cdef int _seal_body(self, const uint8_t* plain, int64_t size, int64_t aad_size, uint8_t* out) except -1 nogil
    cdef dict _place(self, int module, int page)
