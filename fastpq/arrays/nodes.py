"""ArrowSchema and ArrowArray as Python objects: arrow/ makes types and pointers of these, a column keeps its field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# ARROW_FLAG_DICTIONARY_ORDERED, ARROW_FLAG_NULLABLE, ARROW_FLAG_MAP_KEYS_SORTED
ORDERED, NULLABLE, KEYS_SORTED = 1, 2, 4
# Field with the type codes of a union, of the struct that holds the values of the union.
TYPE_ID = "type_id"


@dataclass(frozen=True, slots=True)
class FieldNode:
    """One ArrowSchema.

    Attributes:
        format: the format string.
        name: the field's name.
        flags: ARROW_FLAG_ bits.
        metadata: key-value pairs.
        children: the schemas of the children.
        dictionary: the schema of the dictionary, or None where values are not dictionary-encoded.
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
        """Number of values in each list of a fixed-size list; None for other types."""
        size = self.format.removeprefix("+w:")
        return int(size) if size != self.format and size.isdecimal() else None

    @property
    def is_duration(self) -> bool:
        """Whether the values are durations: numbers without meaning but for their unit."""
        return self.format.startswith("tD")


# Unit of durations by format of the Arrow field.
DURATION_UNITS = {"tDs": "s", "tDm": "ms", "tDu": "us", "tDn": "ns"}


def duration_field(unit: str, *, nullable: bool = True) -> FieldNode:
    """The Arrow field of a column of durations.

    Args:
        unit: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``.
        nullable: whether the field may hold nulls.
    """
    return FieldNode(f"tD{unit[0]}", flags=NULLABLE if nullable else 0)


@dataclass(frozen=True, slots=True)
class ArrayNode:
    """One ArrowArray to be exported, with offset 0.

    Attributes:
        length: number of values.
        null_count: number of nulls.
        buffers: contiguous arrays in the order of the columnar format; None is a NULL pointer.
        children: the arrays of the children.
        dictionary: the dictionary's array, or None.
    """

    length: int
    null_count: int = 0
    buffers: tuple[np.ndarray[Any, Any] | None, ...] = ()
    children: tuple[ArrayNode, ...] = ()
    dictionary: ArrayNode | None = None
