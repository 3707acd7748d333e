# distutils: language = c
"""ModuleCipher, a column chunk's cipher. The base class is the null cipher. gcm and variants have the AES ciphers."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from fastpq.encryption.modules cimport DATA_PAGE, DATA_PAGE_HEADER, DICTIONARY_PAGE_HEADER


cdef class ModuleCipher:
    """The null cipher, for plaintext columns. A module's stored form is its plaintext."""

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
        """Return a module's stored form."""
        return plain

    cpdef object seal_body(self, int module, int page, object plain, int64_t levels_size):
        """Return a page body's stored form.

        Args:
            module: DATA_PAGE or DICTIONARY_PAGE.
            page: the data page's ordinal.
            plain: a contiguous buffer.
            levels_size: size in bytes of the levels at a V2 data page's front. 0 for other pages.
        """
        return self.seal(module, page, plain)

    def open(self, int module, int page, const uint8_t[::1] stored not None):
        """Return a stored module's plaintext.

        Args:
            module: a ModuleType.
            page: the data page's ordinal. Other modules do not use it.
            stored: the whole module.

        Raises:
            FormatError: the module's size differs from its length field.
            TagVerificationError: the module is not authentic.
            CryptoError: an ordinal is over 32767.
        """
        cdef uint8_t nothing = 0        # an empty view has no address, so that this byte's address is used
        cdef int64_t size = stored.shape[0], plain_size = 0
        cdef const uint8_t* plain = self.open_sized(module, page, &stored[0] if size else &nothing, size, &plain_size)
        return PyBytes_FromStringAndSize(<const char*>plain, plain_size)

    def open_to(self, int module, int page, const uint8_t[::1] stored not None, uint8_t[::1] out not None):
        """Write a stored module's plaintext to out. If the module is not authentic, out is zeroed.

        Arguments and errors are the same as in ``open``. out must have at least as many bytes as stored, and must not overlap it.

        Returns:
            The plaintext's size in bytes.
        """
        if out.shape[0] < stored.shape[0]:
            raise ValueError(f"out has {out.shape[0]} bytes, but the stored module has {stored.shape[0]}")
        if stored.shape[0] == 0:
            return len(self.open(module, page, stored))
        return self.open_into(module, page, &stored[0], stored.shape[0], &out[0])

    def open_first(self, int module, int page, const uint8_t[::1] stored not None):
        """Open the module at the front of stored, which other bytes may follow.

        Arguments and errors are the same as in ``open``.

        Returns:
            (plaintext, stored size). The null cipher cannot find a module's end: it returns all bytes and -1.
        """
        cdef uint8_t nothing = 0
        cdef int64_t size = stored.shape[0], plain_size = 0, stored_size = 0
        cdef const uint8_t* plain = self.open_framed(
            module, page, &stored[0] if size else &nothing, size, &plain_size, &stored_size)
        return PyBytes_FromStringAndSize(<const char*>plain, plain_size), stored_size

    def open_body(self, int module, int page, stored, int64_t levels_size):
        """Return a stored page body's plaintext. If seal_body seals it again, its layout may change.

        Args:
            module: DATA_PAGE or DICTIONARY_PAGE.
            page: the data page's ordinal.
            stored: a contiguous buffer with the whole body.
            levels_size: size in bytes of a V2 data page's levels. 0 for other pages.

        Returns:
            (plaintext, whether all of it was authenticated).

        Raises:
            FormatError, TagVerificationError, CryptoError: as in ``open``.
        """
        return stored, False
