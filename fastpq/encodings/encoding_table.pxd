"""Each encoding's decoder and encoder, by the encoding's number (parquet.thrift, Encoding)."""

from fastpq.encodings.interface cimport ValueDecoder, ValueEncoder

# Returns an encoding's decoder. Its functions are NULL if fastpq does not read the encoding.
cdef const ValueDecoder* decoder_of(int encoding) noexcept nogil
# Returns an encoding's encoder. Its functions are NULL for a dictionary encoding, and if fastpq does not write the encoding.
cdef const ValueEncoder* encoder_of(int encoding) noexcept nogil
