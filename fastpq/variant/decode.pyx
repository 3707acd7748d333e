"""Decoder that turns variants into Python objects, for one value or a column."""

from cpython.datetime cimport import_datetime, timedelta_new
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SLICE_BLOCK, SliceReader, raise_status
from fastpq.variant.wire cimport (
    ARRAY, KIND_BINARY, KIND_DATE, KIND_DECIMAL4, KIND_DECIMAL16, KIND_DOUBLE, KIND_FALSE, KIND_FLOAT, KIND_INT8, KIND_INT64,
    KIND_NULL, KIND_STRING, KIND_TIME, KIND_TIMESTAMP, KIND_TIMESTAMP_NTZ, KIND_TRUE, KIND_UUID, PRIMITIVE, SHORT_STRING,
    Container, Metadata, check_whole, child_at, id_at, open_container, raise_wrong, text_of,
)

import datetime
import decimal
import uuid

from fastpq.errors import SchemaError
from fastpq.arrays.decimals import EXACT
from fastpq.schema.variant_kinds import Kind, Primitive

import_datetime()

cdef extern from * nogil:
    """
    #define exchange_pointer(place, value) __atomic_exchange_n((place), (value), __ATOMIC_ACQ_REL)
    """
    void* exchange_pointer(void** place, void* value)

cdef extern from "c/variant.h" nogil:
    int64_t variant_signed(const uint8_t* p, int width)

cdef int[4] INTEGER_WIDTHS = [1, 2, 4, 8]
cdef int[3] DECIMAL_WIDTHS = [4, 8, 16]
cdef int64_t SECONDS_A_DAY = 86_400, MICROSECONDS = 1_000_000
cdef int64_t MICROSECONDS_A_DAY = SECONDS_A_DAY * MICROSECONDS
cdef object EPOCH = datetime.datetime(1970, 1, 1)
cdef object EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
cdef object EPOCH_DATE = datetime.date(1970, 1, 1)
cdef tuple KINDS_BY_ID = tuple(Kind)


cdef object number(const uint8_t* data, int kind):
    """Return the number that is stored for an integer, a date, a time or a timestamp."""
    if KIND_INT8 <= kind <= KIND_INT64:
        return variant_signed(data + 1, INTEGER_WIDTHS[kind - KIND_INT8])
    return variant_signed(data + 1, 4 if kind == KIND_DATE else 8)


cdef object decimal_of(const uint8_t* data, int kind):
    cdef int width = DECIMAL_WIDTHS[kind - KIND_DECIMAL4]
    unscaled = int.from_bytes((<const char*>data + 2)[:width], "little", signed=True)
    return decimal.Decimal(unscaled).scaleb(-<int>data[1], EXACT)


cdef object _floating(const uint8_t* data, int kind):
    cdef double wide
    cdef float narrow
    if kind == KIND_DOUBLE:
        memcpy(&wide, data + 1, 8)
        return wide
    memcpy(&narrow, data + 1, 4)
    return <double>narrow


