# distutils: language = c
"""AES-GCM over OpenSSL's EVP interface: keys, nonces, tags, operation counts (Encryption.md, 4.1 and 5.1)."""

cimport cython
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBUF_WRITE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from fastpq.encryption.cipher cimport ModuleCipher
from fastpq.encryption.modules cimport (
    AAD_SUFFIX_SIZE,
    FOOTER,
    LARGEST_ORDINAL,
    build_aad,
    has_chunk,
    has_page,
)
from fastpq.encryption.openssl cimport *

from fastpq.encryption.modules import ModuleType
from fastpq.errors import CryptoError, FormatError, LimitError, TagVerificationError

cdef extern from "c/nonces.h" nogil:
    int fastpq_watch_forks()
    int fastpq_next_nonce(uint8_t* out)

cdef extern from * nogil:
    """
    #define fastpq_add(counter, n) __atomic_fetch_add((counter), (n), __ATOMIC_RELAXED)
    #define fastpq_read(counter) __atomic_load_n((counter), __ATOMIC_RELAXED)
    #define fastpq_take(flag) __atomic_exchange_n((flag), 1, __ATOMIC_ACQUIRE)
    #define fastpq_give(flag) __atomic_store_n((flag), 0, __ATOMIC_RELEASE)
    """
    uint64_t fastpq_add(uint64_t* counter, uint64_t n)
    uint64_t fastpq_read(uint64_t* counter)
    int fastpq_take(int* flag)
    void fastpq_give(int* flag)

cdef uint64_t INVOCATION_LIMIT = <uint64_t>1 << 32      # NIST SP 800-38D, 8.3
cdef int64_t LARGEST_MODULE = 0x7fffffff                # sizes in page headers and in EVP are signed 32-bit integers
cdef size_t LARGEST_FILE_AAD = 1 << 16                  # it is authenticated anew with every module
cdef int64_t GIL_SIZE = 4096                            # sealing less takes less time than releasing the GIL may cost
cdef int64_t SMALLEST_LARGE = 16384                     # modules below always go through EVP
cdef size_t SLACK = 64                                  # kernels may load whole words past the end

cdef int64_t large_from = 0                             # from here on cryptography takes modules; 0: not decided yet
_backend = None

cdef EVP_CIPHER* ciphers[3]                             # for keys of 16, 24 and 32 bytes; fetched once, because it is slow


cdef int check(int result, const char* what) except -1 nogil:
    """Raise unless OpenSSL said 1: everything that calls EVP or RAND ends here."""
    cdef char text[256]
    if result == 1:
        return 0
    with gil:
        ERR_error_string_n(ERR_get_error(), text, sizeof(text))
        ERR_clear_error()       # the queue belongs to the thread: the ssl module reads it too
        raise CryptoError(f"OpenSSL failed to {what.decode()}: {text.decode(errors='replace')}")


cdef EVP_CIPHER_CTX* copy_context(const EVP_CIPHER_CTX* source) except NULL nogil:
    cdef EVP_CIPHER_CTX* copy = EVP_CIPHER_CTX_new()
    cdef int done = copy != NULL and EVP_CIPHER_CTX_copy(copy, source) == 1
    if not done:
        EVP_CIPHER_CTX_free(copy)
    check(done, "copy a cipher context")
    return copy


cdef int gcm_seal(EVP_CIPHER_CTX* context, const uint8_t* nonce, const uint8_t* aad, int aad_size, const uint8_t* plain,
                  int size, uint8_t* out) except -1 nogil:
    """Writes ciphertext and tag to out."""
    cdef int moved = 0, last = 0
    cdef int done = (
        EVP_EncryptInit_ex2(context, NULL, NULL, nonce, NULL) == 1
        and (aad_size == 0 or EVP_EncryptUpdate(context, NULL, &moved, aad, aad_size) == 1)
        and (size == 0 or EVP_EncryptUpdate(context, out, &moved, plain, size) == 1)
        and EVP_EncryptFinal_ex(context, out + size, &last) == 1
        and EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, TAG_SIZE, out + size) == 1
    )
    return check(done, "encrypt")


