"""Bounding box and geometry types of WKB values."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


# Smallest and largest of x, y, z and m; lowest > highest where there was none.
cdef struct Extent:
    double lowest[4]
    double highest[4]
    double lowest_east          # of X from 0 on, and of X below 0: the sides of a box that wraps around
    double highest_west
    uint64_t types              # a bit for each of the four dimensions of each of sixteen types
    bint boxless                # something of which the points do not bound the whole


cdef class GeospatialBounds:
    cdef Extent extent
    cdef bint geography
    cdef readonly int64_t count     # values that were observed
    cdef bint _is_on_the_globe(self)
    cdef bint _wraps(self)
