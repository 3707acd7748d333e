"""Sheets about column chunks: those in one row group, those in one column, and one chunk with its pages and indexes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fastpq.cli.amounts import count_text, exact_size_text, ratio_text, size_text
from fastpq.cli.browser.browsed_file import BrowsedFile
from fastpq.cli.browser.page_sheets import PageIndexSheet, PageSheet
from fastpq.cli.browser.pruning_sheets import GroupFilterSheet, probe_sheet
from fastpq.cli.browser.sheet import Fact, FactSheet, RowSheet, Sheet, SheetColumn
from fastpq.cli.browser.value_sheets import DictionarySheet, RowSet, ValueSheet
from fastpq.cli.cell_values import value_text
from fastpq.cli.column_facts import dictionary_use, usable_statistics
from fastpq.cli.failures import failure_of
from fastpq.cli.format_names import codec_name, column_type_text, encoding_name, join_names
from fastpq.cli.terminal import Part, Styled
from fastpq.errors import KeyAccessError, ParquetError

if TYPE_CHECKING:
    from fastpq.metadata.column_chunk import ColumnChunkMetaData
    from fastpq.schema.parquet_schema import ColumnDescriptor

_FACT_COLUMNS = (
    SheetColumn("stored", True),
    SheetColumn("ratio", True),
    SheetColumn("codec"),
    SheetColumn("values", True),
    SheetColumn("nulls", True),
    SheetColumn("min", widest=24),
    SheetColumn("max", widest=24),
    SheetColumn("encoding", widest=30),
    SheetColumn("dictionary"),
    SheetColumn("page index"),
    SheetColumn("bloom filter", True),
)


class ChunkSheet(RowSheet):
    """Column chunks, as the footer describes them.

    Args:
        viewed_file: the file.
    """

    def __init__(self, viewed_file: BrowsedFile) -> None:
        super().__init__()
        self._viewed_file = viewed_file
        self._problems: dict[int, str] = {}

    @abstractmethod
    def chunk_at(self, row: int) -> tuple[int, int]:
        """Return the row group and the column in a row."""

    @abstractmethod
    def name_of(self, row: int) -> Part:
        """Return the first cell in a row."""

    def make_row(self, row: int) -> Sequence[Part]:
        """Return the facts about a chunk, or that there is no key, or that its entry is broken."""
        try:
            return self.name_of(row), *chunk_cells(self._viewed_file.chunk(*self.chunk_at(row)))
        except ParquetError as error:
            self._problems[row] = failure_of(error).message
            word = "no key" if isinstance(error, KeyAccessError) else "broken"
            return self.name_of(row), Styled(word, "error"), *[""] * (len(_FACT_COLUMNS) - 1)

    def message(self, row: int, column: int) -> str:
        """Return why there are no facts about a chunk."""
        return self._problems.get(row, "")

    def opens(self, row: int, column: int) -> bool:
        """Every chunk opens."""
        return 0 <= row < len(self)

    def open(self, row: int, column: int) -> Sheet:
        """Return one chunk."""
        return chunk_sheet(self._viewed_file, *self.chunk_at(row))


class GroupChunksSheet(ChunkSheet):
    """The chunks in one row group.

    Args:
        viewed_file: the file.
        row_group: row group index.
    """

    columns = (SheetColumn("column"), *_FACT_COLUMNS)

    def __init__(self, viewed_file: BrowsedFile, row_group: int) -> None:
        super().__init__(viewed_file)
        self._row_group = row_group
        self.title = "chunks"

    def __len__(self) -> int:
        return len(self._viewed_file.columns)

    def chunk_at(self, row: int) -> tuple[int, int]:
        """Return the row group and the column in a row."""
        return self._row_group, row

    def name_of(self, row: int) -> Part:
        """Return the column's name."""
        return self._viewed_file.columns[row].name


class ColumnChunksSheet(ChunkSheet):
    """One column's chunks.

    Args:
        viewed_file: the file.
        column: the column.
    """

    columns = (SheetColumn("row group", True), *_FACT_COLUMNS)
    can_go = True
    can_probe = True

    def __init__(self, viewed_file: BrowsedFile, column: ColumnDescriptor) -> None:
        super().__init__(viewed_file)
        self._column = column
        self.title = "chunks"

    def __len__(self) -> int:
        return self._viewed_file.file.num_row_groups

    def chunk_at(self, row: int) -> tuple[int, int]:
        """Return the row group and the column in a row."""
        return row, self._column.index

    def name_of(self, row: int) -> Part:
        """Return the row group's number."""
        return str(row)

    def probed(self, text: str, row: int) -> Sheet:
        """Return which row groups and pages a lookup of a value reads."""
        return probe_sheet(self._viewed_file, self._column.index, text)