cdef int gcm_open(EVP_CIPHER_CTX* context, const uint8_t* nonce, const uint8_t* aad, int aad_size, const uint8_t* sealed,
                  int size, uint8_t* out) except -1 nogil:
    """Writes the plaintext of size bytes of ciphertext, behind which the tag stands, to out; returns 1 if it is authentic,
    else 0, with out zeroed."""
    cdef int moved = 0, last = 0
    cdef int done = (
        EVP_DecryptInit_ex2(context, NULL, NULL, nonce, NULL) == 1
        and EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, TAG_SIZE, <void*>(sealed + size)) == 1
        and (aad_size == 0 or EVP_DecryptUpdate(context, NULL, &moved, aad, aad_size) == 1)
        and (size == 0 or EVP_DecryptUpdate(context, out, &moved, sealed, size) == 1)
    )
    if done and EVP_DecryptFinal_ex(context, out + size, &last) == 1:
        return 1
    OPENSSL_cleanse(out, size)
    check(done, "decrypt")
    ERR_clear_error()
    return 0


cdef int64_t decide_large() except -1 nogil:
    """large_from, settled by the first large module of the process."""
    global large_from
    if large_from == 0:
        with gil:
            crossover = aes_backend().crossover
            large_from = INT64_MAX if crossover is None else max(<int64_t>crossover, SMALLEST_LARGE)
    return large_from


def aes_backend():
    """Which implementation of AES-GCM takes modules of which size.

    Modules of less than 16 KiB always go through EVP of the OpenSSL that fastpq is linked to. For larger ones the
    OpenSSL that the package cryptography brings may be faster; it is measured once, in a few milliseconds, when the first
    of them appears. The environment variable ``FASTPQ_AES`` (``evp``, ``cryptography`` or ``auto``) overrides that.

    Returns:
        An AesBackend.

    Raises:
        UnsupportedError: ``FASTPQ_AES`` asks for what is not there.
    """
    global _backend
    if _backend is None:
        # imported here, because it imports cryptography, which only large modules need, and that takes time
        from fastpq.encryption.backend import choose
        _backend = choose(OpenSSL_version(OPENSSL_VERSION).decode(), seal_with_nonce, SMALLEST_LARGE)
    return _backend


