"""GroupPruning: the rows of a row group not ruled out by evidence, from the cheapest evidence to the dearest; pure, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from fastpq.arrays.table import Column
from fastpq.filters.predicate import Bounds, Condition, Membership, NullTest, Outcome, Predicate, fold, leaves
from fastpq.index.bloom_format import StoredFilter
from fastpq.index.page_index import OffsetIndex
from fastpq.index.ranges import RowRanges
from fastpq.read.dictionaries import outcome_in

PagesOf: TypeAlias = tuple[RowRanges, RowRanges]       # possible matches of a condition, and certain ones
EvidenceKind = Literal["statistics", "bloom filter", "column index", "dictionary"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A finding about one condition in a row group, for explain.

    Attributes:
        kind: source of the evidence.
        leaf: the condition.
        finding: the conclusion, or the reason for none, as text.
    """

    kind: EvidenceKind
    leaf: Condition
    finding: str

    @property
    def condition(self) -> str:
        """The condition as text."""
        return str(self.leaf)

    def __str__(self) -> str:
        return f"{self.condition}: {self.finding} by {self.kind}"


@dataclass(slots=True)
class GroupPruning:
    """The candidates of a predicate in one row group: requested rows not ruled out; each kind of evidence leaves fewer.

    Attributes:
        slot: place of the row group in the read.
        predicate: condition on the rows; None keeps all.
        row_group: index of the row group.
        num_rows: number of rows of the row group.
        asked: requested rows.
        outcomes: whether each condition holds for none, some or all rows of the row group; SOME also if unknown.
        rows: candidates.
        certain: candidates proved to match by bounds of pages; all candidates without a predicate.
        evidence: findings so far, in order.
    """

    slot: int
    predicate: Predicate | None
    row_group: int
    num_rows: int
    asked: RowRanges
    outcomes: dict[Condition, Outcome]
    rows: RowRanges
    certain: RowRanges
    evidence: list[Evidence] = field(default_factory=list)

    @classmethod
    def start(
        cls, slot: int, predicate: Predicate | None, row_group: int, num_rows: int, asked: RowRanges | None = None
    ) -> GroupPruning:
        """A row group without evidence: every requested row is a candidate.

        Args:
            slot, predicate, row_group, num_rows: as the attributes.
            asked: requested rows; None for all.
        """
        outcomes = {} if predicate is None else dict.fromkeys(leaves(predicate), Outcome.SOME)
        asked = RowRanges.every(num_rows) if asked is None else asked
        certain = asked if predicate is None else RowRanges.none(num_rows)
        return cls(slot, predicate, row_group, num_rows, asked, outcomes, asked, certain)

    @property
    def outcome(self) -> Outcome:
        """Whether none, some or all of the requested rows match, as far as evidence tells; SOME also if unknown."""
        if self.rows.count == 0:
            return Outcome.NONE
        if self.predicate is None:
            return Outcome.ALL
        return fold(self.predicate, self.outcomes.__getitem__, min, max)

    @property
    def open_leaves(self) -> list[Condition]:
        """The undecided conditions."""
        return [leaf for leaf, outcome in self.outcomes.items() if outcome is Outcome.SOME]

    def by_statistics(self, bounds: Callable[[Condition], tuple[Bounds, str | None]]) -> None:
        """Decide conditions by statistics.

        Args:
            bounds: returns the bounds of a condition's chunk, and the reason for unknown ones, or None.
        """
        for leaf in self.open_leaves:
            known, reason = bounds(leaf)
            if reason is not None:
                self._note("statistics", leaf, reason)
            self._decide("statistics", leaf, leaf.outcome(known))
        self._leave_out()

    def by_bloom_filters(self, filters: Mapping[int, StoredFilter | str]) -> None:
        """Decide conditions ``==`` and ``in`` by bloom filters.

        Args:
            filters: by column number, the chunk's bloom filter, or the reason for none.
        """
        for leaf in self.open_leaves:
            known = filters.get(leaf.column.index)
            stored = leaf.stored() if isinstance(leaf, Membership) else None
            if known is None or stored is None:
                continue
            if isinstance(known, str):
                self._note("bloom filter", leaf, known)
            elif not any(known.might_contain(value) for value in stored):
                self._decide("bloom filter", leaf, Outcome.NONE)
        self._leave_out()

    def by_column_indexes(self, pages: Mapping[int, tuple[OffsetIndex, Sequence[Bounds]] | str]) -> None:
        """Rule out the rows of pages by column indexes.

        Args:
            pages: by column number, the places and the bounds of the chunk's pages, or the reason for none.
        """
        pages_of: dict[Condition, PagesOf] = {}
        for leaf in self.open_leaves:
            known = pages.get(leaf.column.index)
            if isinstance(known, str):
                self._note("column index", leaf, known)
            elif known is not None:
                pages_of[leaf] = self._pages_of(leaf, *known)
        if self.predicate is None:
            return
        self.rows = self.asked & self._rows_by({leaf: possible for leaf, (possible, _) in pages_of.items()}, RowRanges.every)
        self.certain = self.asked & self._rows_by({leaf: sure for leaf, (_, sure) in pages_of.items()}, RowRanges.none)

    def without_pages(self) -> GroupPruning:
        """The same row group without the conclusions from column indexes."""
        pruning = replace(self, evidence=list(self.evidence))
        if self.predicate is not None:
            pruning.rows = self.asked & self._rows_by({}, RowRanges.every)
            pruning.certain = self.asked & self._rows_by({}, RowRanges.none)
        return pruning

    def by_dictionaries(self, dictionaries: Mapping[int, Column | str]) -> None:
        """Decide conditions by dictionary pages.

        Args:
            dictionaries: by column number, the values of the chunk's dictionary page, or the reason for none.
        """
        for leaf in self.open_leaves:
            known = dictionaries.get(leaf.column.index)
            if isinstance(known, str):
                self._note("dictionary", leaf, known)
            elif known is not None and not isinstance(leaf, NullTest):
                self._decide("dictionary", leaf, outcome_in(leaf, known))
        self._leave_out()

    def _pages_of(self, leaf: Condition, offset_index: OffsetIndex, bounds: Sequence[Bounds]) -> PagesOf:
        outcomes = [leaf.outcome(page) for page in bounds]
        possible = np.array([outcome is not Outcome.NONE for outcome in outcomes], np.bool_)
        sure = np.array([outcome is Outcome.ALL for outcome in outcomes], np.bool_)
        self._note("column index", leaf, f"{int(possible.sum())} of {len(possible)} pages")
        first_rows = offset_index.first_rows
        return RowRanges.of_parts(first_rows, possible, self.num_rows), RowRanges.of_parts(first_rows, sure, self.num_rows)

    def _leave_out(self) -> None:
        """Drop all candidates if the decided conditions exclude every match."""
        if self.outcome is Outcome.NONE:
            self.rows = RowRanges.none(self.num_rows)

    def _rows_by(self, known: Mapping[Condition, RowRanges], otherwise: Callable[[int], RowRanges]) -> RowRanges:
        """The rows of the predicate, from the rows of its conditions.

        Args:
            known: rows of undecided conditions.
            otherwise: rows of undecided conditions absent from known, given the number of rows.
        """

        def rows_of(leaf: Condition) -> RowRanges:
            match self.outcomes[leaf]:
                case Outcome.NONE:
                    return RowRanges.none(self.num_rows)
                case Outcome.ALL:
                    return RowRanges.every(self.num_rows)
            return known[leaf] if leaf in known else otherwise(self.num_rows)

        assert self.predicate is not None
        return fold(self.predicate, rows_of, RowRanges.__and__, RowRanges.__or__)

    def _decide(self, kind: EvidenceKind, leaf: Condition, outcome: Outcome) -> None:
        if outcome is not Outcome.SOME:
            self.outcomes[leaf] = outcome
            self._note(kind, leaf, "no row" if outcome is Outcome.NONE else "every row")

    def _note(self, kind: EvidenceKind, leaf: Condition, finding: str) -> None:
        self.evidence.append(Evidence(kind, leaf, finding))