class RowGroupSheet(RowSheet):
    """The row groups in a file.

    Args:
        viewed_file: the file.
    """

    title = "row groups"
    can_filter = True
    can_go = True
    columns = (
        SheetColumn("row group", True),
        SheetColumn("rows", True),
        SheetColumn("first row", True),
        SheetColumn("stored", True),
        SheetColumn("decoded", True),
        SheetColumn("ratio", True),
        SheetColumn("sorted by", widest=60),
    )

    def __init__(self, viewed_file: BrowsedFile) -> None:
        super().__init__()
        self._viewed_file = viewed_file
        self._first_rows = viewed_file.file.metadata.first_rows

    def __len__(self) -> int:
        return self._viewed_file.file.num_row_groups

    def make_row(self, row: int) -> Sequence[Part]:
        """Return the facts about a row group."""
        group = self._viewed_file.file.metadata.row_group(row)
        names, stored_size = self._viewed_file.columns, group.total_compressed_size
        try:
            sorting = ", ".join(names[each.column_idx].name + " desc" * each.descending for each in group.sorting_columns)
        except (ParquetError, IndexError):
            sorting = ""
        return (
            str(row),
            f"{group.num_rows:,}",
            f"{int(self._first_rows[row]):,}",
            "" if stored_size is None else size_text(stored_size),
            size_text(group.total_byte_size),
            "" if stored_size is None else ratio_text(group.total_byte_size, stored_size),
            sorting,
        )

    def opens(self, row: int, column: int) -> bool:
        """Every row group opens."""
        return 0 <= row < len(self)

    def open(self, row: int, column: int) -> Sheet:
        """Return one row group."""
        return row_group_sheet(self._viewed_file, row)

    def filtered(self, text: str) -> Sheet:
        """Return which row groups a filter keeps."""
        viewed_file = self._viewed_file
        return GroupFilterSheet(viewed_file, text, partial(RowGroupSheet, viewed_file)) if text else RowGroupSheet(viewed_file)


def row_group_sheet(viewed_file: BrowsedFile, row_group: int) -> Sheet:
    """Return one row group: its chunks and its values."""
    group = viewed_file.file.metadata.row_group(row_group)
    start = int(viewed_file.file.metadata.first_rows[row_group])
    rows = RowSet("values", start, start + group.num_rows)
    facts = [
        Fact("chunks", count_text(len(viewed_file.columns), "column"), partial(GroupChunksSheet, viewed_file, row_group)),
        Fact("values", count_text(group.num_rows, "row"), partial(ValueSheet, viewed_file, rows)),
        Fact("", ""),
        Fact("rows", f"{group.num_rows:,}, from row {start:,} on"),
        Fact("decoded", exact_size_text(group.total_byte_size)),
    ]
    if group.total_compressed_size is not None:
        facts.append(Fact("stored", exact_size_text(group.total_compressed_size)))
    if group.file_offset is not None:
        facts.append(Fact("offset", f"{group.file_offset:,}"))
    facts.append(Fact("ordinal", str(group.ordinal)))
    return FactSheet(f"row group {row_group}", facts)


def chunk_cells(chunk: ColumnChunkMetaData) -> Sequence[Part]:
    """Return the cells of ``_FACT_COLUMNS`` for a chunk.

    Raises:
        ParquetError: there is no key, or the entry is broken.
    """
    metadata, statistics = chunk.metadata, usable_statistics(chunk)
    has_bounds = statistics is not None and statistics.has_min_max
    nulls = None if statistics is None else statistics.null_count
    use = dictionary_use(chunk)
    return (
        size_text(metadata.total_compressed_size),
        ratio_text(metadata.total_uncompressed_size, metadata.total_compressed_size),
        codec_name(metadata.codec).lower(),
        f"{metadata.num_values:,}",
        "?" if nulls is None else f"{nulls:,}",
        value_text(statistics.min) if has_bounds else "",
        value_text(statistics.max) if has_bounds else "",
        encodings_of(chunk),
        Styled(use, "warning") if use == "given up" else "" if use == "none" else use,
        "yes" if chunk.has_column_index else Styled("none", "dim"),
        _filter_size(chunk),
    )


def _filter_size(chunk: ColumnChunkMetaData) -> Part:
    if chunk.bloom_filter_offset is None:
        return Styled("none", "dim")
    return "yes" if chunk.bloom_filter_length is None else size_text(chunk.bloom_filter_length)


