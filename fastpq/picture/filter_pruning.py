"""FilterPruning: what a filter reads of each column chunk, and the evidence that rules out the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq.filters.predicate import leaves
from fastpq.index.ranges import RowRanges
from fastpq.read.filtered.explain import RowGroupExplanation, explain
from fastpq.read.filtered.filtered_scan import FilteredScan
from fastpq.read.open_file import ReadRequest

Floats: TypeAlias = NDArray[np.float64]

# What a finding says if it rules out all rows.
NO_ROW = "no row"


class FilterPruning(NamedTuple):
    """What a filtered read takes.

    Attributes:
        shares: shape (row groups, columns), float64: the share of each chunk's bytes that is read.
        reasons: for each row group the evidence that rules it out, or an empty text if it is read.
        kinds: for each row group the kind of that evidence, or an empty text.
        rows: candidate rows by row group.
        filtered_columns: numbers of the columns in the filter.
        bytes_read, num_bytes: stored bytes that are read at most, and those of the whole columns.
        text: the filter.
    """

    shares: Floats
    reasons: list[str]
    kinds: list[str]
    rows: Mapping[int, RowRanges]
    filtered_columns: list[int]
    bytes_read: int
    num_bytes: int
    text: str

    @property
    def groups_read(self) -> int:
        """Number of row groups that are read."""
        return sum(not reason for reason in self.reasons)


def pruning_of(scan: FilteredScan, request: ReadRequest, num_groups: int, stored_sizes: NDArray[np.int64]) -> FilterPruning:
    """Return what a filtered read takes. Indexes and dictionary pages are read, and no data page.

    Args:
        scan: the scan that would read.
        request: the columns and the filter. It must have all row groups.
        num_groups: number of row groups.
        stored_sizes: stored bytes of each chunk, shape (row groups, columns).
    """
    selections = scan.select(request.groups)
    explanation = explain(scan, selections)
    numbers = {column.name: column.index for column in (*request.columns, *request.filtered_columns)}
    shares = np.zeros(stored_sizes.shape)
    reasons, kinds = [""] * num_groups, [""] * num_groups
    for each in explanation.row_groups:
        for part in each.columns:
            shares[each.row_group, numbers[part.column]] = part.bytes_read / max(part.num_bytes, 1)
        reasons[each.row_group], kinds[each.row_group] = _reason(each)
    rows = {selection.pruning.row_group: selection.pruning.rows for selection in selections}
    assert request.predicate is not None
    return FilterPruning(
        shares,
        reasons,
        kinds,
        rows,
        [column.index for column in request.filtered_columns],
        explanation.bytes_read,
        int(stored_sizes[:, sorted(set(numbers.values()))].sum()),
        " and ".join(dict.fromkeys(str(leaf) for leaf in leaves(request.predicate))),
    )


def _reason(group: RowGroupExplanation) -> tuple[str, str]:
    if group.rows:
        return "", ""
    if not group.num_rows:
        return "it has no rows", "no rows"
    for finding in group.evidence:
        if finding.finding == NO_ROW:
            return str(finding), finding.kind
    return ("; ".join(map(str, group.evidence)), group.evidence[-1].kind) if group.evidence else ("by the filter", "filter")