cdef object _moment(const uint8_t* data, int kind):
    """Return a date, or a time or timestamp that is stored in microseconds. A Primitive if Python's types cannot hold it."""
    cdef int64_t units = variant_signed(data + 1, 4 if kind == KIND_DATE else 8)
    cdef int64_t day = units, rest = 0
    if kind != KIND_DATE:
        rest = units % MICROSECONDS_A_DAY
        rest += MICROSECONDS_A_DAY if rest < 0 else 0
        day = (units - rest) // MICROSECONDS_A_DAY
    if kind == KIND_TIME:
        if day != 0:
            return Primitive(KINDS_BY_ID[kind], units)
        return (EPOCH + timedelta_new(0, <int>(rest // MICROSECONDS), <int>(rest % MICROSECONDS))).time()
    epoch = EPOCH_DATE if kind == KIND_DATE else EPOCH_UTC if kind == KIND_TIMESTAMP else EPOCH
    try:
        return epoch + timedelta_new(<int>day, <int>(rest // MICROSECONDS), <int>(rest % MICROSECONDS))
    except OverflowError:
        return Primitive(KINDS_BY_ID[kind], units)


cdef object _primitive(const uint8_t* data, int kind):
    cdef Slice text
    if kind == KIND_NULL:
        return None
    if kind <= KIND_FALSE:
        return kind == KIND_TRUE
    if kind <= KIND_INT64:
        return number(data, kind)
    if kind == KIND_DOUBLE or kind == KIND_FLOAT:
        return _floating(data, kind)
    if kind <= KIND_DECIMAL16:
        return decimal_of(data, kind)
    if kind == KIND_BINARY:
        text = text_of(data)
        return (<const char*>text.data)[:text.size]
    if kind <= KIND_TIMESTAMP_NTZ or kind == KIND_TIME:
        return _moment(data, kind)
    if kind == KIND_UUID:
        return uuid.UUID(bytes=(<const char*>data + 1)[:16])
    return Primitive(KINDS_BY_ID[kind], number(data, kind))


cdef object _typed(const uint8_t* data, int kind):
    """Return a checked primitive value, always as a Primitive."""
    if KIND_DATE <= kind <= KIND_TIMESTAMP_NTZ or kind == KIND_TIME:
        return Primitive(KINDS_BY_ID[kind], number(data, kind))
    value = _primitive(data, kind)
    return value if isinstance(value, Primitive) else Primitive(KINDS_BY_ID[kind], value)


cdef object to_python(Metadata metadata, const uint8_t* data, bint typed):
    """Return a checked value as Python objects."""
    cdef Container container
    cdef Slice text
    cdef uint32_t i
    cdef int basic = data[0] & 3
    if basic == SHORT_STRING or (basic == PRIMITIVE and data[0] >> 2 == KIND_STRING):
        text = text_of(data)
        value = (<const char*>text.data)[:text.size].decode()
        return Primitive(Kind.STRING, value) if typed else value
    if basic == PRIMITIVE:
        return _typed(data, data[0] >> 2) if typed else _primitive(data, data[0] >> 2)
    open_container(data, <size_t>1 << 40, &container)
    if basic == ARRAY:
        return [to_python(metadata, child_at(&container, i), typed) for i in range(container.count)]
    return {
        metadata.name(id_at(&container, i)): to_python(metadata, child_at(&container, i), typed)
        for i in range(container.count)
    }


# A reference to the last converted value's Metadata, or NULL. The next value often has the same metadata. `convert_value` takes
# the reference out and puts it back, so that two threads never use one Metadata at the same time.
cdef void* cached = NULL


cdef Metadata take_cached():
    cdef void* pointer = exchange_pointer(&cached, NULL)
    cdef Metadata names
    if pointer == NULL:
        return Metadata()
    names = <Metadata>pointer
    Py_DECREF(names)            # the reference that the cache had
    return names


cdef int put_cached(Metadata names) except -1:
    cdef void* previous
    Py_INCREF(names)
    previous = exchange_pointer(&cached, <void*>names)
    if previous != NULL:
        Py_DECREF(<Metadata>previous)
    return 0


cdef object convert_value(bytes metadata, bytes value, Conversion convert, void* state):
    cdef Metadata names = take_cached()
    names.load(Slice(<const uint8_t*><const char*>metadata, len(metadata)), metadata, "the metadata")
    raise_wrong(check_whole(&names.names, Slice(<const uint8_t*><const char*>value, len(value)), False), "the value")
    converted_value = convert(names, <const uint8_t*><const char*>value, state)
    put_cached(names)
    return converted_value


cdef list convert_rows(SliceReader metadata, SliceReader value, Conversion convert, void* state):
    cdef Slice names[SLICE_BLOCK]
    cdef Slice values[SLICE_BLOCK]
    cdef Metadata dictionary = Metadata()
    cdef int64_t start = 0, n, i, status
    cdef list rows = []
    if metadata.count != value.count:
        raise SchemaError(f"there are {metadata.count} metadata for {value.count} values")
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
            rows.append(convert(dictionary, values[i].data, state))
        start += n
    return rows


cdef object _to_python(Metadata names, const uint8_t* data, void* typed):
    return to_python(names, data, (<bint*>typed)[0])


def decode(bytes metadata not None, bytes value not None, bint typed=False):
    """Decode one variant to Python objects.

    Args:
        metadata, value: the variant's two parts.
        typed: whether to return every primitive as a ``Primitive``, with its exact type.

    Returns:
        Python objects, with the types that ``fastpq.schema.variant_kinds`` lists.

    Raises:
        FormatError: the bytes break VariantEncoding.md.
        LimitError: arrays and objects are nested deeper than MAX_DEPTH levels.
    """
    return convert_value(metadata, value, _to_python, &typed)


def decode_rows(SliceReader metadata not None, SliceReader value not None, bint typed=False):
    """Decode a column's variants to Python objects. A null value is None.

    Args:
        metadata, value: readers for the metadata and the values, which have equal length.
        typed: as in decode.

    Raises:
        FormatError: a row breaks VariantEncoding.md. The error names the row.
        LimitError: arrays and objects are nested deeper than MAX_DEPTH levels.
    """
    return convert_rows(metadata, value, _to_python, &typed)
