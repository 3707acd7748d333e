"""WriterInput: data of any kind as Tables for a writer, and the key-value metadata of the footer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fastpq.arrays.nodes import ORDERED
from fastpq.arrays.nodes import FieldNode as ArrowField
from fastpq.arrays.table import AnyColumn, Table
from fastpq.arrow.hints import arrow_fields, arrow_schema_entry, has_arrow_field, needs_arrow_schema, without_field_metadata
from fastpq.convert.dataframe_input import is_dataframe, table_from_dataframe
from fastpq.convert.fitting import FileFields, fit, is_undecided, nullable_throughout
from fastpq.convert.numpy_input import table_from
from fastpq.convert.pandas_metadata import PANDAS_KEY
from fastpq.convert.schemas import GivenSchema
from fastpq.encryption.encryptor import closed_columns
from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.format.stored_footer import ARROW_KEY, CHECKPOINT_KEY
from fastpq.options import DEFAULT_PROPERTIES, WriterProperties
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.variant.shredding_choice import Shredder, Shredding

# Keys of metadata that describe one file and no other one, or its schema in the words of its writer.
_OF_ONE_FILE = frozenset({ARROW_KEY, CHECKPOINT_KEY, "org.apache.spark.sql.parquet.row.metadata"})


def batches_of(data: Any) -> Iterator[Any] | None:
    """Data that come in batches: an Arrow stream, or an iterator of anything that a writer takes; None for other data.

    Tables of other libraries tell their number of rows: these are in memory, and are taken whole.
    """
    if isinstance(data, Iterator) and not hasattr(data, "__arrow_c_stream__"):
        return data
    if hasattr(data, "__arrow_c_stream__") and hasattr(data, "iter_batches"):       # a ParquetFile or a ParquetDataset
        return _batches_of_file(data)
    is_counted = any(hasattr(type(data), name) for name in ("num_rows", "height"))
    in_memory = is_counted or isinstance(data, Table | Mapping | np.ndarray)
    if in_memory or is_dataframe(data) or not hasattr(data, "__arrow_c_stream__"):
        return None
    from fastpq.arrow import import_batches

    return import_batches(data)


def _batches_of_file(data: Any) -> Iterator[Any]:
    """The batches of a file or a dataset; one without rows, if there are no rows."""
    batches: Iterator[Any] = data.iter_batches()
    first = next(batches, None)
    yield data.head(0) if first is None else first
    yield from batches


def no_index_of(data: Any) -> SchemaError:
    """The error of ``index=`` for data other than a DataFrame."""
    return SchemaError(f"index is for DataFrames of pandas, not for a {type(data).__name__}")


class WriterInput:
    """Turns data into Tables of one schema; describes the first DataFrame and the Arrow types in the key-value metadata.

    Tables after the first are fitted to its columns, by name, where no value is lost. A table with a column of nulls alone is
    held back until a later table has values.

    Args:
        schema: types of columns, as for GivenSchema; None or other columns keep the type of their values.
        properties: options of the file; ``arrow_schema`` and ``key_value_metadata`` are used.
        shred: how variant columns are shredded, by name.
        index: whether indexes of DataFrames are kept, as for ``write_table``.
        keys: keys of the file. The footer is open to all its readers, and categories are values: an encrypted file goes without.

    Attributes:
        is_only: whether the first data are the only ones: their columns are nullable where they have nulls. Columns of others are
            nullable, unless Arrow or a ParquetSchema says otherwise.
        has_key_values: whether ``key_values`` may have entries.

    Raises:
        SchemaError: no shredding schema in ``shred``.
    """

    def __init__(
        self,
        schema: Mapping[str, Any] | ParquetSchema | Any,
        properties: WriterProperties,
        shred: Mapping[str, Shredding] | None,
        keys: FileEncryptionProperties | None,
        index: bool | None = None,
    ) -> None:
        self._schema = None if schema is None else GivenSchema(schema)
        self._shredder = Shredder(shred) if shred else None
        self._with_arrow = properties.arrow_schema
        self._given = properties.key_value_metadata      # the caller may add entries until the footer is written
        self.has_key_values = self._given is not DEFAULT_PROPERTIES.key_value_metadata
        self._keys, self._index = keys, index
        self._described: dict[str, str] = {}        # metadata of the first DataFrame and of the first table
        self._arrow_fields: ArrowField | None = None
        self._fields = None if not isinstance(schema, ParquetSchema) else _NO_FIELDS
        self._names = [node.element.name for node in schema.root.children] if isinstance(schema, ParquetSchema) else None
        self._held: list[Table] = []        # without a type for some column
        self._most_held = properties.row_group_size
        self.is_only = False

    def tables(self, data: Any) -> Iterator[Table]:
        """The data as a Table, behind the tables held back before; no table if the data are held back too.

        The only data are written as they are: without fitting, and without waiting for other data.

        Args:
            data: a Table, a dict of arrays, a structured array, a pandas DataFrame, or anything with the Arrow C data interface.

        Raises:
            SchemaError: columns of unequal length, or other columns than in the types or the shredding.
            UnsupportedError: a duration with ``arrow_schema=False``.
        """
        of_arrays = isinstance(data, Mapping | np.ndarray)      # a Table is a Mapping too
        of_pandas = not of_arrays and is_dataframe(data)
        has_nullability = isinstance(data, Table) or not (of_arrays or of_pandas)
        if of_pandas:
            with_categories, maps = self._keys is None, None if self._schema is None else self._schema.maps
            data, described = table_from_dataframe(data, with_categories=with_categories, index=self._index, maps=maps)
            self.describe(PANDAS_KEY, described)
        elif self._index is not None:
            raise no_index_of(data)
        table = table_from(data) if self._schema is None else table_from(data, self._schema.types, self._schema.maps)
        if self._names is not None and self._names != table.names and sorted(self._names) == sorted(table.names):
            table = table.select(self._names)
        for key, value in table.metadata.items():
            if key not in _OF_ONE_FILE:
                self.describe(key, value)
        if not (has_nullability or self.is_only or self._fields is _NO_FIELDS):
            table = table._of(map(nullable_throughout, table.columns))
        if self._schema is not None:
            table = self._schema.applied(table)
        if self._shredder is not None:
            table = self._shredder(table)
        if isinstance(self._fields, FileFields):
            yield self._fields.fitted(table)
        elif self._fields is _NO_FIELDS or self.is_only:
            if not table._is_plain or self._with_arrow:
                self._describe_arrow(table)
            yield table
        elif not any(is_undecided(column, of_pandas=of_pandas) for column in table.columns):
            yield from self._decided(table)
        else:
            self._held.append(table)
            if sum(held.num_rows for held in self._held) > self._most_held:
                yield from self.rest()

    def rest(self) -> list[Table]:
        """The tables held back, with columns of nothing but nulls."""
        return self._decided(self._held.pop()) if self._held else []

    def nothing(self) -> list[Table]:
        """A table without rows, of the given types, for a file without tables; none without types."""
        return [] if self._schema is None else self._decided(self._schema.empty())

    def _decided(self, table: Table) -> list[Table]:
        """The tables held back and a table, by which the types are decided."""
        held, self._held = self._held, []
        names = table.names
        for other in held:      # the table may have columns without values where others have some
            if other.names == names and len(set(names)) == len(names):
                pairs = zip(table.columns, other.columns, strict=True)
                table = table._of(_of_values(own, theirs) for own, theirs in pairs)
        self._fields = FileFields(table)
        if not table._is_plain or self._with_arrow:
            self._describe_arrow(table)
        return [*(self._fields.fitted(other) for other in held), table]

    def describe(self, key: str, value: str) -> None:
        """Keep an entry of the metadata of a table, of the first one with the key; unlike given ones, redacted in the footer."""
        self._described.setdefault(key, value)
        self.has_key_values = True

    @property
    def described(self) -> Mapping[str, str]:
        """Metadata of the first DataFrame and of the first table."""
        return self._described

    def key_values(self, paths: Sequence[tuple[str, ...]]) -> dict[str, str]:
        """The key-value metadata of the footer; given ones go before described ones.

        Args:
            paths: paths of all columns. Arrow fields of columns closed to some readers keep no metadata but those of their type.
        """
        found = self._described | dict(self._given)
        closed: Collection[str] = frozenset()
        if self._keys is not None:
            closed = closed_columns(self._keys, paths)
            found = _without_values(found, closed, self._given)
        fields = self._arrow_fields
        if fields is not None:
            unordered = self._fields.without_order if isinstance(self._fields, FileFields) else ()
            shown = [without_field_metadata(field) if field.name in closed else field for field in fields.children]
            shown = [replace(field, flags=field.flags & ~ORDERED) if field.name in unordered else field for field in shown]
            found.setdefault(ARROW_KEY, arrow_schema_entry(replace(fields, children=tuple(shown)), found))
        return found

    def _describe_arrow(self, table: Table) -> None:
        """Keep the Arrow types of the columns of a table, of the first one with any."""
        if self._arrow_fields is not None:
            return
        wanted = any(map(has_arrow_field, table.columns)) if self._with_arrow is None else self._with_arrow
        if wanted:
            self._arrow_fields = arrow_fields(table)
            self.has_key_values = True
            return
        for name, column in zip(table.names, table.columns, strict=True):
            if needs_arrow_schema(column):
                reason = "durations are INT64 with a unit in ARROW:schema, which arrow_schema=False leaves out"
                raise UnsupportedError(reason, column=name)


# Stands for the fields of a ParquetSchema, to which tables are cast.
_NO_FIELDS: Final = object()


def _without_values(texts: Mapping[str, str], closed: Collection[str], given: Collection[str]) -> dict[str, str]:
    """Metadata for the footer of an encrypted file: without values of its columns, but for texts that the caller gave."""
    from fastpq.rewriting.redaction import redacted_value

    found = {key: value if key in given else redacted_value(key, value, closed)[0] for key, value in texts.items()}
    return {key: value for key, value in found.items() if value is not None}


def _of_values(own: AnyColumn, theirs: AnyColumn) -> AnyColumn:
    """A column, of the type of another one where only the other one has values."""
    has_values = own.null_count < len(own)
    return own if has_values or theirs.null_count == len(theirs) else fit(own, theirs.as_field(""), theirs.arrow)


