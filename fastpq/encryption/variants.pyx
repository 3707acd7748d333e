# distutils: language = c
"""Ciphers for module layouts other than AES_GCM_V1: page bodies with AES-CTR, and DuckDB's dialect."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from fastpq.encryption.evp cimport AesKey, CtrContext
from fastpq.encryption.gcm cimport LENGTH_SIZE, MODULE_OVERHEAD, GcmModuleCipher, fastpq_release, store_u32
from fastpq.encryption.modules cimport DATA_PAGE, DICTIONARY_PAGE

from fastpq.errors import UnsupportedError

cdef enum:
    PAGE_OVERHEAD = 16      # size of length and nonce in bytes (Encryption.md, 5.1: length | nonce | ciphertext)


cdef inline bint is_page(int module) noexcept nogil:
    return module == DATA_PAGE or module == DICTIONARY_PAGE


cdef class CtrModuleCipher(GcmModuleCipher):
    """AES_GCM_CTR_V1: AES-CTR for page bodies, where alterations go unnoticed, and AES-GCM for all other modules.

    Arguments and errors are the same as in GcmModuleCipher.
    """
    cdef CtrContext pages

    def __cinit__(self, AesKey key not None, *args, **options):
        self.pages = CtrContext(key)
        self.authenticates = False

    cdef int64_t _overhead_of(self, int module) noexcept nogil:
        return PAGE_OVERHEAD if is_page(module) else MODULE_OVERHEAD

    cdef int _try_open(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil:
        if not is_page(module):
            return GcmModuleCipher._try_open(self, module, page, data, size, out)
        self._enter()
        try:
            self.pages.open(data + LENGTH_SIZE, size - PAGE_OVERHEAD, out)
        finally:
            fastpq_release(&self.busy)
        return 1

    cdef int _seal(self, int module, int page, const uint8_t* plain, int64_t size, uint8_t* out) except -1 nogil:
        if not is_page(module):
            return GcmModuleCipher._seal(self, module, page, plain, size, out)
        self._enter()
        try:
            store_u32(out, <uint32_t>(size + PAGE_OVERHEAD - LENGTH_SIZE))
            self.pages.seal(plain, size, out + LENGTH_SIZE)
        finally:
            fastpq_release(&self.busy)
        return 0

    cdef int _is_one_module(self, int page, const uint8_t* data, int64_t size) except -1 nogil:
        with gil:       # four bytes can be equal by chance, and a wrong guess would return wrong values
            raise UnsupportedError("an AES-CTR data page V2 whose framing fits both Arrow's layout and parquet-java's",
                                   **self._place(DATA_PAGE, page))


cdef class DuckDbModuleCipher(GcmModuleCipher):
    """DuckDB's dialect of AES_GCM_V1. AADs are empty, so modules are not bound to their place. Page headers have body sizes
    without the encryption overhead.

    Arguments and errors are the same as in GcmModuleCipher.
    """

    def __cinit__(self, *args, **options):
        self.uncounted = MODULE_OVERHEAD

    cdef int64_t _build_aad(self, int module, int page) except -1 nogil:
        return 0
