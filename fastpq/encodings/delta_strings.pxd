"""DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY (Encodings.md, "Delta-length byte array" and "Delta Strings")."""

from fastpq.encodings.interface cimport ValueDecoder, ValueEncoder

# In these names "lengths" means DELTA_LENGTH_BYTE_ARRAY, and "strings" means DELTA_BYTE_ARRAY.
cdef void delta_lengths_decoder(ValueDecoder* decoder) noexcept
cdef void delta_lengths_encoder(ValueEncoder* encoder) noexcept
cdef void delta_strings_decoder(ValueDecoder* decoder) noexcept
cdef void delta_strings_encoder(ValueEncoder* encoder) noexcept
