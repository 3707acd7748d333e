"""VariantColumn: variants of many rows, with conversions from and to Python objects, JSON and shredded columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from fastpq.arrays.bitmap import count_zeros
from fastpq.arrays.layouts import Array, BinaryOffsets, DictionaryValues
from fastpq.arrays.nested_columns import StructColumn
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import Column
from fastpq.common.process_memory import default_allocation
from fastpq.errors import SchemaError
from fastpq.variant.decode import decode_rows
from fastpq.variant.encode import Encoder, collect_names, sorted_names
from fastpq.variant.json_input import from_json
from fastpq.variant.json_output import json_rows
from fastpq.variant.reassembly import reassemble
from fastpq.variant.shredded import BINARY, Shredded
from fastpq.variant.shredding import shred
from fastpq.variant.shredding_schema import ShreddingSchema, normalized
from fastpq.variant.storage import binary_field, shredded_of, variant_struct
from fastpq.variant.value import Variant


@dataclass(frozen=True, slots=True, eq=False)
class VariantColumn:
    """A column of unshredded variants.

    Attributes:
        metadata: BYTE_ARRAY column of encoded metadata; the metadata of null rows are ignored.
        value: BYTE_ARRAY column of encoded values. Its nulls are null rows; a variant null is a value.

    Raises:
        SchemaError: columns of other types or of different lengths.
    """

    metadata: Column
    value: Column

    def __post_init__(self) -> None:
        if len(self.metadata) != len(self.value):
            raise SchemaError(f"{len(self.metadata)} metadata for {len(self.value)} values")
        for column in (self.metadata, self.value):
            if not column.type.is_variable:
                raise SchemaError(f"the metadata and values of variants are BYTE_ARRAY, not {column.type}")

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, row: int) -> Variant | None:
        """The variant of a row; None for a null row."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        row %= len(self)
        [value] = self.value.slice(row, row + 1).to_pylist()
        return None if value is None else Variant(self.metadata.slice(row, row + 1).to_pylist()[0], value)

    @classmethod
    def from_pylist(cls, values: Iterable[Any], *, nulls: bool = True) -> Self:
        """Encode Python objects; all rows share one sorted dictionary of names.

        Args:
            values: one value a row, of the types listed in ``fastpq.schema.variant_kinds``.
            nulls: whether None is a null row; otherwise None is a variant null.

        Raises:
            SchemaError: a value without a variant type.
            LimitError: more than MAX_DEPTH levels, or more than 2^31 - 1 bytes in a row.
        """
        rows = list(values)
        names: set[str] = set()
        collect_names(rows, names, -1)      # the list of rows is not a level of the variants
        encoder = Encoder(sorted_names(names))
        ends = np.zeros(len(rows) + 1, np.int64)
        present = np.ones(len(rows), np.bool_)
        for i, row in enumerate(rows):
            if row is None and nulls:
                present[i] = False
                ends[i + 1] = ends[i]
            else:
                ends[i + 1] = encoder.add(row)
        data = np.frombuffer(encoder.take(), np.uint8)
        return cls(_constant(encoder.metadata(), len(rows)), _binary_column(ends, data, _bitmap(present)))

    @classmethod
    def from_json(cls, texts: Iterable[str | None]) -> Self:
        """Encode JSON documents, as Variant.from_json.

        Args:
            texts: one JSON document a row. None is a null row, and ``"null"`` a variant null.
        """
        documents = [None if text is None else [from_json(text)] for text in texts]
        boxed = cls.from_pylist([None if document is None else document[0] for document in documents], nulls=False)
        present = np.array([document is not None for document in documents], np.bool_)
        assert isinstance(boxed.value.values, BinaryOffsets)
        value = boxed.value.values
        return cls(boxed.metadata, _binary_column(value.offsets, value.data, _bitmap(present)))

    @classmethod
    def from_shredded(
        cls, metadata: Column, shredded: Shredded, validity: Array | None = None, *, limit: int | None = None
    ) -> Self:
        """Reassemble shredded variants; ``fastpq.variant.reassembly`` has the rules for conflicting columns.

        Args:
            metadata: BYTE_ARRAY column of encoded metadata.
            shredded: the pair of value and typed_value.
            validity: bitmap of the variants, or None where no row is null.
            limit: most bytes of all values together; None for three quarters of the memory that the process may use.

        Raises:
            FormatError: a row breaks VariantEncoding.md or VariantShredding.md.
            LimitError: beyond the limit, or deeper than MAX_DEPTH.
            SchemaError: arrays of different lengths.
        """
        offsets, data = reassemble(_reader(metadata), shredded, validity, default_allocation() if limit is None else limit)
        return cls(metadata, _binary_column(offsets, data, validity))

    @classmethod
    def of(cls, column: StructColumn, *, limit: int | None = None) -> Self:
        """The variants of a struct column of a file or of Arrow; shredded variants are reassembled.

        Args:
            column: structs with the field metadata, and value or typed_value or both. Null structs are null rows.
            limit: most bytes of all reassembled values together; None as for from_shredded.

        Raises:
            FormatError, LimitError: as from_shredded.
            SchemaError: missing or wrong fields for a variant.
        """
        metadata = binary_field(column, "metadata")
        if metadata is None:
            raise SchemaError(f"a {column.type} is no variant: it has no metadata")
        shredded, validity = shredded_of(column), column.validity if column.null_count else None
        if shredded.typed_value is None and shredded.value is not None and not shredded.value.null_count:
            value = shredded.value._with(validity=validity, null_count=column.null_count, nullable=True)
            return cls(metadata, value)
        return cls.from_shredded(metadata, replace(shredded, validity=None), validity, limit=limit)

    def to_struct(self, schema: ShreddingSchema = None) -> StructColumn:
        """The struct column for files and Arrow: fields metadata and value, and typed_value if a schema is given.

        Args:
            schema: shredding schema; None leaves the variants unshredded.

        Raises:
            SchemaError: as ``shred``.
        """
        validity = self.value.validity if self.value.null_count else None
        shredded = Shredded(len(self), self.value) if schema is None else self.shred(schema)
        return variant_struct(self.metadata, shredded, validity)

    def to_pylist(self, *, typed: bool = False) -> list[Any]:
        """Decode to Python objects; None for null rows and variant nulls.

        Args:
            typed: whether to return every primitive, and also a variant null, as a ``Primitive``.

        Raises:
            FormatError: a row breaks VariantEncoding.md; the error names the row.
            LimitError: deeper than MAX_DEPTH.
        """
        return decode_rows(_reader(self.metadata), _reader(self.value), typed)

    def to_json(self) -> list[str | None]:
        """Decode to JSON documents; None for null rows, ``"null"`` for variant nulls. Raises as to_pylist."""
        return json_rows(_reader(self.metadata), _reader(self.value))

    def shred(self, schema: ShreddingSchema) -> Shredded:
        """Split the values into shredded columns; the column's metadata stays in use.

        A value goes to typed_value where the type of typed_value holds the value exactly. Integers and decimals go to any type
        of integers or decimals with enough room ("Exact Numeric" in VariantEncoding.md); other values only to their own type.

        Args:
            schema: a shredding schema (``fastpq.variant.shredding_schema``), or a result of infer_schema.

        Raises:
            SchemaError: the argument is no shredding schema.
            FormatError: a row breaks VariantEncoding.md; the error names the row.
            LimitError: deeper than MAX_DEPTH.
        """
        return shred(_reader(self.metadata), _reader(self.value), normalized(schema))


def variants_of(column: StructColumn) -> list[Any]:
    """The values of a VARIANT column as Python objects (``fastpq.schema.variant_kinds``); None for null rows.

    Args:
        column: structs with the annotation VARIANT.
    """
    return VariantColumn.of(column).to_pylist()


def _reader(column: Column) -> SliceReader:
    return SliceReader(column.values, column.validity if column.null_count else None)


def _constant(data: bytes, rows: int) -> Column:
    """A dictionary-encoded column with the same bytes in every row."""
    once = BinaryOffsets(np.array([0, len(data)], np.int64), np.frombuffer(data, np.uint8))
    dictionary = Column._made(BINARY, once, nullable=False)
    return Column._made(BINARY, DictionaryValues(np.zeros(rows, np.int32), dictionary), nullable=False)


def _binary_column(offsets: Array, data: Array, validity: Array | None) -> Column:
    rows = len(offsets) - 1
    nulls = 0 if validity is None else count_zeros(validity, rows)
    return Column(BINARY, BinaryOffsets(offsets, data), validity if nulls else None, nulls)


def _bitmap(present: Sequence[bool] | Array) -> Array | None:
    flags = np.asarray(present, np.bool_)
    return None if bool(flags.all()) else np.packbits(flags, bitorder="little")
