# distutils: language = c
"""AES-GCM and AES-CTR through OpenSSL's EVP interface: keys, nonces, tags and operation counts (Encryption.md, 4.1)."""

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
    #define read_published(value) __atomic_load_n((value), __ATOMIC_ACQUIRE)
    #define publish(value, n) __atomic_store_n((value), (n), __ATOMIC_RELEASE)
    #define read_place(place) __atomic_load_n((place), __ATOMIC_RELAXED)
    #define exchange(place, context) __atomic_exchange_n((place), (context), __ATOMIC_ACQ_REL)
    """
    uint64_t add_relaxed(uint64_t* counter, uint64_t n)
    uint64_t read_relaxed(uint64_t* counter)
    int64_t read_published(int64_t* value)
    void publish(int64_t* value, int64_t n)
    EVP_CIPHER_CTX* read_place(EVP_CIPHER_CTX** place)
    EVP_CIPHER_CTX* exchange(EVP_CIPHER_CTX** place, EVP_CIPHER_CTX* context)

cdef uint64_t INVOCATION_LIMIT = <uint64_t>1 << 32      # encryptions that one key may do (NIST SP 800-38D, 8.3)
cdef int64_t SMALLEST_LARGE = 16384                     # smaller modules, in bytes, always go through EVP

cdef int64_t large_size = 0                             # smallest module in bytes for cryptography, or 0 if not decided yet
_backend = None
_choosing = threading.RLock()                           # guards _backend and the ciphers. Choosing a backend makes keys

cdef EVP_CIPHER* gcm_ciphers[3]                         # for keys with 16, 24 and 32 bytes, fetched for the first key
cdef EVP_CIPHER* ctr_ciphers[3]
cdef bint under_fips = False                            # whether the ciphers come from a FIPS provider
cdef int64_t has_ciphers = 0                            # whether the ciphers are fetched


cdef EVP_CIPHER_CTX* copy_context(const EVP_CIPHER_CTX* source) except NULL nogil:
    cdef EVP_CIPHER_CTX* copy = EVP_CIPHER_CTX_new()
    cdef int is_done = copy != NULL and EVP_CIPHER_CTX_copy(copy, source) == 1
    if not is_done:
        EVP_CIPHER_CTX_free(copy)
    check(is_done, "copy a cipher context")
    return copy


cdef EVP_CIPHER_CTX* take_context(const EVP_CIPHER_CTX* keyed, EVP_CIPHER_CTX** spares) except NULL nogil:
    """Return a context that only the caller has: one of a key's spare contexts, or else a copy of its keyed context."""
    cdef EVP_CIPHER_CTX* context
    cdef int place
    for place in range(SPARE_CONTEXTS):
        if read_place(&spares[place]) != NULL:
            context = exchange(&spares[place], NULL)
            if context != NULL:     # no other thread came first
                return context
    return copy_context(keyed)


cdef void return_context(EVP_CIPHER_CTX* context, EVP_CIPHER_CTX** spares) noexcept nogil:
    """Add a context to its key's spare contexts, or free it if there are enough. To copy and free one takes as long as a seal."""
    cdef int place
    for place in range(SPARE_CONTEXTS):
        if context == NULL:
            return
        if read_place(&spares[place]) == NULL:
            context = exchange(&spares[place], context)     # what another thread put there in between
    EVP_CIPHER_CTX_free(context)


cdef int gcm_seal(EVP_CIPHER_CTX* context, const uint8_t* nonce, const uint8_t* aad, int aad_size, const uint8_t* plain,
                  int size, uint8_t* out) except -1 nogil:
    """Write ciphertext and tag to out. If nonce is NULL, a new context makes the nonce itself."""
    cdef int update_size = 0, final_size = 0
    cdef int is_done = (
        (nonce == NULL or EVP_EncryptInit_ex2(context, NULL, NULL, nonce, NULL) == 1)
        and (aad_size == 0 or EVP_EncryptUpdate(context, NULL, &update_size, aad, aad_size) == 1)
        and (size == 0 or EVP_EncryptUpdate(context, out, &update_size, plain, size) == 1)
        and EVP_EncryptFinal_ex(context, out + size, &final_size) == 1
        and EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, TAG_SIZE, out + size) == 1
    )
    return check(is_done, "encrypt")


cdef int fips_seal(const EVP_CIPHER_CTX* keyed, const uint8_t* aad, int aad_size, const uint8_t* plain, int size,
                   uint8_t* out) except -1 nogil:
    """Write nonce, ciphertext and tag to out. In FIPS 140-3 the module itself makes the nonce of AES-GCM (SP 800-38D, 8.2.2)."""
    cdef EVP_CIPHER_CTX* context = copy_context(keyed)
    try:
        gcm_seal(context, NULL, aad, aad_size, plain, size, out + NONCE_SIZE)
        return check(EVP_CIPHER_CTX_get_original_iv(context, out, NONCE_SIZE), "return a nonce")
    finally:
        EVP_CIPHER_CTX_free(context)


