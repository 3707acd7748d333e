# distutils: language = c
"""AES-GCM for bytes that are not modules of a Parquet file: blocks of streams, and stored key metadata.

Sealed bytes are a random nonce (12 bytes), the ciphertext and the tag (16 bytes), without a length in front.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT32_MAX, uint8_t

from fastpq.encryption.evp cimport NONCE_SIZE, TAG_SIZE, AesKey, GcmContext

from fastpq.errors import FormatError, TagVerificationError


def seal_bytes(AesKey key not None, plain, bytes aad not None):
    """Encrypt and authenticate bytes with a new random nonce.

    Args:
        key: the key.
        plain: bytes or another contiguous buffer, below 2 GiB.
        aad: additional authenticated data.

    Returns:
        The nonce, the ciphertext and the tag: 28 bytes more than the plaintext has.

    Raises:
        CryptoError: the key has already done as many encryptions as it may do.
        ValueError: the plaintext is too long.
    """
    cdef Py_buffer view
    cdef GcmContext context = GcmContext(key)
    cdef bytes sealed
    cdef uint8_t* out
    cdef const uint8_t* aad_bytes = <const uint8_t*>PyBytes_AS_STRING(aad)
    cdef Py_ssize_t aad_size = len(aad)
    PyObject_GetBuffer(plain, &view, PyBUF_SIMPLE)
    try:
        if view.len > INT32_MAX - NONCE_SIZE - TAG_SIZE or aad_size > INT32_MAX:
            raise ValueError("at most 2 GiB are sealed in one piece")
        sealed = PyBytes_FromStringAndSize(NULL, view.len + NONCE_SIZE + TAG_SIZE)
        out = <uint8_t*>PyBytes_AS_STRING(sealed)
        with nogil:
            context.seal(aad_bytes, aad_size, <const uint8_t*>view.buf, view.len, out)
        return sealed
    finally:
        PyBuffer_Release(&view)


def open_bytes(AesKey key not None, sealed, bytes aad not None):
    """Decrypt bytes that seal_bytes encrypted.

    Args:
        key: the key.
        sealed: the nonce, the ciphertext and the tag, as bytes or another contiguous buffer.
        aad: additional authenticated data.

    Returns:
        The plaintext as a bytearray, which the caller can overwrite.

    Raises:
        FormatError: there are fewer than 28 bytes.
        TagVerificationError: the key or the AAD is wrong, or the bytes were altered. No plaintext is returned.
        ValueError: there are too many bytes.
    """
    cdef Py_buffer view
    cdef GcmContext context = GcmContext(key)
    cdef int is_authentic
    cdef Py_ssize_t size
    cdef uint8_t* out
    cdef const uint8_t* aad_bytes = <const uint8_t*>PyBytes_AS_STRING(aad)
    cdef Py_ssize_t aad_size = len(aad)
    PyObject_GetBuffer(sealed, &view, PyBUF_SIMPLE)
    try:
        if view.len < NONCE_SIZE + TAG_SIZE:
            raise FormatError(f"sealed bytes have at least {NONCE_SIZE + TAG_SIZE} bytes, not {view.len}")
        if view.len > INT32_MAX or aad_size > INT32_MAX:
            raise ValueError("at most 2 GiB are opened in one piece")
        size = view.len - NONCE_SIZE - TAG_SIZE
        plain = PyByteArray_FromStringAndSize(NULL, size)
        out = <uint8_t*>PyByteArray_AS_STRING(plain)
        with nogil:
            is_authentic = context.open(aad_bytes, aad_size, <const uint8_t*>view.buf, size, out)
        if not is_authentic:
            raise TagVerificationError("the bytes are not authentic: wrong key, wrong AAD or altered bytes")
        return plain
    finally:
        PyBuffer_Release(&view)
