"""BYTE_STREAM_SPLIT (Encodings.md, "Byte Stream Split"): the first byte of every value, then the second byte, and so on."""

from fastpq.encodings.interface cimport ValueDecoder, ValueEncoder

cdef void split_decoder(ValueDecoder* decoder) noexcept
cdef void split_encoder(ValueEncoder* encoder) noexcept
