"""WriterInput: turns any kind of data into Tables for a writer, and collects the footer's key-value metadata."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fastpq.arrays.nodes import ORDERED
from fastpq.arrays.nodes import FieldNode as ArrowField
from fastpq.arrays.table import AnyColumn, Column, DictionaryValues, Table
from fastpq.arrays.valid_text import with_invalid_text_as_binary, with_repaired_text
from fastpq.arrow.hints import arrow_schema_entry, has_arrow_field, needs_arrow_schema, without_field_metadata
from fastpq.convert.caller_input import table_from
from fastpq.convert.dataframe_input import is_dataframe, table_from_dataframe
from fastpq.convert.fitting import FileFields, fit, is_undecided, nullable_throughout
from fastpq.convert.pandas_metadata import PANDAS_KEY
from fastpq.convert.schemas import RequestedSchema
from fastpq.encryption.encryptor import closed_columns
from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.format.stored_footer import ARROW_KEY, CHECKPOINT_KEY
from fastpq.options import DEFAULT_PROPERTIES, WriterProperties
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.types import Geography, Geometry

if TYPE_CHECKING:
    from fastpq.variant.shredding_choice import Shredder, Shredding

# Keys whose metadata belong to one file only, or hold a schema in the form of the program that wrote it.
_OF_ONE_FILE = frozenset({ARROW_KEY, CHECKPOINT_KEY, "org.apache.spark.sql.parquet.row.metadata"})


# Names of a table's row count, in pyarrow and in Polars.
_ROW_COUNTS = ("num_rows", "height")


def row_count(data: Any) -> int | None:
    """Return how many rows a table from another library has, or None if it does not say so with a number."""
    counts = [getattr(data, name, None) for name in _ROW_COUNTS]
    return next((int(count) for count in counts if isinstance(count, int | np.integer)), None)


def batches_of(data: Any) -> Iterator[Any] | None:
    """Return an iterator over data that come in batches: an Arrow stream, or an iterator over data that a writer accepts.

    Returns:
        None for other data. A table from another library that has a row count is in memory, and is written as a whole.
    """
    if isinstance(data, Iterator) and not hasattr(data, "__arrow_c_stream__"):
        return data
    if hasattr(data, "__arrow_c_stream__") and hasattr(data, "iter_batches"):       # a ParquetFile or a ParquetDataset
        return _batches_of_file(data)
    is_counted = any(hasattr(type(data), name) for name in _ROW_COUNTS)
    in_memory = is_counted or isinstance(data, Table | Mapping | np.ndarray)
    if in_memory or is_dataframe(data) or not hasattr(data, "__arrow_c_stream__"):
        return None
    from fastpq.arrow import import_batches

    return import_batches(data)


def _batches_of_file(data: Any) -> Iterator[Any]:
    """Yield the batches from a file or a dataset. If there are no rows, yield one batch without rows.

    INT96 timestamps whose unit nobody chose must have all their digits.
    """
    batches: Iterator[Any] = data.iter_batches()
    if data.schema.has_int96 and data._int96_unit == "auto":
        from fastpq.read.int96 import with_exact_int96

        batches = map(with_exact_int96, batches)
    first = next(batches, None)
    yield data.head(0) if first is None else first
    yield from batches


def no_index_of(data: Any) -> SchemaError:
    """Return the error for ``index=`` with data that are not a DataFrame."""
    return SchemaError(f"index is an option for pandas DataFrames, not for a {type(data).__name__}")


class WriterInput:
    """Turns data into Tables with one schema, and collects key-value metadata from the first DataFrame and the Arrow types.

    Later tables are fitted to the first table's columns, by name, if no value is lost. A table with a column that holds only
    nulls waits for a later table that has values.

    Args:
        schema: column types, as in RequestedSchema. Other columns keep their values' type.
        properties: file options. Only ``arrow_schema``, ``invalid_utf8``, ``coerce_timestamps``, ``allow_truncated_timestamps``,
            ``encoding``, ``store_decimal_as_integer``, ``key_value_metadata`` and ``row_group_size`` are used.
        shred: how to shred variant columns, by name.
        index: whether to keep DataFrame indexes, as in ``write_table``.
        keys: file keys. With keys, the footer gets no categories, because they are values, and every reader can read the footer.

    Attributes:
        is_only: whether the first data are the only data. Their columns are then nullable only if they have nulls. Otherwise all
            columns are nullable, unless Arrow or a ParquetSchema says something else.
        has_key_values: whether ``key_values`` may have entries.

    Raises:
        SchemaError: a value in ``shred`` is not a shredding schema.
    """

    def __init__(
        self,
        schema: Mapping[str, Any] | ParquetSchema | Any,
        properties: WriterProperties,
        shred: Mapping[str, Shredding] | None,
        keys: FileEncryptionProperties | None,
        index: bool | None = None,
    ) -> None:
        self._schema = None if schema is None else RequestedSchema(schema)
        self._shredder: Shredder | None = None
        if shred:
            from fastpq.variant.shredding_choice import Shredder

            self._shredder = Shredder(shred)
        self._with_arrow = properties.arrow_schema
        self._invalid_utf8 = properties.invalid_utf8
        self._timestamp_unit, self._truncates = properties.coerce_timestamps, properties.allow_truncated_timestamps
        as_integers = properties.store_decimal_as_integer
        is_asked_for = as_integers or (as_integers is None and properties.encoding == "auto")
        self._has_integer_decimals = is_asked_for and not isinstance(schema, ParquetSchema)
        # an encoding that the caller chose fits the type that the values have
        self._chosen_encodings = () if as_integers else tuple(properties.column_encoding)
        self._key_values = properties.key_value_metadata      # the caller may add entries until the footer is written
        self.has_key_values = self._key_values is not DEFAULT_PROPERTIES.key_value_metadata
        self._keys, self._index = keys, index
        self._table_metadata: dict[str, str] = {}       # from the tables so far, the first value for each key
        self._arrow_fields: ArrowField | None = None
        self._fields = None if not isinstance(schema, ParquetSchema) else _NO_FIELDS
        self._names = [node.element.name for node in schema.root.children] if isinstance(schema, ParquetSchema) else None
        self._waiting: list[Table] = []     # tables with a column that has no type yet
        self._most_waiting_rows = properties.row_group_size
        self.is_only = False

    def parts(self, data: Any) -> Iterator[Table] | None:
        """Return an iterator over the batches of Arrow data in memory, as tables that share the memory.

        The batches are the only data of a file. Their columns have equal types.

        Args:
            data: data for which ``batches_of`` returns None, and no mapping.

        Returns:
            None if the data have to become one table before they are written.
        """
        if not hasattr(data, "__arrow_c_stream__") or is_dataframe(data):
            return None
        if self._schema is not None or self._shredder is not None or self._index is not None or self._invalid_utf8 != "error":
            return None
        if self._timestamp_unit is not None:
            return None
        from fastpq.arrow import import_batches

        batches = import_batches(data)
        if self._has_integer_decimals:
            batches = map(self._with_integer_decimals, batches)
        first, second = next(batches), next(batches, None)
        leaves = [leaf for column in first.columns for _, leaf in column.leaves()]
        if any(map(_depends_on_all_values, leaves)):
            return None
        if second is None:
            return iter([first])
        if any(map(_most_entries, leaves)) and _outgrows_indexes(import_batches(data)):
            return None
        return chain([first, second], batches)

    def tables(self, data: Any) -> Iterator[Table]:
        """Yield the tables that waited, and then the data as a Table. Yield nothing if the data must wait too.

        The only data for a file do not wait, and are not fitted to other data.

        Args:
            data: a Table, a dict of arrays, a structured array, a pandas DataFrame, or anything with the Arrow C data interface.

        Raises:
            SchemaError: columns have unequal lengths, or do not fit the requested types or the shredding schemas.
            UnsupportedError: a column has durations, but ``arrow_schema`` is False.
        """
        of_arrays = isinstance(data, Mapping | np.ndarray)      # a Table is a Mapping too
        of_pandas = not of_arrays and is_dataframe(data)
        has_nullability = isinstance(data, Table) or not (of_arrays or of_pandas)
        if of_pandas:
            with_categories, maps = self._keys is None, None if self._schema is None else self._schema.maps
            data, metadata = table_from_dataframe(data, with_categories=with_categories, index=self._index, maps=maps)
            self.describe(PANDAS_KEY, metadata)
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
        if self._timestamp_unit is not None:
            from fastpq.convert.timestamp_units import with_timestamp_unit

            table = with_timestamp_unit(table, self._timestamp_unit, truncate=self._truncates)
        if self._has_integer_decimals:
            table = self._with_integer_decimals(table)
        if self._shredder is not None:
            table = self._shredder(table)
        if self._invalid_utf8 == "replace":
            table = with_repaired_text(table)
        elif self._invalid_utf8 == "binary" and self._fields is None:
            table = with_invalid_text_as_binary(table)
        if isinstance(self._fields, FileFields):
            yield self._fields.fitted(table)
        elif self._fields is _NO_FIELDS or self.is_only:
            if not table._is_plain or self._with_arrow:
                self._describe_arrow(table)
            yield table
        elif not any(is_undecided(column, of_pandas=of_pandas) for column in table.columns):
            yield from self._decided(table)
        else:
            self._waiting.append(table)
            if sum(waiting.num_rows for waiting in self._waiting) > self._most_waiting_rows:
                yield from self.rest()

    def _with_integer_decimals(self, table: Table) -> Table:
        """Return a table with its decimals as integers, except for columns whose physical type or encoding the caller gave."""
        from fastpq.convert.integer_decimals import with_integer_decimals

        kept_names = set() if self._schema is None else set(self._schema.physical_names)
        kept_names |= {name for name in table.names if any(f"{path}.".startswith(f"{name}.") for path in self._chosen_encodings)}
        return with_integer_decimals(table, kept_names)

    def fit_to(self, table: Table) -> None:
        """Fit all tables to the columns of an existing file.

        Args:
            table: the file's columns, without rows.
        """
        self._fields = FileFields(table)
        self._has_integer_decimals = False      # decimals have the type that the file has

    def rest(self) -> list[Table]:
        """Return the tables that wait. Columns whose type is still open become null columns."""
        return self._decided(self._waiting.pop()) if self._waiting else []

    def empty(self) -> list[Table]:
        """Return a table without rows that has the requested types, for a file to which no table was written.

        Return nothing if no types were requested.
        """
        if self._schema is None:
            return []
        table = self._schema.empty()
        return self._decided(self._with_integer_decimals(table) if self._has_integer_decimals else table)

    def _decided(self, table: Table) -> list[Table]:
        """Fix the columns' types by a table. Return the tables that waited, and then this table."""
        waiting, self._waiting = self._waiting, []
        names = table.names
        for other in waiting:      # a column may have no values in this table, but some in a table that waited
            if other.names == names and len(set(names)) == len(names):
                pairs = zip(table.columns, other.columns, strict=True)
                table = table._of(_of_values(own, theirs) for own, theirs in pairs)
        self._fields = FileFields(table)
        if not table._is_plain or self._with_arrow:
            self._describe_arrow(table)
        return [*(self._fields.fitted(other) for other in waiting), table]

    def describe(self, key: str, value: str) -> None:
        """Keep a table's metadata entry, unless the key has one. Such entries are redacted. The caller's own entries are not."""
        self._table_metadata.setdefault(key, value)
        self.has_key_values = True

    @property
    def table_metadata(self) -> Mapping[str, str]:
        """Metadata from the tables so far. If several tables have a key, the first value counts."""
        return self._table_metadata

    def key_values(self, paths: Sequence[tuple[str, ...]]) -> dict[str, str]:
        """Return the key-value metadata for the footer. The caller's entries have priority over table entries.

        Args:
            paths: all column paths. If some readers cannot open a column, its Arrow field keeps only the metadata for its
                type.
        """
        entries = self._table_metadata | dict(self._key_values)
        closed_names: Collection[str] = frozenset()
        if self._keys is not None:
            closed_names = closed_columns(self._keys, paths)
            entries = _without_values(entries, closed_names, self._key_values)
        fields = self._arrow_fields
        if fields is not None:
            without_order = self._fields.without_order if isinstance(self._fields, FileFields) else ()
            children = [without_field_metadata(field) if field.name in closed_names else field for field in fields.children]
            children = [
                replace(field, flags=field.flags & ~ORDERED) if field.name in without_order else field for field in children
            ]
            entries.setdefault(ARROW_KEY, arrow_schema_entry(replace(fields, children=tuple(children)), entries))
        return entries

    def _describe_arrow(self, table: Table) -> None:
        """Keep the columns' Arrow types, from the first table that has any."""
        if self._arrow_fields is not None:
            return
        needs_entry = any(map(has_arrow_field, table.columns)) if self._with_arrow is None else self._with_arrow
        if needs_entry:
            from fastpq.arrow.original_types import arrow_fields

            self._arrow_fields = arrow_fields(table)
            self.has_key_values = True
        elif self._with_arrow is False:
            _refuse_durations(table)


