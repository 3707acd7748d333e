"""Which row groups a filter leaves out, by what evidence, and what would have left out the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from fastpq.cli.amounts import size_text

if TYPE_CHECKING:
    from fastpq.api.file import ParquetFile
    from fastpq.filters.predicate import Condition
    from fastpq.metadata.column_chunk import ColumnChunkMetaData
    from fastpq.read.filtered.explain import RowGroupExplanation
    from fastpq.read.filtered.row_evidence import Finding

FPP = 0.01  # of a bloom filter that is advised
PAGE_ROWS = 20_000  # of pages that are advised


class EvidenceFacts(TypedDict):
    """What one kind of evidence says about one condition.

    Attributes:
        kind: statistics, bloom filter, column index or dictionary.
        condition: the condition.
        finding: the conclusion, or why there is none.
    """

    kind: str
    condition: str
    finding: str


class RowGroupPruningFacts(TypedDict):
    """One row group under a filter.

    Attributes:
        row_group: index.
        rows: row count.
        is_read: whether the filter keeps it.
        candidate_rows: rows that no evidence rules out.
        pages: data pages that are read in all columns, or null if their number is unknown.
        all_pages: data pages of all columns, or null.
        bytes_read: stored bytes that are read at most.
        bytes: stored bytes of the columns.
        every_row_matches: whether the evidence says that every row matches.
        evidence: what the evidence says.
        would_help: what would have left it out, or left out more. Nothing leaves out a row group in which rows match.
        matches: rows that match, with --count.
    """

    row_group: int
    rows: int
    is_read: bool
    candidate_rows: int
    pages: int | None
    all_pages: int | None
    bytes_read: int
    bytes: int
    every_row_matches: bool
    evidence: list[EvidenceFacts]
    would_help: list[str]
    matches: int | None


class PruningFacts(TypedDict):
    """A file under a filter.

    Attributes:
        file: the file.
        row_groups: the row groups.
        row_groups_read: how many row groups are read.
        bytes_read: stored bytes that are read at most.
        bytes: stored bytes of the columns.
        left_out: why the whole file is left out before it is opened, or null.
    """

    file: str
    row_groups: list[RowGroupPruningFacts]
    row_groups_read: int
    bytes_read: int
    bytes: int
    left_out: str | None


def pruning_facts(
    file: ParquetFile, name: str, filters: Any, columns: Sequence[str | int] | None, *, counts: bool
) -> PruningFacts:
    """Return what a filtered read of a file would take.

    Args:
        file: the file.
        name: how messages call it.
        filters: the filters.
        columns: names or numbers of the columns of the read, or None for all.
        counts: whether to read the kept row groups and count the rows that match.
    """
    from fastpq.filters.predicate import bind_filters, leaves

    explanation = file.explain(filters, columns)
    conditions = list(leaves(bind_filters(filters, file.schema)))
    orders = {condition.column.index: _is_ordered(file, condition) for condition in conditions}
    groups = []
    for each in explanation.row_groups:
        matches = None
        if counts:
            matches = file.read([], row_groups=[each.row_group], filters=filters).num_rows if each.rows else 0
        groups.append(_group_facts(file, each, conditions, orders, matches))
    return PruningFacts(
        file=name,
        row_groups=groups,
        row_groups_read=sum(each["is_read"] for each in groups),
        bytes_read=explanation.bytes_read,
        bytes=sum(each["bytes"] for each in groups),
        left_out=None,
    )


def left_out_facts(name: str) -> PruningFacts:
    """Return the facts about a file of a dataset that a filter leaves out unopened."""
    return PruningFacts(
        file=name, row_groups=[], row_groups_read=0, bytes_read=0, bytes=0, left_out="partition values or missing columns"
    )


def unfiltered_facts(file: ParquetFile, name: str) -> PruningFacts:
    """Return the facts about a file of a dataset of which nothing is left out."""
    groups = []
    for group in file.metadata.row_groups:
        size = group.total_compressed_size or 0
        groups.append(RowGroupPruningFacts(
            row_group=group.index, rows=group.num_rows, is_read=True, candidate_rows=group.num_rows, pages=None, all_pages=None,
            bytes_read=size, bytes=size, every_row_matches=False, evidence=[], would_help=[], matches=None,
        ))
    size = sum(each["bytes"] for each in groups)
    return PruningFacts(
        file=name, row_groups=groups, row_groups_read=len(groups), bytes_read=size, bytes=size, left_out=None
    )


def _is_ordered(file: ParquetFile, condition: Condition) -> bool:
    """Return whether the row groups' bounds follow each other without overlap."""
    from fastpq.cli.column_facts import column_facts
    from fastpq.errors import ParquetError

    try:
        return file.num_row_groups < 2 or column_facts(file.metadata, condition.column)["sorted_row_groups"] is not None
    except ParquetError:
        return False


