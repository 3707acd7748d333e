"""Encoder for the Thrift compact protocol."""


# A struct that encodes itself. It may stand in a list of structs.
cdef class EncodedStruct:
    # Returns the encoded struct, with its stop byte.
    cdef bytes encoded(self)
