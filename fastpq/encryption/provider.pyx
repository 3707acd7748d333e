# distutils: language = c
"""The OpenSSL library context: OpenSSL's default one, or with ``FASTPQ_AES=fips`` one that has only a FIPS provider."""

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
    PASSPHRASE_KEY_SIZE = 32    # in bytes

cdef OSSL_LIB_CTX* library = NULL           # NULL: OpenSSL's default context
cdef const char* properties = NULL          # every fetched algorithm must have these
cdef bint is_decided = False                # whether library and properties are final
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
    ERR_clear_error()       # the thread's error queue is shared with the ssl module
    return text.decode(errors="replace")


cdef bint is_fips() except -1:
    with _deciding:
        if not is_decided:
            _decide()
    if library == NULL and os.environ.get(AES_VARIABLE) == "fips":
        raise UnsupportedError(f"{AES_VARIABLE}=fips was set too late: this process has already made keys without it")
    return library != NULL


cdef int _decide() except -1:
    """Choose the library context, once for the process."""
    global library, properties, is_decided
    cdef OSSL_LIB_CTX* fips_library
    if os.environ.get(AES_VARIABLE) == "fips":
        fips_library = open_fips_library()
        if fips_library == NULL:
            version = OpenSSL_version(OPENSSL_VERSION).decode()
            raise UnsupportedError(
                f"{AES_VARIABLE}=fips: {version} cannot load its FIPS provider. Run openssl fipsinstall for the fips module in "
                f"the folder OPENSSL_MODULES, and include its output in the file OPENSSL_CONF: "
                f"{_last_error()}")
        ERR_clear_error()
        library, properties = fips_library, FASTPQ_FIPS_ONLY
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
    """Return random bytes that need not be secret, such as a salt.

    Args:
        size: byte count.
    """
    is_fips()
    out = PyBytes_FromStringAndSize(NULL, size)
    check(RAND_bytes_ex(library, <uint8_t*>PyBytes_AS_STRING(out), <size_t>len(out), 0), "make random bytes")
    return out


def within_fips():
    """Return whether all algorithms come from a FIPS provider.

    Raises:
        UnsupportedError: ``FASTPQ_AES=fips`` is set, but there is no FIPS provider, or the process made a key before.
    """
    return bool(is_fips())


def provider_name():
    """Return the AES provider's name and version, as it reports them."""
    cdef char text[128]
    cdef EVP_CIPHER* cipher = fetch_cipher("AES-256-GCM")
    cdef int is_done = describe_provider(cipher, text, sizeof(text))
    EVP_CIPHER_free(cipher)
    check(is_done, "name the provider of AES")
    return text.decode(errors="replace")