def _refuse_durations(table: Table) -> None:
    for name, column in table.items():
        if needs_arrow_schema(column):
            reason = "a duration is an INT64 whose unit stands in ARROW:schema, but arrow_schema=False leaves that out"
            raise UnsupportedError(reason, column=name)


def _depends_on_all_values(leaf: Column) -> bool:
    """Return whether the type of a leaf in Arrow data depends on all its values.

    A geometry column becomes a column of bytes if one of its values is not WKB. In the first batch it may be one already.
    Different dictionaries are merged into one, which has no order.
    """
    is_ordered = isinstance(leaf.values, DictionaryValues) and leaf.values.is_ordered
    if is_ordered or isinstance(leaf.type.logical, (Geometry, Geography)):
        return True
    if leaf.arrow is None or not leaf.arrow.metadata:
        return False
    from fastpq.arrow import GEOARROW_WKB

    return GEOARROW_WKB in leaf.arrow.metadata.values()


def _most_entries(leaf: Column) -> int:
    """Return how many entries the indexes of a dictionary-encoded leaf in Arrow data can count. Return 0 for any number."""
    if not isinstance(leaf.values, DictionaryValues) or leaf.arrow is None or leaf.arrow.dictionary is None:
        return 0
    from fastpq.arrow.formats import index_dtype

    indexes = index_dtype(leaf.arrow)
    return int(np.iinfo(indexes).max) + 1 if indexes.itemsize < 4 else 0


