"""VariantColumn: one variant per row, with conversions from and to Python objects, JSON and shredded columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from fastpq.arrays.bitmap import count_zeros
from fastpq.arrays.flat_column import DictionaryValues
from fastpq.arrays.layouts import Array, BinaryOffsets
from fastpq.arrays.nested_columns import StructColumn
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import Column
from fastpq.common.process_memory import default_allocation
from fastpq.errors import SchemaError
from fastpq.variant.decode import decode_rows
from fastpq.variant.encode import Encoder, collect_names, sorted_names
from fastpq.variant.json_output import json_rows
from fastpq.variant.reassembly import reassemble
from fastpq.variant.shredded import BINARY, Shredded
from fastpq.variant.shredding import shred
from fastpq.variant.shredding_schema import ShreddingSchema, normalized
from fastpq.variant.storage import binary_field, shredded_of, variant_struct
from fastpq.variant.value import Variant, from_json


@dataclass(frozen=True, slots=True, eq=False)
class VariantColumn:
    """A column of unshredded variants.

    Attributes:
        metadata: encoded metadata, a BYTE_ARRAY column. Null rows' metadata are ignored.
        value: encoded values, a BYTE_ARRAY column. Its nulls are null rows. A variant null is a value.

    Raises:
        SchemaError: the columns have other types or different lengths.
    """

    metadata: Column
    value: Column

    def __post_init__(self) -> None:
        if len(self.metadata) != len(self.value):
            raise SchemaError(f"there are {len(self.metadata)} metadata for {len(self.value)} values")
        for column in (self.metadata, self.value):
            if not column.type.is_variable:
                raise SchemaError(f"the metadata and values of variants must be BYTE_ARRAY, not {column.type}")

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, row: int) -> Variant | None:
        """Return the variant in a row. None for a null row."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"there is no row {row} in a column of {len(self)} variants")
        row %= len(self)
        [value] = self.value.slice(row, row + 1).to_pylist()
        return None if value is None else Variant(self.metadata.slice(row, row + 1).to_pylist()[0], value)

    @classmethod
    def from_pylist(cls, values: Iterable[Any], *, nulls: bool = True) -> Self:
        """Encode Python objects. All rows share one sorted name dictionary.

        Args:
            values: one value for each row, with the types that ``fastpq.schema.variant_kinds`` lists.
            nulls: whether None is a null row. Otherwise None is a variant null.

        Raises:
            SchemaError: variants have no type for a value.
            LimitError: a value has more than MAX_DEPTH levels, or more than 2^31 - 1 bytes.
        """
        rows = list(values)
        names: set[str] = set()
        collect_names(rows, names, -1)      # the list of rows does not count as a level
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
        """Encode JSON documents, like Variant.from_json.

        Args:
            texts: one JSON document for each row. None is a null row, and ``"null"`` a variant null.
        """
        documents = [None if text is None else [from_json(text)] for text in texts]
        variants = cls.from_pylist([None if document is None else document[0] for document in documents], nulls=False)
        present = np.array([document is not None for document in documents], np.bool_)
        assert isinstance(variants.value.values, BinaryOffsets)
        value = variants.value.values
        return cls(variants.metadata, _binary_column(value.offsets, value.data, _bitmap(present)))

    @classmethod
    def from_shredded(
        cls, metadata: Column, shredded: Shredded, validity: Array | None = None, *, limit: int | None = None
    ) -> Self:
        """Reassemble shredded variants. ``fastpq.variant.reassembly`` has the rules for columns that contradict each other.

        Args:
            metadata: encoded metadata, a BYTE_ARRAY column.
            shredded: the value and typed_value columns.
            validity: variant bitmap, or None if no row is null.
            limit: size limit for all values together, in bytes. None means three quarters of the memory that the process may
                use.

        Raises:
            FormatError: a row breaks VariantEncoding.md or VariantShredding.md.
            LimitError: the values exceed the limit, or are nested deeper than MAX_DEPTH levels.
            SchemaError: arrays have different lengths.
        """
        offsets, data = reassemble(_reader(metadata), shredded, validity, default_allocation() if limit is None else limit)
        return cls(metadata, _binary_column(offsets, data, validity))

    @classmethod
    def of(cls, column: StructColumn, *, limit: int | None = None) -> Self:
        """Return the variants in a struct column from a file or from Arrow. Shredded variants are reassembled.

        Args:
            column: structs with the field metadata, and with value or typed_value or both. Null structs are null rows.
            limit: size limit for all reassembled values together, in bytes, as in from_shredded.

        Raises:
            FormatError, LimitError: as in from_shredded.
            SchemaError: a field is missing or has a wrong type.
        """
        metadata = binary_field(column, "metadata")
        if metadata is None:
            raise SchemaError(f"a column of {column.type} is not a variant: it has no metadata")
        shredded, validity = shredded_of(column), column.validity if column.null_count else None
        if shredded.typed_value is None and shredded.value is not None and not shredded.value.null_count:
            value = shredded.value._with(validity=validity, null_count=column.null_count, nullable=True)
            return cls(metadata, value)
        return cls.from_shredded(metadata, replace(shredded, validity=None), validity, limit=limit)

    def to_struct(self, schema: ShreddingSchema = None) -> StructColumn:
        """Return the variants as a struct column, which can be written to a file or given to Arrow.

        It has the fields metadata and value, and typed_value if the variants are shredded into columns.

        Args:
            schema: shredding schema. None leaves the variants unshredded.

        Raises:
            SchemaError, FormatError, LimitError: as in ``shred``.
        """
        validity = self.value.validity if self.value.null_count else None
        shredded = Shredded(len(self), self.value) if schema is None else self.shred(schema)
        return variant_struct(self.metadata, shredded, validity)

    def to_pylist(self, *, typed: bool = False) -> list[Any]:
        """Decode to Python objects. Null rows and variant nulls are None.

        Args:
            typed: whether to return every primitive, even a variant null, as a ``Primitive``.

        Raises:
            FormatError: a row breaks VariantEncoding.md. The error names the row.
            LimitError: a value is nested deeper than MAX_DEPTH levels.
        """
        return decode_rows(_reader(self.metadata), _reader(self.value), typed)

    def to_json(self) -> list[str | None]:
        """Decode to JSON documents. Null rows are None, and variant nulls are ``"null"``. Errors are the same as in to_pylist."""
        return json_rows(_reader(self.metadata), _reader(self.value))

    def shred(self, schema: ShreddingSchema) -> Shredded:
        """Split the values into shredded columns. The result belongs to this column's metadata.

        A value goes to typed_value if typed_value's type can hold it exactly. Integers and decimals go to any integer or
        decimal type that has enough room (VariantEncoding.md, "Exact Numeric"). Other values go only to their own type.

        Args:
            schema: a shredding schema (``fastpq.variant.shredding_schema``), for example a result from infer_schema.

        Raises:
            SchemaError: the argument is not a shredding schema.
            FormatError: a row breaks VariantEncoding.md. The error names the row.
            LimitError: a value is nested deeper than MAX_DEPTH levels.
        """
        return shred(_reader(self.metadata), _reader(self.value), normalized(schema))


