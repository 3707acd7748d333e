"""Numbers for the encodings that compiled code mentions (parquet.thrift, Encoding). encoding_table.pyx lists all encodings."""

cdef enum:
    PLAIN = 0
    PLAIN_DICTIONARY = 2
    RLE = 3
    BIT_PACKED = 4
