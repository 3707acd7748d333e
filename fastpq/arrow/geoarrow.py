"""GEOMETRY and GEOGRAPHY <-> the metadata of Arrow's extension type geoarrow.wkb (geoarrow.org/extension-types.html).

A type without a CRS means OGC:CRS84 in Parquet and an unknown CRS in GeoArrow. Exported metadata therefore name OGC:CRS84.
Imported metadata without a CRS most likely mean longitude and latitude, too, and count as OGC:CRS84. Metadata of another form, as
GeoArrow had before version 1.0, and values other than WKB belong to no geometry: their columns are imported as plain BYTE_ARRAY,
and keep the extension type as any other type without a Parquet equivalent.
"""

from __future__ import annotations

import json
from typing import Any, cast, get_args

from fastpq.schema.types import EdgeAlgorithm, Geography, Geometry

GEOARROW_WKB = b"geoarrow.wkb"

DEFAULT_CRS = "OGC:CRS84"
_PLANAR = "planar"
_SRID = "srid:"


def geospatial_type(metadata: bytes) -> Geometry | Geography | None:
    """The logical type of a geoarrow.wkb field; None for metadata of another form than a JSON object, and for edges unknown to
    Parquet.

    Args:
        metadata: the field's extension metadata, JSON or empty.
    """
    try:
        found = json.loads(metadata) if metadata else {}
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    crs, edges = _parquet_crs(found), found.get("edges") or _PLANAR
    if edges == _PLANAR:
        return Geometry(crs)
    algorithm = str(edges).upper()
    if algorithm not in get_args(EdgeAlgorithm):
        return None
    return Geography(crs, cast(EdgeAlgorithm, algorithm))


def _parquet_crs(metadata: dict[str, Any]) -> str | None:
    crs = metadata.get("crs")
    if isinstance(crs, dict):
        return None if _is_default(crs) else json.dumps(crs, separators=(",", ":"))
    if crs is None or crs == DEFAULT_CRS:
        return None
    return f"{_SRID}{crs}" if metadata.get("crs_type") == "srid" else str(crs)


def _is_default(projjson: dict[str, Any]) -> bool:
    return projjson.get("id") == {"authority": "OGC", "code": "CRS84"}


def geospatial_metadata(logical: Geometry | Geography) -> bytes:
    """The extension metadata, JSON, of a geoarrow.wkb field of a logical type."""
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
