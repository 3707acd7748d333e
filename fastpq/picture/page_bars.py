"""ColumnBars: for one column, a bar for each page or row group, from its smallest to its largest value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq.errors import CryptoError, ParquetError
from fastpq.filters.answers import values_of
from fastpq.filters.literals import FloatDomain, IntegerDomain, domain_of
from fastpq.index.page_index import ChunkIndexes, IndexRequest, read_page_indexes
from fastpq.metadata.file_metadata import FileMetaData, decryptor_of
from fastpq.picture.chunk_facts import ChunkFacts
from fastpq.picture.filter_pruning import FilterPruning
from fastpq.read.open_file import OpenFile
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.stats.usable_statistics import usable_statistics_of

Floats: TypeAlias = NDArray[np.float64]
Int64s: TypeAlias = NDArray[np.int64]

# Page bounds are read for at most this many chunks, over all columns. Beyond that, each row group is one bar.
MOST_INDEXED_CHUNKS = 600
# Columns with bars. Those in a filter come first, then those with the most stored bytes.
MOST_COLUMNS = 6
LONGEST_BOUND = 28      # characters of a bound's text


class RowBound(NamedTuple):
    """The bounds that are stored for some rows.

    Attributes:
        low, high: bounds as PLAIN stores values.
        first_row, last_row: the rows in the row group, where last_row is one more than the last.
        group: row group index.
    """

    low: bytes
    high: bytes
    first_row: int
    last_row: int
    group: int


class ColumnBars(NamedTuple):
    """One column's bars, in file order.

    Attributes:
        column: the column.
        unit: ``page`` or ``row group``.
        lows, highs: shape (bars,), float64: where each bar begins and ends on the axis, from 0 to 1.
        rows: shape (bars,), int64: each bar's row count.
        groups: shape (bars,), int64: each bar's row group.
        is_read: shape (bars,), bool: whether the filter reads rows in the bar. True without a filter.
        first, last: the smallest and the largest bound as texts.
        is_ranked: whether the axis shows how the bounds are ordered, and not their distances. This is so for text and bytes.
        share_for_value: share of the bars that the lookup for a random value is expected to read.
        without_bounds: how many row groups have no bounds.
    """

    column: ColumnDescriptor
    unit: str
    lows: Floats
    highs: Floats
    rows: Int64s
    groups: Int64s
    is_read: NDArray[np.bool_]
    first: str
    last: str
    is_ranked: bool
    share_for_value: float
    without_bounds: int


def column_bars(file: OpenFile, facts: ChunkFacts, pruning: FilterPruning | None) -> list[ColumnBars]:
    """Return some columns' bars. Column indexes are read where there are not too many.

    Args:
        file: the file.
        facts: its column chunks.
        pruning: what a filter reads, or None.
    """
    columns, num_groups = file.metadata.schema.columns, len(facts.rows)
    filtered_columns = [] if pruning is None else pruning.filtered_columns
    by_size = np.argsort(-facts.stored_sizes.sum(axis=0), kind="stable").tolist() if num_groups else []
    candidates = [index for index in by_size if facts.has_statistics[:, index].any() and index not in filtered_columns]
    numbers = [*dict.fromkeys(filtered_columns), *candidates][:MOST_COLUMNS]
    has_pages = num_groups * len(numbers) <= MOST_INDEXED_CHUNKS
    bars = [_bars_of(file, facts, columns[number], pruning, has_pages) for number in numbers]
    return [each for each in bars if each is not None]


def _bars_of(
    file: OpenFile, facts: ChunkFacts, column: ColumnDescriptor, pruning: FilterPruning | None, has_pages: bool
) -> ColumnBars | None:
    bounds: list[RowBound] = []
    unit, without_bounds = "row group", 0
    indexes = _indexes(file, facts, column) if has_pages else {}
    for group, rows in enumerate(facts.rows.tolist()):
        pages = _page_bounds(indexes[group], group) if group in indexes else []
        if pages:
            unit = "page"
        else:
            pages = group_bounds(file.metadata, column, group, rows)
        without_bounds += not pages
        bounds += pages
    are_read = [is_bound_read(each, pruning) for each in bounds]
    return bars_of_bounds(column, unit, bounds, are_read, without_bounds)


def bars_of_bounds(
    column: ColumnDescriptor, unit: str, bounds: Sequence[RowBound], are_read: Sequence[bool], without_bounds: int
) -> ColumnBars | None:
    """Return the bars for some bounds in a column, or None if no bound is usable.

    Args:
        column: the column.
        unit: what a bar stands for.
        bounds: the bounds, in order.
        are_read: whether a filter reads the rows that each bound covers.
        without_bounds: how many row groups have no bounds.
    """
    axis = _axis_of(column, bounds)
    if axis is None:
        return None
    lows, highs, first, last, is_ranked, usable_places = axis
    own_bounds = [bounds[place] for place in usable_places]
    rows_of_bars = np.array([each.last_row - each.first_row for each in own_bounds], np.int64)
    groups = np.array([each.group for each in own_bounds], np.int64)
    share = share_for_random_value(lows, highs, rows_of_bars)
    is_read = np.array([are_read[place] for place in usable_places], np.bool_)
    return ColumnBars(column, unit, lows, highs, rows_of_bars, groups, is_read, first, last, is_ranked, share, without_bounds)


def _indexes(file: OpenFile, facts: ChunkFacts, column: ColumnDescriptor) -> dict[int, ChunkIndexes]:
    """Return a column's page indexes, by row group. Those that are absent, broken or sealed are left out."""
    usable = usable_statistics_of(file.metadata, column)
    requests, groups = [], []
    for group in np.flatnonzero(facts.has_column_index[:, column.index] & facts.is_readable[:, column.index]).tolist():
        chunk = file.metadata.row_group(group).column(column.index)
        try:
            cipher = decryptor_of(file.metadata).chunk_cipher(chunk.chunk, chunk.row_group_ordinal, column.index)
        except CryptoError:
            continue
        requests.append(IndexRequest(column, chunk, int(facts.rows[group]), cipher, True, usable))
        groups.append(group)
    try:
        answers = read_page_indexes(file.source, requests)
    except CryptoError:
        return {}
    return {group: answer for group, answer in zip(groups, answers, strict=True) if isinstance(answer, ChunkIndexes)}


