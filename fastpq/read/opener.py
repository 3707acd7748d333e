"""ChunkOpener: planned chunks of one file as readers of pages and values, and the layout of strings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from fastpq.arrays.allowance import Allowance
from fastpq.arrays.binary import total_size
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import AnyColumn, BinaryOffsets, Column, ListColumn, StructColumn
from fastpq.codecs.catalogue import codec_for_read
from fastpq.column.chunk_reader import ChunkReader
from fastpq.column.layout import Conversion, Judge, Layout, layout_of
from fastpq.column.page import PageReader
from fastpq.common.process_memory import default_allocation
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import ParquetError
from fastpq.io.source import Source, Stored
from fastpq.options import ReaderProperties
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import ColumnType

if TYPE_CHECKING:
    from fastpq.column.nested_reader import NestedReader
    from fastpq.encryption.decryptor import FileDecryptor
    from fastpq.read.chunk_run import ChunkRun, RunPlan

StringLayout = Literal["views", "offsets", "dictionary"]


class ChunkOpener:
    """Opens the planned chunks of one file.

    Args:
        source: the file.
        decryptor: ciphers of the file's chunks; null ciphers for plaintext chunks.
        properties: bounds and checks.
        strings: layout of variable-length values.
        types: types in memory other than the schema's, by the number of the leaf.
        allowance: bytes that the values may take; None for ``max_allocation`` of the properties.
        becomes_dictionary: whether a flat column is read as codes where it can be, whatever the layout of strings; None for none.
    """

    def __init__(
        self,
        source: Source,
        decryptor: FileDecryptor,
        properties: ReaderProperties,
        strings: StringLayout,
        types: Mapping[int, ColumnType],
        allowance: Allowance | None = None,
        becomes_dictionary: Callable[[ColumnDescriptor], bool] | None = None,
    ) -> None:
        self.source = source
        self.allowance = allowance or Allowance(properties.max_allocation or default_allocation())
        self.decryptor = decryptor
        self.properties = properties
        self.strings = strings
        self.types = types
        self.becomes_dictionary = becomes_dictionary
        self._layouts: dict[int, Layout] = {}

    def type_of(self, leaf: ColumnDescriptor) -> ColumnType:
        """The type of a leaf's values in memory."""
        return self.types.get(leaf.index) or leaf.type

    def layout(self, leaf: ColumnDescriptor) -> Layout:
        """Storage of a leaf's values in pages and in memory."""
        type_ = self.types.get(leaf.index) or leaf.type
        known = self._layouts.get(id(type_))        # columns share types, and the hash of a type takes longer
        if known is None:
            known = layout_of(type_)
            if known.ticks and not self.properties.verify_times:
                known = known._replace(ticks=0)
            self._layouts[id(type_)] = known
        return known

    def pages(self, chunk: ChunkPlan, stored: Stored, layout: Layout | None = None) -> PageReader:
        """A PageReader before the first page of a chunk, with the layout of the column if known already."""
        layout = layout or self.layout(chunk.column)
        return PageReader(
            stored,
            self._cipher(chunk),
            codec_for_read(chunk.codec),
            chunk.column.max_definition_level,
            chunk.column.max_repetition_level,
            layout.conversion is Conversion.VARIABLE,
            chunk.has_dictionary,
            self.properties,
            self.allowance,
            not self.source.gives_views,
            None if chunk.pages is None else chunk.pages.directory,
            chunk.v2_is_compressed,
        )

    def flat(
        self, chunk: ChunkPlan, stored: Stored, layout: Layout | None = None, judge: Judge | None = None
    ) -> ChunkReader:
        """A ChunkReader before the first value of a flat column's chunk, with the layout of the column if known already.

        Args:
            chunk, stored: the chunk.
            layout: storage of the values.
            judge: for verdicts in place of the values; as for ChunkReader.
        """
        layout = layout or self.layout(chunk.column)
        return ChunkReader(self.pages(chunk, stored, layout), layout, chunk.num_values, judge)

    def flat_run(self, plan: RunPlan, layout: Layout) -> ChunkRun:
        """A ChunkRun of chunks of a flat column, in a local file.

        Args:
            plan: plan of the chunks.
            layout: storage of the values.
        """
        from fastpq.read.chunk_run import ChunkRun

        ciphers: list[ModuleCipher] | None = None
        if plan.is_encrypted and not plan.under_footer_key:
            ciphers = []
            for chunk in plan.chunks:
                with self.placed(chunk):
                    ciphers.append(self._cipher(chunk))
        first = plan.chunks[0]
        stored, in_place = self.source.walk_run(plan.ranges, authentic=plan.is_encrypted)
        try:
            return ChunkRun(self.flat(first, stored, layout), plan, in_place, ciphers)
        except ParquetError as error:
            self.place(error, first)
            raise

    def _cipher(self, chunk: ChunkPlan) -> ModuleCipher:
        """The cipher of a chunk; the plan of an unencrypted one was checked against the reader's keys."""
        if not chunk.is_encrypted:
            return ModuleCipher()
        column = chunk.column
        if chunk.under_footer_key:
            return self.decryptor.footer_key_cipher(column.path, chunk.row_group_ordinal, column.index)
        metadata = chunk.metadata
        return self.decryptor.chunk_cipher(metadata.chunk, metadata.row_group_ordinal, column.index)

    def nested(self, chunk: ChunkPlan, stored: Stored) -> NestedReader:
        """A NestedReader before the first row of a nested column's chunk."""
        from fastpq.column.nested_reader import NestedReader

        count = chunk.chunk_values if chunk.pages is None else self.pages(chunk, stored).count_values()
        return NestedReader(self.pages(chunk, stored), self.layout(chunk.column), count)

    @contextmanager
    def placed(self, chunk: ChunkPlan) -> Iterator[None]:
        """Errors inside name the file, the column and the row group of a chunk."""
        try:
            yield
        except ParquetError as error:
            self.place(error, chunk)
            raise

    def place(self, error: ParquetError, chunk: ChunkPlan) -> None:
        """Add the file, the column and the row group of a chunk to an error."""
        error.at(path=self.source.name, column=chunk.column.name, row_group=chunk.row_group)

    def laid_out(self, column: AnyColumn) -> AnyColumn:
        """A column with all strings in the wanted layout, at every level of nesting."""
        match column:
            case ListColumn():
                return column._with(elements=self.laid_out(column.elements))
            case StructColumn():
                return column._with(children=tuple(map(self.laid_out, column.children)))
        return self.strings_of(column) if column.type.is_variable else column

    def strings_of(self, column: Column) -> Column:
        """A column of views with its strings in the wanted layout."""
        if self.strings == "offsets":
            # a long dictionary value is copied for each of its views
            self.allowance.check(total_size(SliceReader(column.values, column.validity if column.null_count else None)))
            copied = column.as_offsets()
            values = copied.values
            assert isinstance(values, BinaryOffsets)
            return copied._with(values=BinaryOffsets(values.offsets, self.allowance.hold(values.data)))
        return column.as_dictionary() if self.strings == "dictionary" else column
