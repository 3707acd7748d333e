"""ChunkOpener: opens column chunks of one file for reading, and converts strings to the requested layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Literal

from fastpq.arrays.allowance import Allowance
from fastpq.arrays.binary import total_size
from fastpq.arrays.nested_columns import map_leaves
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import AnyColumn, BinaryOffsets, Column
from fastpq.codecs.catalogue import codec_for_read
from fastpq.column.chunk_reader import ChunkReader
from fastpq.column.layout import Conversion, Judge, Layout, layout_of
from fastpq.column.page import PageReader
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import ParquetError
from fastpq.io.source import Source, Stored
from fastpq.metadata.legacy_calendar import LegacyCalendar
from fastpq.options import ReaderProperties
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import ColumnType, Decimal, Type

if TYPE_CHECKING:
    from fastpq.column.nested_reader import NestedReader, StructLeafReader
    from fastpq.encryption.decryptor import FileDecryptor
    from fastpq.read.chunk_run import ChunkRun, RunPlan

StringLayout = Literal["views", "offsets", "dictionary"]
DecimalLayout = Literal["stored", "decimal128"]


class ChunkOpener:
    """Opener that turns the plan for a column chunk, and the chunk's bytes, into a reader of its pages or values.

    Args:
        source: the file.
        decryptor: returns the chunks' ciphers. An unencrypted chunk has a null cipher.
        properties: limits and checks.
        strings: layout for variable-length values in the result.
        types: in-memory types of the leaves whose type in memory is not the type in the schema, by leaf number.
        allowance: the limit on the memory that the values may take. None makes a new limit: ``max_allocation`` in the properties.
        becomes_dictionary: returns whether a flat column is to be read as dictionary codes if its pages have them, whatever
            ``strings`` says. None means that no column is.
        calendar: the calendar of the file's dates and timestamps. None means that they are given as they are stored.
        checks_text: whether text that is not UTF-8 is refused.
        widens_decimals: whether ``laid_out`` widens decimals that have 4 or 8 bytes to 16 bytes.
    """

    def __init__(
        self, source: Source, decryptor: FileDecryptor, properties: ReaderProperties, strings: StringLayout,
        types: Mapping[int, ColumnType], allowance: Allowance | None = None,
        becomes_dictionary: Callable[[ColumnDescriptor], bool] | None = None, calendar: LegacyCalendar | None = None,
        checks_text: bool = True, widens_decimals: bool = False,
    ) -> None:
        self.source = source
        self.allowance = allowance or Allowance(properties.max_allocation)
        self.decryptor = decryptor
        self.properties = properties
        self.strings = strings
        self.types = types
        self.becomes_dictionary = becomes_dictionary
        self.calendar = calendar if calendar is not None and calendar.is_hybrid else None
        self._checks_text = checks_text
        self._widens_decimals = widens_decimals
        self._layouts: dict[int, Layout] = {}

    def type_of(self, leaf: ColumnDescriptor) -> ColumnType:
        """Return the type that a leaf's values have in memory."""
        return self.types.get(leaf.index) or leaf.type

    def awaits_unit(self, leaf: ColumnDescriptor) -> bool:
        """Return whether a leaf has INT96 timestamps whose unit is chosen after they are decoded (``read.int96``)."""
        return leaf.element.type == Type.INT96 and leaf.index not in self.types

    def with_type(self, leaf: ColumnDescriptor, type_: ColumnType) -> ChunkOpener:
        """Return an opener like this one, but with another in-memory type for one leaf. Both use the same memory limit."""
        opener = copy(self)
        opener.types, opener._layouts = {**self.types, leaf.index: type_}, {}
        return opener

    def layout(self, leaf: ColumnDescriptor) -> Layout:
        """Return the layout of a leaf's values: how they are stored in pages, and how in memory."""
        type_ = self.types.get(leaf.index) or leaf.type
        layout = self._layouts.get(id(type_))        # id() is quicker than the hash of a type. Columns share type objects
        if layout is None:
            if self._widens_decimals and type_ is not leaf.type and isinstance(leaf.type.logical, Decimal):
                layout = self._layout_of_type(leaf.type).as_decimal128()
            else:
                layout = self._layout_of_type(type_)
            if type_.physical is Type.INT96 and self.awaits_unit(leaf):
                layout = layout.as_stored()
            self._layouts[id(type_)] = layout
        return layout

    def _layout_of_type(self, type_: ColumnType) -> Layout:
        """Return the layout of values with a type. INT96 timestamps are converted as they are decoded."""
        layout = layout_of(type_)
        if layout.ticks and not self.properties.verify_times:
            layout = layout._replace(ticks=0)
        if layout.text and not self._checks_text:
            layout = layout._replace(text=False)
        return layout

    def pages(self, chunk: ChunkPlan, stored_bytes: Stored, layout: Layout | None = None) -> PageReader:
        """Return a PageReader that stands before a chunk's first page.

        Args:
            chunk: the chunk's plan.
            stored_bytes: the chunk's bytes.
            layout: layout of the values, or None for ``layout(chunk.column)``.
        """
        layout = layout or self.layout(chunk.column)
        return PageReader(
            stored_bytes,
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
        self, chunk: ChunkPlan, stored_bytes: Stored, layout: Layout | None = None, judge: Judge | None = None
    ) -> ChunkReader:
        """Return a ChunkReader that stands before the first value of a flat column's chunk.

        Args:
            chunk: the chunk's plan.
            stored_bytes: the chunk's bytes.
            layout: layout of the values, or None for ``layout(chunk.column)``.
            judge: function that replaces the values by verdicts on them, as for ChunkReader. None to keep the values.
        """
        layout = layout or self.layout(chunk.column)
        return ChunkReader(self.pages(chunk, stored_bytes, layout), layout, chunk.num_values, judge)

    def flat_run(self, plan: RunPlan, layout: Layout) -> ChunkRun:
        """Return a ChunkRun, which reads consecutive chunks of a flat column in a local file one after another.

        Args:
            plan: plan for the chunks.
            layout: layout of the values.
        """
        from fastpq.read.chunk_run import ChunkRun

        ciphers: list[ModuleCipher] | None = None
        if plan.is_encrypted and not plan.under_footer_key:
            ciphers = []
            for chunk in plan.chunks:
                with self.placed(chunk):
                    ciphers.append(self._cipher(chunk))
        first = plan.chunks[0]
        stored_bytes, in_place = self.source.walk_run(plan.ranges, authentic=plan.is_encrypted)
        try:
            return ChunkRun(self.flat(first, stored_bytes, layout), plan, in_place, ciphers)
        except ParquetError as error:
            self.place(error, first)
            raise

    def _cipher(self, chunk: ChunkPlan) -> ModuleCipher:
        """Return a chunk's cipher.

        An unencrypted chunk needs no check here, because planning has already checked whether the reader's keys allow it.
        """
        if not chunk.is_encrypted:
            return ModuleCipher()
        column = chunk.column
        if chunk.under_footer_key:
            return self.decryptor.footer_key_cipher(column.path, chunk.row_group_ordinal, column.index)
        if chunk.under_own_key:
            return self.decryptor.own_key_cipher(column.path, chunk.key_metadata, chunk.row_group_ordinal, column.index)
        metadata = chunk.metadata
        return self.decryptor.chunk_cipher(metadata.chunk, metadata.row_group_ordinal, column.index)

    def nested(self, chunk: ChunkPlan, stored_bytes: Stored) -> NestedReader:
        """Return a NestedReader that stands before the first row of a nested column's chunk."""
        from fastpq.column.nested_reader import NestedReader

        count = chunk.chunk_values if chunk.pages is None else self.pages(chunk, stored_bytes).count_values()
        return NestedReader(self.pages(chunk, stored_bytes), self.layout(chunk.column), count)

    def in_structs(self, chunk: ChunkPlan, stored_bytes: Stored, layout: Layout) -> StructLeafReader:
        """Return a StructLeafReader that stands before a chunk's first row. The column is a leaf in structs.

        Args:
            chunk: the chunk's plan.
            stored_bytes: the chunk's bytes.
            layout: the values' layout.
        """
        from fastpq.column.nested_reader import StructLeafReader

        return StructLeafReader(self.pages(chunk, stored_bytes, layout), layout, chunk.num_values)

    @contextmanager
    def placed(self, chunk: ChunkPlan) -> Iterator[None]:
        """Add a chunk's file, column and row group to errors that are raised in the ``with`` block."""
        try:
            yield
        except ParquetError as error:
            self.place(error, chunk)
            raise

    def place(self, error: ParquetError, chunk: ChunkPlan) -> None:
        """Add a chunk's file, column and row group to an error. The offset of a page becomes its offset in the file."""
        from fastpq.read.page_errors import give_file_offset

        give_file_offset(error, chunk.ranges)
        error.at(path=self.source.name, column=chunk.column.name, row_group=chunk.row_group)

    def laid_out(self, column: AnyColumn) -> AnyColumn:
        """Return a column whose strings, at every level of nesting, have the layout ``strings``. Decimals may be widened."""
        if self._widens_decimals:
            from fastpq.read.wide_decimals import with_wide_decimals

            column = with_wide_decimals(column, self.allowance)
        return map_leaves(lambda leaf: self.strings_of(leaf) if leaf.type.is_variable else leaf, column)

    def strings_of(self, column: Column) -> Column:
        """Return a column of views with the layout ``strings``."""
        if self.strings == "offsets":
            # a long dictionary value is copied for each view that refers to it
            self.allowance.check(total_size(SliceReader(column.values, column.validity if column.null_count else None)))
            packed_column = column.as_offsets()
            values = packed_column.values
            assert isinstance(values, BinaryOffsets)
            return packed_column._with(values=BinaryOffsets(values.offsets, self.allowance.hold(values.data)))
        return column.as_dictionary() if self.strings == "dictionary" else column
