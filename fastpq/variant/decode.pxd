from libc.stdint cimport uint8_t

from fastpq.arrays.slices cimport SliceReader
from fastpq.variant.wire cimport Metadata

# Converts a checked value. The state belongs to the caller.
ctypedef object (*Conversion)(Metadata names, const uint8_t* data, void* state)

# Check and convert one variant.
cdef object convert_value(bytes metadata, bytes value, Conversion convert, void* state)
# Check and convert each variant in a column. A null value is None. Errors name the row.
cdef list convert_rows(SliceReader metadata, SliceReader value, Conversion convert, void* state)
# Return a checked decimal as a decimal.Decimal.
cdef object decimal_of(const uint8_t* data, int kind)
