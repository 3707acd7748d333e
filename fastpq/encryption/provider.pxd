"""OpenSSL's library context: fetched algorithms, random bytes and keys from passphrases."""

from libc.stdint cimport uint8_t

from fastpq.encryption.openssl cimport EVP_CIPHER


# Raise CryptoError unless OpenSSL returned 1, and wipe the processor's registers.
cdef int check(int result, const char* what) except -1 nogil
# Whether the algorithms are a FIPS provider's, decided at the first call; raises UnsupportedError where one is wanted in vain.
cdef bint is_fips() except -1
# The cipher of a name, never freed.
cdef EVP_CIPHER* fetch_cipher(str name) except NULL
# Random bytes: for keys from the private generator, for nonces of a FIPS provider from the public one.
cdef int draw_private(uint8_t* out, size_t size) except -1
cdef int draw_within_fips(uint8_t* out, size_t size) except -1 nogil
# 32 bytes of a key from a passphrase.
cdef int draw_from_passphrase(bytes passphrase, bytes salt, unsigned int iterations, uint8_t* out) except -1
