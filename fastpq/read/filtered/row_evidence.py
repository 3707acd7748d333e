"""Evidence: the interface of everything that can rule out rows before values are read, for example statistics or bloom filters.

FilteredChunks gives access to the column chunks that a filtered read needs. RowGroupPruning collects, for one row group, what the
evidence says, and which rows are not ruled out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, NamedTuple

from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import KeyAccessError
from fastpq.filters.predicate import Condition, Outcome, Predicate, fold, leaves
from fastpq.index.chunk_claims import ChunkMetadataClaims
from fastpq.index.ranges import RowRanges
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.read.opener import ChunkOpener
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.stats.usable_statistics import usable_statistics_of

EvidenceKind = Literal["statistics", "bloom filter", "column index", "dictionary"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one kind of evidence says about one condition in a row group. ``explain`` shows it.

    Attributes:
        kind: the kind of evidence.
        leaf: the condition.
        finding: the conclusion as a text, or a text that says why there is none.
    """

    kind: EvidenceKind
    leaf: Condition
    finding: str

    @property
    def condition(self) -> str:
        """Text of the condition."""
        return str(self.leaf)

    def __str__(self) -> str:
        return f"{self.condition}: {self.finding} by {self.kind}"


class PossibleRows(NamedTuple):
    """The rows in a row group that one condition may match, according to one kind of evidence.

    Attributes:
        outcome: whether the condition holds for none, some or all rows. SOME if this is unknown.
        text: why the evidence cannot be used, or what it says about pages, for ``explain``. None if the outcome says everything.
        possible: rows of the pages that may match. None if the evidence is about the row group as a whole.
        certain: rows of the pages that certainly match. None if the evidence is about the row group as a whole.
    """

    outcome: Outcome = Outcome.SOME
    text: str | None = None
    possible: RowRanges | None = None
    certain: RowRanges | None = None


class Evidence(ABC):
    """One kind of evidence about a file's row groups.

    Attributes:
        kind: name of the kind, which ``explain`` shows.
    """

    kind: ClassVar[EvidenceKind]

    def gather(self, groups: Sequence[RowGroupPruning]) -> list[RowGroupPruning]:
        """Read the evidence from the file, with as few rounds of requests as possible.

        Args:
            groups: all row groups of the read.

        Returns:
            The row groups for which ``may_match`` is worth calling.

        Raises:
            TagVerificationError: encrypted evidence was altered.
        """
        return list(groups)

    @abstractmethod
    def may_match(self, group: RowGroupPruning, leaf: Condition) -> PossibleRows | None:
        """Return the rows that a condition may match. None if there is no evidence, or if it does not help.

        Args:
            group: one of the row groups that ``gather`` returned.
            leaf: a condition that earlier evidence has not decided: it may hold for some rows of the row group.
        """


class FilteredChunks:
    """Access to the column chunks that a filtered read needs, for all kinds of evidence.

    Args:
        opener: opens the file's chunks.
        metadata: the file's footer.
        predicate: condition on the rows, or None to keep all rows.
        columns: result columns.

    Attributes:
        opener, metadata: as the arguments.
        predicate_columns: columns that the predicate needs, by column number, in the order of the filters.
        every_column: columns that the predicate needs, then the other result columns.
        usable_statistics: which statistics can be trusted, by column number, for the columns in ``predicate_columns``.
    """

    def __init__(
        self, opener: ChunkOpener, metadata: FileMetaData, predicate: Predicate | None, columns: Sequence[ColumnDescriptor]
    ) -> None:
        self.opener = opener
        self.metadata = metadata
        self.predicate_columns = {leaf.column.index: leaf.column for leaf in leaves(predicate)} if predicate is not None else {}
        self.every_column = list((self.predicate_columns | {column.index: column for column in columns}).values())
        self.usable_statistics = {
            number: usable_statistics_of(metadata, column) for number, column in self.predicate_columns.items()}

    def chunk(self, group: RowGroupPruning, column: ColumnDescriptor) -> ColumnChunkMetaData:
        """Return a column chunk's metadata."""
        return self.metadata.row_group(group.row_group).column(column.index)

    def cipher(self, chunk: ColumnChunkMetaData, column: ColumnDescriptor) -> ModuleCipher:
        """Return a column chunk's cipher. Raise KeyAccessError if the chunk's key is missing."""
        return self.opener.decryptor.chunk_cipher(chunk.chunk, chunk.row_group_ordinal, column.index)

    def claims(self, group: RowGroupPruning, column: ColumnDescriptor) -> ChunkMetadataClaims:
        """Return what the footer claims about a predicate column's chunk. Raise KeyAccessError if the chunk's key is missing."""
        metadata = self.chunk(group, column).metadata
        return ChunkMetadataClaims(column, group.num_rows, metadata, self.usable_statistics[column.index])

    def are_soon_read(self, groups: Iterable[RowGroupPruning]) -> bool:
        """Return whether reading the row groups takes about as long as reading more evidence about them.

        This is assumed for a remote file if their chunks have at most ``round_trip_bytes`` stored bytes together.
        """
        if not self.opener.source.is_remote:
            return False
        chunks = (self.chunk(group, column) for group in groups for column in self.every_column)
        try:
            return sum(chunk.total_compressed_size for chunk in chunks) <= self.opener.properties.round_trip_bytes
        except KeyAccessError:      # the later read of the chunk raises the error
            return False


