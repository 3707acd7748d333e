# distutils: language = c
"""ModuleCipher, the cipher of one column chunk. The base class is the null cipher; the AES ciphers are in gcm and variants."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from fastpq.encryption.modules cimport DATA_PAGE, DATA_PAGE_HEADER, DICTIONARY_PAGE_HEADER


cdef class ModuleCipher:
    """The null cipher, for plaintext columns: the stored form of a module is its plaintext."""

    def __cinit__(self, *args, **options):
        self.overhead = 0
        self.uncounted = 0
        self.authenticates = False

    cdef int move_to(self, int64_t row_group) except -1 nogil:
        return 0

    cdef const uint8_t* open_framed(self, int module, int page, const uint8_t* data, int64_t available,
                                    int64_t* plain_size, int64_t* stored_size) except NULL nogil:
        plain_size[0] = available
        stored_size[0] = -1
        return data

    cdef const uint8_t* open_header(self, bint* dictionary, int page, const uint8_t* data, int64_t available,
                                    int64_t* plain_size, int64_t* stored_size) except NULL nogil:
        cdef int module = DICTIONARY_PAGE_HEADER if dictionary[0] else DATA_PAGE_HEADER
        return self.open_framed(module, page, data, available, plain_size, stored_size)

    cdef const uint8_t* open_v2(self, int page, const uint8_t* data, int64_t size, int64_t levels_size,
                                const uint8_t** levels, int64_t* values_size) except NULL nogil:
        cdef int64_t plain_size = 0
        cdef const uint8_t* plain = self.open_sized(DATA_PAGE, page, data, size, &plain_size)
        levels[0] = plain
        values_size[0] = plain_size - levels_size
        return plain + min(levels_size, plain_size)

    cdef const uint8_t* open_sized(self, int module, int page, const uint8_t* data, int64_t size,
                                   int64_t* plain_size) except NULL nogil:
        plain_size[0] = size
        return data

    cdef int64_t open_into(self, int module, int page, const uint8_t* data, int64_t size, uint8_t* out) except -1 nogil:
        memcpy(out, data, <size_t>size)
        return size

    cdef int64_t sealed_size(self, int module, int64_t size) noexcept nogil:
        return size

    cdef int seal_to(self, int module, int page, const uint8_t* plain, int64_t size, int64_t levels_size,
                     uint8_t* out) except -1 nogil:
        memcpy(out, plain, <size_t>size)
        return 0

    cpdef object seal(self, int module, int page, object plain):
        """The stored form of a module."""
        return plain

    cpdef object seal_body(self, int module, int page, object plain, int64_t levels_size):
        """The stored form of a page body.

        Args:
            module: DATA_PAGE or DICTIONARY_PAGE.
            page: ordinal of the data page.
            plain: a contiguous buffer.
            levels_size: bytes of levels at the front of a data page V2; 0 for other pages.
        """
        return self.seal(module, page, plain)

    def open(self, int module, int page, const uint8_t[::1] stored not None):
        """The plaintext of a stored module.

        Args:
            module: a ModuleType.
            page: ordinal of the data page; not used for other modules.
            stored: all bytes of the module.

        Raises:
            FormatError: the number of bytes differs from the module's length field.
            TagVerificationError: the module does not authenticate.
            CryptoError: an ordinal over 32767.
        """
        cdef uint8_t nothing = 0        # an address in place of an empty view's NULL
        cdef int64_t size = stored.shape[0], plain_size = 0
        cdef const uint8_t* plain = self.open_sized(module, page, &stored[0] if size else &nothing, size, &plain_size)
        return PyBytes_FromStringAndSize(<const char*>plain, plain_size)

    def open_to(self, int module, int page, const uint8_t[::1] stored not None, uint8_t[::1] out not None):
        """Write the plaintext of a stored module to out; out is zeroed if the module does not authenticate.

        Args, raises: as ``open``; out has at least as many bytes as stored, and does not overlap stored.

        Returns:
            Size of the plaintext in bytes.
        """
        if out.shape[0] < stored.shape[0]:
            raise ValueError(f"{out.shape[0]} bytes of room for a stored module of {stored.shape[0]}")
        if stored.shape[0] == 0:
            return len(self.open(module, page, stored))
        return self.open_into(module, page, &stored[0], stored.shape[0], &out[0])

    def open_first(self, int module, int page, const uint8_t[::1] stored not None):
        """The plaintext of the module at the front of stored, and the stored size of the module.

        Args, raises: as ``open``; further bytes may follow the module.

        Returns:
            (plaintext, stored size). The null cipher cannot know the end of a module, and returns all bytes and -1.
        """
        cdef uint8_t nothing = 0
        cdef int64_t size = stored.shape[0], plain_size = 0, stored_size = 0
        cdef const uint8_t* plain = self.open_framed(
            module, page, &stored[0] if size else &nothing, size, &plain_size, &stored_size)
        return PyBytes_FromStringAndSize(<const char*>plain, plain_size), stored_size

    def open_body(self, int module, int page, stored, int64_t levels_size):
        """The plaintext of a stored page body; sealed again by seal_body, the body may get another layout.

        Args:
            module: DATA_PAGE or DICTIONARY_PAGE.
            page: ordinal of the data page.
            stored: a contiguous buffer of all bytes of the body.
            levels_size: bytes of levels of a data page V2; 0 for other pages.

        Returns:
            (the plaintext, whether all of it was authenticated).

        Raises:
            FormatError, TagVerificationError, CryptoError: as ``open``.
        """
        return stored, False
