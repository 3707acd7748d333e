"""Encoder that turns Python objects into variants (VariantEncoding.md)."""

from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

cimport numpy as cnp
from fastpq.encodings.views cimport Slice
from fastpq.variant.emit cimport (
    Bytes, Field, bytes_free, finish_array, finish_object, put_decimal, put_integer, put_metadata, put_primitive, put_text,
)
from fastpq.variant.wire cimport (
    DEPTH_LIMIT, KIND_BINARY, KIND_DATE, KIND_DECIMAL4, KIND_DECIMAL8, KIND_DECIMAL16, KIND_DOUBLE, KIND_FALSE, KIND_FLOAT,
    KIND_NULL, KIND_STRING, KIND_TIME, KIND_TIMESTAMP, KIND_TIMESTAMP_NTZ, KIND_TIMESTAMP_NTZ_NANOS, KIND_TRUE, KIND_UUID,
    TOO_DEEP, raise_wrong,
)

import datetime
import decimal
import uuid

import numpy as np

from fastpq.errors import SchemaError
from fastpq.schema.variant_kinds import MAX_DIGITS, Kind, Primitive

cnp.import_array()

cdef object EPOCH = datetime.datetime(1970, 1, 1)
cdef object EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
cdef object MICROSECOND = datetime.timedelta(microseconds=1)
cdef int EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
cdef object LEAST_INT64 = -(1 << 63), LARGEST_INT64 = (1 << 63) - 1
# Bytes that an integer, a date, a time or a timestamp takes after its first byte, by type.
cdef dict WIDTHS = {
    Kind.INT8: 1, Kind.INT16: 2, Kind.INT32: 4, Kind.INT64: 8, Kind.DATE: 4, Kind.TIME: 8, Kind.TIMESTAMP: 8,
    Kind.TIMESTAMP_NTZ: 8, Kind.TIMESTAMP_NANOS: 8, Kind.TIMESTAMP_NTZ_NANOS: 8,
}
# Each decimal type, narrowest first: kind, bytes for the unscaled number, most digits.
cdef tuple DECIMALS = ((KIND_DECIMAL4, 4, 9), (KIND_DECIMAL8, 8, 18), (KIND_DECIMAL16, 16, 38))


