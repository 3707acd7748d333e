"""Arrow's extension types: checks for the canonical ones, geoarrow.wkb conversion, and the categories of Polars' Enum.

A consumer refuses a field whose storage or metadata does not fit its extension type
(https://arrow.apache.org/docs/format/CanonicalExtensions.html).

GEOMETRY and GEOGRAPHY are geoarrow.wkb in Arrow (geoarrow.org/extension-types.html). A type without a CRS means OGC:CRS84 in
Parquet, and an unknown CRS in GeoArrow. Exported metadata therefore names OGC:CRS84. Imported metadata without a CRS counts as
OGC:CRS84 too, because it most likely means longitude and latitude. Some fields cannot become a geometry: their metadata has
another form, as before GeoArrow 1.0, or their values are not WKB. These columns are imported as plain BYTE_ARRAY. They keep the
extension type, as all columns do whose extension type Parquet does not have.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import prod
from typing import Any, cast, get_args

from fastpq.arrays.nodes import FieldNode
from fastpq.schema.types import EdgeAlgorithm, Geography, Geometry

PARQUET_VARIANT = b"arrow.parquet.variant"
GEOARROW_WKB = b"geoarrow.wkb"

DEFAULT_CRS = "OGC:CRS84"
_PLANAR = "planar"
_SRID = "srid:"

# Metadata keys of Polars' Enum: first the key that Polars 1.32 and later use, then the older one. The value has the categories
# in their order, each as its length in bytes, a semicolon, and the text.
_ENUM_KEYS = (b"_PL_ENUM_VALUES2", b"_PL_ENUM_VALUES")


# ---- canonical extension types


def is_sound(name: bytes, storage: str, metadata: bytes) -> bool:
    """Return whether a field's format and metadata fit its extension type. Unknown extension types are always sound.

    Args:
        name: extension type name.
        storage: the field's format. For a dictionary it is any text that is not a format.
        metadata: extension field metadata.
    """
    rule = _RULES.get(name)
    return rule is None or rule(storage, metadata)


def _stored_as(*formats: str) -> Callable[[str, bytes], bool]:
    return lambda storage, metadata: storage in formats


def _is_uuid(storage: str, metadata: bytes) -> bool:
    return storage == "w:16" and not metadata


def _is_opaque(storage: str, metadata: bytes) -> bool:
    properties = _json_object(metadata)
    return all(isinstance(properties.get(key), str) for key in ("type_name", "vendor_name"))


def _is_tensor(storage: str, metadata: bytes) -> bool:
    """Return whether a fixed-size list can hold tensors with the shape in the metadata."""
    properties = _json_object(metadata)
    shape, names, order = properties.get("shape"), properties.get("dim_names"), properties.get("permutation")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        return False
    if storage != f"+w:{prod(shape)}":
        return False
    if names is not None and not (_is_list_of(names, str) and len(names) == len(shape)):
        return False
    return order is None or (_is_list_of(order, int) and sorted(order) == [*range(len(shape))])


def _is_list_of(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


def _json_object(metadata: bytes) -> dict[str, Any]:
    """Return the JSON object in extension metadata, or an empty dict if there is none."""
    try:
        value = json.loads(metadata)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


_RULES: dict[bytes, Callable[[str, bytes], bool]] = {
    b"arrow.uuid": _is_uuid,
    b"arrow.json": _stored_as("u", "U", "vu"),
    b"arrow.bool8": _stored_as("c"),
    b"arrow.opaque": _is_opaque,
    b"arrow.fixed_shape_tensor": _is_tensor,
    b"arrow.variable_shape_tensor": _stored_as("+s"),
    b"arrow.timestamp_with_offset": _stored_as("+s"),
    PARQUET_VARIANT: _stored_as(),      # never kept from a field: the column type alone decides
    GEOARROW_WKB: _stored_as("z", "Z", "vz"),
}


# ---- geoarrow.wkb


def geospatial_type(metadata: bytes) -> Geometry | Geography | None:
    """Return a geoarrow.wkb field's logical type.

    Args:
        metadata: extension field metadata, JSON or empty.

    Returns:
        None if the metadata is not a JSON object, or if Parquet does not have its edge type.
    """
    try:
        properties = json.loads(metadata) if metadata else {}
    except (ValueError, RecursionError):
        return None
    if not isinstance(properties, dict):
        return None
    crs, edges = _parquet_crs(properties), properties.get("edges") or _PLANAR
    if edges == _PLANAR:
        return Geometry(crs)
    algorithm = str(edges).upper()
    if algorithm not in get_args(EdgeAlgorithm):
        return None
    return Geography(crs, cast(EdgeAlgorithm, algorithm))


def _parquet_crs(properties: dict[str, Any]) -> str | None:
    crs = properties.get("crs")
    if isinstance(crs, dict):
        is_default = crs.get("id") == {"authority": "OGC", "code": "CRS84"}
        return None if is_default else json.dumps(crs, separators=(",", ":"))
    if crs is None or crs == DEFAULT_CRS:
        return None
    return f"{_SRID}{crs}" if properties.get("crs_type") == "srid" else str(crs)


def geospatial_metadata(logical: Geometry | Geography) -> bytes:
    """Return the extension metadata (JSON) for a geoarrow.wkb field that has a logical type."""
    metadata = _geoarrow_crs(logical.crs or DEFAULT_CRS)
    if isinstance(logical, Geography):
        metadata["edges"] = (logical.algorithm or "SPHERICAL").lower()
    return json.dumps(metadata).encode()


def _geoarrow_crs(crs: str) -> dict[str, Any]:
    if crs.startswith("{"):
        try:
            return {"crs": json.loads(crs), "crs_type": "projjson"}
        except (ValueError, RecursionError):
            return {"crs": crs}
    if crs.startswith(_SRID):
        return {"crs": crs.removeprefix(_SRID), "crs_type": "srid"}
    is_code = crs.count(":") == 1 and not crs.startswith("projjson:")
    return {"crs": crs, "crs_type": "authority_code"} if is_code else {"crs": crs}


# ---- Polars' Enum


def enum_categories(field: FieldNode | None) -> list[str] | None:
    """Return the categories of a field with Polars' Enum type, in their order.

    Args:
        field: a column's Arrow field.

    Returns:
        None if the field has another type, or if its metadata has another form.
    """
    if field is None or field.dictionary is None or not field.metadata:
        return None
    packed_texts = next((field.metadata[key] for key in _ENUM_KEYS if key in field.metadata), None)
    if packed_texts is None:
        return None
    categories: list[str] = []
    while packed_texts:
        length, separator, rest = packed_texts.partition(b";")
        if not separator or not length.isdigit() or int(length) > len(rest):
            return None
        try:
            categories.append(rest[: int(length)].decode())
        except UnicodeDecodeError:
            return None
        packed_texts = rest[int(length) :]
    return categories
