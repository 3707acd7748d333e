"""ChunkOpener: planned chunks of one file as readers of pages and values, and the columns of leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fastpq.arrays.allowance import Allowance
from fastpq.arrays.binary import total_size
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import VIEW_DTYPE, AnyColumn, BinaryOffsets, BinaryViews, Column, ListColumn, StructColumn
from fastpq.codecs.catalogue import codec_for_read
from fastpq.column.chunk_reader import ChunkReader
from fastpq.column.layout import Layout, layout_of
from fastpq.column.page import PageReader
from fastpq.errors import ParquetError
from fastpq.io.source import Source, Stored
from fastpq.options import ReaderProperties
from fastpq.read.plan import ChunkPlan
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import ColumnType, Unknown

if TYPE_CHECKING:
    from fastpq.column.nested_reader import NestedReader
    from fastpq.encryption.cipher import ModuleCipher
    from fastpq.encryption.decryptor import FileDecryptor

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
    """

    def __init__(
        self,
        source: Source,
        decryptor: FileDecryptor,
        properties: ReaderProperties,
        strings: StringLayout,
        types: Mapping[int, ColumnType],
        allowance: Allowance | None = None,
    ) -> None:
        self.source = source
        self.allowance = allowance or Allowance(properties.allocation_limit)
        self.decryptor = decryptor
        self.properties = properties
        self.strings = strings
        self.types = types
        self._layouts: dict[int, Layout] = {}

    def type_of(self, leaf: ColumnDescriptor) -> ColumnType:
        """The type of a leaf's values in memory."""
        return self.types.get(leaf.index) or leaf.type

    def layout(self, leaf: ColumnDescriptor) -> Layout:
        """Storage of a leaf's values in pages and in memory."""
        known = self._layouts.get(leaf.index)
        if known is None:
            known = layout_of(self.type_of(leaf))
            if known.ticks and not self.properties.verify_times:
                known = known._replace(ticks=0)
            self._layouts[leaf.index] = known
        return known

    def cipher(self, chunk: ChunkPlan) -> ModuleCipher:
        """The cipher of a chunk."""
        metadata = chunk.metadata
        return self.decryptor.chunk_cipher(metadata.chunk, metadata.row_group_ordinal, chunk.column.index)

    def pages(self, chunk: ChunkPlan, stored: Stored) -> PageReader:
        """A PageReader before the first page of a chunk."""
        layout, metadata = self.layout(chunk.column), chunk.metadata.metadata
        return PageReader(
            stored,
            self.cipher(chunk),
            codec_for_read(metadata.codec),
            chunk.column.max_definition_level,
            chunk.column.max_repetition_level,
            layout.stored_width == 0 and layout.width == VIEW_DTYPE.itemsize,
            bool(metadata.dictionary_page_offset) and (chunk.pages is None or chunk.pages.has_dictionary),
            self.properties,
            self.allowance,
            not self.source.gives_views,
            None if chunk.pages is None else chunk.pages.directory,
            chunk.v2_is_compressed,
        )

    def flat(self, chunk: ChunkPlan, stored: Stored) -> ChunkReader:
        """A ChunkReader before the first value of a flat column's chunk."""
        return ChunkReader(self.pages(chunk, stored), self.layout(chunk.column), chunk.num_values)

    def nested(self, chunk: ChunkPlan, stored: Stored) -> NestedReader:
        """A NestedReader before the first row of a nested column's chunk."""
        from fastpq.column.nested_reader import NestedReader

        count = chunk.metadata.num_values if chunk.pages is None else self.pages(chunk, stored).count_values()
        return NestedReader(self.pages(chunk, stored), self.layout(chunk.column), count)

    @contextmanager
    def placed(self, chunk: ChunkPlan) -> Iterator[None]:
        """Errors inside name the file, the column and the row group of a chunk."""
        try:
            yield
        except ParquetError as error:
            error.at(path=self.source.name, column=chunk.column.name, row_group=chunk.row_group)
            raise

    # ---- columns of leaves

    def column(
        self,
        type_: ColumnType,
        values: np.ndarray[Any, Any],
        buffers: list[np.ndarray[Any, Any]],
        nulls: tuple[np.ndarray[Any, Any] | None, int],
        nullable: bool,
    ) -> Column:
        """A leaf's column, strings in the wanted layout.

        Args:
            type_: its type.
            values: bytes of the values, or of the views of strings.
            buffers: the bytes behind the views.
            nulls: validity bitmap, and number of nulls; without nulls the bitmap is not used.
            nullable: whether the schema allows nulls.
        """
        validity, null_count = nulls
        validity = validity if null_count else None
        if nullable and isinstance(type_.logical, Unknown):     # always null, whatever is stored
            null_count = len(values.view(VIEW_DTYPE if type_.dtype is None else type_.dtype))
            validity = np.zeros((null_count + 7) // 8, np.uint8)
        if type_.dtype is not None:
            return Column._made(type_, values.view(type_.dtype), validity, null_count, nullable)
        views = BinaryViews(values.view(VIEW_DTYPE), buffers)
        return self._laid_out(Column._made(type_, views, validity, null_count, nullable))

    def laid_out(self, column: AnyColumn) -> AnyColumn:
        """A column with all strings in the wanted layout, at every level of nesting."""
        match column:
            case ListColumn():
                return column._with(elements=self.laid_out(column.elements))
            case StructColumn():
                return column._with(children=tuple(map(self.laid_out, column.children)))
        return self._laid_out(column) if column.type.is_variable else column

    def _laid_out(self, column: Column) -> Column:
        if self.strings == "offsets":
            # a long dictionary value is copied for each of its views
            self.allowance.check(total_size(SliceReader(column.values, column.validity if column.null_count else None)))
            copied = column.as_offsets()
            values = copied.values
            assert isinstance(values, BinaryOffsets)
            return copied._with(values=BinaryOffsets(values.offsets, self.allowance.hold(values.data)))
        return column.as_dictionary() if self.strings == "dictionary" else column