def variants_of(column: StructColumn) -> list[Any]:
    """Return a VARIANT column's values as Python objects (``fastpq.schema.variant_kinds``). Null rows are None.

    Args:
        column: structs whose type is annotated VARIANT.
    """
    return VariantColumn.of(column).to_pylist()


def _reader(column: Column) -> SliceReader:
    return SliceReader(column.values, column.validity if column.null_count else None)


def _constant(data: bytes, rows: int) -> Column:
    """Return a dictionary-encoded column that has the same bytes in every row."""
    entry = BinaryOffsets(np.array([0, len(data)], np.int64), np.frombuffer(data, np.uint8))
    dictionary = Column._made(BINARY, entry, nullable=False)
    return Column._made(BINARY, DictionaryValues(np.zeros(rows, np.int32), dictionary), nullable=False)


def _binary_column(offsets: Array, data: Array, validity: Array | None) -> Column:
    rows = len(offsets) - 1
    nulls = 0 if validity is None else count_zeros(validity, rows)
    return Column(BINARY, BinaryOffsets(offsets, data), validity if nulls else None, nulls)


def _bitmap(present: Sequence[bool] | Array) -> Array | None:
    flags = np.asarray(present, np.bool_)
    return None if bool(flags.all()) else np.packbits(flags, bitorder="little")
