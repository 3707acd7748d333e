"""ColumnStatistics: a column chunk's statistics, decoded to the column type."""

from __future__ import annotations

import struct
from functools import cached_property
from typing import Any

from fastpq import format as fmt
from fastpq.filters.answers import values_of
from fastpq.filters.evidence import key_of_bound
from fastpq.filters.literals import domain_of
from fastpq.index.chunk_claims import ChunkMetadataClaims, Part
from fastpq.index.consistency_checks import fault
from fastpq.metadata.column_chunk import ChunkPlace
from fastpq.schema.types import LogicalType, Type
from fastpq.stats.usable_statistics import usable_statistics_of

# Formats of the module struct for bounds of fixed-width types. Bounds of other types are bytes.
_FORMS = {Type.BOOLEAN: "?", Type.INT32: "<i", Type.INT64: "<q", Type.FLOAT: "<f", Type.DOUBLE: "<d"}


class ColumnStatistics:
    """Bounds and counts for a column chunk (parquet.thrift, ``Statistics``), with pyarrow's names.

    ``min`` and ``max`` are the bounds that filters use. They are None if the column has no order, if the writer is known for
    mistakes, or if other facts in the footer contradict the statistics. A bound that is a long text or byte string may be
    shortened. ``is_min_exact`` and ``is_max_exact`` tell whether a bound is certainly a value in the chunk.

    Args:
        metadata: the chunk's metadata, with statistics.
        place: the chunk's column and row count, and the file's column orders.

    Attributes:
        raw: the struct as stored, in which bounds are bytes.
    """

    def __init__(self, metadata: fmt.ColumnMetaData, place: ChunkPlace) -> None:
        assert metadata.statistics is not None
        self.raw: fmt.Statistics = metadata.statistics
        self._column = place.column
        usable = usable_statistics_of(place.orders, place.column)
        self._claims = ChunkMetadataClaims(place.column, place.num_rows, metadata, usable)

    @cached_property
    def _bounds(self) -> tuple[Any, Any]:
        """The decoded minimum and maximum, or (None, None) if one of them cannot be used."""
        low, high = self._claims.bounds
        if low is None or high is None or not self._is_sound:
            return None, None
        domain = domain_of(self._column.type)
        keys = [key_of_bound(domain, self._claims.usable, bound) for bound in (low, high)]
        if None in keys:
            return None, None
        try:
            first, last = values_of(keys, self._column.type)
        except ValueError:      # the text was cut inside a code point
            return None, None
        return first, last

    @cached_property
    def _is_sound(self) -> bool:
        return fault(Part.STATISTICS, self._claims) is None

    @property
    def has_min_max(self) -> bool:
        """Whether minimum and maximum can be used."""
        return self._bounds != (None, None)

    @property
    def min(self) -> Any:
        """The smallest value or a bound below it, as in ``Column.to_pylist``, or None if unknown. NaNs do not count."""
        return self._bounds[0]

    @property
    def max(self) -> Any:
        """The largest value or a bound above it, as in ``Column.to_pylist``, or None if unknown. NaNs do not count."""
        return self._bounds[1]

    @property
    def min_raw(self) -> Any:
        """Smallest value, ``min``, in the physical type: a date as its number of days, text as bytes. None if unknown."""
        return self._raw_bound(self._claims.bounds[0])

    @property
    def max_raw(self) -> Any:
        """Largest value, ``max``, in the physical type: a date as its number of days, text as bytes. None if unknown."""
        return self._raw_bound(self._claims.bounds[1])

    def _raw_bound(self, bound: bytes | None) -> Any:
        if bound is None or not self.has_min_max:
            return None
        form = _FORMS.get(self.physical_type)
        return bytes(bound) if form is None else struct.unpack(form, bound)[0]

    @property
    def is_min_exact(self) -> bool:
        """Whether ``min`` is certainly a value in the chunk."""
        return self.has_min_max and self._claims.exact_bounds[0] is not None

    @property
    def is_max_exact(self) -> bool:
        """Whether ``max`` is certainly a value in the chunk."""
        return self.has_min_max and self._claims.exact_bounds[1] is not None

    @property
    def has_null_count(self) -> bool:
        """Whether the null count can be used."""
        return self.null_count is not None

    @property
    def null_count(self) -> int | None:
        """Null count, or None if unknown."""
        return self._claims.null_count if self._is_sound else None

    @property
    def has_distinct_count(self) -> bool:
        """Whether the distinct count can be used."""
        return self.distinct_count is not None

    @property
    def distinct_count(self) -> int | None:
        """Number of distinct values, or None if unknown."""
        return self.raw.distinct_count if self._is_sound else None

    @property
    def nan_count(self) -> int | None:
        """NaN count, or None if unknown."""
        return self.raw.nan_count if self._is_sound else None

    @property
    def num_values(self) -> int | None:
        """Number of values that are not null, or None if the null count is unknown."""
        nulls = self.null_count
        return None if nulls is None else self._claims.metadata.num_values - nulls

    @property
    def physical_type(self) -> Type:
        """The column's physical type."""
        return self._column.physical_type

    @property
    def logical_type(self) -> LogicalType | None:
        """The column's logical type, or None if it has none."""
        return self._column.logical_type

    def equals(self, other: ColumnStatistics) -> bool:
        """Return whether other statistics have the same contents. The same as ``==``, but other objects are refused.

        Args:
            other: the other statistics.

        Raises:
            TypeError: ``other`` is not a ColumnStatistics.
        """
        if not isinstance(other, ColumnStatistics):
            raise TypeError(f"a ColumnStatistics is not compared with a {type(other).__name__}")
        return self == other

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as a dict, with the keys of pyarrow's ``to_dict``."""
        return {
            "has_min_max": self.has_min_max,
            "min": self.min,
            "max": self.max,
            "null_count": self.null_count,
            "distinct_count": self.distinct_count,
            "num_values": self.num_values,
            "physical_type": self.physical_type.name,
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ColumnStatistics):
            return NotImplemented
        return self.raw == other.raw and self._column.type == other._column.type

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:      # without bounds: a repr may end in a log
        bounds = "with min and max" if self.has_min_max else "without min and max"
        counts = [f"{name} {count}" for name in ("null_count", "distinct_count") if (count := getattr(self, name)) is not None]
        return f"<ColumnStatistics {', '.join([bounds, *counts])}>"