def _group_facts(
    file: ParquetFile, each: RowGroupExplanation, conditions: list[Condition], orders: dict[int, bool], matches: int | None
) -> RowGroupPruningFacts:
    from fastpq.filters.predicate import Outcome

    is_kept = each.rows > 0
    parts = [(part.pages, part.num_pages) for part in each.columns if part.bytes_read]
    page_counts = [(pages, whole) for pages, whole in parts if pages is not None and whole is not None]
    has_pages = len(page_counts) == len(parts)
    return RowGroupPruningFacts(
        row_group=each.row_group,
        rows=each.num_rows,
        is_read=is_kept,
        candidate_rows=each.rows,
        pages=sum(pages for pages, _ in page_counts) if has_pages else None,
        all_pages=sum(whole for _, whole in page_counts) if has_pages else None,
        bytes_read=sum(part.bytes_read for part in each.columns),
        bytes=_stored_bytes(file, each),
        every_row_matches=is_kept and each.outcome is Outcome.ALL,
        evidence=[
            EvidenceFacts(kind=finding.kind, condition=finding.condition, finding=finding.finding) for finding in each.evidence
        ],
        would_help=_advice(file, each, conditions, orders, matches) if is_kept and each.outcome is not Outcome.ALL else [],
        matches=matches,
    )


def _stored_bytes(file: ParquetFile, each: RowGroupExplanation) -> int:
    if each.columns:
        return sum(part.num_bytes for part in each.columns)
    group = file.metadata.row_group(each.row_group)
    return group.total_compressed_size or 0


def deciding_evidence(group: RowGroupPruningFacts) -> EvidenceFacts | None:
    """Return the evidence that rules a row group out, or else the last one that says something."""
    return next(
        (each for each in group["evidence"] if each["finding"] == "no row"), group["evidence"][-1] if group["evidence"] else None
    )


def _advice(
    file: ParquetFile, each: RowGroupExplanation, conditions: list[Condition], orders: dict[int, bool], matches: int | None
) -> list[str]:
    """Return what would have left out the row group, or pages in it. Each is a short phrase, once.

    Statistics and bloom filters leave out only row groups without a match. Order and page indexes make matches stand together, or
    find them.
    """
    from fastpq.cli.column_facts import usable_statistics
    from fastpq.errors import ParquetError

    phrases: list[str] = []
    findings = {(finding.leaf, finding.finding) for finding in each.evidence}
    for condition in conditions:
        if (condition, "every row") in findings:
            continue
        column = condition.column
        chunk = file.metadata.row_group(each.row_group).column(column.index)
        try:
            statistics = usable_statistics(chunk)
            num_values = chunk.num_values
            may_be_absent = not matches and not _is_met_by_bound(file, chunk, each.num_rows, condition)
            has_filter = chunk.metadata.bloom_filter_offset is not None
        except ParquetError:
            continue  # without its key
        if statistics is None or not (statistics.has_min_max or statistics.null_count == num_values):
            if not matches:
                phrases.append(f"statistics of {column.name}")
        elif not orders[column.index]:
            phrases.append(f"the whole file sorted by {column.name}")
        if may_be_absent and _tests_equality(condition) and not has_filter and not _has_dictionary(each.evidence, column.name):
            unsure = "" if matches == 0 else ", which drops a row group that has no match"
            phrases.append(f"a bloom filter of {_filter_size(num_values)} for {column.name}{unsure}")
        if chunk.chunk.column_index_offset is None and each.num_rows > PAGE_ROWS:
            phrases.append(f"a page index of {column.name}")
        elif _has_large_pages(each, column.name):
            phrases.append(f"pages of {PAGE_ROWS:,} rows")
    return list(dict.fromkeys(phrases))


def _is_met_by_bound(file: ParquetFile, chunk: ColumnChunkMetaData, num_rows: int, condition: Condition) -> bool:
    """Return whether the smallest or the largest value in a chunk meets a condition."""
    from fastpq.filters.evidence import exact_bounds
    from fastpq.filters.predicate import Bounds, NullTest, Outcome
    from fastpq.index.chunk_claims import ChunkMetadataClaims
    from fastpq.stats.usable_statistics import usable_statistics_of

    if isinstance(condition, NullTest):
        return False
    usable_parts = usable_statistics_of(file.metadata, condition.column)
    bounds = exact_bounds(ChunkMetadataClaims(condition.column, num_rows, chunk.metadata, usable_parts)) or ()
    return any(condition.outcome(Bounds(key, key, 0, 1)) is Outcome.ALL for key in bounds)


def _tests_equality(condition: Condition) -> bool:
    from fastpq.filters.predicate import Membership

    return isinstance(condition, Membership) and not condition.is_negated


def _has_dictionary(evidence: Any, column: str) -> bool:
    """Return whether the dictionary was asked already: a bloom filter knows nothing more."""
    findings: list[Finding] = list(evidence)
    return any(each.kind == "dictionary" and each.leaf.column.name == column for each in findings)


def _filter_size(num_values: int) -> str:
    from fastpq.index.bloom_size import bytes_for

    return size_text(bytes_for(num_values, FPP))


def _has_large_pages(each: RowGroupExplanation, column: str) -> bool:
    parts = [part for part in each.columns if part.column == column]
    return bool(parts) and parts[0].num_pages is not None and each.num_rows > 2 * PAGE_ROWS * max(parts[0].num_pages, 1)
