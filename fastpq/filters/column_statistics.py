"""ColumnStatistics: the statistics of a column chunk, decoded by the type of its column."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from fastpq import format as fmt
from fastpq.filters.answers import values_of
from fastpq.filters.literals import domain_of
from fastpq.index.claims import Claims, Part
from fastpq.index.contradictions import fault
from fastpq.metadata.column_chunk import ChunkPlace
from fastpq.schema.types import LogicalType, Type
from fastpq.stats.trust import trust_in


class ColumnStatistics:
    """Bounds and counts of a column chunk (parquet.thrift, ``Statistics``), with pyarrow's names.

    ``min`` and ``max`` are the bounds that filters use: None where a column has no order, where the writer is known for mistakes,
    and where the footer refutes the statistics. Long text and bytes may be shortened: ``is_min_exact`` and ``is_max_exact`` tell.

    Args:
        metadata: metadata of the chunk, with statistics.
        place: column, rows and orders.

    Attributes:
        raw: the struct as stored, bounds as bytes.
    """

    def __init__(self, metadata: fmt.ColumnMetaData, place: ChunkPlace) -> None:
        assert metadata.statistics is not None
        self.raw: fmt.Statistics = metadata.statistics
        self._column = place.column
        self._claims = Claims(place.column, place.num_rows, metadata, trust_in(place.orders, place.column))

    @cached_property
    def _bounds(self) -> tuple[Any, Any]:
        """Minimum and maximum, decoded; (None, None) where one of them is unusable."""
        low, high = self._claims.bounds
        if low is None or high is None or not self._is_sound:
            return None, None
        domain = domain_of(self._column.type)
        keys = [domain.of_bound(low), domain.of_bound(high)]
        if None in keys:
            return None, None
        try:
            first, last = values_of(keys, self._column.type)
        except ValueError:      # text cut inside of a code point
            return None, None
        return first, last

    @cached_property
    def _is_sound(self) -> bool:
        return fault(Part.STATISTICS, self._claims) is None

    @property
    def has_min_max(self) -> bool:
        """Whether there are a usable minimum and maximum."""
        return self._bounds != (None, None)

    @property
    def min(self) -> Any:
        """The smallest value or a bound below, as in ``Column.to_pylist``; None if unknown. NaNs take no part."""
        return self._bounds[0]

    @property
    def max(self) -> Any:
        """The largest value or a bound above, as in ``Column.to_pylist``; None if unknown. NaNs take no part."""
        return self._bounds[1]

    @property
    def is_min_exact(self) -> bool:
        """Whether ``min`` is certainly a value of the chunk."""
        return self.has_min_max and self._claims.exact_bounds[0] is not None

    @property
    def is_max_exact(self) -> bool:
        """Whether ``max`` is certainly a value of the chunk."""
        return self.has_min_max and self._claims.exact_bounds[1] is not None

    @property
    def has_null_count(self) -> bool:
        """Whether there is a usable number of nulls."""
        return self.null_count is not None

    @property
    def null_count(self) -> int | None:
        """Number of nulls; None if unknown."""
        return self._claims.null_count if self._is_sound else None

    @property
    def has_distinct_count(self) -> bool:
        """Whether the number of distinct values is stored."""
        return self.distinct_count is not None

    @property
    def distinct_count(self) -> int | None:
        """Number of distinct values; None if unknown."""
        return self.raw.distinct_count if self._is_sound else None

    @property
    def nan_count(self) -> int | None:
        """Number of NaNs; None if unknown."""
        return self.raw.nan_count if self._is_sound else None

    @property
    def num_values(self) -> int | None:
        """Number of values without nulls; None if the number of nulls is unknown."""
        nulls = self.null_count
        return None if nulls is None else self._claims.metadata.num_values - nulls

    @property
    def physical_type(self) -> Type:
        """Physical type of the column."""
        return self._column.physical_type

    @property
    def logical_type(self) -> LogicalType | None:
        """Logical type of the column; None without one."""
        return self._column.logical_type

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ColumnStatistics):
            return NotImplemented
        return self.raw == other.raw and self._column.type == other._column.type

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:      # without bounds: a repr may end in a log
        bounds = "with min and max" if self.has_min_max else "without min and max"
        counts = [f"{name} {count}" for name in ("null_count", "distinct_count") if (count := getattr(self, name)) is not None]
        return f"<ColumnStatistics {', '.join([bounds, *counts])}>"