def encodings_of(chunk: ColumnChunkMetaData) -> str:
    """Return the encodings of a chunk's values, or of all its parts if the footer has no page counts."""
    from fastpq import format as fmt

    numbers = [each.encoding for each in chunk.encoding_stats if each.page_type in fmt.DATA_PAGE_TYPES] or chunk.encodings
    return join_names(encoding_name(number).lower() for number in numbers)


def chunk_sheet(viewed_file: BrowsedFile, row_group: int, column: int) -> Sheet:
    """Return one column chunk: what the footer says about it, and the ways into it.

    Raises:
        ParquetError: there is no key, or the entry is broken.
    """
    leaf, chunk = viewed_file.columns[column], viewed_file.chunk(row_group, column)
    metadata = chunk.metadata
    first = int(viewed_file.file.metadata.first_rows[row_group])
    rows = RowSet("values", first, first + viewed_file.file.metadata.row_group(row_group).num_rows)
    facts = [
        Fact("pages", _page_count(chunk), partial(PageSheet, viewed_file, row_group, leaf)),
        Fact("values", f"{metadata.num_values:,}", partial(ValueSheet, viewed_file, rows, [leaf])),
    ]
    if chunk.has_dictionary_page:
        facts.append(Fact("dictionary", dictionary_use(chunk), partial(DictionarySheet, viewed_file, row_group, leaf)))
    if chunk.has_offset_index or chunk.has_column_index:
        facts.append(Fact("page index", "bounds and places", partial(PageIndexSheet, viewed_file, row_group, leaf)))
    if chunk.bloom_filter_offset is not None:
        size = "" if chunk.bloom_filter_length is None else size_text(chunk.bloom_filter_length)
        facts.append(Fact("bloom filter", size, partial(BloomFilterSheet, viewed_file, row_group, leaf)))
    facts += [Fact("", ""), *_stored_facts(leaf, chunk), *_statistics_facts(chunk)]
    return FactSheet(f"{leaf.name} of row group {row_group}", facts)


def _page_count(chunk: ColumnChunkMetaData) -> str:
    counts = sum(each.count for each in chunk.encoding_stats)
    return count_text(counts, "page") if counts else "page headers"


def _stored_facts(leaf: ColumnDescriptor, chunk: ColumnChunkMetaData) -> list[Fact]:
    metadata = chunk.metadata
    start, size = chunk.byte_range
    facts = [
        Fact("type", column_type_text(leaf)),
        Fact("codec", codec_name(metadata.codec)),
        Fact("encodings", encodings_of(chunk)),
        Fact("stored", exact_size_text(size)),
        Fact("decoded", exact_size_text(metadata.total_uncompressed_size)),
        Fact("offset", f"{start:,}"),
        Fact("encrypted", "yes" if chunk.is_encrypted else "no"),
    ]
    return [*facts, Fact("file", chunk.file_path)] if chunk.file_path else facts


def _statistics_facts(chunk: ColumnChunkMetaData) -> list[Fact]:
    statistics: Any = usable_statistics(chunk)
    if statistics is None:
        return [Fact("statistics", Styled("none that can be used", "dim"))]
    facts = [Fact("nulls", "not told" if statistics.null_count is None else f"{statistics.null_count:,}")]
    if statistics.has_min_max:
        facts += [Fact("min", value_text(statistics.min)), Fact("max", value_text(statistics.max))]
    if statistics.distinct_count is not None:
        facts.append(Fact("distinct", f"{statistics.distinct_count:,}"))
    return facts


class BloomFilterSheet(FactSheet):
    """One column chunk's bloom filter, which can be probed for a value.

    Args:
        viewed_file: the file.
        row_group: row group index.
        column: the column.

    Raises:
        ParquetError: the filter cannot be read.
    """

    can_probe = True

    def __init__(self, viewed_file: BrowsedFile, row_group: int, column: ColumnDescriptor) -> None:
        self._viewed_file, self._column = viewed_file, column
        bloom_filter = viewed_file.file.bloom_filter(row_group, column.index)
        assert bloom_filter is not None
        facts = [
            Fact("bits", exact_size_text(bloom_filter.num_bytes)),
            Fact("false positives", f"{100 * bloom_filter.false_positive_rate:.2g} % of the values that the chunk does not have"),
        ]
        super().__init__("bloom filter", facts, "p asks the filter for a value")

    def probed(self, text: str, row: int) -> Sheet:
        """Return which row groups a lookup of a value reads."""
        return probe_sheet(self._viewed_file, self._column.index, text)
