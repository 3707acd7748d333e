"""AeadArguments, which calls a LargeAead. Only one thread at a time may use it."""

from libc.stdint cimport int64_t, uint8_t

cdef enum:
    NONCE_SIZE = 12
    TAG_SIZE = 16


cdef class Window:
    cdef const uint8_t* data
    cdef int64_t size
    cdef bint is_writable

    cdef Window at(self, const uint8_t* data, int64_t size)


cdef class AeadArguments:
    cdef Window nonce
    cdef Window data
    cdef Window aad
    cdef Window out

    # Writes the ciphertext, which has size bytes, and the tag to out. The nonce has 12 bytes.
    cdef int seal(self, object aead, const uint8_t* nonce, const uint8_t* aad, int64_t aad_size, const uint8_t* plain,
                  int64_t size, uint8_t* out) except -1
    # Decrypts ciphertext with size bytes into out. The tag follows the ciphertext. Returns 1 if it is authentic, else 0.
    cdef int open(self, object aead, const uint8_t* nonce, const uint8_t* aad, int64_t aad_size, const uint8_t* sealed,
                  int64_t size, uint8_t* out) except -1
