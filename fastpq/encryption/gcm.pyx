# distutils: language = c
"""Modules as AES_GCM_V1 stores them: the cipher of one column chunk, or of the footer (Encryption.md, 5.1)."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.encryption.evp cimport NONCE_SIZE, TAG_SIZE, AesKey, GcmContext
from fastpq.encryption.modules cimport AAD_SUFFIX_SIZE, FOOTER, LARGEST_ORDINAL, build_aad, has_chunk, has_page

from fastpq.encryption.modules import ModuleType
from fastpq.errors import CryptoError, FormatError, LimitError, TagVerificationError

cdef extern from * nogil:
    """
    #define fastpq_take(flag) __atomic_exchange_n((flag), 1, __ATOMIC_ACQUIRE)
    #define fastpq_give(flag) __atomic_store_n((flag), 0, __ATOMIC_RELEASE)
    """
    int fastpq_take(int* flag)
    void fastpq_give(int* flag)

cdef int64_t LARGEST_MODULE = 0x7fffffff                # sizes in page headers and in EVP are signed 32-bit integers
cdef size_t LARGEST_FILE_AAD = 1 << 16                  # it is authenticated anew with every module
cdef int64_t GIL_SIZE = 4096                            # sealing less takes less time than releasing the GIL may cost
cdef size_t SLACK = 64                                  # kernels may load whole words past the end


cdef class GcmModuleCipher(ModuleCipher):
    """AES-GCM for the modules of one column chunk, or for the footer (Encryption.md, 5.1).

    Args:
        key: an AesKey.
        file_aad: the AAD prefix, if any, and ``aad_file_unique``.
        row_group: ordinal of the row group; 0 for the footer.
        column: ordinal of the column; 0 for the footer.
        column_name: what errors call the column, instead of its ordinal.

    Raises:
        CryptoError: an ordinal is not one of 0 to 32767.
        LimitError: file_aad is longer than 64 KiB.
    """

    def __cinit__(self, AesKey key not None, bytes file_aad not None, row_group=0, column=0, str column_name=None):
        for name, ordinal in (("row group", row_group), ("column", column)):
            if not 0 <= ordinal <= LARGEST_ORDINAL:
                raise CryptoError(f"{name} ordinal {ordinal}: an encrypted file has {name} ordinals of 0 to {LARGEST_ORDINAL}")
        if len(file_aad) > LARGEST_FILE_AAD:
            raise LimitError(f"an AAD of {len(file_aad)} bytes: prefix and file identifier have at most {LARGEST_FILE_AAD}")
        self.overhead = MODULE_OVERHEAD
        self.context = GcmContext(key)
        self.file_aad = file_aad
        self.file_aad_data = <const uint8_t*>PyBytes_AS_STRING(file_aad)
        self.file_aad_size = <size_t>len(file_aad)
        self.row_group = row_group
        self.column = column
        self.column_name = column_name
        self.aad = <uint8_t*>malloc(self.file_aad_size + AAD_SUFFIX_SIZE)
        if self.aad == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.aad)
        free(self.scratch)

    cdef const uint8_t* open_framed(self, int module, int page, const uint8_t* data, int64_t available,
                                    int64_t* plain_size, int64_t* stored_size) except NULL nogil:
        cdef int64_t size = available
        if available >= LENGTH_SIZE:
            size = LENGTH_SIZE + <int64_t>load_u32(data)
        if available < MODULE_OVERHEAD or size < MODULE_OVERHEAD or size > available:
            with gil:
                raise FormatError(f"an encrypted module of {size} bytes where it may have {MODULE_OVERHEAD} to {available}",
                                  **self._place(module, page))
        stored_size[0] = size
        return self.open_sized(module, page, data, size, plain_size)

    cdef const uint8_t* open_sized(self, int module, int page, const uint8_t* data, int64_t size,
                                   int64_t* plain_size) except NULL nogil:
        cdef uint8_t* out
        self._check_framing(module, page, data, size)
        out = self._reserve(<size_t>(size - MODULE_OVERHEAD))
        self._open(module, page, data, size, out)
        plain_size[0] = size - MODULE_OVERHEAD
        return out

    cdef int64_t open_into(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil:
        self._check_framing(module, page, data, size)
        self._open(module, page, data, size, out)
        return size - MODULE_OVERHEAD

    cpdef object seal(self, int module, int page, object plain):
        """The stored form of a module: length, nonce, ciphertext and tag.

        Args:
            module: a ModuleType.
            page: ordinal of the data page; not used for other modules.
            plain: a contiguous buffer.

        Raises:
            CryptoError: an ordinal over 32767, or too many encryptions with the key.
            LimitError: a module over 2^31 - 1 bytes.
        """
        cdef Py_buffer view
        cdef uint8_t* out
        PyObject_GetBuffer(plain, &view, PyBUF_SIMPLE)
        try:
            if view.len > LARGEST_MODULE - MODULE_OVERHEAD:
                raise LimitError(f"a module of {view.len} bytes: encrypted, it would be over 2^31 - 1 bytes",
                                 **self._place(module, page))
            stored = PyBytes_FromStringAndSize(NULL, view.len + MODULE_OVERHEAD)
            out = <uint8_t*>PyBytes_AS_STRING(stored)
            if view.len < GIL_SIZE:
                self._seal(module, page, <const uint8_t*>view.buf, view.len, out)
            else:
                with nogil:
                    self._seal(module, page, <const uint8_t*>view.buf, view.len, out)
        finally:
            PyBuffer_Release(&view)
        return stored

    def verify_signature(self, const uint8_t[::1] footer, const uint8_t[::1] signature):
        """Check the signature of a plaintext footer (Encryption.md, 5.5).

        Args:
            footer: the serialized FileMetaData, exactly as it is stored.
            signature: the nonce and the tag that are stored behind it.

        Raises:
            FormatError: the signature has not 28 bytes.
            TagVerificationError: the footer was altered, or key or AAD prefix are not those of the file.
        """
        cdef int64_t size = footer.shape[0]
        cdef bint same
        if signature.shape[0] != NONCE_SIZE + TAG_SIZE or not 0 < size <= LARGEST_MODULE - MODULE_OVERHEAD:
            raise FormatError(f"a footer of {size} bytes with a signature of {signature.shape[0]}, not 28", module="FOOTER")
        self._enter()
        try:
            same = self.context.verify(self.aad, self._build_aad(FOOTER, 0), &footer[0], size, &signature[0])
        finally:
            fastpq_give(&self.busy)
        if not same:
            raise TagVerificationError("the footer's signature does not match: wrong key, wrong AAD or altered bytes",
                                       module="FOOTER")

    cdef int _enter(self) except -1 nogil:
        # A context shared by two threads could encrypt under the other's nonce, so this is refused, not documented.
        if fastpq_take(&self.busy):
            with gil:
                raise CryptoError("a module cipher was used by two threads at the same time")
        return 0

    cdef int64_t _build_aad(self, int module, int page) except -1 nogil:
        return build_aad(self.file_aad_data, self.file_aad_size, module, self.row_group, self.column, page, self.aad)

    cdef uint8_t* _reserve(self, size_t size) except NULL nogil:
        cdef size_t wanted = size + SLACK
        if self.scratch_size < wanted:
            free(self.scratch)
            wanted += wanted >> 2
            self.scratch = <uint8_t*>malloc(wanted)
            self.scratch_size = wanted if self.scratch != NULL else 0
            if self.scratch == NULL:
                with gil:
                    raise MemoryError()
        return self.scratch

    cdef int _check_framing(self, int module, int page, const uint8_t* data, int64_t size) except -1 nogil:
        cdef int64_t claimed = 0
        if size >= MODULE_OVERHEAD and size <= LARGEST_MODULE:
            claimed = LENGTH_SIZE + <int64_t>load_u32(data)
            if claimed == size:
                return 0
        with gil:
            if not MODULE_OVERHEAD <= size <= LARGEST_MODULE:
                raise FormatError(f"an encrypted module of {size} bytes", **self._place(module, page))
            raise FormatError(f"an encrypted module of {size} bytes whose length field says {claimed}",
                              **self._place(module, page))

    cdef int _open(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil:
        """Open a module whose framing is checked; out is zeroed if it is not authentic."""
        cdef int authentic
        self._enter()
        try:
            authentic = self.context.open(self.aad, self._build_aad(module, page), data + LENGTH_SIZE, size - MODULE_OVERHEAD,
                                          out)
        finally:
            fastpq_give(&self.busy)
        if not authentic:
            with gil:
                raise TagVerificationError("a module does not authenticate: wrong key, wrong AAD or altered bytes",
                                           **self._place(module, page))
        return 0

    cdef int _seal(self, int module, int page, const uint8_t* plain, int64_t size, uint8_t* out) except -1 nogil:
        self._enter()
        try:
            store_u32(out, <uint32_t>(size + MODULE_OVERHEAD - LENGTH_SIZE))
            self.context.seal(self.aad, self._build_aad(module, page), plain, size, out + LENGTH_SIZE)
        finally:
            fastpq_give(&self.busy)
        return 0

    cdef dict _place(self, int module, int page):
        """What an error says about the module."""
        place = {"module": ModuleType(module).name}
        if has_chunk(module):
            place["row_group"] = self.row_group
            place["column"] = self.column if self.column_name is None else self.column_name
        if has_page(module):
            place["page"] = page
        return place


cdef inline uint32_t load_u32(const uint8_t* data) noexcept nogil:
    return data[0] | <uint32_t>data[1] << 8 | <uint32_t>data[2] << 16 | <uint32_t>data[3] << 24


cdef inline void store_u32(uint8_t* out, uint32_t value) noexcept nogil:
    out[0], out[1], out[2], out[3] = value & 0xff, value >> 8 & 0xff, value >> 16 & 0xff, value >> 24
