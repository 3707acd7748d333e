"""The bounding box and geometry types of WKB values (Geospatial.md, "Statistics")."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


# The range that each coordinate has over all values.
cdef struct Extent:
    double lowest[4]            # smallest x, y, z and m. lowest > highest for a coordinate without values.
    double highest[4]           # largest x, y, z and m
    double lowest_east          # smallest x that is not negative: xmin for a box across the antimeridian
    double highest_west         # largest x below 0: xmax for a box across the antimeridian
    uint64_t types              # a bit for each pair of dimensions (four) and geometry type (sixteen)
    bint boxless                # whether a value holds arcs, so that its points do not bound the whole geometry


cdef class GeospatialBounds:
    cdef Extent extent
    cdef bint geography
    cdef readonly int64_t count     # number of observed values, without nulls
    cdef bint _is_on_the_globe(self)
    cdef bint _wraps(self)
