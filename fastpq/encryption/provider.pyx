# distutils: language = c
"""The OpenSSL library context: OpenSSL's default one, or under ``FASTPQ_AES=fips`` one with a FIPS provider alone."""

import os
import threading

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t

from fastpq.encryption.openssl cimport *

from fastpq.errors import CryptoError, UnsupportedError

cdef extern from "c/provider.h" nogil:
    const char* FASTPQ_FIPS_ONLY
    OSSL_LIB_CTX* open_fips_library()
    int describe_provider(const EVP_CIPHER* cipher, char* text, size_t size)
    int derive_pbkdf2(OSSL_LIB_CTX* library, const char* properties, const uint8_t* passphrase, size_t passphrase_size,
                      const uint8_t* salt, size_t salt_size, unsigned int iterations, uint8_t* out, size_t size)

cdef extern from "openssl/rand.h" nogil:
    int RAND_bytes_ex(OSSL_LIB_CTX* library, uint8_t* out, size_t size, unsigned int strength)
    int RAND_priv_bytes_ex(OSSL_LIB_CTX* library, uint8_t* out, size_t size, unsigned int strength)

cdef extern from "c/registers.h" nogil:
    void wipe_registers()

AES_VARIABLE = "FASTPQ_AES"     # environment variable: auto, evp, cryptography or fips

cdef enum:
    PASSPHRASE_KEY_SIZE = 32    # bytes

cdef OSSL_LIB_CTX* library = NULL           # NULL: OpenSSL's default context
cdef const char* properties = NULL          # required of every fetched algorithm
cdef bint is_decided = False
_deciding = threading.Lock()


cdef int check(int result, const char* what) except -1 nogil:
    wipe_registers()
    if result == 1:
        return 0
    with gil:
        raise CryptoError(f"OpenSSL failed to {what.decode()}: {_last_error()}")


cdef str _last_error():
    cdef char text[256]
    ERR_error_string_n(ERR_peek_last_error(), text, sizeof(text))
    ERR_clear_error()       # the queue of the thread is shared with the ssl module
    return text.decode(errors="replace")


cdef bint is_fips() except -1:
    with _deciding:
        if not is_decided:
            _decide()
    if library == NULL and os.environ.get(AES_VARIABLE) == "fips":
        raise UnsupportedError(f"{AES_VARIABLE}=fips came too late: keys of this process are in other hands already")
    return library != NULL


cdef int _decide() except -1:
    """Choose the library context, once in a process."""
    global library, properties, is_decided
    cdef OSSL_LIB_CTX* found
    if os.environ.get(AES_VARIABLE) == "fips":
        found = open_fips_library()
        if found == NULL:
            version = OpenSSL_version(OPENSSL_VERSION).decode()
            raise UnsupportedError(
                f"{AES_VARIABLE}=fips: {version} has no FIPS provider that works. Its configuration file (OPENSSL_CONF) has to "
                f"include what openssl fipsinstall writes for the module fips of its module folder (OPENSSL_MODULES): "
                f"{_last_error()}")
        ERR_clear_error()
        library, properties = found, FASTPQ_FIPS_ONLY
    is_decided = True
    return 0


cdef EVP_CIPHER* fetch_cipher(str name) except NULL:
    is_fips()
    cdef EVP_CIPHER* cipher = EVP_CIPHER_fetch(library, name.encode(), properties)
    check(cipher != NULL, "find AES-GCM and AES-CTR")
    return cipher


cdef int draw_private(uint8_t* out, size_t size) except -1:
    is_fips()
    return check(RAND_priv_bytes_ex(library, out, size, 0), "make a key")


cdef int draw_within_fips(uint8_t* out, size_t size) except -1 nogil:
    return check(RAND_bytes_ex(library, out, size, 0), "make a nonce")


cdef int draw_from_passphrase(bytes passphrase, bytes salt, unsigned int iterations, uint8_t* out) except -1:
    is_fips()
    return check(
        derive_pbkdf2(library, properties, <const uint8_t*>PyBytes_AS_STRING(passphrase), <size_t>len(passphrase),
                      <const uint8_t*>PyBytes_AS_STRING(salt), <size_t>len(salt), iterations, out, PASSPHRASE_KEY_SIZE),
        "derive a key from a passphrase")


def random_bytes(size):
    """Random bytes that are no secret, such as a salt.

    Args:
        size: number of bytes.
    """
    is_fips()
    drawn = PyBytes_FromStringAndSize(NULL, size)
    check(RAND_bytes_ex(library, <uint8_t*>PyBytes_AS_STRING(drawn), <size_t>len(drawn), 0), "make random bytes")
    return drawn


def within_fips():
    """Whether all algorithms are those of a FIPS provider.

    Raises:
        UnsupportedError: ``FASTPQ_AES=fips`` without a FIPS provider, or set after the first key of the process.
    """
    return bool(is_fips())


def provider_name():
    """Name and version of the provider of AES, as told by itself."""
    cdef char text[128]
    cdef EVP_CIPHER* cipher = fetch_cipher("AES-256-GCM")
    cdef int done = describe_provider(cipher, text, sizeof(text))
    EVP_CIPHER_free(cipher)
    check(done, "name the provider of AES")
    return text.decode(errors="replace")
