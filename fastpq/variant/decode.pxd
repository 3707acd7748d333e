from libc.stdint cimport uint8_t

# The decimal of a checked value.
cdef object decimal_of(const uint8_t* data, int kind)