cdef int gcm_open(EVP_CIPHER_CTX* context, const uint8_t* nonce, const uint8_t* aad, int aad_size, const uint8_t* sealed,
                  int size, uint8_t* out) except -1 nogil:
    """Decrypt ciphertext with size bytes into out. The tag follows the ciphertext.

    Return 1 if the tag is authentic. Otherwise zero out and return 0.
    """
    cdef int update_size = 0, final_size = 0
    cdef int is_done = (
        EVP_DecryptInit_ex2(context, NULL, NULL, nonce, NULL) == 1
        and EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, TAG_SIZE, <void*>(sealed + size)) == 1
        and (aad_size == 0 or EVP_DecryptUpdate(context, NULL, &update_size, aad, aad_size) == 1)
        and (size == 0 or EVP_DecryptUpdate(context, out, &update_size, sealed, size) == 1)
    )
    if is_done and EVP_DecryptFinal_ex(context, out + size, &final_size) == 1:
        wipe_registers()
        return 1
    OPENSSL_cleanse(out, size)
    check(is_done, "decrypt")
    ERR_clear_error()
    return 0


cdef int ctr_apply(EVP_CIPHER_CTX* context, const uint8_t* nonce, const uint8_t* data, int size, uint8_t* out,
                   uint8_t first_count=1) except -1 nogil:
    """Encrypt or decrypt, which is the same in CTR mode. The counter begins at 1 (Encryption.md, 4.2.2), inside AES-GCM at 2."""
    cdef uint8_t iv[16]
    cdef int update_size = 0
    memcpy(iv, nonce, NONCE_SIZE)
    memset(iv + NONCE_SIZE, 0, 3)
    iv[15] = first_count    # a module is too small to overflow the counter
    cdef int is_done = (
        EVP_EncryptInit_ex2(context, NULL, NULL, iv, NULL) == 1
        and (size == 0 or EVP_EncryptUpdate(context, out, &update_size, data, size) == 1)
    )
    return check(is_done, "encrypt or decrypt")


cdef int64_t decide_large_size() except -1 nogil:
    """Return the smallest module in bytes that goes to the package cryptography. It is measured at the first large module."""
    cdef int64_t size = read_published(&large_size)
    if size == 0:
        with gil:
            crossover = aes_backend().crossover
            size = INT64_MAX if crossover is None else max(<int64_t>crossover, SMALLEST_LARGE)
        publish(&large_size, size)
    return size


def aes_backend():
    """Return which AES-GCM implementation handles small modules, and which one handles large modules.

    Modules with less than 16 KiB always go through EVP in the OpenSSL that fastpq links. For larger modules the OpenSSL inside
    the package cryptography may be faster. Both are measured once, in a few milliseconds, when the first large module is
    processed. The environment variable ``FASTPQ_AES`` (``evp``, ``cryptography`` or ``auto``) overrides the measurement.

    ``FASTPQ_AES=fips`` takes all algorithms from a FIPS provider in the linked OpenSSL, and none from elsewhere. It must be set
    before the process makes its first key.

    Returns:
        An AesBackend.

    Raises:
        UnsupportedError: ``FASTPQ_AES`` asks for an implementation that is unknown or does not work, or for a FIPS provider
            that is missing.
    """
    global _backend
    with _choosing:
        if _backend is None:
            # imported late: cryptography is slow to import, and only large modules need it
            from fastpq.encryption.backend import choose
            _backend = choose(OpenSSL_version(OPENSSL_VERSION).decode(), seal_with_nonce, AesKey, SMALLEST_LARGE)
        return _backend


