# distutils: language = c
"""Keys on their way between AesKey objects and key services: made, wrapped and unwrapped without copies left in Python.

Python code cannot wipe its bytes objects: double wrapping never puts a key into bytes. A key service needs a key as bytes;
these bytes are wiped if nobody else holds a reference.
"""

import sys
import traceback

from cpython.buffer cimport PyBUF_READ
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport uint8_t

from fastpq.encryption.evp cimport NONCE_SIZE, TAG_SIZE, AesKey, GcmContext
from fastpq.encryption.openssl cimport OPENSSL_cleanse
from fastpq.encryption.provider cimport draw_from_passphrase, draw_private

from fastpq.errors import CryptoError, FormatError, TagVerificationError

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(object)

cdef enum:
    LARGEST_KEY = 32    # bytes


def random_key(int bits):
    """A new AES key from OpenSSL's private generator.

    Args:
        bits: 128, 192 or 256.

    Raises:
        ValueError: another length.
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
    """An AES key of 32 bytes from a passphrase, by PBKDF2 with HMAC-SHA-256 (NIST SP 800-132).

    Args:
        passphrase: the passphrase.
        salt: at least 16 bytes.
        iterations: at least 1000.

    Raises:
        CryptoError: salt or iterations are under their bounds.
    """
    cdef uint8_t[LARGEST_KEY] derived
    try:
        draw_from_passphrase(passphrase, salt, iterations, derived)
        return AesKey(PyMemoryView_FromMemory(<char*>derived, LARGEST_KEY, PyBUF_READ))
    finally:
        OPENSSL_cleanse(derived, sizeof(derived))


def seal_key(AesKey wrapping not None, AesKey key not None, bytes aad not None):
    """A key encrypted with another key, in the format of parquet-java's and Arrow's key tools.

    Args:
        wrapping: the key to encrypt with.
        key: the key to encrypt.
        aad: additional authenticated data: the identifier of the wrapping key.

    Returns:
        12 bytes of nonce, the encrypted key and 16 bytes of tag.

    Raises:
        CryptoError: wrapping has reached its limit of encryptions.
    """
    cdef GcmContext context = GcmContext(wrapping)
    cdef bytes sealed = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>key.size + NONCE_SIZE + TAG_SIZE)
    context.seal(<const uint8_t*>PyBytes_AS_STRING(aad), len(aad), key.bytes, <Py_ssize_t>key.size,
                 <uint8_t*>PyBytes_AS_STRING(sealed))
    return sealed


def open_key(AesKey wrapping not None, bytes sealed not None, bytes aad not None):
    """The key encrypted by seal_key.

    Raises:
        FormatError: sealed has not the length of an encrypted key.
        TagVerificationError: another wrapping key or AAD, or sealed was altered.
    """
    cdef uint8_t[LARGEST_KEY] opened
    cdef Py_ssize_t size = len(sealed) - NONCE_SIZE - TAG_SIZE
    cdef GcmContext context = GcmContext(wrapping)
    if size not in (16, 24, 32):
        raise FormatError(f"a wrapped key of {len(sealed)} bytes, where it has 44, 52 or 60")
    try:
        if not context.open(<const uint8_t*>PyBytes_AS_STRING(aad), len(aad), <const uint8_t*>PyBytes_AS_STRING(sealed),
                            size, opened):
            raise TagVerificationError("a wrapped key does not authenticate: wrong wrapping key or altered bytes")
        return AesKey(PyMemoryView_FromMemory(<char*>opened, size, PyBUF_READ))
    finally:
        OPENSSL_cleanse(opened, sizeof(opened))


def authenticate(AesKey key not None, bytes data not None):
    """The seal of data: nonce and tag, 28 bytes, made with the key; the data stay plaintext."""
    cdef GcmContext context = GcmContext(key)
    cdef bytes seal = PyBytes_FromStringAndSize(NULL, NONCE_SIZE + TAG_SIZE)
    context.seal(<const uint8_t*>PyBytes_AS_STRING(data), len(data), NULL, 0, <uint8_t*>PyBytes_AS_STRING(seal))
    return seal


def is_authentic(AesKey key not None, bytes data not None, bytes seal not None):
    """Whether seal is a seal of the data, made with this key by authenticate."""
    cdef GcmContext context = GcmContext(key)
    cdef uint8_t nothing
    if len(seal) != NONCE_SIZE + TAG_SIZE:
        return False
    return bool(context.open(<const uint8_t*>PyBytes_AS_STRING(data), len(data), <const uint8_t*>PyBytes_AS_STRING(seal), 0,
                             &nothing))


def lend_key(AesKey key not None, use):
    """Call a function with the bytes of a key; wipe the bytes afterwards, unless the function keeps a reference.

    Args:
        key: the key.
        use: function of the key's bytes.

    Returns:
        Result of use.

    Raises:
        Exceptions of use, with the local variables of their frames cleared: the key was among the variables.
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
    """The key of the bytes returned by a function; wipes the bytes, unless the function keeps a reference.

    Args:
        make: returns bytes or a bytearray of 16, 24 or 32 bytes.

    Raises:
        CryptoError: make returned something else.
        Exceptions of make, with the local variables of their frames cleared: the key may be among the variables.
    """
    earlier = sys.exc_info()[1]
    try:
        secret = make()
    except BaseException as error:
        clear_frames(error, earlier)
        raise
    if not isinstance(secret, (bytes, bytearray)):
        raise CryptoError(f"a key is bytes, not {type(secret).__name__}")
    try:
        return AesKey(secret)
    finally:
        wipe(secret)


cdef void wipe(object secret) noexcept:
    """Overwrite the bytes of a key, unless someone other than the caller holds a reference."""
    if Py_REFCNT(secret) > 1:
        return
    if isinstance(secret, bytes):
        OPENSSL_cleanse(PyBytes_AS_STRING(secret), <size_t>PyBytes_GET_SIZE(secret))
    else:
        OPENSSL_cleanse(PyByteArray_AS_STRING(secret), <size_t>PyByteArray_GET_SIZE(secret))


cdef clear_frames(error, earlier):
    """Clear the local variables of the frames of an error and of its causes; stops at earlier, an error from before our call."""
    seen = {id(earlier)}
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
