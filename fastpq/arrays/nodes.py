"""ArrowSchema and ArrowArray as Python objects. fastpq.arrow converts them to types and C structures. A column keeps its node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# ARROW_FLAG_DICTIONARY_ORDERED, ARROW_FLAG_NULLABLE, ARROW_FLAG_MAP_KEYS_SORTED
ORDERED, NULLABLE, KEYS_SORTED = 1, 2, 4
# Name of the field that has the type codes, in a struct that holds a union's values.
TYPE_ID = "type_id"


@dataclass(frozen=True, slots=True)
class FieldNode:
    """One ArrowSchema.

    Attributes:
        format: the format string.
        name: the field's name.
        flags: ARROW_FLAG_ bits.
        metadata: key-value pairs.
        children: the children's schemas.
        dictionary: the dictionary's schema, or None if the values are not dictionary-encoded.
    """

    format: str
    name: str = ""
    flags: int = NULLABLE
    metadata: dict[bytes, bytes] | None = None
    children: tuple[FieldNode, ...] = ()
    dictionary: FieldNode | None = None

    @property
    def nullable(self) -> bool:
        """Whether the field may hold nulls."""
        return bool(self.flags & NULLABLE)

    @property
    def list_size(self) -> int | None:
        """Value count in each list of a fixed-size list type, or None for other types."""
        size = self.format.removeprefix("+w:")
        return int(size) if size != self.format and size.isdecimal() else None

    @property
    def is_duration(self) -> bool:
        """Whether the values are durations. Parquet has no such type: only the field tells the numbers' unit."""
        return self.format.startswith("tD")


# Duration unit, by the Arrow field's format.
DURATION_UNITS = {"tDs": "s", "tDm": "ms", "tDu": "us", "tDn": "ns"}


def duration_field(unit: str, *, nullable: bool = True) -> FieldNode:
    """Return the Arrow field for a duration column.

    Args:
        unit: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``.
        nullable: whether the field may hold nulls.
    """
    return FieldNode(f"tD{unit[0]}", flags=NULLABLE if nullable else 0)


@dataclass(frozen=True, slots=True)
class ArrayNode:
    """One ArrowArray that is to be exported, with offset 0.

    Attributes:
        length: value count.
        null_count: null count.
        buffers: contiguous arrays, in the order that Arrow's columnar format defines. None is a NULL pointer.
        children: the children's arrays.
        dictionary: the dictionary's array, or None.
    """

    length: int
    null_count: int = 0
    buffers: tuple[np.ndarray[Any, Any] | None, ...] = ()
    children: tuple[ArrayNode, ...] = ()
    dictionary: ArrayNode | None = None
