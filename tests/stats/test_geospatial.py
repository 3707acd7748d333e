"""GEOMETRY and GEOGRAPHY: boxes and types of WKB, with GEOS as the referee, and their logical types in files and in Arrow."""

from __future__ import annotations

import contextlib
import io
import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpq
from fastpq import format as fmt
from fastpq.arrays.layouts import BinaryOffsets
from fastpq.arrays.slices import SliceReader
from fastpq.errors import SchemaError
from fastpq.schema.logical import logical_from_thrift, logical_to_thrift
from fastpq.schema.types import ColumnType, Geography, Geometry, Type
from fastpq.stats.geospatial import GeospatialBounds
from tests.requirements import DATA, needs_data

FOLDER = DATA / "parquet-testing/data/geospatial"
WILD = DATA / "wild"
NAN = math.nan
BOX_FIELDS = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax", "mmin", "mmax")


def reader(values: list[bytes | None]) -> SliceReader:
    ends = np.cumsum([0, *(len(value or b"") for value in values)])
    validity = np.packbits(np.array([value is not None for value in values], np.bool_), bitorder="little")
    data = np.frombuffer(b"".join(value or b"" for value in values), np.uint8)
    return SliceReader(BinaryOffsets(ends.astype(np.int64), data), validity)


def statistics(values: list[bytes | None], geography: bool = False) -> fmt.GeospatialStatistics | None:
    bounds = GeospatialBounds(geography)
    bounds.observe(reader(values), 0, len(values))
    assert bounds.count == sum(value is not None for value in values)
    return bounds.statistics()


def box(found: fmt.GeospatialStatistics | None) -> tuple[float | None, ...] | None:
    return None if found is None or found.bbox is None else tuple(getattr(found.bbox, name) for name in BOX_FIELDS)


def wkb(text: str, order: int = 1) -> bytes:
    made: bytes = shapely.to_wkb(shapely.from_wkt(text), byte_order=order, flavor="iso")
    return made


def point(*coordinates: float, code: int | None = None, order: str = "<") -> bytes:
    code = {2: 1, 3: 1001, 4: 3001}[len(coordinates)] if code is None else code
    return struct.pack(f"{order}BI{len(coordinates)}d", order == "<", code, *coordinates)


# ---- against GEOS

finite = st.floats(-1e6, 1e6)


@st.composite
def geometries(draw: Any, depth: int = 2) -> Any:
    has_z = draw(st.booleans())
    coordinates = st.tuples(finite, finite, finite) if has_z else st.tuples(finite, finite)
    rings = st.lists(coordinates, min_size=3, max_size=5)
    kinds = [
        coordinates.map(shapely.Point),
        st.lists(coordinates, min_size=2, max_size=5).map(shapely.LineString),
        rings.map(shapely.Polygon),
        st.lists(coordinates, max_size=4).map(shapely.MultiPoint),
        st.lists(st.lists(coordinates, min_size=2, max_size=4), max_size=3).map(shapely.MultiLineString),
        st.lists(rings.map(shapely.Polygon), max_size=3).map(shapely.MultiPolygon),
        st.sampled_from([shapely.Point(), shapely.LineString(), shapely.Polygon(), shapely.GeometryCollection()]),
    ]
    if depth:
        kinds.append(st.lists(geometries(depth - 1), max_size=3).map(shapely.GeometryCollection))
    return draw(st.one_of(kinds))


@settings(max_examples=300)
@given(st.lists(geometries(), max_size=5), st.integers(0, 1))
def test_boxes_and_types_agree_with_geos(shapes: list[Any], order: int) -> None:
    raw = [shapely.to_wkb(shape, byte_order=order, flavor="iso") for shape in shapes]
    found = statistics([*raw, None])
    if not shapes:
        assert found is None
        return
    assert found is not None
    assert found.geospatial_types == sorted({struct.unpack("<I" if order else ">I", value[1:5])[0] for value in raw})
    xmin, ymin, xmax, ymax = shapely.total_bounds(shapes)
    if math.isnan(xmin):
        assert found.bbox is None
        return
    z = [value for value in shapely.get_coordinates(shapes, include_z=True)[:, 2] if not math.isnan(value)]
    expected = (xmin, xmax, ymin, ymax, min(z, default=None), max(z, default=None), None, None)
    assert box(found) == expected


@settings(max_examples=300)
@given(geometries(), st.data())
def test_altered_bytes_end_in_a_box_or_a_typed_error(shape: Any, data: Any) -> None:
    raw = bytearray(shapely.to_wkb(shape, flavor="iso"))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    altered = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    with contextlib.suppress(SchemaError):
        found = statistics([altered])
        assert found is not None