cdef class Encoder:
    """An encoder that writes many values one after another. They share one field name dictionary.

    Args:
        names: all field names that the values have, in dictionary order.
    """

    cdef Bytes out
    cdef dict ids
    cdef list names

    def __cinit__(self, names):
        self.names = list(names)
        self.ids = {name: i for i, name in enumerate(self.names)}

    def __dealloc__(self):
        bytes_free(&self.out)

    def add(self, value):
        """Encode one value, and return the size of all values so far, in bytes."""
        self._put(value, 0)
        return self.out.size

    def metadata(self):
        """Return encoded metadata with all names. The flag sorted_strings is set if they are sorted."""
        return _metadata(self.names)

    def take(self):
        """Return all encoded values, one after another."""
        return (<const char*>self.out.data)[:self.out.size] if self.out.size else b""

    cdef int _raise(self, int64_t status) except -1:
        raise_wrong(status, "a variant")
        return 0

    cdef int _put(self, object value, int depth) except -1:
        kind = type(value)
        if value is None:
            return self._plain(KIND_NULL)
        if kind is str:
            return self._text(value)
        if kind is int:
            return self._int(value)
        if kind is float:
            return self._float(value)
        if kind is bool:
            return self._plain(KIND_TRUE if value else KIND_FALSE)
        if isinstance(value, dict):
            return self._object(value, depth)
        if isinstance(value, (list, tuple)):
            return self._array(value, depth)
        return self._other(value)

    cdef int _plain(self, int kind) except -1:
        return self._raise(put_primitive(&self.out, kind, NULL, 0))

    cdef int _text(self, str value) except -1:
        cdef Slice text = _utf8(value)
        return self._raise(put_text(&self.out, KIND_STRING, text))

    cdef int _int(self, value) except -1:
        if LEAST_INT64 <= value <= LARGEST_INT64:
            return self._raise(put_integer(&self.out, value))
        return self._decimal(value, 0, None)

    cdef int _float(self, double value) except -1:
        return self._raise(put_primitive(&self.out, KIND_DOUBLE, &value, 8))

    cdef int _number(self, int kind, value, int width) except -1:
        """Encode an integer in `width` bytes after the type."""
        cdef int64_t limit = <int64_t>((<uint64_t>1 << (8 * width - 1)) - 1)
        if not -limit - 1 <= value <= limit:
            raise SchemaError(f"{value} does not fit the variant type {Kind(kind).name.lower()}")
        cdef int64_t number = value
        return self._raise(put_primitive(&self.out, kind, &number, width))

    cdef int _decimal(self, unscaled, int scale, requested_kind) except -1:
        """Encode a decimal as the requested type, or else as the narrowest type that can hold its digits and scale."""
        digits = len(str(abs(unscaled))) if abs(unscaled).bit_length() <= 128 else MAX_DIGITS + 1
        for kind, width, most in DECIMALS:
            if max(digits, scale) <= most and requested_kind in (None, kind):
                raw = unscaled.to_bytes(width, "little", signed=True)
                return self._raise(put_decimal(&self.out, kind, scale, <const char*><bytes>raw, width))
        raise SchemaError(f"a decimal of {digits} digits and scale {scale} does not fit a variant")

    cdef int _decimal_object(self, value, requested_kind) except -1:
        sign, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int) or exponent < -MAX_DIGITS or len(digits) + exponent > MAX_DIGITS:
            raise SchemaError(f"{value} is not a decimal whose digits and scale are at most {MAX_DIGITS}")
        unscaled = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
        return self._decimal(-unscaled if sign else unscaled, max(-exponent, 0), requested_kind)

    cdef int _array(self, values, int depth) except -1:
        cdef size_t start = self.out.size
        cdef Py_ssize_t i, count = len(values)
        cdef uint32_t* starts
        if depth >= DEPTH_LIMIT:
            self._raise(TOO_DEEP)
        starts = <uint32_t*>malloc((count + 1) * sizeof(uint32_t))
        if starts == NULL:
            raise MemoryError("a variant")
        try:
            for i in range(count):
                starts[i] = <uint32_t>(self.out.size - start)
                self._put(values[i], depth + 1)
            self._raise(finish_array(&self.out, start, <uint32_t>count, starts))
        finally:
            free(starts)
        return 0

    cdef int _object(self, dict values, int depth) except -1:
        cdef size_t start = self.out.size
        cdef Py_ssize_t i = 0, count = len(values)
        cdef Field* fields
        if depth >= DEPTH_LIMIT:
            self._raise(TOO_DEEP)
        fields = <Field*>malloc((count + 1) * sizeof(Field))
        if fields == NULL:
            raise MemoryError("a variant")
        try:
            for name in sorted_names(values):
                fields[i].start = <uint32_t>(self.out.size - start)
                fields[i].id = self.ids[name]
                self._put(values[name], depth + 1)
                i += 1
            self._raise(finish_object(&self.out, start, <uint32_t>count, fields))
        finally:
            free(fields)
        return 0

    cdef int _other(self, value) except -1:
        """Encode a value of a type that ``_put`` leaves to this method. Raise SchemaError if a variant cannot hold it."""
        if isinstance(value, Primitive):
            return self._primitive(value)
        if isinstance(value, decimal.Decimal):
            return self._decimal_object(value, None)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self._binary(bytes(value))
        if isinstance(value, datetime.datetime):
            return self._datetime(value)
        if isinstance(value, datetime.date):
            return self._number(KIND_DATE, value.toordinal() - EPOCH_ORDINAL, 4)
        if isinstance(value, datetime.time):
            return self._time(value)
        if isinstance(value, uuid.UUID):
            return self._raise(put_primitive(&self.out, KIND_UUID, <const char*><bytes>value.bytes, 16))
        if isinstance(value, str):
            return self._text(str(value))
        if isinstance(value, int):
            return self._int(int(value))
        if isinstance(value, float):
            return self._float(value)
        return self._numpy(value)

    cdef int _binary(self, bytes value) except -1:
        cdef Slice text = Slice(<const uint8_t*><const char*>value, len(value))
        return self._raise(put_text(&self.out, KIND_BINARY, text))

    cdef int _datetime(self, value) except -1:
        if type(value) is not datetime.datetime and getattr(value, "nanosecond", 0):
            raise SchemaError(f"{value!r} has nanoseconds: use a Primitive of TIMESTAMP_NANOS or TIMESTAMP_NTZ_NANOS")
        if value.utcoffset() is None:
            return self._number(KIND_TIMESTAMP_NTZ, (value.replace(tzinfo=None) - EPOCH) // MICROSECOND, 8)
        return self._number(KIND_TIMESTAMP, (value - EPOCH_UTC) // MICROSECOND, 8)

    cdef int _time(self, value) except -1:
        if value.tzinfo is not None:
            raise SchemaError("a variant cannot hold a time with a time zone")
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return self._number(KIND_TIME, seconds * 1_000_000 + value.microsecond, 8)

    cdef int _numpy(self, value) except -1:
        """Encode a NumPy scalar that is not a Python float, text or bytes too. Raise SchemaError for all other values."""
        cdef float narrow
        if isinstance(value, np.datetime64):
            return self._datetime64(value)
        if isinstance(value, np.bool_):
            return self._plain(KIND_TRUE if value else KIND_FALSE)
        if isinstance(value, np.integer) and not isinstance(value, np.timedelta64):
            return self._int(int(value))
        if isinstance(value, (np.float32, np.float16)):
            narrow = value
            return self._raise(put_primitive(&self.out, KIND_FLOAT, &narrow, 4))
        raise SchemaError(f"a variant cannot hold a {type(value).__module__}.{type(value).__qualname__}")

    cdef int _datetime64(self, value) except -1:
        unit = np.datetime_data(value.dtype)[0]
        if np.isnat(value):
            return self._plain(KIND_NULL)
        if unit == "D":
            return self._number(KIND_DATE, int(value.astype(np.int64)), 4)
        if value.dtype == np.dtype("M8[ns]"):
            return self._number(KIND_TIMESTAMP_NTZ_NANOS, int(value.astype(np.int64)), 8)
        in_microseconds = value.astype("M8[us]")
        if in_microseconds.astype(value.dtype) != value or unit in ("ps", "fs", "as", "ns"):
            raise SchemaError(f"a variant cannot hold the timestamp {value!r}")
        return self._number(KIND_TIMESTAMP_NTZ, int(in_microseconds.astype(np.int64)), 8)

    cdef int _primitive(self, value) except -1:
        """Encode a Primitive as its own type. Raise SchemaError if its value has another type."""
        kind, inner = Kind(value.kind), value.value
        if kind in WIDTHS and type(inner) is int:
            return self._number(kind, inner, WIDTHS[kind])
        if kind in (Kind.TRUE, Kind.FALSE, Kind.NULL) and inner is {1: True, 2: False, 0: None}[kind]:
            return self._plain(kind)
        if Kind.DECIMAL4 <= kind <= Kind.DECIMAL16 and isinstance(inner, decimal.Decimal):
            return self._decimal_object(inner, kind)
        if kind == Kind.FLOAT and isinstance(inner, (float, np.floating)):
            return self._numpy(np.float32(inner))
        if kind == Kind.DOUBLE and isinstance(inner, float):
            return self._float(inner)
        if kind == Kind.STRING and isinstance(inner, str):
            return self._text(str(inner))
        if kind == Kind.BINARY and isinstance(inner, bytes):
            return self._binary(inner)
        if kind == Kind.UUID and isinstance(inner, uuid.UUID):
            return self._other(inner)
        raise SchemaError(f"the variant type {kind.name.lower()} cannot hold a {type(inner).__name__}")


cdef Slice _utf8(str value) except *:
    cdef Py_ssize_t size = 0
    cdef const char* data
    try:
        data = PyUnicode_AsUTF8AndSize(value, &size)
    except UnicodeEncodeError as error:
        raise SchemaError("a text has a surrogate, which UTF-8 cannot encode") from error
    return Slice(<const uint8_t*>data, <size_t>size)


cpdef list sorted_names(values):
    """Return names sorted by code points, which gives the same order as sorting by UTF-8 bytes.

    Args:
        values: a set of names, or a dict with names as keys.

    Raises:
        SchemaError: a name is not a str.
    """
    for name in values:
        if not isinstance(name, str):
            raise SchemaError(f"the field names of a variant must be str, not {type(name).__name__}")
    return sorted(values)


def collect_names(value, set names not None, int depth=0):
    """Add the field names in a value to a set, at all depths."""
    if isinstance(value, dict):
        if depth >= DEPTH_LIMIT:
            raise_wrong(TOO_DEEP, "a variant")
        names.update(value)
        for inner in value.values():
            if isinstance(inner, (dict, list, tuple)):
                collect_names(inner, names, depth + 1)
    elif isinstance(value, (list, tuple)):
        if depth >= DEPTH_LIMIT:
            raise_wrong(TOO_DEEP, "a variant")
        for inner in value:
            if isinstance(inner, (dict, list, tuple)):
                collect_names(inner, names, depth + 1)


def _metadata(list names not None):
    cdef Bytes out = Bytes(NULL, 0, 0)
    cdef Slice* texts = <Slice*>malloc((len(names) + 1) * sizeof(Slice))
    cdef Py_ssize_t i
    if texts == NULL:
        raise MemoryError("a variant's metadata")
    try:
        for i in range(len(names)):
            texts[i] = _utf8(names[i])
        is_sorted = len(names) > 0 and all(names[i - 1] < names[i] for i in range(1, len(names)))
        raise_wrong(put_metadata(&out, <uint32_t>len(names), texts, is_sorted), "a variant's metadata")
        return (<const char*>out.data)[:out.size]
    finally:
        free(texts)
        bytes_free(&out)
