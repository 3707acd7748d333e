# distutils: language = c
"""Keys on their way between AesKey objects and key services. They are made, wrapped and unwrapped without copies in Python.

Python code cannot wipe its bytes objects, so double wrapping never puts a key into bytes. A key service needs a key as bytes.
These bytes are wiped afterwards, unless somebody else holds a reference.
"""

import sys

from cpython.buffer cimport PyBUF_READ
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport uint8_t

from fastpq.encryption.evp cimport NONCE_SIZE, TAG_SIZE, AesKey, GcmContext
from fastpq.encryption.openssl cimport OPENSSL_cleanse
from fastpq.encryption.provider cimport draw_from_passphrase, draw_private

from fastpq.encryption.tracebacks import clear_frames
from fastpq.errors import CryptoError, FormatError, TagVerificationError

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object)

cdef enum:
    LARGEST_KEY = 32    # in bytes


def random_key(int bits):
    """Make a new AES key with OpenSSL's private generator.

    Args:
        bits: 128, 192 or 256.

    Raises:
        ValueError: the key would have another length.
        CryptoError: the generator failed.
    """
    cdef uint8_t[LARGEST_KEY] drawn
    if bits not in (128, 192, 256):
        raise ValueError(f"an AES key has 128, 192 or 256 bits, not {bits}")
    try:
        draw_private(drawn, <size_t>(bits // 8))
        return AesKey(PyMemoryView_FromMemory(<char*>drawn, bits // 8, PyBUF_READ))
    finally:
        OPENSSL_cleanse(drawn, sizeof(drawn))


def passphrase_key(bytes passphrase not None, bytes salt not None, unsigned int iterations):
    """Derive a 32-byte AES key from a passphrase, by PBKDF2 with HMAC-SHA-256 (NIST SP 800-132).

    Args:
        passphrase: the passphrase.
        salt: at least 16 bytes.
        iterations: at least 1000.

    Raises:
        CryptoError: the salt is too short, or there are too few iterations.
    """
    cdef uint8_t[LARGEST_KEY] derived
    try:
        draw_from_passphrase(passphrase, salt, iterations, derived)
        return AesKey(PyMemoryView_FromMemory(<char*>derived, LARGEST_KEY, PyBUF_READ))
    finally:
        OPENSSL_cleanse(derived, sizeof(derived))


def seal_key(AesKey wrapping not None, AesKey key not None, bytes aad not None):
    """Encrypt a key with another key, in the format that parquet-java's and Arrow's key tools use.

    Args:
        wrapping: the key to encrypt with.
        key: the key to encrypt.
        aad: additional authenticated data, which is the wrapping key's identifier.

    Returns:
        The nonce (12 bytes), the encrypted key and the tag (16 bytes).

    Raises:
        CryptoError: wrapping has already done as many encryptions as it may do.
    """
    cdef GcmContext context = GcmContext(wrapping)
    cdef bytes sealed_key = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>key.size + NONCE_SIZE + TAG_SIZE)
    context.seal(<const uint8_t*>PyBytes_AS_STRING(aad), len(aad), key.bytes, <Py_ssize_t>key.size,
                 <uint8_t*>PyBytes_AS_STRING(sealed_key))
    return sealed_key


def open_key(AesKey wrapping not None, bytes sealed not None, bytes aad not None):
    """Decrypt a key that seal_key encrypted.

    Raises:
        FormatError: sealed does not have an encrypted key's length.
        TagVerificationError: the wrapping key or the AAD is wrong, or sealed was altered.
    """
    cdef uint8_t[LARGEST_KEY] opened
    cdef Py_ssize_t size = len(sealed) - NONCE_SIZE - TAG_SIZE
    cdef GcmContext context = GcmContext(wrapping)
    if size not in (16, 24, 32):
        raise FormatError(f"a wrapped key has 44, 52 or 60 bytes, not {len(sealed)}")
    try:
        if not context.open(<const uint8_t*>PyBytes_AS_STRING(aad), len(aad), <const uint8_t*>PyBytes_AS_STRING(sealed),
                            size, opened):
            raise TagVerificationError("a wrapped key is not authentic: wrong wrapping key or altered bytes")
        return AesKey(PyMemoryView_FromMemory(<char*>opened, size, PyBUF_READ))
    finally:
        OPENSSL_cleanse(opened, sizeof(opened))


def authenticate(AesKey key not None, bytes data not None):
    """Return a seal that authenticates data: a nonce and a tag, 28 bytes in total. The data itself is not encrypted."""
    cdef GcmContext context = GcmContext(key)
    cdef bytes seal = PyBytes_FromStringAndSize(NULL, NONCE_SIZE + TAG_SIZE)
    context.seal(<const uint8_t*>PyBytes_AS_STRING(data), len(data), NULL, 0, <uint8_t*>PyBytes_AS_STRING(seal))
    return seal


def is_authentic(AesKey key not None, bytes data not None, bytes seal not None):
    """Return whether authenticate made this seal for the data with this key."""
    cdef GcmContext context = GcmContext(key)
    cdef uint8_t nothing
    if len(seal) != NONCE_SIZE + TAG_SIZE:
        return False
    return bool(context.open(<const uint8_t*>PyBytes_AS_STRING(data), len(data), <const uint8_t*>PyBytes_AS_STRING(seal), 0,
                             &nothing))


def lend_key(AesKey key not None, use):
    """Call a function with a key's bytes. Wipe the bytes afterwards, unless the function keeps a reference.

    Args:
        key: the key.
        use: function that takes the key's bytes.

    Returns:
        What use returned.

    Raises:
        Exceptions from use. Their frames' local variables are cleared, because the key was among them.
    """
    cdef bytes secret = PyBytes_FromStringAndSize(<char*>key.bytes, <Py_ssize_t>key.size)
    earlier = sys.exc_info()[1]
    try:
        return use(secret)
    except BaseException as error:
        clear_frames(error, earlier)
        raise
    finally:
        wipe(secret)


def take_key(make):
    """Make a key from the bytes that a function returns. Wipe the bytes, unless the function keeps a reference.

    Args:
        make: function that returns bytes or a bytearray with 16, 24 or 32 bytes.

    Raises:
        CryptoError: make returned something else.
        Exceptions from make. Their frames' local variables are cleared, because the key may be among them.
    """
    earlier = sys.exc_info()[1]
    try:
        secret = make()
    except BaseException as error:
        clear_frames(error, earlier)
        raise
    if not isinstance(secret, (bytes, bytearray)):
        raise CryptoError(f"a key must be bytes, not {type(secret).__name__}")
    try:
        return AesKey(secret)
    finally:
        wipe(secret)


cdef void wipe(object secret) noexcept:
    """Overwrite a key's bytes, unless somebody other than the caller holds a reference."""
    if Py_REFCNT(secret) > 1:
        return
    if isinstance(secret, bytes):
        OPENSSL_cleanse(PyBytes_AS_STRING(secret), <size_t>PyBytes_GET_SIZE(secret))
    else:
        OPENSSL_cleanse(PyByteArray_AS_STRING(secret), <size_t>PyByteArray_GET_SIZE(secret))
