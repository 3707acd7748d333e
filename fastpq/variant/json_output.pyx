"""Conversion from variants to JSON text, in the forms that fastpq.schema.variant_kinds lists."""

from cpython.mem cimport PyMem_Free
from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, strlen

from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SliceReader
from fastpq.variant.decode cimport convert_rows, convert_value, decimal_of
from fastpq.variant.emit cimport Bytes, bytes_free, bytes_put
from fastpq.variant.wire cimport (
    ARRAY, KIND_BINARY, KIND_DATE, KIND_DECIMAL4, KIND_DECIMAL16, KIND_DOUBLE, KIND_FLOAT, KIND_INT8, KIND_INT64, KIND_NULL,
    KIND_STRING, KIND_TIME, KIND_TIMESTAMP, KIND_TIMESTAMP_NANOS, KIND_TIMESTAMP_NTZ_NANOS, KIND_TRUE, KIND_UUID, OBJECT,
    PRIMITIVE, SHORT_STRING, Container, Metadata, Names, child_at, id_at, name_at, open_container, text_of,
)

import binascii
import uuid

import numpy as np

cdef extern from "Python.h":
    char* PyOS_double_to_string(double value, char format_code, int precision, int flags, int* kind) except NULL
    double PyOS_string_to_double(const char* text, char** end, object overflow_exception) except? -1.0
    int Py_DTSF_ADD_DOT_0

cdef extern from "c/variant.h" nogil:
    int64_t variant_signed(const uint8_t* p, int width)

cdef const char* HEX = b"0123456789abcdef"
# The letter that follows the backslash, for each control character. u stands for an escape of four hexadecimal digits.
cdef const char* ESCAPES = b"uuuuuuuubtnufruuuuuuuuuuuuuuuuuu"
# Digits for a float as text. The search for the shortest exact text begins with 6 digits. 9 digits are always enough.
cdef int SHORTEST_FLOAT = 6, LONGEST_FLOAT = 9


cdef int _put(Bytes* out, const void* data, size_t size) except -1:
    if bytes_put(out, data, size) < 0:
        raise MemoryError("JSON of a variant")
    return 0


cdef int _put_string(Bytes* out, bytes text) except -1:
    return _put(out, <const char*>text, len(text))


cdef int _quoted(Bytes* out, Slice text) except -1:
    """Write text in quotation marks, as UTF-8. Only quotation marks, backslashes and control characters are escaped."""
    cdef size_t i, start = 0
    cdef uint8_t character
    cdef char escape[6]
    cdef size_t size
    _put(out, b'"', 1)
    for i in range(text.size):
        character = text.data[i]
        if character >= 0x20 and character != b'"' and character != b"\\":
            continue
        size = 2
        escape[0] = b"\\"
        escape[1] = <char>character if character >= 0x20 else ESCAPES[character]
        if escape[1] == b"u":
            size = 6
            escape[2] = escape[3] = b"0"
            escape[4] = HEX[character >> 4]
            escape[5] = HEX[character & 15]
        _put(out, text.data + start, i - start)
        _put(out, escape, size)
        start = i + 1
    _put(out, text.data + start, text.size - start)
    return _put(out, b'"', 1)


cdef int _double(Bytes* out, double value, bint narrow) except -1:
    """Write the shortest decimal number that becomes the same double again when it is read. For `narrow`, the same float.

    Values that are not finite are written as strings, because JSON has no numbers for them.
    """
    cdef int digits = SHORTEST_FLOAT
    cdef char* text
    if not isfinite(value):
        return _put_string(out, b'"NaN"' if value != value else b'"Infinity"' if value > 0 else b'"-Infinity"')
    text = PyOS_double_to_string(value, b"g" if narrow else b"r", digits if narrow else 0, Py_DTSF_ADD_DOT_0, NULL)
    try:
        while narrow and digits < LONGEST_FLOAT and <float>PyOS_string_to_double(text, NULL, None) != <float>value:
            digits += 1
            PyMem_Free(text)
            text = NULL
            text = PyOS_double_to_string(value, b"g", digits, Py_DTSF_ADD_DOT_0, NULL)
        return _put(out, text, strlen(text))
    finally:
        PyMem_Free(text)