# ---- rules of Geospatial.md


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([point(1, NAN)], None),
        ([point(1, NAN), point(NAN, 2)], (1, 1, 2, 2, None, None, None, None)),
        ([point(1, 2, NAN)], (1, 1, 2, 2, None, None, None, None)),
        ([point(1, 2, 3), point(4, 5)], (1, 4, 2, 5, 3, 3, None, None)),
        ([point(1, 2, 3, code=2001)], (1, 1, 2, 2, None, None, 3, 3)),
        ([point(1, 2, 3, 4)], (1, 1, 2, 2, 3, 3, 4, 4)),
        ([point(1, 2, 3, 4, order=">")], (1, 1, 2, 2, 3, 3, 4, 4)),
        ([point(NAN, NAN)], None),
        ([point(math.inf, -math.inf)], (math.inf, math.inf, -math.inf, -math.inf, None, None, None, None)),
        ([wkb("LINESTRING EMPTY"), wkb("POINT (1 2)")], (1, 1, 2, 2, None, None, None, None)),
    ],
)
def test_boxes(values: list[bytes | None], expected: tuple[float | None, ...] | None) -> None:
    assert box(statistics(values)) == expected


def test_geographies_wrap_around_where_that_is_narrower() -> None:
    assert box(statistics([point(179, 1), point(-178, 2), point(170, 3)], geography=True)) == (170, -178, 1, 3, *[None] * 4)
    assert box(statistics([point(179, 1), point(-178, 2), point(170, 3)])) == (-178, 179, 1, 3, *[None] * 4)
    assert box(statistics([point(10, 1), point(-20, 2)], geography=True)) == (-20, 10, 1, 2, *[None] * 4)
    assert box(statistics([point(-180, 1), point(180, 2)], geography=True)) == (180, -180, 1, 2, *[None] * 4)


@settings(max_examples=200)
@given(st.lists(st.floats(-180, 180), min_size=1, max_size=6))
def test_boxes_of_geographies_hold_their_points(longitudes: list[float]) -> None:
    found = box(statistics([point(x, 0) for x in longitudes], geography=True))
    assert found is not None
    assert all(holds(found[0] or 0, found[1] or 0, x) for x in longitudes)
    width = (found[1] or 0) - (found[0] or 0)
    assert width % 360 <= max(longitudes) - min(longitudes) or width == 360


def collection(code: int, *parts: bytes) -> bytes:
    return struct.pack("<BII", 1, code, len(parts)) + b"".join(parts)


LINE = wkb("LINESTRING (1 2, 3 4)")
ARC = struct.pack("<BII6d", 1, 8, 3, 0, 0, 1, 1, 2, 0)
TRIANGLE = struct.pack("<BIII8d", 1, 17, 1, 4, 0, 0, 1, 1, 2, 0, 0, 0)


