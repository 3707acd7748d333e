"""Conversion between Python's dates and times, and the numbers in columns.

It uses the module datetime's C interface, so that no value needs a Python call.
"""

from cpython.datetime cimport (
    PyDate_CheckExact, PyTime_CheckExact, date_day, date_month, date_year, import_datetime, time_hour, time_microsecond,
    time_minute, time_new, time_second, time_tzinfo,
)
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t, uint8_t, uint64_t

cimport numpy as cnp

import numpy as np

from fastpq.errors import SchemaError

cnp.import_array()
import_datetime()

cdef enum:
    # Number of times in the cache. All rows with one time share an object, and few columns have many distinct times.
    PLACES = 1024

cdef int64_t DAY = 86_400_000_000       # microseconds in a day
cdef int64_t EPOCH = 719_468            # days from 0000-03-01 to 1970-01-01


cdef PyObject** _values_of(cnp.ndarray array, str name) except NULL:
    if array.ndim != 1 or array.dtype != object or not array.flags.c_contiguous:
        raise SchemaError("the objects are not a contiguous, one-dimensional array", column=name or None)
    return <PyObject**> cnp.PyArray_DATA(array)


cdef inline int64_t _day(int64_t year, int64_t month, int64_t day) noexcept nogil:
    """Return the number of days from 1970-01-01 to a date in the years 1 to 9999.

    Years begin in March here, so that leap days come last.
    """
    cdef int64_t months = month - 3 if month > 2 else month + 9
    cdef int64_t years = year if month > 2 else year - 1
    return 365 * years + years // 4 - years // 100 + years // 400 + (153 * months + 2) // 5 + day - 1 - EPOCH


def days_of(cnp.ndarray array not None, str name):
    """Return dates as days since 1970-01-01, int64, 0 where null.

    Args:
        array: datetime.date objects. None and numpy.ma.masked are null. It is one-dimensional and contiguous.
        name: column name, for errors.

    Raises:
        SchemaError: a value has another type. A subclass counts as another type.
    """
    cdef PyObject** values = _values_of(array, name)
    cdef int64_t count = array.shape[0], i
    cdef object masked = np.ma.masked, value
    days = np.zeros(count, np.int64)
    cdef int64_t* out = <int64_t*> cnp.PyArray_DATA(days)
    for i in range(count):
        if values[i] == NULL or values[i] == <PyObject*> None or values[i] == <PyObject*> masked:
            continue
        value = <object> values[i]
        if not PyDate_CheckExact(value):
            raise SchemaError(f"value {i} is a {type(value).__name__}, not a date", column=name or None)
        out[i] = _day(date_year(value), date_month(value), date_day(value))
    return days


def microseconds_of(cnp.ndarray array not None, str name):
    """Return times as microseconds since midnight, int64, 0 where null.

    Args:
        array: datetime.time objects. None and numpy.ma.masked are null. It is one-dimensional and contiguous.
        name: column name, for errors.

    Raises:
        SchemaError: a value has another type or a time zone. A subclass counts as another type.
    """
    cdef PyObject** values = _values_of(array, name)
    cdef int64_t count = array.shape[0], i, minutes
    cdef object masked = np.ma.masked, value
    times = np.zeros(count, np.int64)
    cdef int64_t* out = <int64_t*> cnp.PyArray_DATA(times)
    for i in range(count):
        if values[i] == NULL or values[i] == <PyObject*> None or values[i] == <PyObject*> masked:
            continue
        value = <object> values[i]
        if not PyTime_CheckExact(value):
            raise SchemaError(f"value {i} is a {type(value).__name__}, not a time", column=name or None)
        if time_tzinfo(value) is not None:
            raise SchemaError(f"value {i} is a time with a time zone", column=name or None)
        minutes = time_hour(value) * 60 + time_minute(value)
        out[i] = (minutes * 60 + time_second(value)) * 1_000_000 + time_microsecond(value)
    return times


def times_of(cnp.ndarray microseconds not None, present):
    """Return times as an array of datetime.time, None where not present. Rows with the same time may share an object.

    Args:
        microseconds: microseconds since midnight, shape (n,), int64, contiguous.
        present: shape (n,), bool, contiguous, or None if all values are present.

    Raises:
        SchemaError: a present value is not within one day.
    """
    if microseconds.ndim != 1 or microseconds.dtype != np.int64 or not microseconds.flags.c_contiguous:
        raise SchemaError("the microseconds are not a contiguous int64 array")
    cdef int64_t count = microseconds.shape[0], i, value
    cdef const int64_t* values = <const int64_t*> cnp.PyArray_DATA(microseconds)
    cdef const uint8_t* there = NULL
    if present is not None:
        if present.shape != (count,) or present.dtype != np.bool_ or not present.flags.c_contiguous:
            raise SchemaError(f"present is not a contiguous array of {count} booleans")
        there = <const uint8_t*> cnp.PyArray_DATA(present)
    array = np.empty(count, object)
    cdef PyObject** out = <PyObject**> cnp.PyArray_DATA(array)
    cdef int64_t cached[PLACES]             # time in each cache slot, -1 if the slot is empty
    cdef int64_t rows[PLACES]               # row that has this time's object
    cdef int place
    cdef object time
    for place in range(PLACES):
        cached[place] = -1
    for i in range(count):
        if there != NULL and not there[i]:
            continue                        # numpy.empty has filled the array with None
        value = values[i]
        if value < 0 or value >= DAY:
            raise SchemaError(f"value {i} ({value} microseconds) is not a time of day")
        place = <int> ((<uint64_t> value * <uint64_t> 0x9E3779B97F4A7C15) >> 54)
        if cached[place] == value:
            time = <object> out[rows[place]]
        else:
            time = _time(value)
            cached[place], rows[place] = value, i
        Py_INCREF(time)
        Py_XDECREF(out[i])
        out[i] = <PyObject*> time
    return array


cdef object _time(int64_t microseconds):
    cdef int64_t seconds = microseconds // 1_000_000
    return time_new(
        <int> (seconds // 3600), <int> (seconds // 60 % 60), <int> (seconds % 60), <int> (microseconds % 1_000_000), None)
