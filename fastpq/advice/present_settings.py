"""present_settings: how a file was written, as far as its footer tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.advice.advice_report import Topic
from fastpq.advice.writing_settings import ColumnSettings, FileSettings
from fastpq.api.file import ParquetFile
from fastpq.codecs.catalogue import codec_for_read
from fastpq.encodings.encoding_table import WRITABLE
from fastpq.errors import ParquetError, UnsupportedError
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.options import DEFAULT_PROPERTIES, SortingColumn
from fastpq.picture.byte_owners import NO_CHUNK, ByteMap
from fastpq.picture.chunk_facts import ChunkFacts, chunk_facts
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import Type
from fastpq.stats.bounds import order_of
from fastpq.stats.statistics import Order

DICTIONARY_ENCODINGS = {fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY}
# Encodings that the writer takes by itself, so that nobody has to ask for them.
_OWN_CHOICE = {*DICTIONARY_ENCODINGS, fmt.Encoding.PLAIN, fmt.Encoding.RLE, fmt.Encoding.BIT_PACKED}

# A row group, or a page, with fewer rows and fewer bytes costs more than it has to.
FEW_GROUP_ROWS, FEW_GROUP_BYTES = 100_000, 32 << 20
FEW_PAGE_ROWS, FEW_PAGE_BYTES = 5_000, 64 << 10
# A page with more rows and more bytes is too large for one lookup, and for one thread of a GPU.
MANY_PAGE_ROWS, MANY_PAGE_BYTES = 100_000, 4 << 20


class FileStructure(NamedTuple):
    """How a file is built. If columns are left out, only the chunks of the others count.

    Attributes:
        path: the file.
        facts: the column chunks.
        owners: the owner of each byte.
        leaves: number of each leaf column in the file.
        names: dotted paths of the leaf columns.
        settings: writer settings that make a file like this one.
        has_small_groups: whether the row groups are so small that they cost bytes.
        has_small_pages, has_large_pages: the same for the data pages of most columns. False if the file does not tell.
    """

    path: str
    facts: ChunkFacts
    owners: ByteMap
    leaves: list[int]
    names: list[str]
    settings: FileSettings
    has_small_groups: bool
    has_small_pages: bool
    has_large_pages: bool

    @property
    def size(self) -> int:
        """Size of the file in bytes, or of its counted chunks."""
        return self.owners.size

    def with_names(self, names: list[str]) -> FileStructure:
        """Return the same with other paths of the leaf columns, in the same order.

        fastpq names the groups in lists and maps as the specification does, whatever names they have in the file.
        """
        columns = dict(zip(names, self.settings.columns.values(), strict=True))
        new_name = dict(zip(self.names, names, strict=True))
        sorting = tuple(replace(each, path=new_name[each.path]) for each in self.settings.sorting)
        booleans = frozenset(new_name[name] for name in self.settings.booleans)
        return self._replace(names=names, settings=replace(self.settings, columns=columns, sorting=sorting, booleans=booleans))

    def bytes_by_column(self, first: int = 0, last: int | None = None) -> NDArray[np.int64]:
        """Return the bytes that each column owns in some row groups: pages, indexes and bloom filters, shape (columns,)."""
        count = len(self.names)
        last = len(self.facts.rows) if last is None else last
        is_part = (self.owners.chunks >= first * count) & (self.owners.chunks < last * count)
        return np.bincount(
            self.owners.chunks[is_part] % max(count, 1), weights=self.owners.lengths[is_part], minlength=count
        ).astype(np.int64)


def structure_of(file: ParquetFile, unread_leaves: Collection[int] = ()) -> FileStructure:
    """Return how a file is built. The footer and some indexes are read.

    Args:
        file: the file.
        unread_leaves: numbers of the leaf columns that are left out.
    """
    facts, picture = chunk_facts(file.metadata), file.layout()
    owners = picture.owners
    columns = [column for column in file.schema.columns if column.index not in unread_leaves]
    leaves = [column.index for column in columns]
    if unread_leaves:
        owners = _chunks_of(owners, leaves, len(file.schema.columns))
        facts = ChunkFacts._make(each[:, leaves] if isinstance(each, np.ndarray) and each.ndim == 2 else each for each in facts)
    names = [column.name for column in columns]
    if len(set(names)) != len(names):
        raise UnsupportedError("advice on a file whose columns share a name: options by column cannot name one of them")
    rows = facts.rows
    group_bytes = facts.decoded_sizes.sum(axis=1)
    has_small_groups = bool(
        len(rows) > 1 and np.median(rows) < FEW_GROUP_ROWS and np.median(group_bytes) < FEW_GROUP_BYTES)
    page_rows, page_bytes, is_known = _page_means(facts)
    is_small = is_known & (page_rows < FEW_PAGE_ROWS) & (page_bytes < FEW_PAGE_BYTES) & (facts.pages.sum(axis=0) > len(rows))
    is_large = is_known & (page_rows > MANY_PAGE_ROWS) & (page_bytes > MANY_PAGE_BYTES)
    has_small_pages = bool(is_small.sum() * 2 > max(is_known.sum(), 1))
    has_large_pages = bool(is_large.any())
    settings = _settings(file, columns, facts, has_small_groups)
    if has_small_pages or has_large_pages:
        settings = _with_pages(settings, facts)
    return FileStructure(
        picture.name, facts, owners, leaves, names, settings, has_small_groups, has_small_pages, has_large_pages)


def _chunks_of(owners: ByteMap, leaves: Sequence[int], num_leaves: int) -> ByteMap:
    """Return the bytes that some leaves' chunks own. These chunks are numbered as if there were no others.

    Args:
        owners: the owners of all bytes.
        leaves: numbers of the leaves.
        num_leaves: how many leaves the file has.
    """
    new_number = np.full(num_leaves, -1, np.int64)
    new_number[leaves] = np.arange(len(leaves))
    groups, columns = np.divmod(owners.chunks, num_leaves)
    is_kept = (owners.chunks != NO_CHUNK) & (new_number[columns] >= 0)
    chunks = groups * len(leaves) + new_number[columns]
    starts, lengths, kinds, chunks = (each[is_kept] for each in (owners.starts, owners.lengths, owners.kinds, chunks))
    return ByteMap(starts, lengths, kinds, chunks, int(lengths.sum()), owners.overlap, owners.outside)


def _page_means(facts: ChunkFacts) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return the mean rows and decoded bytes in a column's pages, and whether the file tells their number. Shape (columns,)."""
    pages = facts.pages.clip(0).sum(axis=0)
    is_known = np.asarray((facts.pages > 0).any(axis=0) & (facts.pages >= 0).all(axis=0))
    counts = np.maximum(pages, 1)
    return facts.rows.sum() / counts, facts.decoded_sizes.sum(axis=0) / counts, is_known