@cython.final
cdef class AesKey:
    """An AES key with 16, 24 or 32 bytes. It cannot be read back, printed, copied or pickled, and is wiped when it is released.

    The key counts the encryptions that its ciphers do, and refuses more than 2^32, the limit in NIST SP 800-38D (8.3). A page
    takes two encryptions, one for its header and one for its body: after 2^31 pages the key is exhausted.

    Args:
        key: the key's bytes, which are copied.
        operations: how many encryptions were already done with this key elsewhere.

    Raises:
        CryptoError: the key does not have 16, 24 or 32 bytes.
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
        self.operation_count = min(operations, INVOCATION_LIMIT)
        if not read_published(&has_ciphers):
            fetch_ciphers()
        self.encryption = self._make_context(gcm_ciphers[self.size // 8 - 2], True)
        self.decryption = self._make_context(gcm_ciphers[self.size // 8 - 2], False)

    def __dealloc__(self):
        cdef int place
        EVP_CIPHER_CTX_free(self.encryption)        # wipes its key schedule
        EVP_CIPHER_CTX_free(self.decryption)
        for place in range(SPARE_CONTEXTS):
            EVP_CIPHER_CTX_free(self.spare_encryptions[place])
            EVP_CIPHER_CTX_free(self.spare_decryptions[place])
        EVP_CIPHER_CTX_free(self.ctr)
        OPENSSL_cleanse(self.bytes, sizeof(self.bytes))

    cdef EVP_CIPHER_CTX* _make_context(self, EVP_CIPHER* cipher, bint encrypt) except NULL:
        cdef EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new()
        cdef int is_done = context != NULL
        if is_done and encrypt:
            is_done = EVP_EncryptInit_ex2(context, cipher, self.bytes, NULL, NULL)
        elif is_done:
            is_done = EVP_DecryptInit_ex2(context, cipher, self.bytes, NULL, NULL)
        if is_done != 1:
            EVP_CIPHER_CTX_free(context)
        check(is_done, "set a key")
        return context

    cdef EVP_CIPHER_CTX* ctr_context(self) except NULL:
        """Return the context for AES-CTR. The first call makes it."""
        with cython.critical_section(self):
            if self.ctr == NULL:
                self.ctr = self._make_context(ctr_ciphers[self.size // 8 - 2], True)
            return self.ctr

    cdef object _large_aead(self):
        """Return this key's LargeAead. It is made from a temporary copy of the key, which is wiped at once."""
        if under_fips:
            raise UnsupportedError("under a FIPS provider, no other implementation is called")
        with cython.critical_section(self):
            if self.large_aead is not None:
                return self.large_aead
        from fastpq.encryption.large_aead import LargeAead
        key_copy = PyByteArray_FromStringAndSize(<char*>self.bytes, <Py_ssize_t>self.size)
        try:
            large_aead = LargeAead(key_copy)
        finally:
            OPENSSL_cleanse(PyByteArray_AS_STRING(key_copy), self.size)
            wipe_registers()
        with cython.critical_section(self):
            if self.large_aead is None:     # no other thread came first
                self.large_aead = large_aead
            return self.large_aead

    cdef int count(self) except -1 nogil:
        """Count one encryption, or refuse it if the key is exhausted."""
        if add_relaxed(&self.operation_count, 1) >= INVOCATION_LIMIT:
            add_relaxed(&self.operation_count, <uint64_t>-1)
            with gil:
                raise CryptoError("this key has encrypted 2^32 modules and must not encrypt more (NIST SP 800-38D, 8.3)")
        return 0

    @property
    def bits(self):
        """Key size in bits."""
        return self.size * 8

    @property
    def operations(self):
        """Number of encryptions so far."""
        return read_relaxed(&self.operation_count)

    def matches(self, AesKey other not None):
        """Return whether another key has the same bytes. The time does not depend on the bytes.

        Args:
            other: an AesKey.
        """
        return self.size == other.size and CRYPTO_memcmp(self.bytes, other.bytes, self.size) == 0

    def __repr__(self):
        return f"<AesKey of {self.bits} bits>"

    def __reduce__(self):
        raise TypeError("an AesKey cannot be copied or pickled")