def test_other_types() -> None:
    """Surfaces have boxes; arcs lie beyond their points."""
    triangles = collection(16, TRIANGLE)
    found = statistics([TRIANGLE, triangles, collection(15, wkb("POLYGON ((0 0, 5 5, 2 0, 0 0))"))])
    assert found is not None
    assert found.geospatial_types == [15, 16, 17]
    assert box(found) == (0, 5, 0, 5, None, None, None, None)
    compound = collection(9, LINE, ARC)
    for arcs, code in ((ARC, 8), (compound, 9), (collection(11, compound), 11), (collection(7, ARC), 7)):
        found = statistics([arcs, point(1, 2)])
        assert found is not None
        assert found.bbox is None
        assert found.geospatial_types == [1, code]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"", "end early"),
        (b"\x01\x01", "end early"),
        (b"\x02" + point(1, 2)[1:], "byte order"),
        (point(1, 2)[:-1], "end early"),
        (point(1, 2) + b"\x00", "after the end"),
        (struct.pack("<BI", 1, 0), "geometry type"),
        (struct.pack("<BI", 1, 13), "geometry type"),
        (struct.pack("<BI", 1, 18), "geometry type"),
        (struct.pack("<BI", 1, 4001), "geometry type"),
        (struct.pack("<BI", 1, 0xFFFFFFFF), "EWKB"),
        (shapely.to_wkb(shapely.Point(1, 2, 3), flavor="extended"), "EWKB.*flavor='iso'"),
        (shapely.to_wkb(shapely.set_srid(shapely.Point(1, 2), 4326), include_srid=True), "EWKB"),
        (struct.pack("<BII", 1, 2, 0xFFFFFFFF), "end early"),
        (struct.pack("<BII", 1, 3, 0xFFFFFFFF), "end early"),
        (struct.pack("<BII", 1, 7, 0xFFFFFFFF), "end early"),
        (struct.pack("<BIII", 1, 3, 1, 0x20000000), "end early"),
        (collection(4, LINE), "part of a type"),
        (collection(6, point(1, 2)), "part of a type"),
    ],
)
def test_what_is_no_wkb(value: bytes, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        statistics([point(1, 2), value])


def test_depth() -> None:
    deep = point(1, 2)
    for _ in range(64):
        deep = collection(7, deep)
    assert box(statistics([deep])) == (1, 1, 2, 2, None, None, None, None)
    with pytest.raises(SchemaError, match="deeper"):
        statistics([collection(7, deep)])
    for _ in range(100_000):
        deep = struct.pack("<BII", 1, 7, 1) + deep if len(deep) < 10_000 else deep
    with pytest.raises(SchemaError, match="deeper"):
        statistics([deep])


@pytest.mark.parametrize(
    ("values", "has_box"),
    [
        ([point(-180, -90), point(180, 90)], True),
        ([wkb("MULTIPOINT (1 2, 3 4)"), point(1, 2, 3)], True),
        ([point(180.1, 0)], False),
        ([point(0, -90.1)], False),
        ([LINE], False),
        ([point(1, 2), wkb("POLYGON ((170 0, -170 0, -170 10, 170 0))")], False),
        ([collection(7, point(1, 2))], False),
    ],
)
def test_geography(values: list[bytes | None], has_box: bool) -> None:
    found = statistics(values, geography=True)
    assert found is not None
    assert found.geospatial_types
    assert (found.bbox is not None) == has_box


def holds(low: float, high: float, x: float) -> bool:
    return low <= x <= high if low <= high else x >= low or x <= high


# ---- files


def stored_geo(data: bytes, column: int, group: int = 0) -> dict[str, Any] | None:
    found = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(group).column(column).geo_statistics
    return None if found is None else found.to_dict()


def assert_same_box(ours: Any, stored: Any, logical: Any) -> None:
    """Boxes of geographies were made by S2, which computes on the sphere and rounds outwards."""
    rounding = 1e-9 if isinstance(logical, Geography) else 0
    for one, other in zip(box(ours) or (), box(stored) or (), strict=True):
        assert (one is None) == (other is None)
        assert one is None or other is None or abs(one - other) <= rounding


@needs_data
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.parquet")), ids=lambda path: path.stem)
def test_files_of_parquet_testing(path: Path) -> None:
    """The values, the statistics that are stored, and ours of the same values."""
    truth = pq.ParquetFile(path)
    with fastpq.ParquetFile(path) as file:
        descriptor = file.schema.columns[-1]
        assert isinstance(descriptor.logical_type, Geometry | Geography)
        for group in range(truth.num_row_groups):
            table = file.read([descriptor.name], row_groups=[group])
            array = pa.array(table[descriptor.name])
            values = (array.storage if isinstance(array, pa.ExtensionArray) else array).to_pylist()
            assert values == truth.read_row_group(group, [descriptor.name]).column(0).to_pylist()
            stored = file.metadata.row_group(group).column(descriptor.index).geospatial_statistics
            ours = statistics(values, isinstance(descriptor.logical_type, Geography))
            if stored is not None and ours is not None:
                assert ours.geospatial_types == stored.geospatial_types
            if stored is not None and stored.bbox is not None and ours is not None and ours.bbox is not None:
                assert_same_box(ours, stored, descriptor.logical_type)
            sink = io.BytesIO()
            fastpq.write_table(table, sink)
            written = stored_geo(sink.getvalue(), 0)
            assert (None if written is None else written["geospatial_types"]) == (None if ours is None else ours.geospatial_types)
            chunk = pq.ParquetFile(io.BytesIO(sink.getvalue())).metadata.row_group(0).column(0)
            assert not chunk.statistics.has_min_max
            assert chunk.statistics.null_count == values.count(None)


def wild() -> list[Any]:
    path = WILD / "manifest.json"
    entries = json.loads(path.read_text()) if path.exists() else []
    return [entry["file"] for entry in entries if "stats:geospatial" in entry["features"]]


@pytest.mark.parametrize("name", wild())
def test_statistics_in_the_wild(name: str) -> None:
    with fastpq.ParquetFile(WILD / name) as file:
        for descriptor in file.schema.columns:
            if not isinstance(descriptor.logical_type, Geometry | Geography):
                continue
            for group in range(file.num_row_groups):
                values = file.read([descriptor.index], row_groups=[group]).columns[0].to_pylist()
                stored = file.metadata.row_group(group).column(descriptor.index).geospatial_statistics
                ours = statistics(values, isinstance(descriptor.logical_type, Geography))
                assert ours is not None
                if stored is not None and stored.geospatial_types:
                    assert ours.geospatial_types == sorted(stored.geospatial_types)
                if stored is not None and stored.bbox is not None and ours.bbox is not None:
                    assert_same_box(ours, stored, descriptor.logical_type)


GEOMETRY = ColumnType(Type.BYTE_ARRAY, logical=Geometry())
LOGICAL = [
    Geometry(), Geometry("EPSG:5070"), Geometry("srid:5070"), Geometry('{"type":"ProjectedCRS"}'), Geometry("projjson:key"),
    Geography(), Geography("OGC:CRS83", "KARNEY"), Geography(None, "SPHERICAL"),
]


@pytest.mark.parametrize("logical", LOGICAL)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_written_files(logical: Any, version: Any) -> None:
    values = [point(1, 2), None, point(3, 4, 5)] * 10
    table = {"g": np.ma.MaskedArray(np.array(values, object), [value is None for value in values])}
    sink = io.BytesIO()
    type_ = ColumnType(Type.BYTE_ARRAY, logical=logical)
    fastpq.write_table(table, sink, schema={"g": type_}, data_page_version=version, row_group_size=15)
    with fastpq.ParquetFile(sink.getvalue()) as file:
        assert file.schema.columns[0].type == type_
        assert file.read().columns[0].to_pylist() == values
        assert file.num_row_groups == 2
    metadata = pq.ParquetFile(io.BytesIO(sink.getvalue()))
    text = str(metadata.schema.column(0).logical_type)
    assert text.startswith(type(logical).__name__)
    assert (logical.crs or "") in text
    for group in range(2):
        assert stored_geo(sink.getvalue(), 0, group) == {
            "geospatial_types": [1, 1001], "xmin": 1, "xmax": 3, "ymin": 2, "ymax": 4, "zmin": 5, "zmax": 5,
            "mmin": None, "mmax": None,
        }


def test_statistics_on_request_and_values_that_are_none() -> None:
    values = {"g": np.array([point(1, 2)], object)}
    sink = io.BytesIO()
    fastpq.write_table(values, sink, schema={"g": GEOMETRY}, write_statistics=False)
    assert stored_geo(sink.getvalue(), 0) is None
    nothing = {"g": np.ma.MaskedArray(np.array([b""], object), [True])}
    fastpq.write_table(nothing, sink := io.BytesIO(), schema={"g": GEOMETRY})
    assert stored_geo(sink.getvalue(), 0) is None
    for statistics_too in (True, False):
        wrong = {"g": np.array([point(1, 2), b"POINT (1 2)"], object)}
        with pytest.raises(SchemaError, match="row 1 is not a geometry"):
            fastpq.write_table(wrong, io.BytesIO(), schema={"g": GEOMETRY}, write_statistics=statistics_too)


# ---- logical types


@pytest.mark.parametrize("logical", LOGICAL)
def test_annotations(logical: Any) -> None:
    union, converted, scale, precision = logical_to_thrift(logical)
    assert (converted, scale, precision) == (None, None, None)
    element = fmt.SchemaElement(name="g", type=Type.BYTE_ARRAY, logicalType=union)
    assert logical_from_thrift(element) == logical


def test_annotations_that_are_unknown_or_wrong() -> None:
    unknown = fmt.LogicalType(GEOGRAPHY=fmt.GeographyType(algorithm=9))
    assert logical_from_thrift(fmt.SchemaElement(name="g", type=Type.BYTE_ARRAY, logicalType=unknown)) is None
    number = fmt.LogicalType(GEOMETRY=fmt.GeometryType())
    assert logical_from_thrift(fmt.SchemaElement(name="g", type=Type.INT32, logicalType=number)) is None
    for wrong in (Geography(None, "LINEAR"), Geometry()):  # type: ignore[arg-type]
        with pytest.raises(SchemaError):
            ColumnType(Type.BYTE_ARRAY if isinstance(wrong, Geography) else Type.DOUBLE, logical=wrong)


@pytest.mark.parametrize(
    ("metadata", "logical"),
    [
        ("", Geometry()),
        ("{}", Geometry()),
        ('{"crs": null}', Geometry()),
        ('{"crs": "OGC:CRS84"}', Geometry()),
        ('{"crs": {"id": {"authority": "OGC", "code": "CRS84"}}}', Geometry()),
        ('{"crs": {"type": "X"}, "crs_type": "projjson"}', Geometry('{"type":"X"}')),
        ('{"crs": "5070", "crs_type": "srid"}', Geometry("srid:5070")),
        ('{"crs": "EPSG:5070", "edges": "planar"}', Geometry("EPSG:5070")),
        ('{"edges": "spherical"}', Geography(None, "SPHERICAL")),
        ('{"crs": "EPSG:4326", "edges": "vincenty"}', Geography("EPSG:4326", "VINCENTY")),
    ],
)
def test_geoarrow(metadata: str, logical: Any) -> None:
    """A field as geopandas and others export it, written, and read by pyarrow."""
    extension = {b"ARROW:extension:name": b"geoarrow.wkb", b"ARROW:extension:metadata": metadata.encode()}
    field = pa.field("g", pa.binary(), metadata=extension)
    table = pa.table([pa.array([point(1, 2), None])], schema=pa.schema([field]))
    sink = io.BytesIO()
    fastpq.write_table(table, sink)
    with fastpq.ParquetFile(sink.getvalue()) as file:
        assert file.schema.columns[0].logical_type == logical
        found = file.read()
    again = pa.table(found).schema.field("g")
    assert again.metadata[b"ARROW:extension:name"] == b"geoarrow.wkb"
    told = json.loads(again.metadata[b"ARROW:extension:metadata"])
    assert told.get("edges", "planar").upper() == (getattr(logical, "algorithm", None) or "PLANAR")
    fastpq.write_table(pa.table(found), second := io.BytesIO())
    with fastpq.ParquetFile(second.getvalue()) as file:
        assert file.schema.columns[0].logical_type == logical


# Extension metadata of geoarrow.wkb before version 1.0 (a count, then keys and values), and of other forms.
ODD_METADATA = [b"\1\0\0\0\3\0\0\0crs\4\0\0\0EPSG", b"{", b"[]", b"\xff", b'{"edges": "x"}', b'{"edges": ["spherical"]}']


@pytest.mark.parametrize("kind", ["column", "list", "dictionary"])
@pytest.mark.parametrize(
    ("metadata", "value"),
    [*((metadata, point(1, 2)) for metadata in ODD_METADATA), (b"{}", b"no WKB at all"), (b"", b""), (b"{}", point(1, 2)[:-1])],
)
def test_geoarrow_of_another_form_is_bytes(metadata: bytes, value: bytes, kind: str) -> None:
    """Read, handed over and written back, as bytes with the extension type."""
    extension = {b"ARROW:extension:name": b"geoarrow.wkb", b"ARROW:extension:metadata": metadata}
    values = pa.array([point(1, 2), None, value, value])
    field = pa.field("g", values.type, metadata=extension)
    if kind == "list":
        values = pa.ListArray.from_arrays(pa.array([0, 1, 1, 4], pa.int32()), values, type=pa.list_(field))
        field = pa.field("g", values.type)
    if kind == "dictionary":
        values = values.dictionary_encode()
        field = field.with_type(values.type)
    table = pa.table([pa.chunked_array([values[:2], values[2:]])], schema=pa.schema([field]))
    fastpq.write_table(table, sink := io.BytesIO(), arrow_schema=True)
    with fastpq.ParquetFile(sink.getvalue()) as file:
        assert file.schema.columns[0].logical_type is None
        found = file.read()
    again = pa.table(found)
    assert again.schema.equals(table.schema, check_metadata=kind != "dictionary")    # GeoArrow has no dictionaries
    assert again.equals(table)
    fastpq.write_table(again, second := io.BytesIO(), arrow_schema=True)
    assert fastpq.read_table(second.getvalue()).equals(found)


def test_ewkb_is_refused_for_another_reason() -> None:
    extension = {b"ARROW:extension:name": b"geoarrow.wkb", b"ARROW:extension:metadata": b"{}"}
    ewkb = shapely.to_wkb(shapely.Point(1, 2, 3), flavor="extended")
    table = pa.table([pa.array([ewkb])], schema=pa.schema([pa.field("g", pa.binary(), metadata=extension)]))
    with pytest.raises(SchemaError, match="EWKB"):
        fastpq.write_table(table, io.BytesIO())
