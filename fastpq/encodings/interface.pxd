"""The interface of an encoding: a ValueDecoder that reads a page's values, and a ValueEncoder that writes them.

Each file in this room fills the two structs for its encoding, and encoding_table.pyx lists them. fastpq.column.value_reader and
value_writer call an encoding only through these structs, once for a page or for many values.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from fastpq.codecs.codec cimport Streams
from fastpq.encodings.views cimport Slice


# How values look in memory.
cdef enum Form:
    FIXED_WIDTH = 0                 # PLAIN form: little-endian, without lengths
    BOOLEANS = 1                    # one byte for each value
    BYTE_ARRAYS = 2                 # a View for each decoded value, a Slice for each value to encode


# A chunk's decoded dictionary page. An entry is what the reader wants for an index: the value, or another number for it.
cdef struct DictionaryEntries:
    const uint8_t* data
    int64_t count                   # -1 without a dictionary page
    size_t width                    # bytes of an entry


# A page's encoded values, and where the next value is. The reader sets all fields except `bytes` and `state`.
cdef struct PageValues:
    int form                        # a Form
    size_t width                    # bytes of a FIXED_WIDTH value
    const uint8_t* data             # where the encoded values start, or where the next value starts if the encoding stores_plain
    int64_t size                    # bytes from data to the page's end
    int64_t position                # the next value's index, which the reader increases after next and skip
    DictionaryEntries entries
    uint8_t* scratch                # ValueDecoder.scratch bytes for each value to decode
    const uint8_t* base             # where the buffer starts that views point into
    int32_t buffer                  # this buffer's number
    uint8_t* memory                 # the memory that ValueDecoder.measure asked for. It starts at base.
    Slice previous                  # the value before the next value, if the encoding shares_prefixes
    Slice bytes                     # the stored bytes for the views that were decoded last. The decoder sets them.
    uint64_t[40] state              # memory for a struct that the decoder defines


# The functions return a negative Status for broken bytes. They allocate nothing. A count is at least 1.
cdef struct ValueDecoder:
    # Moves to the first value in a page that has values. Returns 0.
    int64_t (*start)(PageValues* page) noexcept nogil
    # Decodes the next count values to out, in the page's form. Returns count.
    int64_t (*next)(PageValues* page, int64_t count, uint8_t* out) noexcept nogil
    # Passes over the next count values. Returns count. NULL if later values depend on them: then the reader has to decode them.
    int64_t (*skip)(PageValues* page, int64_t count) noexcept nogil
    # Passes over the next count values, and decodes to out those at the set bits among count bits, from bit_offset on. Returns
    # count. NULL if the reader has to decode all values, and choose from them.
    int64_t (*next_chosen)(PageValues* page, int64_t count, const uint8_t* bits, int64_t bit_offset, uint8_t* out) noexcept nogil
    # Returns how many bytes of memory the next count values need, if views cannot point into the page. The reader then calls
    # `next` with the same count. NULL for other encodings.
    int64_t (*measure)(PageValues* page, int64_t count) noexcept nogil
    bint uses_dictionary            # whether values are stored as indices, and next and next_chosen write entries
    bint views_into_page            # whether the views of BYTE_ARRAYS point to stored bytes in the page
    bint stores_plain               # whether values follow each other in PLAIN form
    bint shares_prefixes            # whether a value may share a prefix with the one before, even across pages (PARQUET-246)
    size_t scratch                  # scratch memory for each value, in bytes
    size_t state_size               # how many bytes in PageValues.state the decoder uses


# A page's values that will be encoded.
cdef struct ValuesToEncode:
    int form                        # a Form
    size_t width                    # bytes of a FIXED_WIDTH value
    int64_t count
    int64_t plain_size              # bytes that the values have in PLAIN form
    const uint8_t* values           # for FIXED_WIDTH and BOOLEANS
    const Slice* slices             # for BYTE_ARRAYS, and for FIXED_WIDTH if the encoder takes_slices
    uint8_t* scratch                # ValueEncoder.scratch bytes for each value


cdef struct ValueEncoder:
    # Returns how many bytes the encoded values can have at most. It reads no value.
    int64_t (*bound)(const ValuesToEncode* values) noexcept nogil
    # Encodes all values to out. Returns how many bytes it wrote.
    int64_t (*encode)(const ValuesToEncode* values, uint8_t* out) noexcept nogil
    # Returns the streams in the size bytes that `encode` wrote. NULL for encodings that write one stream.
    Streams (*streams)(const ValuesToEncode* values, int64_t size) noexcept nogil
    bint takes_slices               # whether the encoder takes FIXED_WIDTH values as slices
    size_t scratch                  # scratch memory for each value, in bytes


# Start and skip for an encoding that finds a value by PageValues.position alone.
cdef inline int64_t start_anywhere(PageValues* page) noexcept nogil:
    return 0


cdef inline int64_t skip_by_position(PageValues* page, int64_t count) noexcept nogil:
    return count