def _page_bounds(indexes: ChunkIndexes, group: int) -> list[RowBound]:
    column_index, offset_index = indexes.column_index, indexes.offset_index
    if column_index is None or offset_index is None:
        return []
    first_rows = [*offset_index.first_rows.tolist(), offset_index.num_rows]
    return [
        RowBound(column_index.min_values[page], column_index.max_values[page], first_rows[page], first_rows[page + 1], group)
        for page in np.flatnonzero(~column_index.null_pages).tolist()
    ]


def group_bounds(metadata: FileMetaData, column: ColumnDescriptor, group: int, rows: int) -> list[RowBound]:
    """Return the bounds that a chunk's statistics give: one pair, or none."""
    try:
        chunk = metadata.row_group(group).column(column.index)
        statistics = chunk.metadata.statistics
    except ParquetError:
        return []
    if statistics is None:
        return []
    low, high = usable_statistics_of(metadata, column).bounds_of(statistics)
    return [] if low is None or high is None else [RowBound(low, high, 0, rows, group)]


def _axis_of(
    column: ColumnDescriptor, bounds: Sequence[RowBound]
) -> tuple[Floats, Floats, str, str, bool, list[int]] | None:
    """Return where bars begin and end, the axis texts, whether it is ranked, and which bounds are usable."""
    try:
        domain = domain_of(column.type)
        keys: list[tuple[Any, Any]] = [(domain.of_bound(each.low), domain.of_bound(each.high)) for each in bounds]
    except (ParquetError, NotImplementedError):
        return None
    usable_places = [place for place, (low, high) in enumerate(keys) if low is not None and high is not None and low <= high]
    if not usable_places:
        return None
    own_keys = [keys[place] for place in usable_places]
    smallest, largest = min(low for low, _ in own_keys), max(high for _, high in own_keys)
    ends = list(_ends(own_keys))
    numbers = np.array(ends, np.float64) if _is_numeric(domain) else None
    is_ranked = numbers is None or not np.isfinite(numbers).all() or not np.isfinite(np.ptp(numbers))
    if is_ranked:
        ranks = {key: rank for rank, key in enumerate(sorted(set(ends)))}
        numbers = np.array([ranks[key] for key in ends], np.float64)
    assert numbers is not None
    extent = float(np.ptp(numbers))
    positions = (numbers - numbers.min()) / extent if extent else np.zeros(len(numbers))
    first, last = bound_text(column, smallest), bound_text(column, largest)
    return positions[0::2], positions[1::2], first, last, is_ranked, usable_places


def _is_numeric(domain: Any) -> bool:
    return isinstance(domain, IntegerDomain | FloatDomain)


def _ends(keys: Iterable[tuple[Any, Any]]) -> Iterable[Any]:
    """Yield low and high for each bar, as numbers if the keys are numbers. A float's key is a pair with the number last."""
    for pair in keys:
        for key in pair:
            yield key[1] if isinstance(key, tuple) else key


def bound_text(column: ColumnDescriptor, key: Any) -> str:
    """Return a bound as a short text."""
    try:
        (value,) = values_of([key], column.type)
    except (ParquetError, ValueError, NotImplementedError):
        value = key
    if isinstance(value, bytes):
        text = value.decode("ascii") if value.isascii() else f"0x{value.hex()}"
    else:
        text = str(value + 0.0 if isinstance(value, float) else value)       # statistics have -0.0 as the smallest zero
    return text if len(text) <= LONGEST_BOUND else text[: LONGEST_BOUND - 1] + "…"


def share_for_random_value(lows: Floats, highs: Floats, rows: Int64s) -> float:
    """Return the share of the bars that a lookup for one value reads, on average. 1 / bars is the best, and 1 the worst.

    The value lies in the middle between a bar's ends. The bar is chosen in proportion to its rows.

    Args:
        lows, highs: shape (bars,): the bars.
        rows: shape (bars,): row counts.
    """
    middles = (lows + highs) / 2
    counts = np.searchsorted(np.sort(lows), middles, "right") - np.searchsorted(np.sort(highs), middles, "left")
    weights = rows if rows.sum() else np.ones(len(rows))
    return float(np.average(counts / len(lows), weights=weights))


def is_bound_read(bound: RowBound, pruning: FilterPruning | None) -> bool:
    """Return whether a filter reads rows that a bound covers."""
    if pruning is None:
        return True
    rows = pruning.rows.get(bound.group)
    if rows is None or rows.count == 0:
        return False
    ranges = rows.bounds
    place = int(np.searchsorted(ranges[:, 1], bound.first_row, "right"))
    return place < len(ranges) and int(ranges[place, 0]) < bound.last_row