def _with_pages(settings: FileSettings, facts: ChunkFacts) -> FileSettings:
    """Return settings that make pages about as small, or as large, as the pages of the file."""
    page_rows, page_bytes, is_known = _page_means(facts)
    rows = max(1, int(np.ceil(page_rows[is_known].max())))
    size = max(1, int(page_bytes[is_known].max()))
    # The writer ends a page at whichever bound comes first, so that the other one stays out of the way.
    return replace(settings, page_rows=rows, page_bytes=max(size, DEFAULT_PROPERTIES.data_page_size))


def _settings(
    file: ParquetFile, leaves: Sequence[ColumnDescriptor], facts: ChunkFacts, has_small_groups: bool
) -> FileSettings:
    metadata = file.metadata
    columns, version_2 = {}, False
    for column in leaves:
        chunks = [metadata.row_group(number).column(column.index) for number in range(metadata.num_row_groups)]
        columns[column.name] = _column_settings(chunks, column.type)
        version_2 |= any(stats.page_type == fmt.PageType.DATA_PAGE_V2 for chunk in chunks[:1] for stats in chunk.encoding_stats)
    largest = int(facts.rows.max()) if len(facts.rows) else 0
    is_cut = has_small_groups or (len(facts.rows) > 1 and largest > 0)
    default_rows = DEFAULT_PROPERTIES.row_group_size
    return FileSettings(
        columns,
        largest if is_cut or largest > default_rows else default_rows,
        has_page_index=bool(facts.has_offset_index.any()) or not facts.has_offset_index.size,
        is_version_2=version_2,
        sorting=tuple(takewhile(lambda each: each.path in columns, _sorting(file))),
        booleans=frozenset(column.name for column in leaves if column.type.physical is Type.BOOLEAN),
    )


