"""RowGroupInParts: a row group whose rows come in parts. A part is encoded when it comes, so that nobody has to keep its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from fastpq.arrays.table import DictionaryValues, Table
from fastpq.column.chunk_in_parts import ChunkInParts
from fastpq.column.shred import LeafToWrite, table_leaves
from fastpq.common.parallel import run_parallel
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import ParquetError
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.write.chunk_metadata import has_geospatial_values
from fastpq.write.chunks import EncodedChunk
from fastpq.write.spec import ColumnSpec

if TYPE_CHECKING:
    from fastpq.write.spilled_pages import SpilledPages, SpilledRange

# Smallest part, in bytes before it is encoded. Smaller parts would make short pages, and more Python calls.
PART_BYTES = 16 << 20
# Most page bytes that wait in memory. If there are more, all of them move to a file.
MOST_IN_MEMORY = 256 << 20


class _Column(NamedTuple):
    """A column in the row group.

    Attributes:
        path: column path.
        spec: how the column is written.
        cipher: chunk cipher.
    """

    path: tuple[str, ...]
    spec: ColumnSpec
    cipher: ModuleCipher


class RowGroupInParts:
    """A row group that is encoded part by part. Its pages wait until it is complete.

    Args:
        schema: file schema.
        specs: how each column is written.
        ciphers: each column's chunk cipher.
        ordinal: row group ordinal, for errors.
        folder: the new file's folder, in which pages wait that are too many for memory. None takes the system's temporary folder.

    Attributes:
        num_rows: how many rows are encoded.
    """

    def __init__(
        self,
        schema: ParquetSchema,
        specs: Sequence[ColumnSpec],
        ciphers: Sequence[ModuleCipher],
        ordinal: int,
        folder: str | None,
    ) -> None:
        self._schema = schema
        self._columns = [_Column(*column) for column in zip(schema.paths, specs, ciphers, strict=True)]
        self._ordinal = ordinal
        self._folder = folder
        self._writers: dict[int, ChunkInParts] = {}      # by column number
        self._no_rows: Table | None = None              # a table with the columns and no rows
        self._spill_file: SpilledPages | None = None
        self._spilled_ranges: defaultdict[int, list[SpilledRange]] = defaultdict(list)     # by column number
        self._spilled_bytes = 0
        self.num_rows = 0

    @property
    def bytes_in_memory(self) -> int:
        """How many page bytes wait in memory."""
        return sum(writer.stored_size for writer in self._writers.values()) - self._spilled_bytes

    def add(self, tables: Sequence[Table], threads: int) -> None:
        """Encode some tables' rows, which follow the rows that were added before.

        Args:
            tables: tables with the file's columns, at least one.
            threads: how many columns are encoded at the same time.

        Raises:
            SchemaError, LimitError: as for ``encode_chunk``.
            OSError: pages that are too many for memory cannot be written to a file.
        """
        num_rows = sum(table.num_rows for table in tables)
        leaves = table_leaves(tables, self._schema)
        if self._no_rows is None:
            # a slice would keep its table's memory, but a concatenation has its own
            self._no_rows = Table.concat([tables[0].slice(0, 0), tables[0].slice(0, 0)])

        def add_rows(number: int) -> None:
            column, leaf = self._columns[number], leaves[number]
            try:
                values = leaf.rows(column.spec.layout, 0, num_rows)
                writer = self._writers.get(number)
                if writer is None:
                    writer = self._writers[number] = ChunkInParts(values, column.spec.codec, column.cipher, column.spec.settings)
                writer.write_part(values)
            except ParquetError as error:
                raise error.at(column=".".join(column.path), row_group=self._ordinal) from None

        run_parallel(add_rows, range(len(leaves)), threads)
        self.num_rows += num_rows
        if self.bytes_in_memory > MOST_IN_MEMORY:
            self._spill()

    def _spill(self) -> None:
        """Move the waiting pages from memory to a file."""
        if self._spill_file is None:
            from fastpq.write.spilled_pages import SpilledPages

            self._spill_file = SpilledPages(self._folder)
        for number, writer in self._writers.items():
            place = self._spill_file.add(writer.take_pages())
            self._spilled_ranges[number].append(place)
            self._spilled_bytes += place.stop - place.start

    def chunks(self, tables: Sequence[Table], threads: int) -> list[EncodedChunk]:
        """Encode the last rows, and return the column chunks. Pages that were moved to a file are read through a map.

        Args:
            tables: tables with the last rows, if there are some. Others were added before.
            threads: how many columns are encoded at the same time.

        Raises:
            SchemaError, LimitError, OSError: as for ``add``.
        """
        if any(table.num_rows for table in tables):
            self.add(tables, threads)
        assert self._no_rows is not None
        leaves = table_leaves([self._no_rows], self._schema)
        spilled_pages = memoryview(b"") if self._spill_file is None else self._spill_file.pages()
        return [self._chunk(number, leaf, spilled_pages) for number, leaf in enumerate(leaves)]

    def _chunk(self, number: int, leaf: LeafToWrite, spilled_pages: memoryview) -> EncodedChunk:
        """Return a column's chunk. The leaf is the column without rows."""
        column, writer = self._columns[number], self._writers.pop(number)
        pages: list[bytes | memoryview] = [spilled_pages[place.start : place.stop] for place in self._spilled_ranges[number]]
        writer.end_parts(leaf.rows(column.spec.layout, 0, 0), pages)
        return EncodedChunk(column.path, column.spec, column.cipher, writer, None)


def may_be_in_parts(table: Table, specs: Sequence[ColumnSpec]) -> bool:
    """Return whether a file's row groups can be encoded in parts.

    They cannot if something needs all rows together: an encoding that is not chosen yet, content-defined chunks, a dictionary
    whose entries keep their order, bounding boxes for geometries, or a bloom filter without ``ndv``.

    Args:
        table: the first rows.
        specs: how each column is written.
    """
    if any(map(_needs_all_rows, specs)):
        return False
    return not any(isinstance(leaf.values, DictionaryValues) for column in table.columns for _, leaf in column.leaves())


def _needs_all_rows(spec: ColumnSpec) -> bool:
    settings = spec.settings
    counts_values = settings.bloom_filter_fpp is not None and settings.bloom_filter_ndv is None
    return spec.choice is None or settings.content_chunks is not None or has_geospatial_values(spec) or counts_values


def part_bytes(num_columns: int, bytes_a_row: float, page_rows: int, page_bytes: int) -> float:
    """Return how many bytes of rows make a part: at least PART_BYTES, and enough to fill a page in each column.

    Args:
        num_columns: how many leaves there are.
        bytes_a_row: bytes in a row.
        page_rows, page_bytes: a page's limits.
    """
    return max(PART_BYTES, min(num_columns * page_bytes, page_rows * bytes_a_row))