@cython.final
@cython.no_gc_clear     # the contexts go back to the key, which the collector must not take away before
cdef class GcmContext:
    """AES-GCM with one key. Only one thread at a time may use it.

    Args:
        key: an AesKey.
    """

    def __cinit__(self, AesKey key not None):
        self.key = key

    def __dealloc__(self):
        if self.key is not None:
            return_context(self.encryption, self.key.spare_encryptions)
            return_context(self.decryption, self.key.spare_decryptions)

    cdef int seal(self, const uint8_t* aad, int64_t aad_size, const uint8_t* plain, int64_t size, uint8_t* out) except -1 nogil:
        self.key.count()
        if under_fips:
            return fips_seal(self.key.encryption, aad, <int>aad_size, plain, <int>size, out)
        check(next_nonce(out), "make a nonce")
        if size >= SMALLEST_LARGE and size >= decide_large_size():
            with gil:
                if self.arguments is None:
                    self.arguments = AeadArguments()
                self.arguments.seal(self.key._large_aead(), out, aad, aad_size, plain, size, out + NONCE_SIZE)
            wipe_registers()
            return 0
        if self.encryption == NULL:
            self.encryption = take_context(self.key.encryption, self.key.spare_encryptions)
        return gcm_seal(self.encryption, out, aad, <int>aad_size, plain, <int>size, out + NONCE_SIZE)

    cdef int open(self, const uint8_t* aad, int64_t aad_size, const uint8_t* sealed, int64_t size, uint8_t* out) except -1 nogil:
        cdef int is_authentic = 0
        if size >= SMALLEST_LARGE and size >= decide_large_size():
            try:
                with gil:
                    if self.arguments is None:
                        self.arguments = AeadArguments()
                    is_authentic = self.arguments.open(
                        self.key._large_aead(), sealed, aad, aad_size, sealed + NONCE_SIZE, size, out)
            finally:
                if not is_authentic:
                    OPENSSL_cleanse(out, <size_t>size)
                wipe_registers()
            return is_authentic
        if self.decryption == NULL:
            self.decryption = take_context(self.key.decryption, self.key.spare_decryptions)
        return gcm_open(self.decryption, sealed, aad, <int>aad_size, sealed + NONCE_SIZE, <int>size, out)

    cdef int verify(self, const uint8_t* aad, int64_t aad_size, const uint8_t* plain, int64_t size,
                    const uint8_t* signature) except -1:
        # The signature leaves out the footer's ciphertext. AES-CTR makes that ciphertext again, and then it is opened like an
        # AES-GCM module. FIPS 140-3 does not approve AES-GCM encryption with a nonce that the caller chooses.
        cdef EVP_CIPHER_CTX* ctr = NULL
        cdef uint8_t* ciphertext = <uint8_t*>malloc(2 * <size_t>size + TAG_SIZE)
        if ciphertext == NULL:
            raise MemoryError()
        try:
            ctr = copy_context(self.key.ctr_context())
            ctr_apply(ctr, signature, plain, <int>size, ciphertext, 2)
            memcpy(ciphertext + size, signature + NONCE_SIZE, TAG_SIZE)
            if self.decryption == NULL:
                self.decryption = take_context(self.key.decryption, self.key.spare_decryptions)
            return gcm_open(self.decryption, signature, aad, <int>aad_size, ciphertext, <int>size, ciphertext + size + TAG_SIZE)
        finally:
            EVP_CIPHER_CTX_free(ctr)
            OPENSSL_cleanse(ciphertext, 2 * <size_t>size + TAG_SIZE)
            free(ciphertext)


@cython.final
cdef class CtrContext:
    """AES-CTR with one key, which authenticates nothing. Only one thread at a time may use it.

    Args:
        key: an AesKey.
    """

    def __cinit__(self, AesKey key not None):
        self.key = key
        self.context = copy_context(key.ctr_context())

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
    """Return ciphertext and tag for a chosen nonce. This is for known-answer tests and measurements, never for data.

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
        AeadArguments().seal(key._large_aead(), nonce, aad, len(aad), plain, len(plain), <uint8_t*>PyBytes_AS_STRING(out))
        return out
    context = copy_context(key.encryption)
    try:
        gcm_seal(context, nonce, aad, <int>len(aad), plain, <int>len(plain), <uint8_t*>PyBytes_AS_STRING(out))
    finally:
        EVP_CIPHER_CTX_free(context)
    return out


def open_with_nonce(AesKey key not None, bytes nonce not None, bytes aad not None, bytes sealed not None, str backend not None):
    """Return the plaintext that seal_with_nonce sealed, or None if sealed is not authentic. The arguments are the same."""
    cdef EVP_CIPHER_CTX* context
    cdef int is_authentic
    _check_known_answer(nonce, sealed, backend)
    if len(sealed) < TAG_SIZE:
        return None
    out = bytearray(len(sealed) - TAG_SIZE)
    if backend == "cryptography":
        is_authentic = AeadArguments().open(key._large_aead(), nonce, aad, len(aad), sealed, len(out),
                                            <uint8_t*>PyByteArray_AS_STRING(out))
    else:
        context = copy_context(key.decryption)
        try:
            is_authentic = gcm_open(context, nonce, aad, <int>len(aad), sealed, <int>len(out),
                                    <uint8_t*>PyByteArray_AS_STRING(out))
        finally:
            EVP_CIPHER_CTX_free(context)
    return bytes(out) if is_authentic else None


cdef int fetch_ciphers() except -1:
    """Fetch the ciphers for the process's first key. Fetching is slow, and fails if a required FIPS provider is missing."""
    global under_fips
    cdef int i
    with _choosing:
        if has_ciphers:
            return 0
        under_fips = is_fips()
        for i in range(3):
            bits = 128 + 64 * i
            gcm_ciphers[i] = fetch_cipher(f"AES-{bits}-GCM")
            ctr_ciphers[i] = fetch_cipher(f"AES-{bits}-CTR")
        publish(&has_ciphers, 1)
    return 0


def _check_known_answer(nonce, data, backend):
    if len(nonce) != NONCE_SIZE or len(data) > 0x7fffffff - TAG_SIZE or backend not in ("evp", "cryptography"):
        raise ValueError("the nonce must have 12 bytes, the data less than 2^31 bytes, and the backend is evp or cryptography")


if watch_forks():
    raise MemoryError()
