# distutils: language = c
"""AES-GCM and AES-CTR over OpenSSL's EVP interface: keys, nonces, tags, operation counts (Encryption.md, 4.1)."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from fastpq.encryption.aead_arguments cimport AeadArguments
from fastpq.encryption.openssl cimport *
from fastpq.encryption.provider cimport check, draw_within_fips, fetch_cipher, is_fips

import threading

from fastpq.errors import CryptoError, UnsupportedError

cdef extern from "c/nonces.h" nogil:
    int watch_forks()
    int next_nonce(uint8_t* out)

cdef extern from "c/registers.h" nogil:
    void wipe_registers()

cdef extern from * nogil:
    """
    #define add_relaxed(counter, n) __atomic_fetch_add((counter), (n), __ATOMIC_RELAXED)
    #define read_relaxed(counter) __atomic_load_n((counter), __ATOMIC_RELAXED)
    #define read_settled(value) __atomic_load_n((value), __ATOMIC_ACQUIRE)
    #define settle(value, n) __atomic_store_n((value), (n), __ATOMIC_RELEASE)
    """
    uint64_t add_relaxed(uint64_t* counter, uint64_t n)
    uint64_t read_relaxed(uint64_t* counter)
    int64_t read_settled(int64_t* value)
    void settle(int64_t* value, int64_t n)

cdef uint64_t INVOCATION_LIMIT = <uint64_t>1 << 32      # most encryptions under one key (NIST SP 800-38D, 8.3)
cdef int64_t SMALLEST_LARGE = 16384                     # bytes; smaller modules always go through EVP

cdef int64_t large_from = 0                             # least bytes of a module for cryptography; 0: not decided yet
_backend = None
_choosing = threading.RLock()                           # over the backend and the ciphers; choosing a backend makes keys

cdef EVP_CIPHER* gcm_ciphers[3]                         # for keys of 16, 24 and 32 bytes; fetched at the first key
cdef EVP_CIPHER* ctr_ciphers[3]
cdef bint under_fips = False                            # whether the ciphers are a FIPS provider's
cdef int64_t is_fetched = 0                             # whether the ciphers are there


cdef EVP_CIPHER_CTX* copy_context(const EVP_CIPHER_CTX* source) except NULL nogil:
    cdef EVP_CIPHER_CTX* copy = EVP_CIPHER_CTX_new()
    cdef int done = copy != NULL and EVP_CIPHER_CTX_copy(copy, source) == 1
    if not done:
        EVP_CIPHER_CTX_free(copy)
    check(done, "copy a cipher context")
    return copy


cdef int gcm_seal(EVP_CIPHER_CTX* context, const uint8_t* nonce, const uint8_t* aad, int aad_size, const uint8_t* plain,
                  int size, uint8_t* out) except -1 nogil:
    """Write ciphertext and tag to out; without a nonce, under a nonce that a new context makes itself."""
    cdef int moved = 0, last = 0
    cdef int done = (
        (nonce == NULL or EVP_EncryptInit_ex2(context, NULL, NULL, nonce, NULL) == 1)
        and (aad_size == 0 or EVP_EncryptUpdate(context, NULL, &moved, aad, aad_size) == 1)
        and (size == 0 or EVP_EncryptUpdate(context, out, &moved, plain, size) == 1)
        and EVP_EncryptFinal_ex(context, out + size, &last) == 1
        and EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, TAG_SIZE, out + size) == 1
    )
    return check(done, "encrypt")


cdef int fips_seal(const EVP_CIPHER_CTX* keyed, const uint8_t* aad, int aad_size, const uint8_t* plain, int size,
                   uint8_t* out) except -1 nogil:
    """Write nonce, ciphertext and tag to out. FIPS 140-3 has the module make the nonces of AES-GCM (SP 800-38D, 8.2.2)."""
    cdef EVP_CIPHER_CTX* context = copy_context(keyed)
    try:
        gcm_seal(context, NULL, aad, aad_size, plain, size, out + NONCE_SIZE)
        return check(EVP_CIPHER_CTX_get_original_iv(context, out, NONCE_SIZE), "tell a nonce")
    finally:
        EVP_CIPHER_CTX_free(context)


cdef int gcm_open(EVP_CIPHER_CTX* context, const uint8_t* nonce, const uint8_t* aad, int aad_size, const uint8_t* sealed,
                  int size, uint8_t* out) except -1 nogil:
    """Decrypt size bytes of ciphertext, with the tag behind, into out; returns 1 if authentic, else 0, with out zeroed."""
    cdef int moved = 0, last = 0
    cdef int done = (
        EVP_DecryptInit_ex2(context, NULL, NULL, nonce, NULL) == 1
        and EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, TAG_SIZE, <void*>(sealed + size)) == 1
        and (aad_size == 0 or EVP_DecryptUpdate(context, NULL, &moved, aad, aad_size) == 1)
        and (size == 0 or EVP_DecryptUpdate(context, out, &moved, sealed, size) == 1)
    )
    if done and EVP_DecryptFinal_ex(context, out + size, &last) == 1:
        wipe_registers()
        return 1
    OPENSSL_cleanse(out, size)
    check(done, "decrypt")
    ERR_clear_error()
    return 0


cdef int ctr_apply(EVP_CIPHER_CTX* context, const uint8_t* nonce, const uint8_t* data, int size, uint8_t* out,
                   uint8_t first=1) except -1 nogil:
    """Encrypt or decrypt: in CTR mode the same operation. The counter begins at 1 (Encryption.md, 4.2.2), within AES-GCM at 2."""
    cdef uint8_t iv[16]
    cdef int moved = 0
    memcpy(iv, nonce, NONCE_SIZE)
    memset(iv + NONCE_SIZE, 0, 3)
    iv[15] = first      # modules are too small for an overflow
    cdef int done = (
        EVP_EncryptInit_ex2(context, NULL, NULL, iv, NULL) == 1
        and (size == 0 or EVP_EncryptUpdate(context, out, &moved, data, size) == 1)
    )
    return check(done, "encrypt or decrypt")


cdef int64_t decide_large() except -1 nogil:
    """Least size in bytes of a module for the package cryptography (large_from); measured at the first large module."""
    cdef int64_t size = read_settled(&large_from)
    if size == 0:
        with gil:
            crossover = aes_backend().crossover
            size = INT64_MAX if crossover is None else max(<int64_t>crossover, SMALLEST_LARGE)
        settle(&large_from, size)
    return size


def aes_backend():
    """The AES-GCM implementation for modules of each size.

    Modules of less than 16 KiB always go through EVP of the OpenSSL linked to fastpq. For larger modules the OpenSSL inside
    the package cryptography may be faster: both are measured once, in a few milliseconds, at the first large module. The
    environment variable ``FASTPQ_AES`` (``evp``, ``cryptography`` or ``auto``) overrides the measurement.

    ``FASTPQ_AES=fips``, set before the first key of the process, takes all algorithms from a FIPS provider of the OpenSSL linked
    to fastpq, and none from elsewhere.

    Returns:
        An AesBackend.

    Raises:
        UnsupportedError: ``FASTPQ_AES`` asks for an unknown or unusable implementation, or for a FIPS provider in vain.
    """
    global _backend
    with _choosing:
        if _backend is None:
            # imported late: cryptography is slow to import, and only large modules need the package
            from fastpq.encryption.backend import choose
            _backend = choose(OpenSSL_version(OPENSSL_VERSION).decode(), seal_with_nonce, SMALLEST_LARGE)
        return _backend


@cython.final
cdef class AesKey:
    """An AES key of 16, 24 or 32 bytes; cannot be read back, printed, copied or pickled, and is wiped when released.

    All ciphers of a key count their encryptions in the key, and refuse more than 2^32, the limit of NIST SP 800-38D (8.3). A
    page takes two encryptions, of its header and of its body: a key is exhausted after 2^31 pages.

    Args:
        key: the bytes of the key, copied.
        operations: encryptions already done with this key elsewhere.

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
        if not read_settled(&is_fetched):
            fetch_ciphers()
        self.encryption = self._keyed(gcm_ciphers[self.size // 8 - 2], True)
        self.decryption = self._keyed(gcm_ciphers[self.size // 8 - 2], False)

    def __dealloc__(self):
        EVP_CIPHER_CTX_free(self.encryption)        # wipes its key schedule
        EVP_CIPHER_CTX_free(self.decryption)
        EVP_CIPHER_CTX_free(self.counter)
        OPENSSL_cleanse(self.bytes, sizeof(self.bytes))

    cdef EVP_CIPHER_CTX* _keyed(self, EVP_CIPHER* cipher, bint encrypt) except NULL:
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

    cdef EVP_CIPHER_CTX* counting(self) except NULL:
        """The context of AES-CTR."""
        with cython.critical_section(self):
            if self.counter == NULL:
                self.counter = self._keyed(ctr_ciphers[self.size // 8 - 2], True)
            return self.counter

    cdef object _large(self):
        """The LargeAead of this key; made from a temporary copy of the key, wiped at once."""
        if under_fips:
            raise UnsupportedError("under a FIPS provider, no other implementation is called")
        with cython.critical_section(self):
            if self.large is not None:
                return self.large
        from fastpq.encryption.large_aead import LargeAead
        copy = PyByteArray_FromStringAndSize(<char*>self.bytes, <Py_ssize_t>self.size)
        try:
            made = LargeAead(copy)
        finally:
            OPENSSL_cleanse(PyByteArray_AS_STRING(copy), self.size)
            wipe_registers()
        with cython.critical_section(self):
            if self.large is None:          # no other thread was first
                self.large = made
            return self.large

    cdef int count(self) except -1 nogil:
        """Count one encryption."""
        if add_relaxed(&self.sealed, 1) >= INVOCATION_LIMIT:
            add_relaxed(&self.sealed, <uint64_t>-1)
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
        return read_relaxed(&self.sealed)

    def matches(self, AesKey other not None):
        """Whether another key has the same bytes; takes the same time for all bytes.

        Args:
            other: an AesKey.
        """
        return self.size == other.size and CRYPTO_memcmp(self.bytes, other.bytes, self.size) == 0

    def __repr__(self):
        return f"<AesKey of {self.bits} bits>"

    def __reduce__(self):
        raise TypeError("an AesKey cannot be copied or pickled")


@cython.final
cdef class GcmContext:
    """AES-GCM under one key, for one thread at a time.

    Args:
        key: an AesKey.
    """

    def __cinit__(self, AesKey key not None):
        self.key = key

    def __dealloc__(self):
        EVP_CIPHER_CTX_free(self.encryption)
        EVP_CIPHER_CTX_free(self.decryption)

    cdef int seal(self, const uint8_t* aad, int64_t aad_size, const uint8_t* plain, int64_t size, uint8_t* out) except -1 nogil:
        self.key.count()
        if under_fips:
            return fips_seal(self.key.encryption, aad, <int>aad_size, plain, <int>size, out)
        check(next_nonce(out), "make a nonce")
        if size >= SMALLEST_LARGE and size >= decide_large():
            with gil:
                if self.arguments is None:
                    self.arguments = AeadArguments()
                self.arguments.seal(self.key._large(), out, aad, aad_size, plain, size, out + NONCE_SIZE)
            wipe_registers()
            return 0
        if self.encryption == NULL:
            self.encryption = copy_context(self.key.encryption)
        return gcm_seal(self.encryption, out, aad, <int>aad_size, plain, <int>size, out + NONCE_SIZE)

    cdef int open(self, const uint8_t* aad, int64_t aad_size, const uint8_t* sealed, int64_t size, uint8_t* out) except -1 nogil:
        cdef int authentic = 0
        if size >= SMALLEST_LARGE and size >= decide_large():
            try:
                with gil:
                    if self.arguments is None:
                        self.arguments = AeadArguments()
                    authentic = self.arguments.open(
                        self.key._large(), sealed, aad, aad_size, sealed + NONCE_SIZE, size, out)
            finally:
                if not authentic:
                    OPENSSL_cleanse(out, <size_t>size)
                wipe_registers()
            return authentic
        if self.decryption == NULL:
            self.decryption = copy_context(self.key.decryption)
        return gcm_open(self.decryption, sealed, aad, <int>aad_size, sealed + NONCE_SIZE, <int>size, out)

    cdef int verify(self, const uint8_t* aad, int64_t aad_size, const uint8_t* plain, int64_t size,
                    const uint8_t* signature) except -1:
        # The ciphertext of the footer, which the signature leaves out, is made anew by AES-CTR, and opened as an AES-GCM module
        # is: encryption under a given nonce would be a service that FIPS 140-3 does not approve.
        cdef EVP_CIPHER_CTX* counter = NULL
        cdef uint8_t* sealed = <uint8_t*>malloc(2 * <size_t>size + TAG_SIZE)
        if sealed == NULL:
            raise MemoryError()
        try:
            counter = copy_context(self.key.counting())
            ctr_apply(counter, signature, plain, <int>size, sealed, 2)
            memcpy(sealed + size, signature + NONCE_SIZE, TAG_SIZE)
            if self.decryption == NULL:
                self.decryption = copy_context(self.key.decryption)
            return gcm_open(self.decryption, signature, aad, <int>aad_size, sealed, <int>size, sealed + size + TAG_SIZE)
        finally:
            EVP_CIPHER_CTX_free(counter)
            OPENSSL_cleanse(sealed, 2 * <size_t>size + TAG_SIZE)
            free(sealed)


@cython.final
cdef class CtrContext:
    """AES-CTR under one key, for one thread at a time; it authenticates nothing.

    Args:
        key: an AesKey.
    """

    def __cinit__(self, AesKey key not None):
        self.key = key
        self.context = copy_context(key.counting())

    def __dealloc__(self):
        EVP_CIPHER_CTX_free(self.context)

    cdef int seal(self, const uint8_t* plain, int64_t size, uint8_t* out) except -1 nogil:
        self.key.count()
        if under_fips:
            draw_within_fips(out, NONCE_SIZE)
        else:
            check(next_nonce(out), "make a nonce")
        return ctr_apply(self.context, out, plain, <int>size, out + NONCE_SIZE)

    cdef int open(self, const uint8_t* sealed, int64_t size, uint8_t* out) except -1 nogil:
        return ctr_apply(self.context, sealed, sealed + NONCE_SIZE, <int>size, out)


def seal_with_nonce(AesKey key not None, bytes nonce not None, bytes aad not None, bytes plain not None, str backend not None):
    """Ciphertext and tag under a chosen nonce: for known-answer tests and for measuring, never for data.

    Args:
        key: an AesKey.
        nonce: 12 bytes.
        aad: additional authenticated data.
        plain: the plaintext.
        backend: ``"evp"`` or ``"cryptography"``.
    """
    cdef EVP_CIPHER_CTX* context
    _check_known_answer(nonce, plain, backend)
    key.count()
    out = PyBytes_FromStringAndSize(NULL, len(plain) + TAG_SIZE)
    if backend == "cryptography":
        AeadArguments().seal(key._large(), nonce, aad, len(aad), plain, len(plain), <uint8_t*>PyBytes_AS_STRING(out))
        return out
    context = copy_context(key.encryption)
    try:
        gcm_seal(context, nonce, aad, <int>len(aad), plain, <int>len(plain), <uint8_t*>PyBytes_AS_STRING(out))
    finally:
        EVP_CIPHER_CTX_free(context)
    return out


def open_with_nonce(AesKey key not None, bytes nonce not None, bytes aad not None, bytes sealed not None, str backend not None):
    """The plaintext of seal_with_nonce's result, or None if not authentic; arguments as of seal_with_nonce."""
    cdef EVP_CIPHER_CTX* context
    cdef int authentic
    _check_known_answer(nonce, sealed, backend)
    if len(sealed) < TAG_SIZE:
        return None
    out = bytearray(len(sealed) - TAG_SIZE)
    if backend == "cryptography":
        authentic = AeadArguments().open(key._large(), nonce, aad, len(aad), sealed, len(out),
                                         <uint8_t*>PyByteArray_AS_STRING(out))
    else:
        context = copy_context(key.decryption)
        try:
            authentic = gcm_open(context, nonce, aad, <int>len(aad), sealed, <int>len(out),
                                 <uint8_t*>PyByteArray_AS_STRING(out))
        finally:
            EVP_CIPHER_CTX_free(context)
    return bytes(out) if authentic else None


cdef int fetch_ciphers() except -1:
    """Find the ciphers, at the first key of the process: fetching is slow, and without FIPS provider may fail."""
    global under_fips
    cdef int i
    with _choosing:
        if is_fetched:
            return 0
        under_fips = is_fips()
        for i in range(3):
            bits = 128 + 64 * i
            gcm_ciphers[i] = fetch_cipher(f"AES-{bits}-GCM")
            ctr_ciphers[i] = fetch_cipher(f"AES-{bits}-CTR")
        settle(&is_fetched, 1)
    return 0


def _check_known_answer(nonce, data, backend):
    if len(nonce) != NONCE_SIZE or len(data) > 0x7fffffff - TAG_SIZE or backend not in ("evp", "cryptography"):
        raise ValueError("a nonce of 12 bytes, data of less than 2^31 bytes, and evp or cryptography")


if watch_forks():
    raise MemoryError()