def _outgrows_indexes(batches: Iterator[Table]) -> bool:
    """Return whether a leaf's dictionaries may have more entries together than its indexes can count.

    The merged dictionary then has wider indexes, which ARROW:schema must say.
    """
    counts: dict[int, int] = {}
    last_dictionaries: dict[int, Column] = {}
    for batch in batches:
        for number, leaf in enumerate(leaf for column in batch.columns for _, leaf in column.leaves()):
            most = _most_entries(leaf)
            if not most or not isinstance(leaf.values, DictionaryValues):
                continue
            dictionary, last = leaf.values.dictionary, last_dictionaries.get(number)
            if last is None or not (len(last) == len(dictionary) and last.equals(dictionary)):
                counts[number] = counts.get(number, 0) + len(dictionary)
                last_dictionaries[number] = dictionary
            if counts[number] > most:
                return True
    return False


# Stands in place of FileFields if the caller gave a ParquetSchema. Tables are then cast to this schema.
_NO_FIELDS: Final = object()


def _without_values(texts: Mapping[str, str], closed_names: Collection[str], own_keys: Collection[str]) -> dict[str, str]:
    """Return metadata for an encrypted file's footer. Values from its columns are removed, but not from the caller's entries."""
    from fastpq.rewriting.redaction import redacted_value

    entries = {key: value if key in own_keys else redacted_value(key, value, closed_names)[0] for key, value in texts.items()}
    return {key: value for key, value in entries.items() if value is not None}


def _of_values(own: AnyColumn, theirs: AnyColumn) -> AnyColumn:
    """Return a column. If only the other column has values, it gets the other column's type."""
    has_values = own.null_count < len(own)
    return own if has_values or theirs.null_count == len(theirs) else fit(own, theirs.as_field(""), theirs.arrow)


