from libc.stdint cimport uint8_t

# A decimal, of a checked value, as a decimal.Decimal.
cdef object decimal_of(const uint8_t* data, int kind)
