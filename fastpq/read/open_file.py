"""OpenFile: an open file, and the form of its values in memory. ReadRequest: the columns and rows to read from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from fastpq.arrays.allowance import Allowance
from fastpq.arrays.valid_text import BINARY, TextChoice
from fastpq.io.source import Source
from fastpq.metadata.file_metadata import FileMetaData, decryptor_of
from fastpq.options import ReaderProperties
from fastpq.read.opener import ChunkOpener, DecimalLayout, StringLayout
from fastpq.schema.parquet_schema import ColumnDescriptor, Int96UnitName, int96_types
from fastpq.schema.types import ColumnType, TimeUnitName, Type

if TYPE_CHECKING:
    from fastpq.filters.predicate import Predicate
    from fastpq.index.ranges import RowRanges


class ReadRequest(NamedTuple):
    """Columns and rows of a read.

    Attributes:
        columns: leaves, in result order.
        groups: row group indices in result order, each with its requested rows, or None for all rows.
        predicate: condition on the rows, or None.
        is_selective: whether ranges or a predicate choose rows.
        bind: takes the in-memory types that differ from the schema's types, by leaf number, and returns the predicate for values
            of these types. None if there is no predicate.
        locked_columns: leaves that the caller requested, but whose keys are missing. ``columns`` lacks them. They have nulls in
            the result.
        all_columns: ``columns`` and ``locked_columns`` together, in result order. Empty if no leaf is locked.
    """

    columns: Sequence[ColumnDescriptor]
    groups: Sequence[tuple[int, RowRanges | None]]
    predicate: Predicate | None = None
    is_selective: bool = False
    bind: Callable[[Mapping[int, ColumnType]], Predicate | None] | None = None
    locked_columns: Sequence[ColumnDescriptor] = ()
    all_columns: Sequence[ColumnDescriptor] = ()

    @property
    def filtered_columns(self) -> list[ColumnDescriptor]:
        """The columns that the predicate needs."""
        if self.predicate is None:
            return []
        from fastpq.filters.predicate import leaves

        return [leaf.column for leaf in leaves(self.predicate)]

    def bound_to(self, file: OpenFile) -> ReadRequest:
        """Return the request with the predicate for the types that a file's columns have in memory."""
        if self.predicate is None or self.bind is None:
            return self
        return self._replace(predicate=self.bind(file.types(file.metadata.schema.columns)))


class OpenFile(NamedTuple):
    """An open file, and the form of its values in memory.

    Attributes:
        source: the file.
        metadata: its footer.
        properties: limits and checks.
        strings: layout for variable-length values.
        int96_unit: unit for INT96 timestamps. ``"auto"`` is the finest unit that fits the values of a read. ``"stored"`` keeps
            the stored 12 bytes, so that a new file gets the same bytes.
        threads: how many chunks are decoded at the same time.
        int96_units: units that are already chosen for INT96 columns, by leaf number.
        invalid_utf8: treatment of text that is not UTF-8. With ``"error"``, it is refused. With ``"replace"``, text is not
            checked here, and the caller repairs it. With ``"binary"``, all text is read as bytes.
        decimals: width of decimals that are stored as INT32 or INT64: that of the file, or 16 bytes.
        becomes_dictionary: returns whether a flat column becomes dictionary codes after the read. For such a column, the read
            takes the codes that the file stores.
    """

    source: Source
    metadata: FileMetaData
    properties: ReaderProperties
    strings: StringLayout
    int96_unit: Int96UnitName
    threads: int
    int96_units: Mapping[int, TimeUnitName] = MappingProxyType({})
    becomes_dictionary: Callable[[ColumnDescriptor], bool] | None = None
    invalid_utf8: TextChoice = "error"
    decimals: DecimalLayout = "stored"

    def opener(
        self, leaves: Iterable[ColumnDescriptor], strings: StringLayout | None = None, allowance: Allowance | None = None,
        decimals: DecimalLayout | None = None,
    ) -> ChunkOpener:
        """Return a ChunkOpener for the chunks of some leaves.

        Args:
            leaves: the leaves.
            strings: layout for variable-length values, or None for the file's layout.
            allowance: memory allowance that it shares with another opener in the same read, or None for a new one.
            decimals: width of decimals, or None for the file's width.
        """
        types: dict[int, ColumnType] = {}
        is_wide = (decimals or self.decimals) == "decimal128"
        if is_wide:
            leaves = list(leaves)
        if self.metadata.schema.has_int96 or self.invalid_utf8 == "binary":
            types = self.types(leaf for leaf in leaves if not self.awaits_unit(leaf))
        if is_wide:
            from fastpq.read.wide_decimals import wide_types

            types |= wide_types(leaves)
        return ChunkOpener(
            self.source, decryptor_of(self.metadata), self.properties, strings or self.strings, types, allowance,
            self.becomes_dictionary if strings is None else None, self.metadata.calendar,
            self.invalid_utf8 == "error", is_wide)

    def types(self, leaves: Iterable[ColumnDescriptor]) -> dict[int, ColumnType]:
        """Return the in-memory types that differ from the schema's types, by leaf number.

        An INT96 column has nanoseconds if its unit depends on its values. Text has the type of bytes if it is read as bytes.
        Decimals have the type of the schema, because filters compare them as they are stored.
        """
        leaves = list(leaves)
        types = int96_types(leaves, "ns" if self.int96_unit == "auto" else self.int96_unit, self.int96_units)
        if self.invalid_utf8 == "binary":
            types |= {leaf.index: BINARY for leaf in leaves if leaf.type.is_text}
        return types

    def awaits_unit(self, leaf: ColumnDescriptor) -> bool:
        """Return whether a leaf has INT96 timestamps whose unit depends on their values and is not chosen yet."""
        return self.int96_unit == "auto" and leaf.element.type == Type.INT96 and leaf.index not in self.int96_units
