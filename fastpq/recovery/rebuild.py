"""Row groups that are rebuilt from their pages, for those bytes in a file that no footer describes.

A row group's pages are contiguous, column after column. A dictionary page is only at a chunk's start, and all columns have the
same row count. If the schema is known, the pages can often be divided into chunks in only one way. The search tries every
division, and keeps only the row groups that all divisions have in common: values in a wrong column are worse than lost values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fastpq import format as fmt
from fastpq.codecs.catalogue import codec_for_read
from fastpq.encryption.decryptor import FileDecryptor
from fastpq.errors import FormatError, LimitError, ParquetError, UnsupportedError
from fastpq.index.ranges import Int64s, RowRanges
from fastpq.io.origin import StoredBytes
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.read.chunk_plan import ChunkPlan, PageSelection
from fastpq.read.opener import ChunkOpener
from fastpq.recovery.pages import find_pages
from fastpq.recovery.survey import UNKNOWN, Probe
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
from fastpq.schema.shape import LeafShape, shape_of
from fastpq.schema.types import Type

POSITION, SIZE, KIND, VALUES, ENCODING, ROWS, BODY, CLEAR, PLAIN = range(9)      # columns in the array that find_pages returns
_DICTIONARY_ENCODINGS = (fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY)
# The search may try this many pages. If it needs more, the pages count as ambiguous.
MOST_STEPS = 100_000


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The pages from first to stop - 1 (a dictionary page may be the first), read as a chunk with num_rows rows and one codec."""

    first: int
    stop: int
    num_rows: int
    codec: int


_Group = tuple[_Chunk, ...]


@dataclass(frozen=True, slots=True)
class RebuiltRowGroups:
    """What the search for row groups has found.

    Attributes:
        row_groups: footer entries for the rebuilt row groups, without statistics.
        unread: the bytes outside the row groups, as (offset, length).
        is_ambiguous: whether there are several possible divisions into row groups from some page on.
    """

    row_groups: list[fmt.RowGroup]
    unread: tuple[tuple[int, int], ...]
    is_ambiguous: bool


def rebuild(
    opener: ChunkOpener, schema: ParquetSchema, start: int, first_ordinal: int, row_group_rows: int | None, codecs: Sequence[int]
) -> RebuiltRowGroups:
    """Find the complete row groups in a plaintext file.

    Args:
        opener: opens the file's chunks.
        schema: the file's schema.
        start: where the search begins, as an offset in the file.
        first_ordinal: ordinal for the first row group that is found.
        row_group_rows: row count in each row group except the last, which may be smaller. None if unknown.
        codecs: numbers of the codecs that pages may have.

    Raises:
        LimitError: the file is larger than max_allocation, and not mapped (``memory_map="keep"``).
    """
    source = opener.source
    if not schema.columns:      # no page belongs to the schema
        return RebuiltRowGroups([], _unread([], start, source.size), False)
    [stored_file] = source.walk([[(0, source.size)]], authentic=False)
    if isinstance(stored_file, StoredBytes):
        if source.size > opener.allowance.limit:
            raise LimitError(
                f"the search for pages would hold the file's {source.size} bytes in memory, which is over max_allocation "
                f"({opener.allowance.limit}): memory_map=\"keep\" maps the file"
            )
        stored_file = stored_file.read()
    pages = find_pages(stored_file, start, opener.properties.verify_checksums)
    gaps = np.flatnonzero(pages[1:, POSITION] != pages[:-1, POSITION] + pages[:-1, SIZE]) + 1
    row_groups: list[fmt.RowGroup] = []
    is_ambiguous = False
    for part in np.split(pages, gaps) if len(pages) else ():
        search = _Search(opener, schema, part, row_group_rows, codecs)
        groups, is_complete = search.groups()
        row_groups += [search.row_group(group, first_ordinal + len(row_groups) + number) for number, group in enumerate(groups)]
        if not is_complete:
            is_ambiguous = search.is_ambiguous
            break       # pages after a gap may begin anywhere in a row group
    return RebuiltRowGroups(row_groups, _unread(row_groups, start, source.size), is_ambiguous)


def _unread(groups: Sequence[fmt.RowGroup], start: int, size: int) -> tuple[tuple[int, int], ...]:
    runs = []
    for group in groups:
        offset = group.file_offset or 0
        runs.append((start, offset - start))
        start = offset + (group.total_compressed_size or 0)
    return tuple(run for run in [*runs, (start, size - start)] if run[1])


