"""Arrow's canonical extension types: the storage and the metadata without which a consumer refuses a field.

https://arrow.apache.org/docs/format/CanonicalExtensions.html
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import prod
from typing import Any

from fastpq.arrow.geoarrow import GEOARROW_WKB

PARQUET_VARIANT = b"arrow.parquet.variant"


def is_sound(name: bytes, storage: str, metadata: bytes) -> bool:
    """Whether format and metadata of a field are those of an extension type; True for unknown extension types.

    Args:
        name: name of the extension type.
        storage: format of the field; any text that is no format for a dictionary.
        metadata: the field's extension metadata.
    """
    rule = _RULES.get(name)
    return rule is None or rule(storage, metadata)


def _stored_as(*formats: str) -> Callable[[str, bytes], bool]:
    return lambda storage, metadata: storage in formats


def _is_uuid(storage: str, metadata: bytes) -> bool:
    return storage == "w:16" and not metadata


def _is_opaque(storage: str, metadata: bytes) -> bool:
    found = _object(metadata)
    return all(isinstance(found.get(key), str) for key in ("type_name", "vendor_name"))


def _is_tensor(storage: str, metadata: bytes) -> bool:
    """Whether a fixed-size list holds the values of tensors of one shape."""
    found = _object(metadata)
    shape, names, order = found.get("shape"), found.get("dim_names"), found.get("permutation")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        return False
    if storage != f"+w:{prod(shape)}":
        return False
    if names is not None and not (_is_list_of(names, str) and len(names) == len(shape)):
        return False
    return order is None or (_is_list_of(order, int) and sorted(order) == [*range(len(shape))])


def _is_list_of(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


def _object(metadata: bytes) -> dict[str, Any]:
    """The JSON object in extension metadata; empty for any other bytes."""
    try:
        found = json.loads(metadata)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


_RULES: dict[bytes, Callable[[str, bytes], bool]] = {
    b"arrow.uuid": _is_uuid,
    b"arrow.json": _stored_as("u", "U", "vu"),
    b"arrow.bool8": _stored_as("c"),
    b"arrow.opaque": _is_opaque,
    b"arrow.fixed_shape_tensor": _is_tensor,
    b"arrow.variable_shape_tensor": _stored_as("+s"),
    b"arrow.timestamp_with_offset": _stored_as("+s"),
    PARQUET_VARIANT: _stored_as(),      # given by the column type alone
    GEOARROW_WKB: _stored_as("z", "Z", "vz"),
}