@dataclass(slots=True)
class RowGroupPruning:
    """What the evidence says about one row group so far. Its candidates are the requested rows that are not ruled out.

    Attributes:
        slot: position of the row group among the row groups of the read.
        predicate: condition on the rows, or None to keep all rows.
        row_group: row group index.
        num_rows: number of rows in the row group.
        requested_rows: the rows that the caller asks for.
        outcomes: whether each condition holds for none, some or all rows in the row group. SOME if this is unknown.
        rows: the candidates.
        certain: the candidates that certainly match, by page bounds. Without a predicate these are all candidates.
        evidence: findings so far, in order.
    """

    slot: int
    predicate: Predicate | None
    row_group: int
    num_rows: int
    requested_rows: RowRanges
    outcomes: dict[Condition, Outcome]
    rows: RowRanges
    certain: RowRanges
    evidence: list[Finding] = field(default_factory=list)

    @classmethod
    def start(
        cls, slot: int, predicate: Predicate | None, row_group: int, num_rows: int, requested_rows: RowRanges | None = None
    ) -> RowGroupPruning:
        """Return a RowGroupPruning that has not used any evidence. Every requested row is a candidate.

        Args:
            slot, predicate, row_group, num_rows: as the attributes.
            requested_rows: the rows that the caller asks for. None for all rows.
        """
        outcomes = {} if predicate is None else dict.fromkeys(leaves(predicate), Outcome.SOME)
        requested_rows = RowRanges.every(num_rows) if requested_rows is None else requested_rows
        certain = requested_rows if predicate is None else RowRanges.none(num_rows)
        return cls(slot, predicate, row_group, num_rows, requested_rows, outcomes, requested_rows, certain)

    @property
    def outcome(self) -> Outcome:
        """Whether none, some or all requested rows match, as far as the evidence tells. SOME if this is unknown."""
        if self.rows.count == 0:
            return Outcome.NONE
        if self.predicate is None:
            return Outcome.ALL
        return fold(self.predicate, self.outcomes.__getitem__, min, max)

    @property
    def open_leaves(self) -> list[Condition]:
        """The undecided conditions: those that may hold for some rows and not for others."""
        return [leaf for leaf, outcome in self.outcomes.items() if outcome is Outcome.SOME]

    def use(self, evidence: Evidence) -> None:
        """Ask one kind of evidence about each undecided condition, and drop the candidates that it rules out.

        Args:
            evidence: its ``gather`` was called, and returned this row group.
        """
        possible: dict[Condition, RowRanges] = {}
        certain: dict[Condition, RowRanges] = {}
        for leaf in self.open_leaves:
            rows = evidence.may_match(self, leaf)
            if rows is None:
                continue
            if rows.text is not None:
                self._note(evidence.kind, leaf, rows.text)
            if rows.outcome is not Outcome.SOME:
                self.outcomes[leaf] = rows.outcome
                self._note(evidence.kind, leaf, "no row" if rows.outcome is Outcome.NONE else "every row")
            if rows.possible is not None and rows.certain is not None:
                possible[leaf], certain[leaf] = rows.possible, rows.certain
        if possible:
            self._narrow(possible, certain)
        elif self.outcome is Outcome.NONE:
            self.rows = RowRanges.none(self.num_rows)

    def without_pages(self) -> RowGroupPruning:
        """Return a copy without the conclusions about single pages. Conditions decided for the row group stay decided."""
        pruning = replace(self, evidence=list(self.evidence))
        if self.predicate is not None:
            pruning._narrow({}, {})
        return pruning

    def _narrow(self, possible: Mapping[Condition, RowRanges], certain: Mapping[Condition, RowRanges]) -> None:
        """Compute the candidates again, from ``outcomes`` for decided conditions and from rows of pages for the others.

        Args:
            possible: for undecided conditions, the rows that may match. A condition that is not in it may match every row.
            certain: for undecided conditions, the rows that certainly match. Without an entry there are none.
        """
        self.rows = self.requested_rows & self._rows_by(possible, RowRanges.every)
        self.certain = self.requested_rows & self._rows_by(certain, RowRanges.none)

    def _rows_by(self, rows_of_leaves: Mapping[Condition, RowRanges], otherwise: Callable[[int], RowRanges]) -> RowRanges:
        """Combine the rows that belong to each condition, by the And and Or of the predicate.

        Args:
            rows_of_leaves: rows for undecided conditions.
            otherwise: returns the rows for an undecided condition that is not in ``rows_of_leaves``. It gets the row count.
        """

        def rows_of(leaf: Condition) -> RowRanges:
            match self.outcomes[leaf]:
                case Outcome.NONE:
                    return RowRanges.none(self.num_rows)
                case Outcome.ALL:
                    return RowRanges.every(self.num_rows)
            return rows_of_leaves[leaf] if leaf in rows_of_leaves else otherwise(self.num_rows)

        assert self.predicate is not None
        return fold(self.predicate, rows_of, RowRanges.__and__, RowRanges.__or__)

    def _note(self, kind: EvidenceKind, leaf: Condition, finding: str) -> None:
        self.evidence.append(Finding(kind, leaf, finding))
