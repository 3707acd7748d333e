"""What the footer says about the columns of a file, added up over the row groups."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

from fastpq import format as fmt
from fastpq.cli.cell_values import json_value
from fastpq.cli.format_names import DICTIONARY_ENCODINGS, codec_name, column_type_text, encoding_name, join_names
from fastpq.errors import KeyAccessError, ParquetError

if TYPE_CHECKING:
    from fastpq.metadata.column_chunk import ColumnChunkMetaData
    from fastpq.metadata.file_metadata import FileMetaData
    from fastpq.schema.parquet_schema import ColumnDescriptor

DictionaryUse = Literal["all", "given up", "part", "none", "unknown"]
MOST_RANGES = 10_000  # row groups whose bounds are compared


class ColumnFacts(TypedDict):
    """One column of a file.

    Attributes:
        column: dotted path.
        type: physical and logical type.
        encrypted: whether the column is encrypted.
        readable: whether the column's metadata can be read with the user's keys. Without a key the numbers are 0 or null.
        stored_bytes: bytes in the file, with page headers.
        decoded_bytes: bytes after decompression, with page headers.
        values: number of values, nulls included.
        nulls: null count, or null if a row group does not tell.
        codecs: compression codecs.
        encodings: data pages by encoding, or an empty object if the file does not tell.
        dictionary: all data pages use a dictionary, the writer gave it up in some chunks, a part of the chunks has one, or none.
        distinct: distinct count from statistics or dictionary pages, largest over the row groups, or null.
        values_per_row: mean number of values in a row, for columns in lists.
        min, max: bounds of the whole column, or null.
        chunks: number of column chunks.
        chunks_with_statistics: chunks with usable bounds.
        chunks_with_page_index: chunks with a column index.
        chunks_with_bloom_filter: chunks with a bloom filter.
        declared_sorting: ascending or descending if each row group says that it is sorted by this column first.
        sorted_row_groups: whether the row groups' bounds ascend or descend without overlap.
        row_groups_per_value: mean number of row groups whose bounds hold a value, where a row group counts by its rows.
    """

    column: str
    type: str
    encrypted: bool
    readable: bool
    stored_bytes: int
    decoded_bytes: int
    values: int
    nulls: int | None
    codecs: list[str]
    encodings: dict[str, int]
    dictionary: DictionaryUse
    distinct: int | None
    values_per_row: float | None
    min: Any
    max: Any
    chunks: int
    chunks_with_statistics: int
    chunks_with_page_index: int
    chunks_with_bloom_filter: int
    declared_sorting: Literal["ascending", "descending"] | None
    sorted_row_groups: Literal["ascending", "descending"] | None
    row_groups_per_value: float | None


class ChunkRange(NamedTuple):
    """Smallest and largest value of a column chunk, as Python objects."""

    low: Any
    high: Any


def column_facts(metadata: FileMetaData, column: ColumnDescriptor, distinct: int | None = None) -> ColumnFacts:
    """Return the facts about one column.

    Args:
        metadata: the file's footer.
        column: the column.
        distinct: distinct count from elsewhere, or None.
    """
    facts = ColumnFacts(
        column=column.name,
        type=column_type_text(column),
        encrypted=False,
        readable=True,
        stored_bytes=0,
        decoded_bytes=0,
        values=0,
        nulls=0,
        codecs=[],
        encodings={},
        dictionary="none",
        distinct=distinct,
        values_per_row=None,
        min=None,
        max=None,
        chunks=0,
        chunks_with_statistics=0,
        chunks_with_page_index=0,
        chunks_with_bloom_filter=0,
        declared_sorting=None,
        sorted_row_groups=None,
        row_groups_per_value=None,
    )
    encodings: Counter[str] = Counter()
    uses: list[DictionaryUse] = []
    ranges: list[ChunkRange | None] = []
    for group in metadata.row_groups:
        chunk = group.column(column.index)
        facts["chunks"] += 1
        facts["encrypted"] |= chunk.is_encrypted
        facts["chunks_with_page_index"] += chunk.chunk.column_index_offset is not None
        try:
            _add_chunk(facts, chunk, encodings, ranges)
        except KeyAccessError:
            facts["readable"] = False
            continue
        uses.append(dictionary_use(chunk))
    facts["encodings"] = dict(encodings.most_common())
    facts["dictionary"] = _joined_use(uses) if facts["readable"] else "unknown"
    if not facts["readable"]:
        facts["nulls"] = None
    rows = max(metadata.num_rows, 0)
    if column.max_repetition_level and rows and facts["readable"]:
        facts["values_per_row"] = facts["values"] / rows
    facts["declared_sorting"] = declared_sorting(metadata, column)
    _add_ranges(facts, ranges)
    if facts["min"] is not None and 1 < len(ranges) <= MOST_RANGES:
        facts["row_groups_per_value"] = row_groups_per_value(metadata, column)
    return facts


def _add_chunk(facts: ColumnFacts, chunk: ColumnChunkMetaData, encodings: Counter[str], ranges: list[ChunkRange | None]) -> None:
    chunk_metadata = chunk.metadata
    facts["stored_bytes"] += chunk_metadata.total_compressed_size
    facts["decoded_bytes"] += chunk_metadata.total_uncompressed_size
    facts["values"] += chunk_metadata.num_values
    facts["chunks_with_bloom_filter"] += chunk_metadata.bloom_filter_offset is not None
    codec = codec_name(chunk_metadata.codec)
    if codec not in facts["codecs"]:
        facts["codecs"].append(codec)
    for stats in chunk.encoding_stats:
        if stats.page_type in fmt.DATA_PAGE_TYPES:
            encodings[encoding_name(stats.encoding)] += stats.count
    statistics = usable_statistics(chunk)
    nulls = None if statistics is None else statistics.null_count
    if nulls is None:
        facts["nulls"] = None
    elif facts["nulls"] is not None:
        facts["nulls"] += nulls
    if statistics is not None and statistics.distinct_count is not None:
        facts["distinct"] = max(facts["distinct"] or 0, statistics.distinct_count)
    has_range = statistics is not None and statistics.has_min_max
    facts["chunks_with_statistics"] += has_range
    if has_range:
        ranges.append(ChunkRange(statistics.min, statistics.max))
    elif nulls is None or nulls < chunk_metadata.num_values:  # a chunk of nulls has no bounds, and needs none
        ranges.append(None)


def usable_statistics(chunk: ColumnChunkMetaData) -> Any:
    """Return a chunk's statistics, or None if there are none or the file contradicts them."""
    try:
        return chunk.statistics
    except KeyAccessError:
        raise
    except ParquetError:
        return None


