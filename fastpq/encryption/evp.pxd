"""AES-GCM and AES-CTR over OpenSSL's EVP interface: keys, and contexts for one thread."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastpq.encryption.aead_arguments cimport NONCE_SIZE, TAG_SIZE, AeadArguments
from fastpq.encryption.openssl cimport EVP_CIPHER, EVP_CIPHER_CTX


cdef class AesKey:
    cdef uint8_t bytes[32]
    cdef size_t size
    cdef uint64_t sealed                # modules encrypted so far, by GCM or CTR; atomic
    cdef EVP_CIPHER_CTX* encryption     # keyed once; only ever copied
    cdef EVP_CIPHER_CTX* decryption
    cdef EVP_CIPHER_CTX* counter        # for CTR, one context for both directions; keyed at the first use
    cdef object large                   # the LargeAead of this key, made at the first use

    cdef EVP_CIPHER_CTX* _keyed(self, EVP_CIPHER* cipher, bint encrypt) except NULL
    cdef EVP_CIPHER_CTX* counting(self) except NULL
    cdef object _large(self)
    cdef int count(self) except -1 nogil


cdef class GcmContext:
    cdef AesKey key
    cdef EVP_CIPHER_CTX* encryption     # copies of the key's contexts, made at the first use
    cdef EVP_CIPHER_CTX* decryption
    cdef AeadArguments arguments        # made at the first large module

    # Writes a fresh nonce, size bytes of ciphertext and the tag to out. Sizes are below 2^31, in all functions here.
    cdef int seal(self, const uint8_t* aad, int64_t aad_size, const uint8_t* plain, int64_t size, uint8_t* out) except -1 nogil
    # Opens nonce, size bytes of ciphertext and tag. Returns 1 if the module is authentic; else 0, with out zeroed.
    cdef int open(self, const uint8_t* aad, int64_t aad_size, const uint8_t* sealed, int64_t size, uint8_t* out) except -1 nogil
    # Whether signature, a nonce and a tag, authenticates the plaintext.
    cdef int verify(self, const uint8_t* aad, int64_t aad_size, const uint8_t* plain, int64_t size,
                    const uint8_t* signature) except -1


cdef class CtrContext:
    cdef AesKey key
    cdef EVP_CIPHER_CTX* context

    # Writes a fresh nonce and size bytes of ciphertext to out. Nothing is authenticated.
    cdef int seal(self, const uint8_t* plain, int64_t size, uint8_t* out) except -1 nogil
    # Opens a nonce and size bytes of ciphertext. Nothing is verified: any bytes open.
    cdef int open(self, const uint8_t* sealed, int64_t size, uint8_t* out) except -1 nogil