cdef bytes _moment(int64_t value, int kind):
    """Return a date, a time or a timestamp as text. Zeros at the fraction's end are left out."""
    cdef bint nanos = kind == KIND_TIMESTAMP_NANOS or kind == KIND_TIMESTAMP_NTZ_NANOS
    cdef bint utc = kind == KIND_TIMESTAMP or kind == KIND_TIMESTAMP_NANOS
    if kind == KIND_TIME and not 0 <= value < 86_400_000_000:
        return str(value).encode()
    unit = "D" if kind == KIND_DATE else "ns" if nanos else "us"
    whole, _, fraction = str(np.int64(value).view(f"M8[{unit}]")).partition(".")
    fraction = fraction.rstrip("0")
    text = whole.replace("T", " ") + ("." + fraction if fraction else "")
    if kind == KIND_TIME:
        text = text.partition(" ")[2]
    return (text + "+00:00" if utc else text).encode()


cdef int _primitive(Bytes* out, const uint8_t* data, int kind) except -1:
    cdef double wide
    cdef float narrow
    if kind == KIND_NULL:
        return _put(out, b"null", 4)
    if kind == KIND_TRUE:
        return _put(out, b"true", 4)
    if kind < KIND_INT8:
        return _put(out, b"false", 5)
    if kind <= KIND_INT64:
        return _put_string(out, str(variant_signed(data + 1, 1 << (kind - KIND_INT8))).encode())
    if kind == KIND_DOUBLE:
        memcpy(&wide, data + 1, 8)
        return _double(out, wide, False)
    if kind == KIND_FLOAT:
        memcpy(&narrow, data + 1, 4)
        return _double(out, narrow, True)
    if KIND_DECIMAL4 <= kind <= KIND_DECIMAL16:
        return _put_string(out, format(decimal_of(data, kind), "f").encode())
    if kind == KIND_BINARY:
        binary = text_of(data)
        text = binascii.b2a_base64((<const char*>binary.data)[:binary.size], newline=False)
    elif kind == KIND_UUID:
        text = str(uuid.UUID(bytes=(<const char*>data + 1)[:16])).encode()
    else:
        text = _moment(variant_signed(data + 1, 4 if kind == KIND_DATE else 8), kind)
    return _quoted(out, Slice(<const uint8_t*><const char*>text, len(text)))


cdef int to_json(Bytes* out, const Names* names, const uint8_t* data) except -1:
    """Write a checked value as JSON."""
    cdef Container container
    cdef uint32_t i
    cdef int basic = data[0] & 3
    if basic == SHORT_STRING or (basic == PRIMITIVE and data[0] >> 2 == KIND_STRING):
        return _quoted(out, text_of(data))
    if basic == PRIMITIVE:
        return _primitive(out, data, data[0] >> 2)
    open_container(data, <size_t>1 << 40, &container)
    _put(out, b"[" if basic == ARRAY else b"{", 1)
    for i in range(container.count):
        if i:
            _put(out, b",", 1)
        if basic == OBJECT:
            _quoted(out, name_at(names, id_at(&container, i)))
            _put(out, b":", 1)
        to_json(out, names, child_at(&container, i))
    return _put(out, b"]" if basic == ARRAY else b"}", 1)


cdef object _to_json(Metadata names, const uint8_t* data, void* out):
    (<Bytes*>out).size = 0
    to_json(<Bytes*>out, &names.names, data)
    return (<const char*>(<Bytes*>out).data)[:(<Bytes*>out).size].decode()


def json_of(bytes metadata not None, bytes value not None):
    """Return one variant as JSON text. It raises the same errors as json_rows."""
    cdef Bytes out = Bytes(NULL, 0, 0)
    try:
        return convert_value(metadata, value, _to_json, &out)
    finally:
        bytes_free(&out)


def json_rows(SliceReader metadata not None, SliceReader value not None):
    """Return a column's variants as JSON texts. A null value is None.

    Args:
        metadata, value: readers for the metadata and the values, which have equal length.

    Raises:
        FormatError: a row breaks VariantEncoding.md. The error names the row.
        LimitError: arrays and objects are nested deeper than MAX_DEPTH levels.
    """
    cdef Bytes out = Bytes(NULL, 0, 0)
    try:
        return convert_rows(metadata, value, _to_json, &out)
    finally:
        bytes_free(&out)
