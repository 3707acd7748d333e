"""Column chunk statistics as evidence: bounds and null counts in the footer, which cost no request."""

from __future__ import annotations

from fastpq.errors import KeyAccessError
from fastpq.filters.evidence import chunk_bounds, claims_of
from fastpq.filters.predicate import Bounds, Condition
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.read.filtered.row_evidence import Evidence, PossibleRows, RowGroupPruning


class StatisticsEvidence(Evidence):
    """The footer's statistics as evidence.

    Args:
        metadata: the file's footer.
    """

    kind = "statistics"

    def __init__(self, metadata: FileMetaData) -> None:
        self._metadata = metadata
        self._bounds: dict[tuple[int, int], tuple[Bounds, str | None]] = {}     # by row group and column

    def may_match(self, group: RowGroupPruning, leaf: Condition) -> PossibleRows:
        place = (group.row_group, leaf.column.index)
        if place not in self._bounds:
            self._bounds[place] = self._bounds_of(group, leaf)
        bounds, reason = self._bounds[place]
        return PossibleRows(leaf.outcome(bounds), reason)

    def _bounds_of(self, group: RowGroupPruning, leaf: Condition) -> tuple[Bounds, str | None]:
        """Return a chunk's bounds and the reason why they are unknown. The reason is None if they are known."""
        column = leaf.column
        chunk = self._metadata.row_group(group.row_group).column(column.index)
        try:
            bounds, reason = chunk_bounds(claims_of(self._metadata, column, chunk, group.num_rows))
        except KeyAccessError:
            return Bounds(), "not known without its key"
        return bounds, reason and f"not usable ({reason})"