def _column_settings(chunks: list[ColumnChunkMetaData], column_type: object) -> ColumnSettings:
    """Return a column's settings: those that most chunks have."""
    if not chunks:
        return ColumnSettings(str(DEFAULT_PROPERTIES.compression))
    codec = Counter(chunk.codec for chunk in chunks).most_common(1)[0][0]
    has_order = order_of(column_type) is not Order.ORDER_NONE    # type: ignore[arg-type]
    encodings = Counter(_encoding_of(chunk, column_type.physical) for chunk in chunks)    # type: ignore[attr-defined]
    return ColumnSettings(
        codec_for_read(codec).name,
        encoding=encodings.most_common(1)[0][0],
        is_dictionary=any(DICTIONARY_ENCODINGS & {*chunk.encodings} for chunk in chunks),
        has_statistics=not has_order or any(chunk.metadata.statistics is not None for chunk in chunks),
        has_bloom_filter=any(chunk.metadata.bloom_filter_offset is not None for chunk in chunks),
    )


def _encoding_of(chunk: ColumnChunkMetaData, physical: Type) -> str | None:
    """Return the encoding that somebody asked for: neither a dictionary nor PLAIN, and one that fastpq writes."""
    for number in chunk.encodings:
        try:
            encoding = fmt.Encoding(number)
        except ValueError:
            continue
        if encoding not in _OWN_CHOICE and encoding in WRITABLE and physical in WRITABLE[encoding]:
            return encoding.name
    return None


def _sorting(file: ParquetFile) -> tuple[SortingColumn, ...]:
    """Return the order that all row groups declare, or nothing."""
    orders = set()
    for group in file.metadata.row_groups:
        try:
            orders.add(tuple((each.column_idx, each.descending, each.nulls_first) for each in group.sorting_columns))
        except ParquetError:
            return ()
    if len(orders) != 1:
        return ()
    columns = file.schema.columns
    return tuple(SortingColumn(columns[index].name, descending, nulls) for index, descending, nulls in orders.pop())


@dataclass(frozen=True, slots=True)
class Change:
    """A change of settings.

    Attributes:
        topic: what the change is about.
        text: what is wrong, and what to do.
        of_file: FileSettings attributes with their new values.
        of_columns: ColumnSettings attributes with their new values, by dotted path.
    """

    topic: Topic
    text: str
    of_file: Mapping[str, Any] = field(default_factory=dict)
    of_columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def apply(self, settings: FileSettings) -> FileSettings:
        """Return the settings with the change."""
        columns = {**settings.columns}
        for name, values in self.of_columns.items():
            columns[name] = replace(columns[name], **values)
        return replace(settings, columns=columns, **self.of_file)


def structural_changes(structure: FileStructure) -> list[Change]:
    """Return changes of row groups and pages that are too small."""
    defaults = DEFAULT_PROPERTIES
    changes = []
    if structure.has_small_groups:
        text = (
            f"The row groups are small: {len(structure.facts.rows):,} for {int(structure.facts.rows.sum()):,} rows. Each costs "
            "an entry in the footer, a dictionary and a request. Write larger ones."
        )
        changes.append(Change("row groups", text, {"row_group_rows": defaults.row_group_size}))
    if structure.has_small_pages:
        text = "The pages are small. Each costs a header and an entry in the indexes. Write pages of the default size."
        pages = {"page_rows": defaults.data_page_rows, "page_bytes": defaults.data_page_size}
        changes.append(Change("pages", text, pages))
    return changes
