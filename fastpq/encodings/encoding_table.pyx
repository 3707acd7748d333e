"""The table of all encodings: how each is read and written, and for which physical types (Encodings.md).

A new encoding needs a number in fastpq.format.enums, a file in this room that fills a ValueDecoder and a ValueEncoder, and two
rows here. ``encoding="auto"`` may choose it if fastpq.encodings.registry lists it.

Attributes:
    READABLE: for each encoding, the physical types that fastpq reads in it.
    WRITABLE: for each encoding, the physical types that fastpq writes in it.
"""

from fastpq.encodings.alp cimport alp_decoder, alp_encoder
from fastpq.encodings.byte_stream_split cimport split_decoder, split_encoder
from fastpq.encodings.delta cimport delta_decoder, delta_encoder
from fastpq.encodings.delta_strings cimport (
    delta_lengths_decoder, delta_lengths_encoder, delta_strings_decoder, delta_strings_encoder,
)
from fastpq.encodings.dictionary cimport dictionary_decoder
from fastpq.encodings.interface cimport PageValues
from fastpq.encodings.plain cimport plain_decoder, plain_encoder
from fastpq.encodings.rle cimport rle_decoder, rle_encoder

from fastpq.format import Encoding, Type

ctypedef void (*fill_decoder)(ValueDecoder* decoder) noexcept
ctypedef void (*fill_encoder)(ValueEncoder* encoder) noexcept

cdef enum:
    NUMBERS = 64                # every encoding has a smaller number, so that Layout.encodings has a bit for it

cdef ValueDecoder[NUMBERS] decoders
cdef ValueEncoder[NUMBERS] encoders
cdef ValueDecoder no_decoder
cdef ValueEncoder no_encoder

READABLE = {}
WRITABLE = {}


cdef const ValueDecoder* decoder_of(int encoding) noexcept nogil:
    return &decoders[encoding] if 0 <= encoding < NUMBERS else &no_decoder


cdef const ValueEncoder* encoder_of(int encoding) noexcept nogil:
    return &encoders[encoding] if 0 <= encoding < NUMBERS else &no_encoder


cdef int add_decoder(object encoding, fill_decoder fill, object types) except -1:
    cdef ValueDecoder* decoder = &decoders[<int>encoding]
    cdef PageValues page
    fill(decoder)
    if decoder.state_size > sizeof(page.state):
        raise AssertionError(f"{encoding.name} needs {decoder.state_size} bytes of PageValues.state")
    READABLE[encoding] = frozenset(types)
    return 0


cdef int add_encoder(object encoding, fill_encoder fill, object types) except -1:
    if fill != NULL:
        fill(&encoders[<int>encoding])
    WRITABLE[encoding] = frozenset(types)
    return 0


cdef int fill_table() except -1:
    every_type = set(Type)
    no_booleans = every_type - {Type.BOOLEAN}
    integers = {Type.INT32, Type.INT64}
    floats = {Type.FLOAT, Type.DOUBLE}
    byte_arrays = {Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY}

    add_decoder(Encoding.PLAIN, plain_decoder, every_type)
    add_decoder(Encoding.PLAIN_DICTIONARY, dictionary_decoder, every_type)
    add_decoder(Encoding.RLE, rle_decoder, {Type.BOOLEAN})
    add_decoder(Encoding.DELTA_BINARY_PACKED, delta_decoder, integers)
    add_decoder(Encoding.DELTA_LENGTH_BYTE_ARRAY, delta_lengths_decoder, {Type.BYTE_ARRAY})
    add_decoder(Encoding.DELTA_BYTE_ARRAY, delta_strings_decoder, byte_arrays)
    add_decoder(Encoding.RLE_DICTIONARY, dictionary_decoder, every_type)
    add_decoder(Encoding.BYTE_STREAM_SPLIT, split_decoder, integers | floats | {Type.FIXED_LEN_BYTE_ARRAY})
    add_decoder(Encoding.ALP, alp_decoder, floats)

    add_encoder(Encoding.PLAIN, plain_encoder, every_type)
    # No function, because a DictionaryEncoder encodes the values in a whole chunk.
    add_encoder(Encoding.PLAIN_DICTIONARY, NULL, no_booleans)
    add_encoder(Encoding.RLE, rle_encoder, {Type.BOOLEAN})
    add_encoder(Encoding.DELTA_BINARY_PACKED, delta_encoder, integers)
    add_encoder(Encoding.DELTA_LENGTH_BYTE_ARRAY, delta_lengths_encoder, {Type.BYTE_ARRAY})
    add_encoder(Encoding.DELTA_BYTE_ARRAY, delta_strings_encoder, byte_arrays)
    add_encoder(Encoding.RLE_DICTIONARY, NULL, no_booleans)
    add_encoder(Encoding.BYTE_STREAM_SPLIT, split_encoder, integers | floats | {Type.FIXED_LEN_BYTE_ARRAY})
    add_encoder(Encoding.ALP, alp_encoder, floats)
    return 0


fill_table()
