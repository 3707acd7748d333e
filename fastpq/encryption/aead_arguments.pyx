# distutils: language = c
"""AeadArguments, which calls a LargeAead with bytes at any place in memory."""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int64_t, uint8_t


@cython.final
@cython.no_gc
cdef class Window:
    """A buffer over bytes somewhere in memory, which lasts while another package's function is called."""

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, <void*>self.data, <Py_ssize_t>self.size, not self.is_writable, flags)

    cdef Window at(self, const uint8_t* data, int64_t size):
        self.data, self.size = data, size
        return self


@cython.final
@cython.no_gc
cdef class AeadArguments:
    """Buffers for LargeAead calls. They are made once, so that a call takes little time under the GIL."""

    def __cinit__(self):
        self.nonce, self.data, self.aad, self.out = Window(), Window(), Window(), Window()
        self.out.is_writable = True

    cdef int seal(self, object aead, const uint8_t* nonce, const uint8_t* aad, int64_t aad_size, const uint8_t* plain,
                  int64_t size, uint8_t* out) except -1:
        aead.seal_into(self.nonce.at(nonce, NONCE_SIZE), self.data.at(plain, size), self.aad.at(aad, aad_size),
                       self.out.at(out, size + TAG_SIZE))
        return 0

    cdef int open(self, object aead, const uint8_t* nonce, const uint8_t* aad, int64_t aad_size, const uint8_t* sealed,
                  int64_t size, uint8_t* out) except -1:
        try:
            aead.open_into(self.nonce.at(nonce, NONCE_SIZE), self.data.at(sealed, size + TAG_SIZE), self.aad.at(aad, aad_size),
                           self.out.at(out, size))
        except aead.refusal:
            return 0
        return 1