class _Search:
    """Search through all divisions of contiguous pages into row groups."""

    def __init__(
        self, opener: ChunkOpener, schema: ParquetSchema, pages: Int64s, row_group_rows: int | None, codecs: Sequence[int]
    ) -> None:
        self._opener = opener
        self._columns = schema.columns
        self._pages = pages
        self._row_group_rows = row_group_rows
        self._codecs = codecs
        self._steps = MOST_STEPS
        self._row_counts: dict[tuple[int, int, int, int], int] = {}     # by dictionary, page, column and codec
        self._can_continue: dict[int, bool] = {len(pages): True}        # what _leads_on returned, by page
        self.is_ambiguous = False

    def groups(self) -> tuple[list[_Group], bool]:
        """Return the row groups that all divisions have in common, and whether they cover all pages."""
        row_groups: list[_Group] = []
        first = 0
        try:
            while first < len(self._pages):
                choices = [choice for choice in self._choices(first) if choice is None or self._leads_on(choice[-1].stop)]
                complete = [choice for choice in choices if choice is not None]
                if len(complete) != 1 or len(choices) > 1:
                    self.is_ambiguous = bool(complete)
                    break
                row_groups += complete
                first = complete[0][-1].stop
        except LimitError:
            self.is_ambiguous = True
        return row_groups, first == len(self._pages)

    def _leads_on(self, first: int) -> bool:
        """Return whether the pages from first on can be divided into row groups. The last one may be truncated."""
        path = [(first, self._choices(first))]
        while path:
            place, choices = path[-1]
            if place == len(self._pages):
                self._can_continue.update({each: True for each, _ in path})
                return True
            if place in self._can_continue:
                if self._can_continue[place]:
                    return True
                path.pop()
                continue
            for choice in choices:
                place = len(self._pages) if choice is None else choice[-1].stop
                path.append((place, self._choices(place)))
                break
            else:
                self._can_continue[place] = False
                path.pop()
        return False

    def _choices(self, first: int) -> Iterator[_Group | None]:
        """Yield the possible row groups that start at a page. None means a truncated row group, and may come several times."""
        count, most = len(self._pages), self._row_group_rows
        path: list[_Chunk] = []
        iterators = [self._chunks(first, 0, most)]
        if self._is_bare_dictionary(first):
            yield None
        while iterators:
            chunk = next(iterators[-1], None)
            if chunk is None:
                iterators.pop()
                path = path[:-1]
                continue
            num_rows = path[0].num_rows if path else None
            is_last = len(path) + 1 == len(self._columns)
            if chunk.stop == count and (not is_last or chunk.num_rows < (num_rows or most or chunk.num_rows)):
                yield None
            if num_rows is None:
                fits = most in (None, chunk.num_rows) or chunk.num_rows < (most or 0)
            else:
                fits = chunk.num_rows == num_rows
            if not fits:
                continue
            if is_last:
                if most in (None, chunk.num_rows) or chunk.stop == count:
                    yield (*path, chunk)
            elif chunk.stop < count:
                path = [*path, chunk]
                iterators.append(self._chunks(chunk.stop, len(path), chunk.num_rows))
                if self._is_bare_dictionary(chunk.stop):
                    yield None

    def _is_bare_dictionary(self, page: int) -> bool:
        return page + 1 == len(self._pages) and self._pages[page, KIND] == fmt.PageType.DICTIONARY_PAGE

    def _chunks(self, first: int, column: int, limit: int | None) -> Iterator[_Chunk]:
        """Yield a column's possible chunks that start at a page and have at most limit rows."""
        has_dictionary = self._pages[first, KIND] == fmt.PageType.DICTIONARY_PAGE
        earlier_stops: set[int] = set()
        for codec in self._codecs_of(first):
            num_rows, stop = 0, first + int(has_dictionary)
            while stop < len(self._pages) and self._pages[stop, KIND] != fmt.PageType.DICTIONARY_PAGE:
                self._step()
                rows = self._rows_of(first if has_dictionary else UNKNOWN, stop, column, codec)
                num_rows, stop = num_rows + rows, stop + 1
                if rows < 0 or (limit is not None and num_rows > limit):
                    break
                if stop not in earlier_stops:   # if several codecs can read the pages, each gives the same values
                    earlier_stops.add(stop)
                    yield _Chunk(first, stop, num_rows, codec)

    def _step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise LimitError("too many ways to put pages together")

    def _codecs_of(self, page: int) -> list[int]:
        """Return the codecs that can decompress a page. There is rarely more than one."""
        body, clear, plain = (int(self._pages[page, which]) for which in (BODY, CLEAR, PLAIN))
        if clear == body:
            return list(self._codecs)
        end = int(self._pages[page, POSITION] + self._pages[page, SIZE])
        compressed_body = self._opener.source.read(end - body + clear, body - clear)
        return [codec for codec in self._codecs if _decompresses(codec, compressed_body.data, plain - clear, self._opener)]

    def _rows_of(self, dictionary: int, page: int, column: int, codec: int) -> int:
        """Read a page as if it belonged to the column, and return how many rows it has, or -1 if it cannot be decoded."""
        key = (dictionary, page, column, codec)
        if key not in self._row_counts:
            self._row_counts[key] = self._count_rows(dictionary, page, column, codec)
        return self._row_counts[key]

    def _count_rows(self, dictionary: int, page: int, column: int, codec: int) -> int:
        leaf = self._columns[column]
        width = self._opener.layout(leaf).stored_width
        if dictionary != UNKNOWN:
            plain, values = int(self._pages[dictionary, PLAIN]), int(self._pages[dictionary, VALUES])
            if width and plain != values * width:
                return UNKNOWN
        is_indices = int(self._pages[page, ENCODING]) in _DICTIONARY_ENCODINGS
        has_exact_size = leaf.max_definition_level == 0 and width and leaf.physical_type is not Type.BOOLEAN
        plain_size = int(self._pages[page, VALUES]) * width
        is_plain = self._pages[page, ENCODING] == fmt.Encoding.PLAIN
        if has_exact_size and is_plain and self._pages[page, PLAIN] != plain_size:
            return UNKNOWN
        if is_indices and dictionary == UNKNOWN and self._pages[page, VALUES]:
            return UNKNOWN
        chunk = self.chunk(leaf, _Chunk(page if dictionary == UNKNOWN else dictionary, page + 1, 0, codec), 0)
        return self._probe(leaf, chunk, dictionary, page)

    def _probe(self, leaf: ColumnDescriptor, entry: fmt.ColumnChunk, dictionary: int, page: int) -> int:
        values, size = int(self._pages[page, VALUES]), int(self._pages[page, SIZE])
        ranges = [(int(self._pages[each, POSITION]), int(self._pages[each, SIZE])) for each in (dictionary, page) if each >= 0]
        num_rows = values if leaf.max_repetition_level == 0 else UNKNOWN
        directory = np.array([[0, size, values, num_rows]], np.int64)
        pages = PageSelection(RowRanges.every(values), ranges, directory, 1)
        metadata = ColumnChunkMetaData(entry, 0, leaf.index, FileDecryptor())
        plan = ChunkPlan(
            column=leaf,
            row_group=0,
            row_offset=0,
            num_rows=values,
            num_values=values,
            start=ranges[0][0],
            length=pages.num_bytes,
            metadata=metadata,
            codec=metadata.codec,
            is_encrypted=False,
            has_dictionary=dictionary != UNKNOWN,
            pages=pages,
        )
        leaf_shape = None if leaf.is_flat else self._leaves[leaf.index]
        try:
            return Probe(self._opener, plan, leaf_shape).count_rows_of_page(plan)
        except (FormatError, LimitError, UnsupportedError):
            return UNKNOWN

    @cached_property
    def _leaves(self) -> dict[int, LeafShape]:
        nodes = {id(column.top): column.top for column in self._columns}
        numbers = range(len(self._columns))
        shapes = [shape_of(node, numbers, self._opener.types) for node in nodes.values()]
        return {leaf.column.index: leaf for shape in shapes for leaf in shape.leaves}

    def chunk(self, leaf: ColumnDescriptor, chunk: _Chunk, num_values: int) -> fmt.ColumnChunk:
        """Return a chunk's footer entry."""
        pages = self._pages[chunk.first : chunk.stop]
        has_dictionary = pages[0, KIND] == fmt.PageType.DICTIONARY_PAGE
        header_sizes = pages[:, SIZE] - pages[:, BODY]
        return fmt.ColumnChunk(
            file_offset=0,
            meta_data=fmt.ColumnMetaData(
                type=leaf.physical_type,
                encodings=sorted({fmt.Encoding.RLE, *pages[:, ENCODING].tolist()}),
                path_in_schema=list(leaf.path),
                codec=chunk.codec,
                num_values=num_values,
                total_uncompressed_size=int((pages[:, PLAIN] + header_sizes).sum()),
                total_compressed_size=int(pages[:, SIZE].sum()),
                data_page_offset=int(pages[int(has_dictionary), POSITION]),
                dictionary_page_offset=int(pages[0, POSITION]) if has_dictionary else None,
            ),
        )

    def row_group(self, group: _Group, ordinal: int) -> fmt.RowGroup:
        """Return a row group's footer entry."""
        columns = []
        for leaf, chunk in zip(self._columns, group, strict=True):
            pages = self._pages[chunk.first : chunk.stop]
            values = int(pages[pages[:, KIND] != fmt.PageType.DICTIONARY_PAGE, VALUES].sum())
            columns.append(self.chunk(leaf, chunk, values))
        metadata_of_columns = [column.meta_data for column in columns if column.meta_data is not None]
        return fmt.RowGroup(
            columns=columns,
            total_byte_size=sum(metadata.total_uncompressed_size for metadata in metadata_of_columns),
            num_rows=group[0].num_rows,
            file_offset=int(self._pages[group[0].first, POSITION]),
            total_compressed_size=sum(metadata.total_compressed_size for metadata in metadata_of_columns),
            ordinal=ordinal,
        )


def _decompresses(codec: int, compressed_body: memoryview, size: int, opener: ChunkOpener) -> bool:
    """Return whether a codec decompresses the stored bytes to this size."""
    if codec == fmt.CompressionCodec.UNCOMPRESSED:
        return len(compressed_body) == size
    most_output, least_input = codec_for_read(codec).most_expansion
    if size > opener.properties.max_page_size or size * least_input > len(compressed_body) * most_output:
        return False
    try:
        codec_for_read(codec).decompress_into(compressed_body, memoryview(bytearray(size)))
    except ParquetError:
        return False
    return True
