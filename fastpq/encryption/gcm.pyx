# distutils: language = c
"""GcmModuleCipher: AES_GCM_V1 for the modules in one column chunk, or for the footer (Encryption.md, 5.1)."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.encryption.evp cimport NONCE_SIZE, TAG_SIZE, AesKey, GcmContext
from fastpq.encryption.modules cimport (
    AAD_SUFFIX_SIZE, DATA_PAGE, DATA_PAGE_HEADER, DICTIONARY_PAGE_HEADER, FOOTER, LARGEST_ORDINAL, build_aad, has_chunk, has_page,
)

from fastpq.encryption.modules import ModuleType
from fastpq.errors import CryptoError, FormatError, LimitError, TagVerificationError

cdef int64_t LARGEST_MODULE = 0x7fffffff                # in bytes, because page headers and EVP have signed 32-bit sizes
cdef size_t LARGEST_FILE_AAD = 1 << 16                  # in bytes, because every module authenticates the whole AAD again
cdef int64_t GIL_SIZE = 4096                            # in bytes. Releasing the GIL takes longer than sealing a smaller module
cdef size_t SLACK = 64                                  # in bytes, because kernels may load whole words past the end


cdef class GcmModuleCipher(ModuleCipher):
    """AES-GCM for the modules in one column chunk, or for the footer (Encryption.md, 5.1).

    Args:
        key: an AesKey.
        file_aad: the AAD prefix, if any, and ``aad_file_unique``.
        row_group: the row group's ordinal. 0 for the footer.
        column: the column's ordinal. 0 for the footer.
        column_name: column name, which errors show instead of the ordinal.
        levels_in_clear: seal V2 data pages as parquet-java does: the levels stay unencrypted, in front of the module.

    Raises:
        CryptoError: an ordinal is outside 0 to 32767.
        LimitError: file_aad has more than 64 KiB.
    """

    def __cinit__(self, AesKey key not None, bytes file_aad not None, row_group=0, column=0, str column_name=None,
                  bint levels_in_clear=False):
        check_ordinal("row group", row_group)
        check_ordinal("column", column)
        if len(file_aad) > LARGEST_FILE_AAD:
            raise LimitError(f"an AAD of {len(file_aad)} bytes: prefix and file identifier can have at most {LARGEST_FILE_AAD}")
        self.overhead = MODULE_OVERHEAD
        self.authenticates = True
        self.context = GcmContext(key)
        self.file_aad = file_aad
        self.file_aad_data = <const uint8_t*>PyBytes_AS_STRING(file_aad)
        self.file_aad_size = <size_t>len(file_aad)
        self.row_group = row_group
        self.column = column
        self.column_name = column_name
        self.levels_in_clear = levels_in_clear
        self.aad = <uint8_t*>malloc(self.file_aad_size + AAD_SUFFIX_SIZE)
        if self.aad == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.aad)
        free(self.scratch)

    cdef int move_to(self, int64_t row_group) except -1 nogil:
        if not 0 <= row_group <= LARGEST_ORDINAL:
            with gil:
                check_ordinal("row group", row_group)
        self.row_group = row_group
        return 0

    cdef const uint8_t* open_framed(self, int module, int page, const uint8_t* data, int64_t available,
                                    int64_t* plain_size, int64_t* stored_size) except NULL nogil:
        stored_size[0] = self._framed_size(module, page, data, available)
        return self.open_sized(module, page, data, stored_size[0], plain_size)

    cdef const uint8_t* open_header(self, bint* dictionary, int page, const uint8_t* data, int64_t available,
                                    int64_t* plain_size, int64_t* stored_size) except NULL nogil:
        # Metadata may be wrong about the first page: old writers' data_page_offset points to the dictionary page. The module
        # type is part of the AAD, so a header opens only as the page type that it was sealed for.
        cdef int module = DICTIONARY_PAGE_HEADER if dictionary[0] else DATA_PAGE_HEADER
        cdef int other_module = DATA_PAGE_HEADER if dictionary[0] else DICTIONARY_PAGE_HEADER
        cdef int64_t size = self._framed_size(module, page, data, available)
        cdef uint8_t* out = self._reserve(<size_t>(size - MODULE_OVERHEAD))
        if not self._try_open(module, page, data, size, out):
            if page != 0 or not self._try_open(other_module, page, data, size, out):
                self._refuse(module, page)
            dictionary[0] = not dictionary[0]
        stored_size[0] = size
        plain_size[0] = size - MODULE_OVERHEAD
        return out

    cdef const uint8_t* open_v2(self, int page, const uint8_t* data, int64_t size, int64_t levels_size,
                                const uint8_t** levels, int64_t* values_size) except NULL nogil:
        # The page is either one module with levels and values (Arrow, arrow-rs, Polars), or unencrypted levels in front of a
        # module with the values (parquet-java). Encryption.md does not distinguish page versions.
        cdef bint behind_levels = (0 < levels_size <= size - LENGTH_SIZE
                                   and load_u32(data + levels_size) == size - levels_size - LENGTH_SIZE)
        if behind_levels and load_u32(data) == size - LENGTH_SIZE:
            behind_levels = not self._is_one_module(page, data, size)
        if not behind_levels:
            return ModuleCipher.open_v2(self, page, data, size, levels_size, levels, values_size)
        levels[0] = data
        return self.open_sized(DATA_PAGE, page, data + levels_size, size - levels_size, values_size)

    cdef const uint8_t* open_sized(self, int module, int page, const uint8_t* data, int64_t size,
                                   int64_t* plain_size) except NULL nogil:
        cdef uint8_t* out
        self._check_framing(module, page, data, size)
        plain_size[0] = size - self._overhead_of(module)
        out = self._reserve(<size_t>plain_size[0])
        self._open(module, page, data, size, out)
        return out

    cdef int64_t open_into(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil:
        self._check_framing(module, page, data, size)
        self._open(module, page, data, size, out)
        return size - self._overhead_of(module)

    def open_body(self, int module, int page, const uint8_t[::1] stored not None, int64_t levels_size):
        """Open a stored page body. Arguments, result and errors are as in ModuleCipher.open_body."""
        cdef int64_t values_size = 0
        cdef uint8_t nothing = 0
        cdef const uint8_t* data = &stored[0] if stored.shape[0] else &nothing
        cdef const uint8_t* levels = NULL
        cdef const uint8_t* values
        if levels_size == 0:
            return self.open(module, page, stored), self.authenticates
        with nogil:
            values = self.open_v2(page, data, stored.shape[0], levels_size, &levels, &values_size)
        if values_size < 0:
            raise FormatError(f"{levels_size} bytes of levels in a page that has {levels_size + values_size}",
                              **self._place(module, page))
        if levels == data:
            return (PyBytes_FromStringAndSize(<const char*>levels, levels_size)
                    + PyBytes_FromStringAndSize(<const char*>values, values_size)), False
        return PyBytes_FromStringAndSize(<const char*>levels, levels_size + values_size), self.authenticates

    cdef int64_t sealed_size(self, int module, int64_t size) noexcept nogil:
        return size + self._overhead_of(module)

    cdef int seal_to(self, int module, int page, const uint8_t* plain, int64_t size, int64_t levels_size,
                     uint8_t* out) except -1 nogil:
        cdef int64_t before = levels_size if self.levels_in_clear else 0
        self._check_plain(module, page, size)
        memcpy(out, plain, <size_t>before)
        return self._seal(module, page, plain + before, size - before, out + before)

    cpdef object seal(self, int module, int page, object plain):
        """Seal a module: return its length, nonce, ciphertext and tag. Page bodies with AES-CTR have no tag.

        Args:
            module: a ModuleType.
            page: the data page's ordinal. Other modules do not use it.
            plain: a contiguous buffer.

        Raises:
            CryptoError: an ordinal is over 32767, or the key has done too many encryptions.
            LimitError: the module would have more than 2^31 - 1 bytes.
        """
        cdef Py_buffer view
        cdef uint8_t* out
        PyObject_GetBuffer(plain, &view, PyBUF_SIMPLE)
        try:
            self._check_plain(module, page, view.len)
            stored_module = PyBytes_FromStringAndSize(NULL, view.len + self._overhead_of(module))
            out = <uint8_t*>PyBytes_AS_STRING(stored_module)
            if view.len < GIL_SIZE:
                self._seal(module, page, <const uint8_t*>view.buf, view.len, out)
            else:
                with nogil:
                    self._seal(module, page, <const uint8_t*>view.buf, view.len, out)
        finally:
            PyBuffer_Release(&view)
        return stored_module

    cpdef object seal_body(self, int module, int page, object plain, int64_t levels_size):
        """Seal a page body. Arguments are as in ModuleCipher.seal_body, and errors are as in seal."""
        if not self.levels_in_clear or levels_size == 0:
            return self.seal(module, page, plain)
        view = memoryview(plain)
        return bytes(view[:levels_size]) + self.seal(module, page, view[levels_size:])

    def sign(self, const uint8_t[::1] footer not None):
        """Return a plaintext footer's signature: the nonce and tag from its encryption, without the ciphertext.

        Args:
            footer: the serialized FileMetaData.

        Raises:
            CryptoError: the key has done too many encryptions.
            LimitError: the footer has more than 2^31 - 1 bytes.
        """
        sealed_footer = self.seal(FOOTER, 0, footer)
        return sealed_footer[LENGTH_SIZE:LENGTH_SIZE + NONCE_SIZE] + sealed_footer[-TAG_SIZE:]

    def verify_signature(self, const uint8_t[::1] footer, const uint8_t[::1] signature):
        """Verify a plaintext footer's signature (Encryption.md, 5.5).

        Args:
            footer: the serialized FileMetaData, exactly as stored.
            signature: the nonce and the tag that follow the footer.

        Raises:
            FormatError: the signature does not have 28 bytes.
            TagVerificationError: the footer was altered, or the key or the AAD prefix is wrong.
        """
        cdef int64_t size = footer.shape[0]
        cdef bint is_authentic
        if signature.shape[0] != NONCE_SIZE + TAG_SIZE or not 0 < size <= LARGEST_MODULE - MODULE_OVERHEAD:
            raise FormatError(f"a footer of {size} bytes with a signature of {signature.shape[0]} bytes, not 28", module="FOOTER")
        self._enter()
        try:
            is_authentic = self.context.verify(self.aad, self._build_aad(FOOTER, 0), &footer[0], size, &signature[0])
        finally:
            fastpq_release(&self.busy)
        if not is_authentic:
            raise TagVerificationError("the footer's signature does not match: wrong key, wrong AAD or altered bytes",
                                       module="FOOTER")

    cdef int _enter(self) except -1 nogil:
        # Two threads that share a context could encrypt under each other's nonce. This is refused, not just documented.
        if fastpq_acquire(&self.busy):
            with gil:
                raise CryptoError("a module cipher was used by two threads at the same time")
        return 0

    cdef int64_t _overhead_of(self, int module) noexcept nogil:
        return MODULE_OVERHEAD

    cdef int64_t _build_aad(self, int module, int page) except -1 nogil:
        return build_aad(self.file_aad_data, self.file_aad_size, module, self.row_group, self.column, page, self.aad)

    cdef uint8_t* _reserve(self, size_t size) except NULL nogil:
        cdef size_t capacity = size + SLACK
        if self.scratch_size < capacity:
            free(self.scratch)
            capacity += capacity >> 2
            self.scratch = <uint8_t*>malloc(capacity)
            self.scratch_size = capacity if self.scratch != NULL else 0
            if self.scratch == NULL:
                with gil:
                    raise MemoryError()
        return self.scratch

    cdef int64_t _framed_size(self, int module, int page, const uint8_t* data, int64_t available) except -1 nogil:
        """Return a module's stored size by its length field. It is at most the number of available bytes."""
        cdef int64_t size = available, least = self._overhead_of(module)
        if available >= LENGTH_SIZE:
            size = LENGTH_SIZE + <int64_t>load_u32(data)
        if available < least or size < least or size > available:
            with gil:
                raise FormatError(f"an encrypted module of {size} bytes, but it can have only {least} to {available}",
                                  **self._place(module, page))
        return size

    cdef int _check_plain(self, int module, int page, int64_t size) except -1 nogil:
        if size > LARGEST_MODULE - self._overhead_of(module):
            with gil:
                raise LimitError(f"a module of {size} bytes would have more than 2^31 - 1 bytes when it is encrypted",
                                 **self._place(module, page))
        return 0

    cdef int _check_framing(self, int module, int page, const uint8_t* data, int64_t size) except -1 nogil:
        cdef int64_t length = 0, least = self._overhead_of(module)
        if size >= least and size <= LARGEST_MODULE:
            length = LENGTH_SIZE + <int64_t>load_u32(data)
            if length == size:
                return 0
        with gil:
            if not least <= size <= LARGEST_MODULE:
                raise FormatError(f"an encrypted module of {size} bytes", **self._place(module, page))
            raise FormatError(f"an encrypted module of {size} bytes whose length field says {length}",
                              **self._place(module, page))

    cdef int _open(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil:
        """Open a module whose framing was checked into out. If it is not authentic, zero out and raise."""
        if not self._try_open(module, page, data, size, out):
            self._refuse(module, page)
        return 0

    cdef int _try_open(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil:
        self._enter()
        try:
            return self.context.open(self.aad, self._build_aad(module, page), data + LENGTH_SIZE, size - MODULE_OVERHEAD, out)
        finally:
            fastpq_release(&self.busy)

    cdef int _refuse(self, int module, int page) except -1 nogil:
        with gil:
            raise TagVerificationError("a module does not authenticate: wrong key, wrong AAD or altered bytes",
                                       **self._place(module, page))

    cdef int _is_one_module(self, int page, const uint8_t* data, int64_t size) except -1 nogil:
        self._check_framing(DATA_PAGE, page, data, size)
        return self._try_open(DATA_PAGE, page, data, size, self._reserve(<size_t>(size - MODULE_OVERHEAD)))

    cdef int _seal(self, int module, int page, const uint8_t* plain, int64_t size, uint8_t* out) except -1 nogil:
        self._enter()
        try:
            store_u32(out, <uint32_t>(size + MODULE_OVERHEAD - LENGTH_SIZE))
            self.context.seal(self.aad, self._build_aad(module, page), plain, size, out + LENGTH_SIZE)
        finally:
            fastpq_release(&self.busy)
        return 0

    cdef dict _place(self, int module, int page):
        """Return the context for an error about a module: its type, row group, column and page."""
        place = {"module": ModuleType(module).name}
        if has_chunk(module):
            place["row_group"] = self.row_group
            place["column"] = self.column if self.column_name is None else self.column_name
        if has_page(module):
            place["page"] = page
        return place


cdef int check_ordinal(str name, ordinal) except -1:
    if not 0 <= ordinal <= LARGEST_ORDINAL:
        raise CryptoError(f"{name} ordinal {ordinal}: an encrypted file has {name} ordinals of 0 to {LARGEST_ORDINAL}")
    return 0