@cython.final
cdef class AesKey:
    """An AES key of 16, 24 or 32 bytes; it cannot be read back, printed, copied or pickled, and is wiped when released.

    All ciphers of a key count their encryptions in it, and refuse to go past the 2^32 that NIST SP 800-38D (8.3) allows.

    Args:
        key: the bytes of the key, copied.
        operations: encryptions that were already done with this key elsewhere.

    Raises:
        CryptoError: not 16, 24 or 32 bytes.
    """

    def __cinit__(self, key, *, uint64_t operations=0):
        cdef Py_buffer view
        PyObject_GetBuffer(key, &view, PyBUF_SIMPLE)
        try:
            if view.len not in (16, 24, 32):
                raise CryptoError(f"an AES key has 16, 24 or 32 bytes, not {view.len}")
            self.size = <size_t>view.len
            memcpy(self.bytes, view.buf, self.size)
        finally:
            PyBuffer_Release(&view)
        self.sealed = min(operations, INVOCATION_LIMIT)
        self.encryption = self._keyed(True)
        self.decryption = self._keyed(False)

    def __dealloc__(self):
        EVP_CIPHER_CTX_free(self.encryption)        # wipes its key schedule
        EVP_CIPHER_CTX_free(self.decryption)
        OPENSSL_cleanse(self.bytes, sizeof(self.bytes))

    cdef EVP_CIPHER_CTX* _keyed(self, bint encrypt) except NULL:
        cdef EVP_CIPHER* cipher = ciphers[self.size // 8 - 2]
        cdef EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new()
        cdef int done = context != NULL
        if done and encrypt:
            done = EVP_EncryptInit_ex2(context, cipher, self.bytes, NULL, NULL)
        elif done:
            done = EVP_DecryptInit_ex2(context, cipher, self.bytes, NULL, NULL)
        if done != 1:
            EVP_CIPHER_CTX_free(context)
        check(done, "set a key")
        return context

    cdef object _large(self):
        """What takes large modules of this key; made with a copy of the key that is wiped at once."""
        if self.large is None:
            from fastpq.encryption.backend import LargeAead
            copy = PyByteArray_FromStringAndSize(<char*>self.bytes, <Py_ssize_t>self.size)
            try:
                self.large = LargeAead(copy)
            finally:
                OPENSSL_cleanse(PyByteArray_AS_STRING(copy), self.size)
        return self.large

    cdef int count(self) except -1 nogil:
        """Count one encryption."""
        if fastpq_add(&self.sealed, 1) >= INVOCATION_LIMIT:
            fastpq_add(&self.sealed, <uint64_t>-1)
            with gil:
                raise CryptoError("this key has encrypted 2^32 modules and must not encrypt more (NIST SP 800-38D, 8.3)")
        return 0

    @property
    def bits(self):
        """Size of the key in bits."""
        return self.size * 8

    @property
    def operations(self):
        """Encryptions so far."""
        return fastpq_read(&self.sealed)

    def __repr__(self):
        return f"<AesKey of {self.bits} bits>"

    def __reduce__(self):
        raise TypeError("an AesKey cannot be copied or pickled")


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
        self.key = key
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
        EVP_CIPHER_CTX_free(self.encryption)
        EVP_CIPHER_CTX_free(self.decryption)
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
        cdef int64_t size = footer.shape[0], aad_size
        cdef uint8_t* sealed
        cdef bint same
        if signature.shape[0] != NONCE_SIZE + TAG_SIZE or not 0 < size <= LARGEST_MODULE - MODULE_OVERHEAD:
            raise FormatError(f"a footer of {size} bytes with a signature of {signature.shape[0]}, not 28", module="FOOTER")
        self._enter()
        try:
            aad_size = build_aad(self.file_aad_data, self.file_aad_size, FOOTER, 0, 0, 0, self.aad)
            sealed = self._reserve(<size_t>size + TAG_SIZE)
            if self.encryption == NULL:
                self.encryption = copy_context(self.key.encryption)
            # the stored nonce with the stored footer makes the stored tag again, if both are genuine; nothing is released
            gcm_seal(self.encryption, &signature[0], self.aad, <int>aad_size, &footer[0], <int>size, sealed)
            same = CRYPTO_memcmp(sealed + size, &signature[NONCE_SIZE], TAG_SIZE) == 0
            OPENSSL_cleanse(sealed, <size_t>size + TAG_SIZE)
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
        cdef int64_t aad_size
        self._enter()
        try:
            aad_size = build_aad(self.file_aad_data, self.file_aad_size, module, self.row_group, self.column, page, self.aad)
            authentic = self._open_body(data + LENGTH_SIZE, size - MODULE_OVERHEAD, aad_size, out)
        finally:
            fastpq_give(&self.busy)
        if not authentic:
            with gil:
                raise TagVerificationError("a module does not authenticate: wrong key, wrong AAD or altered bytes",
                                           **self._place(module, page))
        return 0

    cdef int _open_body(self, const uint8_t* data, int64_t size, int64_t aad_size, uint8_t* out) except -1 nogil:
        """Whether nonce, size bytes of ciphertext, and tag are authentic."""
        cdef int authentic = 0
        if size >= SMALLEST_LARGE and size >= decide_large():
            with gil:
                try:
                    authentic = self.key._large().open_into(
                        view_of(data, NONCE_SIZE), view_of(data + NONCE_SIZE, size + TAG_SIZE),
                        view_of(self.aad, aad_size), room_at(out, size))
                finally:
                    if not authentic:
                        OPENSSL_cleanse(out, <size_t>size)
            return authentic
        if self.decryption == NULL:
            self.decryption = copy_context(self.key.decryption)
        return gcm_open(self.decryption, data, self.aad, <int>aad_size, data + NONCE_SIZE, <int>size, out)

    cdef int _seal(self, int module, int page, const uint8_t* plain, int64_t size, uint8_t* out) except -1 nogil:
        cdef int64_t aad_size
        self._enter()
        try:
            aad_size = build_aad(self.file_aad_data, self.file_aad_size, module, self.row_group, self.column, page, self.aad)
            self.key.count()
            store_u32(out, <uint32_t>(size + MODULE_OVERHEAD - LENGTH_SIZE))
            check(fastpq_next_nonce(out + LENGTH_SIZE), "make a nonce")
            self._seal_body(plain, size, aad_size, out + LENGTH_SIZE)
        finally:
            fastpq_give(&self.busy)
        return 0

    cdef int _seal_body(self, const uint8_t* plain, int64_t size, int64_t aad_size, uint8_t* out) except -1 nogil:
        """Ciphertext and tag behind the nonce at out."""
        if size >= SMALLEST_LARGE and size >= decide_large():
            with gil:
                self.key._large().seal_into(
                    view_of(out, NONCE_SIZE), view_of(plain, size), view_of(self.aad, aad_size),
                    room_at(out + NONCE_SIZE, size + TAG_SIZE))
            return 0
        if self.encryption == NULL:
            self.encryption = copy_context(self.key.encryption)
        return gcm_seal(self.encryption, out, self.aad, <int>aad_size, plain, <int>size, out + NONCE_SIZE)

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


cdef object view_of(const uint8_t* data, int64_t size):
    return PyMemoryView_FromMemory(<char*>data, size, PyBUF_READ)


cdef object room_at(uint8_t* data, int64_t size):
    return PyMemoryView_FromMemory(<char*>data, size, PyBUF_WRITE)


def seal_with_nonce(AesKey key not None, bytes nonce not None, bytes aad not None, bytes plain not None, str backend not None):
    """Ciphertext and tag under a chosen nonce: for known-answer tests and for measuring, never for data.

    Args:
        key: an AesKey.
        nonce: 12 bytes.
        aad: bytes that are authenticated as well.
        plain: the plaintext.
        backend: ``"evp"`` or ``"cryptography"``.
    """
    cdef EVP_CIPHER_CTX* context
    _check_known_answer(nonce, plain, backend)
    key.count()
    out = PyBytes_FromStringAndSize(NULL, len(plain) + TAG_SIZE)
    if backend == "cryptography":
        key._large().seal_into(nonce, plain, aad, room_at(<uint8_t*>PyBytes_AS_STRING(out), len(out)))
        return out
    context = copy_context(key.encryption)
    try:
        gcm_seal(context, nonce, aad, <int>len(aad), plain, <int>len(plain), <uint8_t*>PyBytes_AS_STRING(out))
    finally:
        EVP_CIPHER_CTX_free(context)
    return out


def open_with_nonce(AesKey key not None, bytes nonce not None, bytes aad not None, bytes sealed not None, str backend not None):
    """The plaintext of what seal_with_nonce returned, or None if it is not authentic; arguments as there."""
    cdef EVP_CIPHER_CTX* context
    cdef int authentic
    _check_known_answer(nonce, sealed, backend)
    if len(sealed) < TAG_SIZE:
        return None
    out = bytearray(len(sealed) - TAG_SIZE)
    if backend == "cryptography":
        authentic = key._large().open_into(nonce, sealed, aad, out)
    else:
        context = copy_context(key.decryption)
        try:
            authentic = gcm_open(context, nonce, aad, <int>len(aad), sealed, <int>len(out),
                                 <uint8_t*>PyByteArray_AS_STRING(out))
        finally:
            EVP_CIPHER_CTX_free(context)
    return bytes(out) if authentic else None


cdef void set_up() except *:
    ciphers[0] = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL)
    ciphers[1] = EVP_CIPHER_fetch(NULL, "AES-192-GCM", NULL)
    ciphers[2] = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL)
    check(ciphers[0] != NULL and ciphers[1] != NULL and ciphers[2] != NULL, "find AES-GCM")
    if fastpq_watch_forks():
        raise MemoryError()


def _check_known_answer(nonce, data, backend):
    if len(nonce) != NONCE_SIZE or len(data) > LARGEST_MODULE or backend not in ("evp", "cryptography"):
        raise ValueError("a nonce of 12 bytes, data of less than 2^31 bytes, and evp or cryptography")


set_up()
