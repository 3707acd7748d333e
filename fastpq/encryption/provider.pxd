"""OpenSSL's library context: fetched algorithms, random bytes and keys from passphrases."""

from libc.stdint cimport uint8_t

from fastpq.encryption.openssl cimport EVP_CIPHER


# Raises CryptoError unless result is 1, OpenSSL's success. Wipes the processor's vector registers.
cdef int check(int result, const char* what) except -1 nogil
# Returns whether algorithms come from a FIPS provider, as decided at the first call. Raises UnsupportedError if one is required
# but missing.
cdef bint is_fips() except -1
# Returns the cipher with this name. It is never freed.
cdef EVP_CIPHER* fetch_cipher(str name) except NULL
# Write random bytes to out: keys from the private generator, nonces for a FIPS provider from the public one.
cdef int draw_private(uint8_t* out, size_t size) except -1
cdef int draw_within_fips(uint8_t* out, size_t size) except -1 nogil
# Derives a 32-byte key from a passphrase.
cdef int draw_from_passphrase(bytes passphrase, bytes salt, unsigned int iterations, uint8_t* out) except -1
