"""ALP (AlpEncoding.md), a preview encoding: floats and doubles as bit-packed decimal integers."""

from fastpq.encodings.interface cimport ValueDecoder, ValueEncoder

cdef void alp_decoder(ValueDecoder* decoder) noexcept
cdef void alp_encoder(ValueEncoder* encoder) noexcept
