"""Conversion of variants to JSON text, in the forms listed in fastpq.schema.variant_kinds."""

from cpython.mem cimport PyMem_Free
from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, strlen

from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SLICE_BLOCK, SliceReader, raise_status
from fastpq.variant.decode cimport decimal_of
from fastpq.variant.emit cimport Bytes, bytes_free, bytes_put
from fastpq.variant.wire cimport (
    ARRAY,
    KIND_BINARY,
    KIND_DATE,
    KIND_DECIMAL4,
    KIND_DECIMAL16,
    KIND_DOUBLE,
    KIND_FLOAT,
    KIND_INT8,
    KIND_INT64,
    KIND_NULL,
    KIND_STRING,
    KIND_TIME,
    KIND_TIMESTAMP,
    KIND_TIMESTAMP_NANOS,
    KIND_TIMESTAMP_NTZ_NANOS,
    KIND_TRUE,
    KIND_UUID,
    OBJECT,
    PRIMITIVE,
    SHORT_STRING,
    Container,
    Metadata,
    Names,
    check_whole,
    child_at,
    id_at,
    name_at,
    open_container,
    raise_wrong,
    text_of,
)

import binascii
import uuid

import numpy as np

from fastpq.errors import SchemaError

cdef extern from "Python.h":
    char* PyOS_double_to_string(double value, char format_code, int precision, int flags, int* kind) except NULL
    double PyOS_string_to_double(const char* text, char** end, object overflow_exception) except? -1.0
    int Py_DTSF_ADD_DOT_0

cdef extern from "c/variant.h" nogil:
    int64_t variant_signed(const uint8_t* p, int width)

cdef const char* HEX = b"0123456789abcdef"
# Decimal digits of a float's text: the shortest text with its value is looked for from 6 digits on; 9 are always enough.
cdef int SHORTEST_FLOAT = 6, LONGEST_FLOAT = 9


cdef int _put(Bytes* out, const void* data, size_t size) except -1:
    if bytes_put(out, data, size) < 0:
        raise MemoryError("JSON of a variant")
    return 0


cdef int _put_string(Bytes* out, bytes text) except -1:
    return _put(out, <const char*>text, len(text))


cdef int _quoted(Bytes* out, Slice text) except -1:
    """Write text in quotation marks, in UTF-8; escapes only quotation marks, backslashes and control characters."""
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
        if character == b'"' or character == b"\\":
            escape[1] = <char>character
        elif character == b"\n":
            escape[1] = b"n"
        elif character == b"\r":
            escape[1] = b"r"
        elif character == b"\t":
            escape[1] = b"t"
        elif character == 8:
            escape[1] = b"b"
        elif character == 12:
            escape[1] = b"f"
        else:
            size = 6
            escape[1] = b"u"
            escape[2] = escape[3] = b"0"
            escape[4] = HEX[character >> 4]
            escape[5] = HEX[character & 15]
        _put(out, text.data + start, i - start)
        _put(out, escape, size)
        start = i + 1
    _put(out, text.data + start, text.size - start)
    return _put(out, b'"', 1)


cdef int _double(Bytes* out, double value, bint narrow) except -1:
    """Write the shortest decimal number equal to the double, or to the float (narrow), when parsed.

    Values other than finite ones are written as strings, for JSON has no numbers for these.
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
    """Text of a date, a time or a timestamp, without trailing zeros in the fraction."""
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


def json_of(bytes metadata not None, bytes value not None):
    """One variant as JSON text. Raises as json_rows."""
    cdef Metadata names = Metadata()
    cdef Bytes out = Bytes(NULL, 0, 0)
    names.load(Slice(<const uint8_t*><const char*>metadata, len(metadata)), metadata, "the metadata")
    raise_wrong(check_whole(&names.names, Slice(<const uint8_t*><const char*>value, len(value)), False), "the value")
    try:
        to_json(&out, &names.names, <const uint8_t*><const char*>value)
        return (<const char*>out.data)[:out.size].decode()
    finally:
        bytes_free(&out)


def json_rows(SliceReader metadata not None, SliceReader value not None):
    """The variants of a column as JSON texts; None for a null value.

    Args:
        metadata, value: readers of metadata and values, of equal length.

    Raises:
        FormatError: a row breaks VariantEncoding.md; the error names the row.
        LimitError: arrays and objects are nested deeper than MAX_DEPTH.
    """
    cdef Slice names[SLICE_BLOCK]
    cdef Slice values[SLICE_BLOCK]
    cdef Metadata dictionary = Metadata()
    cdef Bytes out = Bytes(NULL, 0, 0)
    cdef int64_t start = 0, n, i, status
    cdef list rows = []
    if metadata.count != value.count:
        raise SchemaError(f"{metadata.count} metadata for {value.count} values")
    try:
        while start < value.count:
            n = min(<int64_t>SLICE_BLOCK, value.count - start)
            raise_status(metadata.read(start, n, names))
            raise_status(value.read(start, n, values))
            for i in range(n):
                if values[i].data == NULL:
                    rows.append(None)
                    continue
                if not dictionary.is_same(names[i]):
                    dictionary.load(names[i], metadata, f"the metadata of row {start + i}")
                status = check_whole(&dictionary.names, values[i], False)
                if status < 0:
                    raise_wrong(status, f"the variant of row {start + i}")
                out.size = 0
                to_json(&out, &dictionary.names, values[i].data)
                rows.append((<const char*>out.data)[:out.size].decode())
            start += n
    finally:
        bytes_free(&out)
    return rows