def dictionary_use(chunk: ColumnChunkMetaData) -> DictionaryUse:
    """Return whether a chunk's data pages use its dictionary."""
    counts = {True: 0, False: 0}
    for stats in chunk.encoding_stats:
        if stats.page_type in fmt.DATA_PAGE_TYPES:
            counts[stats.encoding in DICTIONARY_ENCODINGS] += stats.count
    if not any(counts.values()):
        encodings = set(chunk.encodings) - {fmt.Encoding.RLE, fmt.Encoding.BIT_PACKED}
        if not encodings & {*DICTIONARY_ENCODINGS}:
            return "none"
        return "all" if encodings <= {*DICTIONARY_ENCODINGS} else "unknown"
    if counts[True]:
        return "given up" if counts[False] else "all"
    return "given up" if chunk.dictionary_page_offset is not None else "none"


def _joined_use(uses: list[DictionaryUse]) -> DictionaryUse:
    kinds = {*uses}
    if "given up" in kinds:
        return "given up"
    return uses[0] if len(kinds) == 1 else "part" if kinds else "none"


def declared_sorting(metadata: FileMetaData, column: ColumnDescriptor) -> Literal["ascending", "descending"] | None:
    """Return the order that all row groups declare with this column first, or None."""
    directions = set()
    for group in metadata.row_groups:
        try:
            sorting = group.sorting_columns
        except ParquetError:
            return None
        if not sorting or sorting[0].column_idx != column.index:
            return None
        directions.add(sorting[0].descending)
    if len(directions) != 1:
        return None
    return "descending" if directions.pop() else "ascending"


def _add_ranges(facts: ColumnFacts, ranges: list[ChunkRange | None]) -> None:
    known_ranges = [each for each in ranges if each is not None]
    if not known_ranges or len(known_ranges) < len(ranges):
        return
    try:
        low, high = min(each.low for each in known_ranges), max(each.high for each in known_ranges)
        # statistics have -0.0 as the smallest zero
        facts["min"], facts["max"] = (json_value(each + 0.0 if isinstance(each, float) else each) for each in (low, high))
        if 1 < len(known_ranges) <= MOST_RANGES:
            facts["sorted_row_groups"] = row_group_order(known_ranges)
    except TypeError:  # values without an order in Python
        return


def row_group_order(ranges: list[ChunkRange]) -> Literal["ascending", "descending"] | None:
    """Return the direction in which ranges follow each other without overlap, or None."""
    pairs = list(pairwise(ranges))
    if all(one.high <= other.low for one, other in pairs):
        return "ascending"
    return "descending" if all(one.low >= other.high for one, other in pairs) else None


def row_groups_per_value(metadata: FileMetaData, column: ColumnDescriptor) -> float | None:
    """Return how many row groups a lookup for one value reads, on average. 1.0 is the best: each value is in one row group.

    It is the measure of the pictures of ``layout``, here always over row groups: a value in the middle of a row group's bounds is
    looked up, and a row group counts by its rows. None if the bounds have no order.
    """
    from fastpq.picture.page_bars import bars_of_bounds, group_bounds

    bounds = [bound for group in metadata.row_groups for bound in group_bounds(metadata, column, group.index, group.num_rows)]
    bars = bars_of_bounds(column, "row group", bounds, [True] * len(bounds), 0)
    return None if bars is None else round(bars.share_for_value * len(bars.rows), 2)


def encodings_text(facts: ColumnFacts) -> str:
    """Return the encodings of the data pages, the most frequent first."""
    short = {"RLE_DICTIONARY": "dictionary", "PLAIN_DICTIONARY": "dictionary", "PLAIN": "plain"}
    return join_names(short.get(name, name.lower()) for name in facts["encodings"])
