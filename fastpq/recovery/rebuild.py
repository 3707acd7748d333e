"""Row groups rebuilt from their pages, for bytes of a file described by no footer.

Pages of a row group are contiguous, column after column, with a dictionary page only at the start of a chunk, and all columns
have the same number of rows. Given the schema, often only one division of the pages into chunks remains. The search tries every
division, and keeps only the row groups common to all divisions: values in a wrong column are worse than lost values.
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
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.opener import ChunkOpener
from fastpq.read.plan import PageSelection
from fastpq.recovery.pages import find_pages
from fastpq.recovery.survey import UNKNOWN, Probe
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
from fastpq.schema.shape import LeafShape, shape_of
from fastpq.schema.types import Type

POSITION, SIZE, KIND, VALUES, ENCODING, ROWS, BODY, CLEAR, PLAIN = range(9)      # columns of find_pages' result
_DICTIONARY_ENCODINGS = (fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY)
# Steps of the search, in pages tried; beyond, the pages count as ambiguous.
MOST_STEPS = 100_000


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Pages first to stop - 1, a dictionary page included, read as a chunk of num_rows rows compressed with codec."""

    first: int
    stop: int
    num_rows: int
    codec: int


_Group = tuple[_Chunk, ...]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Result of the search for row groups.

    Attributes:
        row_groups: footer entries of the row groups found, without statistics.
        unread: bytes outside the row groups, as (offset, length).
        ambiguous: whether, from some page on, several divisions into row groups are possible.
    """

    row_groups: list[fmt.RowGroup]
    unread: tuple[tuple[int, int], ...]
    ambiguous: bool


def rebuild(
    opener: ChunkOpener, schema: ParquetSchema, start: int, first_ordinal: int, row_group_rows: int | None, codecs: Sequence[int]
) -> Rebuilt:
    """Find the complete row groups of a plaintext file.

    Args:
        opener: opener of the file's chunks.
        schema: schema of the file.
        start: offset of the first row group to find.
        first_ordinal: ordinal of the first row group to find.
        row_group_rows: rows of each row group except the last, possibly smaller, row group; None if unknown.
        codecs: numbers of the possible codecs of pages.

    Raises:
        LimitError: the file is larger than max_allocation, and not mapped (``memory_map="keep"``).
    """
    source = opener.source
    if not schema.columns:      # no page belongs to the schema
        return Rebuilt([], _unread([], start, source.size), False)
    [stored] = source.walk([[(0, source.size)]], authentic=False)
    if isinstance(stored, StoredBytes):
        if source.size > opener.allowance.limit:
            raise LimitError(
                f"the search for pages holds the file's {source.size} bytes in memory, over max_allocation "
                f"({opener.allowance.limit}); memory_map=\"keep\" maps the file"
            )
        stored = stored.read()
    pages = find_pages(stored, start, opener.properties.verify_checksums)
    gaps = np.flatnonzero(pages[1:, POSITION] != pages[:-1, POSITION] + pages[:-1, SIZE]) + 1
    found: list[fmt.RowGroup] = []
    ambiguous = False
    for part in np.split(pages, gaps) if len(pages) else ():
        search = _Search(opener, schema, part, row_group_rows, codecs)
        groups, complete = search.groups()
        found += [search.row_group(group, first_ordinal + len(found) + number) for number, group in enumerate(groups)]
        if not complete:
            ambiguous = search.is_ambiguous
            break       # pages behind a gap may begin anywhere within a row group
    return Rebuilt(found, _unread(found, start, source.size), ambiguous)


def _unread(groups: Sequence[fmt.RowGroup], start: int, size: int) -> tuple[tuple[int, int], ...]:
    runs = []
    for group in groups:
        offset = group.file_offset or 0
        runs.append((start, offset - start))
        start = offset + (group.total_compressed_size or 0)
    return tuple(run for run in [*runs, (start, size - start)] if run[1])


class _Search:
    """Search over all divisions of contiguous pages into row groups."""

    def __init__(
        self, opener: ChunkOpener, schema: ParquetSchema, pages: Int64s, row_group_rows: int | None, codecs: Sequence[int]
    ) -> None:
        self._opener = opener
        self._columns = schema.columns
        self._pages = pages
        self._rows = row_group_rows
        self._codecs = codecs
        self._steps = MOST_STEPS
        self._known: dict[tuple[int, int, int, int], int] = {}
        self._leading: dict[int, bool] = {len(pages): True}
        self.is_ambiguous = False

    def groups(self) -> tuple[list[_Group], bool]:
        """The row groups common to all divisions, and whether the row groups cover all pages."""
        taken: list[_Group] = []
        first = 0
        try:
            while first < len(self._pages):
                choices = [choice for choice in self._choices(first) if choice is None or self._leads_on(choice[-1].stop)]
                found = [choice for choice in choices if choice is not None]
                if len(found) != 1 or len(choices) > 1:
                    self.is_ambiguous = bool(found)
                    break
                taken += found
                first = found[0][-1].stop
        except LimitError:
            self.is_ambiguous = True
        return taken, first == len(self._pages)

    def _leads_on(self, first: int) -> bool:
        """Whether the pages from first on can be divided into row groups, the last of them possibly truncated."""
        path = [(first, self._choices(first))]
        while path:
            place, choices = path[-1]
            if place == len(self._pages):
                self._leading.update({each: True for each, _ in path})
                return True
            if place in self._leading:
                if self._leading[place]:
                    return True
                path.pop()
                continue
            for choice in choices:
                place = len(self._pages) if choice is None else choice[-1].stop
                path.append((place, self._choices(place)))
                break
            else:
                self._leading[place] = False
                path.pop()
        return False

    def _choices(self, first: int) -> Iterator[_Group | None]:
        """Possible row groups starting at a page; None, once or more often, stands for a truncated row group."""
        count, most = len(self._pages), self._rows
        path: list[_Chunk] = []
        waiting = [self._chunks(first, 0, most)]
        if self._is_bare_dictionary(first):
            yield None
        while waiting:
            chunk = next(waiting[-1], None)
            if chunk is None:
                waiting.pop()
                path = path[:-1]
                continue
            wanted = path[0].num_rows if path else None
            is_last = len(path) + 1 == len(self._columns)
            if chunk.stop == count and (not is_last or chunk.num_rows < (wanted or most or chunk.num_rows)):
                yield None
            if wanted is None:
                fits = most in (None, chunk.num_rows) or chunk.num_rows < (most or 0)
            else:
                fits = chunk.num_rows == wanted
            if not fits:
                continue
            if is_last:
                if most in (None, chunk.num_rows) or chunk.stop == count:
                    yield (*path, chunk)
            elif chunk.stop < count:
                path = [*path, chunk]
                waiting.append(self._chunks(chunk.stop, len(path), chunk.num_rows))
                if self._is_bare_dictionary(chunk.stop):
                    yield None

    def _is_bare_dictionary(self, page: int) -> bool:
        return page + 1 == len(self._pages) and self._pages[page, KIND] == fmt.PageType.DICTIONARY_PAGE

    def _chunks(self, first: int, column: int, limit: int | None) -> Iterator[_Chunk]:
        """Possible chunks of a column starting at a page, of at most limit rows."""
        has_dictionary = self._pages[first, KIND] == fmt.PageType.DICTIONARY_PAGE
        seen: set[int] = set()
        for codec in self._codecs_of(first):
            num_rows, stop = 0, first + int(has_dictionary)
            while stop < len(self._pages) and self._pages[stop, KIND] != fmt.PageType.DICTIONARY_PAGE:
                self._step()
                rows = self._rows_of(first if has_dictionary else UNKNOWN, stop, column, codec)
                num_rows, stop = num_rows + rows, stop + 1
                if rows < 0 or (limit is not None and num_rows > limit):
                    break
                if stop not in seen:        # pages readable by several codecs hold the same values under each
                    seen.add(stop)
                    yield _Chunk(first, stop, num_rows, codec)

    def _step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise LimitError("too many ways to put pages together")

    def _codecs_of(self, page: int) -> list[int]:
        """Possible codecs of a page's bytes; rarely more than one."""
        body, clear, plain = (int(self._pages[page, which]) for which in (BODY, CLEAR, PLAIN))
        if clear == body:
            return list(self._codecs)
        stored = self._opener.source.read(int(self._pages[page, POSITION] + self._pages[page, SIZE]) - body + clear, body - clear)
        return [codec for codec in self._codecs if _decompresses(codec, stored.data, plain - clear, self._opener)]

    def _rows_of(self, dictionary: int, page: int, column: int, codec: int) -> int:
        """Number of rows of a page read as a page of the column; -1 if decoding fails."""
        key = (dictionary, page, column, codec)
        if key not in self._known:
            self._known[key] = self._decoded_rows(dictionary, page, column, codec)
        return self._known[key]

    def _decoded_rows(self, dictionary: int, page: int, column: int, codec: int) -> int:
        leaf = self._columns[column]
        width = self._opener.layout(leaf).stored_width
        if dictionary != UNKNOWN:
            plain, values = int(self._pages[dictionary, PLAIN]), int(self._pages[dictionary, VALUES])
            if width and plain != values * width:
                return UNKNOWN
        is_indices = int(self._pages[page, ENCODING]) in _DICTIONARY_ENCODINGS
        exact = leaf.max_definition_level == 0 and width and leaf.physical_type is not Type.BOOLEAN
        plain_size = int(self._pages[page, VALUES]) * width
        if exact and self._pages[page, ENCODING] == fmt.Encoding.PLAIN and self._pages[page, PLAIN] != plain_size:
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
        in_shape = None if leaf.is_flat else self._leaves[leaf.index]
        try:
            return Probe(self._opener, plan, in_shape).page(plan)
        except (FormatError, LimitError, UnsupportedError):
            return UNKNOWN

    @cached_property
    def _leaves(self) -> dict[int, LeafShape]:
        nodes = {id(column.top): column.top for column in self._columns}
        numbers = range(len(self._columns))
        shapes = [shape_of(node, numbers, self._opener.types) for node in nodes.values()]
        return {leaf.column.index: leaf for shape in shapes for leaf in shape.leaves}

    def chunk(self, leaf: ColumnDescriptor, chunk: _Chunk, num_values: int) -> fmt.ColumnChunk:
        """Footer entry of a chunk."""
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
        """Footer entry of a row group."""
        columns = []
        for leaf, chunk in zip(self._columns, group, strict=True):
            pages = self._pages[chunk.first : chunk.stop]
            values = int(pages[pages[:, KIND] != fmt.PageType.DICTIONARY_PAGE, VALUES].sum())
            columns.append(self.chunk(leaf, chunk, values))
        sizes = [column.meta_data for column in columns if column.meta_data is not None]
        return fmt.RowGroup(
            columns=columns,
            total_byte_size=sum(metadata.total_uncompressed_size for metadata in sizes),
            num_rows=group[0].num_rows,
            file_offset=int(self._pages[group[0].first, POSITION]),
            total_compressed_size=sum(metadata.total_compressed_size for metadata in sizes),
            ordinal=ordinal,
        )


def _decompresses(codec: int, stored: memoryview, size: int, opener: ChunkOpener) -> bool:
    """Whether a codec makes so many bytes of stored ones."""
    if codec == fmt.CompressionCodec.UNCOMPRESSED:
        return len(stored) == size
    produced, consumed = codec_for_read(codec).most_expansion
    if size > opener.properties.max_page_size or size * consumed > len(stored) * produced:
        return False
    try:
        codec_for_read(codec).decompress_into(stored, memoryview(bytearray(size)))
    except ParquetError:
        return False
    return True
