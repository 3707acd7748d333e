"""AES-GCM and AES-CTR through OpenSSL's EVP interface: keys, and contexts that only one thread at a time may use."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastpq.encryption.aead_arguments cimport NONCE_SIZE, TAG_SIZE, AeadArguments
from fastpq.encryption.openssl cimport EVP_CIPHER, EVP_CIPHER_CTX


cdef enum:
    SPARE_CONTEXTS = 4      # number of unused contexts that a key keeps for each direction


cdef class AesKey:
    cdef uint8_t bytes[32]
    cdef size_t size
    cdef uint64_t operation_count       # number of modules encrypted so far, with GCM or CTR. Atomic
    cdef EVP_CIPHER_CTX* encryption     # holds the key. It is only copied, never used itself
    cdef EVP_CIPHER_CTX* decryption
    cdef EVP_CIPHER_CTX* spare_encryptions[SPARE_CONTEXTS]      # copies that nobody uses, or NULL. Atomic
    cdef EVP_CIPHER_CTX* spare_decryptions[SPARE_CONTEXTS]
    cdef EVP_CIPHER_CTX* ctr            # for CTR in both directions, made on first use
    cdef object large_aead              # this key's LargeAead, made on first use

    cdef EVP_CIPHER_CTX* _make_context(self, EVP_CIPHER* cipher, bint encrypt) except NULL
    cdef EVP_CIPHER_CTX* ctr_context(self) except NULL
    cdef object _large_aead(self)
    cdef int count(self) except -1 nogil


cdef class GcmContext:
    cdef AesKey key
    cdef EVP_CIPHER_CTX* encryption     # copies of the key's contexts, taken on first use
    cdef EVP_CIPHER_CTX* decryption
    cdef AeadArguments arguments        # made for the first large module

    # Writes a fresh nonce, the ciphertext (size bytes) and the tag to out. In all functions here, sizes are below 2^31.
    cdef int seal(self, const uint8_t* aad, int64_t aad_size, const uint8_t* plain, int64_t size, uint8_t* out) except -1 nogil
    # Opens a nonce, ciphertext (size bytes) and a tag. Returns 1 if the module is authentic. Otherwise zeroes out, returns 0.
    cdef int open(self, const uint8_t* aad, int64_t aad_size, const uint8_t* sealed, int64_t size, uint8_t* out) except -1 nogil
    # Returns whether the signature, which is a nonce and a tag, authenticates the plaintext.
    cdef int verify(self, const uint8_t* aad, int64_t aad_size, const uint8_t* plain, int64_t size,
                    const uint8_t* signature) except -1


cdef class CtrContext:
    cdef AesKey key
    cdef EVP_CIPHER_CTX* context

    # Writes a fresh nonce and the ciphertext (size bytes) to out. Nothing is authenticated.
    cdef int seal(self, const uint8_t* plain, int64_t size, uint8_t* out) except -1 nogil
    # Opens a nonce and ciphertext (size bytes). Nothing is verified: altered bytes open too.
    cdef int open(self, const uint8_t* sealed, int64_t size, uint8_t* out) except -1 nogil
