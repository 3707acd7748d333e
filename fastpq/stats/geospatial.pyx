"""Statistics for GEOMETRY and GEOGRAPHY columns: the WKB values' bounding box and geometry types (Geospatial.md, "Statistics").

Values are ISO WKB in either byte order, in two to four dimensions: Point to GeometryCollection, PolyhedralSurface, TIN and
Triangle, and the curves that SQL/MM defines. EWKB is refused because the specification has no EWKB flags.

There is a box only if the points in the values bound the whole geometries:

- NaN coordinates count in no dimension. If no value has an X or no value has a Y, there is no box. Without Z or M, the box has no
  Z or M.
- Arcs extend beyond their points. There is no box for a CircularString, nor for a geometry with a CircularString inside.
- The edges in a GEOGRAPHY may extend beyond their ends, over the poles or the antimeridian. There is a box only for points. Even
  then there is none if a point lies outside 180 degrees longitude or 90 degrees latitude.
- A GEOGRAPHY's box for points crosses the antimeridian if this makes it narrower.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SLICE_BLOCK, SliceReader, raise_status

from fastpq import format as fmt
from fastpq.errors import SchemaError

cdef enum:
    MOST_LEVELS = 64            # most collections inside each other. This bounds the recursion on hostile bytes.

cdef enum Wrong:
    TRUNCATED = -1
    BAD_ORDER = -2
    EWKB = -3
    BAD_TYPE = -4
    BAD_PART = -5
    TOO_DEEP = -6
    TRAILING = -7

cdef dict MESSAGES = {
    TRUNCATED: "the bytes end early",
    BAD_ORDER: "a byte order that is neither 0 nor 1",
    EWKB: "EWKB flags in the geometry type: Parquet has ISO WKB, as shapely.to_wkb(..., flavor='iso') gives it",
    BAD_TYPE: "a geometry type that ISO WKB does not have",
    BAD_PART: "a part of a type that its collection may not have",
    TOO_DEEP: f"collections nested deeper than {MOST_LEVELS}",
    TRAILING: "bytes after the end of the geometry",
}

# What a geometry type contains: one point, a list of points, a list of rings that are lists of points, or a list of geometries.
cdef enum Shape:
    NONE
    POINT
    POINTS
    RINGS
    PARTS

# Geometry types by their WKB codes.
cdef enum:
    TYPES = 18                  # number of codes, which begin with 0
    TYPE_POINT = 1
    TYPE_MULTIPOINT = 4
    TYPE_COLLECTION = 7
    TYPE_CIRCULAR = 8

cdef int[TYPES] SHAPES = [
    NONE, POINT, POINTS, RINGS, PARTS, PARTS, PARTS, PARTS,
    POINTS, PARTS, PARTS, PARTS, PARTS, NONE, NONE, PARTS, PARTS, RINGS,
]
# For each geometry type, a bit for each type that its parts may have.
cdef uint32_t[TYPES] PART_TYPES = [
    0, 0, 0, 0, 1 << 1, 1 << 2, 1 << 3, 0xFFFFFFFFU,
    0, 1 << 2 | 1 << 8, 1 << 2 | 1 << 8 | 1 << 9, 1 << 2 | 1 << 8 | 1 << 9, 1 << 3 | 1 << 10, 0, 0, 1 << 3, 1 << 17 | 1 << 3, 0,
]
# Number of coordinates that a point has in each of the four dimensions: XY, XYZ, XYM, XYZM.
cdef int[4] WIDTHS = [2, 3, 3, 4]


cdef struct Cursor:
    const uint8_t* at
    size_t left
    bint swap


cdef inline int _read_u32(Cursor* cursor, uint32_t* out) noexcept nogil:
    if cursor.left < 4:
        return TRUNCATED
    memcpy(out, cursor.at, 4)
    if cursor.swap:
        out[0] = out[0] >> 24 | (out[0] >> 8 & 0xFF00) | (out[0] & 0xFF00) << 8 | out[0] << 24
    cursor.at += 4
    cursor.left -= 4
    return 0


cdef inline double _swapped(const uint8_t* at) noexcept nogil:
    cdef uint8_t turned[8]
    cdef double value
    cdef int i
    for i in range(8):
        turned[i] = at[7 - i]
    memcpy(&value, turned, 8)
    return value


cdef int _read_points(Cursor* cursor, uint32_t count, int dimensions, Extent* extent) noexcept nogil:
    cdef int width = WIDTHS[dimensions], axis, i
    cdef uint32_t _
    cdef double value
    if cursor.left // (8 * <size_t>width) < count:
        return TRUNCATED
    for _ in range(count):
        for i in range(width):
            if cursor.swap:
                value = _swapped(cursor.at)
            else:
                memcpy(&value, cursor.at, 8)
            cursor.at += 8
            axis = 3 if i == 2 and dimensions == 2 else i
            if value < extent.lowest[axis]:         # False for NaN
                extent.lowest[axis] = value
            if value > extent.highest[axis]:
                extent.highest[axis] = value
            if i == 0 and 0 <= value < extent.lowest_east:
                extent.lowest_east = value
            if i == 0 and 0 > value > extent.highest_west:
                extent.highest_west = value
    cursor.left -= 8 * <size_t>width * count
    return 0


cdef int _read_geometry(Cursor* cursor, Extent* extent, uint32_t allowed, int level) noexcept nogil:
    """Read one geometry and extend extent by its points. Return 0 or a member of Wrong.

    allowed: a bit for each geometry type that is allowed at this place. level: number of collections around the geometry.
    """
    cdef uint32_t code = 0, type, dimensions, count = 1, points = 0, _
    cdef int status, shape
    if cursor.left < 1:
        return TRUNCATED
    if cursor.at[0] > 1:
        return BAD_ORDER
    cursor.swap = cursor.at[0] == 0
    cursor.at += 1
    cursor.left -= 1
    status = _read_u32(cursor, &code)
    if status < 0:
        return status
    type = code % 1000
    dimensions = code // 1000
    if type >= TYPES or dimensions > 3 or SHAPES[type] == NONE:
        return EWKB if code & <uint32_t>0xE0000000U else BAD_TYPE
    if not (allowed >> type) & 1:
        return BAD_PART
    if level == 0:
        extent.types |= <uint64_t>1 << _bit_of(type, dimensions)
    extent.boxless |= type == TYPE_CIRCULAR
    shape = SHAPES[type]
    if shape == POINT:
        return _read_points(cursor, 1, dimensions, extent)
    status = _read_u32(cursor, &count)
    if status < 0:
        return status
    if shape == POINTS:
        return _read_points(cursor, count, dimensions, extent)
    if shape == PARTS and level >= MOST_LEVELS:
        return TOO_DEEP
    for _ in range(count):      # A ring takes at least four bytes and a part nine, so a false count ends as TRUNCATED.
        if shape == PARTS:
            status = _read_geometry(cursor, extent, PART_TYPES[type], level + 1)
        else:
            status = _read_u32(cursor, &points)
            if status == 0:
                status = _read_points(cursor, points, dimensions, extent)
        if status < 0:
            return status
    return 0


cdef inline int _bit_of(uint32_t type, uint32_t dimensions) noexcept nogil:
    # Types 1 to 12 and 15 to 17 fit sixteen places.
    return <int>(dimensions * 16 + (type if type <= 12 else type - 2))


cdef int _read_value(Slice value, Extent* extent) noexcept nogil:
    cdef Cursor cursor
    cdef int status
    cursor.at = value.data
    cursor.left = value.size
    status = _read_geometry(&cursor, extent, 0xFFFFFFFFU, 0)
    return TRAILING if status == 0 and cursor.left else status


def are_geometries(SliceReader values not None):
    """Return whether every value that is not null is WKB. EWKB counts as WKB, although GeospatialBounds refuses it."""
    cdef Slice block[SLICE_BLOCK]
    cdef Extent extent
    cdef int64_t n, i, read = 0, row = 0
    cdef int status = 0
    memset(&extent, 0, sizeof(Extent))
    with nogil:
        while row < values.count and status == 0:
            n = min(<int64_t>SLICE_BLOCK, values.count - row)
            read = values.read(row, n, block)
            if read < 0:
                break
            for i in range(n):
                if block[i].data != NULL and status == 0:
                    status = _read_value(block[i], &extent)
                    status = 0 if status == EWKB else status
            row += n
    raise_status(read)
    return status == 0


cdef class GeospatialBounds:
    """Collects the bounding box and the geometry types of a column's values, some rows at a time.

    Args:
        geography: whether the column is a GEOGRAPHY. Otherwise it is a GEOMETRY.
    """

    def __cinit__(self, bint geography):
        cdef int axis
        self.geography = geography
        for axis in range(4):
            self.extent.lowest[axis] = INFINITY
            self.extent.highest[axis] = -INFINITY
        self.extent.lowest_east = INFINITY
        self.extent.highest_west = -INFINITY

    def observe(self, SliceReader values not None, int64_t start, int64_t stop):
        """Extend the bounds by the values in the rows [start, stop). Nulls are skipped.

        Raises:
            SchemaError: a value is not ISO WKB. The error names its row.
        """
        cdef Slice block[SLICE_BLOCK]
        cdef int64_t n, i, read = 0, row = start
        cdef int status = 0
        with nogil:
            while row < stop and status == 0:
                n = min(<int64_t>SLICE_BLOCK, stop - row)
                read = values.read(row, n, block)
                if read < 0:
                    break
                for i in range(n):
                    if block[i].data == NULL:
                        continue
                    status = _read_value(block[i], &self.extent)
                    if status < 0:
                        row += i
                        break
                    self.count += 1
                if status == 0:
                    row += n
        raise_status(read)
        if status < 0:
            raise SchemaError(f"row {row} is not a geometry in WKB: {MESSAGES[status]}")

    def statistics(self):
        """Return the GeospatialStatistics for the observed values, or None if there is no value."""
        if not self.count:
            return None
        types = sorted(
            1000 * (place // 16) + (place % 16 if place % 16 <= 12 else place % 16 + 2)
            for place in range(64) if self.extent.types >> place & 1
        )
        return fmt.GeospatialStatistics(bbox=self._box(), geospatial_types=types)

    def _box(self):
        cdef Extent* extent = &self.extent
        if extent.boxless or not (_has(extent, 0) and _has(extent, 1)):
            return None
        if self.geography and not self._is_on_the_globe():
            return None
        box = fmt.BoundingBox(
            xmin=extent.lowest[0], xmax=extent.highest[0], ymin=extent.lowest[1], ymax=extent.highest[1]
        )
        if self.geography and self._wraps():
            box.xmin, box.xmax = extent.lowest_east, extent.highest_west
        if _has(extent, 2):
            box.zmin, box.zmax = extent.lowest[2], extent.highest[2]
        if _has(extent, 3):
            box.mmin, box.mmax = extent.lowest[3], extent.highest[3]
        return box

    cdef bint _is_on_the_globe(self):
        """Return whether all values are Points or MultiPoints within the ranges of longitude and latitude."""
        cdef Extent* extent = &self.extent
        cdef uint64_t points = 0x0001000100010001 * <uint64_t>(1 << TYPE_POINT | 1 << TYPE_MULTIPOINT)
        return (
            extent.types & ~points == 0 and extent.lowest[0] >= -180 and extent.highest[0] <= 180
            and extent.lowest[1] >= -90 and extent.highest[1] <= 90
        )

    cdef bint _wraps(self):
        """Return whether the box across the antimeridian is narrower than the box across longitude 0."""
        cdef Extent* extent = &self.extent
        if extent.lowest[0] >= 0 or extent.highest[0] < 0:
            return False
        return 360 - (extent.lowest_east - extent.highest_west) < extent.highest[0] - extent.lowest[0]


cdef bint _has(const Extent* extent, int axis) noexcept:
    return extent.lowest[axis] <= extent.highest[axis]
