"""Executor side of a scan: read file splits as Arrow record batches with a Spark schema."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import pyarrow as pa
from pyspark.sql import types as st
from pyspark.sql.datasource import InputPartition

from fastpq.spark.core import (
    And,
    AnyColumn,
    ColumnDescriptor,
    DataType,
    GroupNode,
    KeyAccessError,
    LeafShape,
    ListColumn,
    ListShape,
    ListType,
    MapType,
    Or,
    ParquetError,
    ParquetFile,
    ParquetSchema,
    SchemaError,
    SchemaNode,
    Shape,
    StructColumn,
    StructShape,
    StructType,
    Table,
    Type,
    UnsupportedError,
    VariantColumn,
    is_condition,
    shape_of,
)
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.scan.calendars import Calendar, old_column, refusal
from fastpq.spark.scan.filter_trees import and_together, columns_of
from fastpq.spark.scan.splits import Split
from fastpq.spark.sent import SentToExecutors
from fastpq.spark.tables.conversions import check_conversion
from fastpq.spark.tables.listing import ListedFile, spark_partition_value
from fastpq.spark.tables.spark_types import conform_array, nulls_of, reader_schema
from fastpq.spark.worker_memory import keep_modules

Batch = TypeVar("Batch")
VARIANT = ("metadata", "value")     # an unshredded variant's fields
NameMatching = Literal["exact", "any case", "exact first"]


@dataclass(frozen=True)
class ScanPlan(SentToExecutors):
    """Settings that all tasks of a scan share. Spark pickles them for the executors, so they hold no keys.

    Attributes:
        schema: Spark schema of the batches. It holds only the requested columns.
        partition_types: names and types of hive partition columns.
        filters: condition tree. Only rows that satisfy it are returned. None keeps every row.
        pruning: conditions that Spark pushes down and applies again itself. Here they only reduce the number of rows read.
        batch_rows: maximum number of rows in a batch.
        service: key service options. With None, only plaintext files can be read.
        ignore_missing_files: skip files that were deleted after planning.
        time_zone: time zone for timestamps in paths.
        names: how names of columns match those in files (columns_by_name).
        on_missing_key: ``"null"`` makes columns null whose keys the reader lacks. ``"raise"`` refuses to read them.
        arrow: ``schema`` in Arrow types. None takes those that Spark demands of Python readers.
    """

    schema: st.StructType
    partition_types: tuple[tuple[str, st.DataType], ...] = ()
    filters: Any = None
    pruning: Any = None
    batch_rows: int = 100_000
    service: ServiceOptions | None = None
    ignore_missing_files: bool = False
    time_zone: str | None = None
    names: NameMatching = "exact first"
    on_missing_key: str = "raise"
    arrow: pa.Schema = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.arrow is None:
            object.__setattr__(self, "arrow", reader_schema(self.schema))


class ScanPartition(InputPartition):
    """The splits that one task reads, and the scan's plan. The reader has no plan, since Spark pickles it before planning."""

    def __init__(self, plan: ScanPlan, splits: tuple[Split, ...]) -> None:
        super().__init__(None)
        self.plan, self.splits = plan, splits

    def batches(self) -> Iterator[pa.RecordBatch]:
        for split in self.splits:
            yield from read_split(split, self.plan)
        keep_modules()


def open_file(
    where: Any,
    service: ServiceOptions | None,
    strings: Literal["offsets", "views"] = "offsets",
    on_missing_key: str = "raise",
    name: str | None = None,
) -> ParquetFile:
    """Open a file in an executor. One thread is enough, since Spark runs a task on each core. ARROW:schema is ignored.

    Args:
        where: path, URL or file object. Key material beside a file object is not found.
        service: key service options. With None, only plaintext files can be read.
        strings: layout that text and binary values have in tables.
        on_missing_key: as in ScanPlan.
        name: path or URL of a file object.
    """
    options: Any = {"on_missing_key": on_missing_key}
    keys = None if service is None else service.decryption(where if isinstance(where, str) else None, name)
    return ParquetFile(
        where,
        threads=1,
        strings=strings,
        coerce_int96_timestamp_unit="us",
        arrow_schema=False,
        decryption_properties=keys,
        **options,
    )


def read_split(split: Split, plan: ScanPlan) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of one split. Raises the same errors as scan_split."""
    return scan_split(split, plan, FileScan.batches)


def scan_split(
    split: Split, plan: ScanPlan, batches: Callable[[FileScan], Iterator[Batch]], strings: Literal["offsets", "views"] = "offsets"
) -> Iterator[Batch]:
    """Yield the batches of one split. The caller chooses their kind.

    Args:
        split: part of a file.
        plan: scan settings.
        batches: function that makes the batches from a FileScan.
        strings: layout that text and binary values have in tables.

    Raises:
        FileNotFoundError: the file was deleted after planning.
        ParquetError: as in fastpq.errors, with the file's path, row group and column.
    """
    try:
        file = open_file(split.file.path, plan.service, strings, plan.on_missing_key)
    except FileNotFoundError:
        if plan.ignore_missing_files:
            return
        raise FileNotFoundError(
            f"{split.file.path} vanished after the read was planned; read again, or set ignoreMissingFiles"
        ) from None
    with file:
        try:
            yield from batches(FileScan(file, split, plan))
        except ParquetError as error:
            error.at(path=split.file.path)
            if split.row_groups is not None and len(split.row_groups) == 1:
                error.at(row_group=split.row_groups[0])
            raise


class ColumnMapping:
    """How a plan reads the columns in files with one schema. A plan finds it once for many small files.

    Attributes:
        schema: the files' schema.
        nodes: file columns by Spark field name.
        int96: names of the fields that hold INT96 timestamps.
        types: Spark types by field name. Fields in structs have the names that the files have.
        leaves: column numbers that the fields need.
        fits: whether fastpq can evaluate the plan's conditions, by their numbers.

    Args:
        schema: the files' schema.
        plan: scan settings.
        constants: names for the columns whose values are in paths.

    Raises:
        ConversionError: a column cannot be read as its Spark type.
        SchemaError: a name matches several columns that differ only in case.
    """

    def __init__(self, schema: ParquetSchema, plan: ScanPlan, constants: Container[str]) -> None:
        self.schema, self._plan = schema, plan
        trees = [tree for tree in (plan.filters, plan.pruning) if tree is not None]
        requested_names = [*plan.schema.names, *{name for tree in trees for name in columns_of(tree)}]
        self.nodes = columns_by_name(schema, [name for name in requested_names if name not in constants], plan.names)
        self.types = {part.name: self._type_in_file(part) for part in plan.schema.fields}
        for name, node in self.nodes.items():
            if name in self.types:
                check_conversion(shape_of(node, range(len(schema.columns))).type, self.types[name], name)
        self.int96 = {name for name, node in self.nodes.items() if schema.has_int96 and self._has_int96(node)}
        self.leaves = list(dict.fromkeys(
            number for part in plan.schema.fields if part.name in self.nodes
            for number in leaf_numbers(self.nodes[part.name], self.types[part.name])
        ))
        self.fits: dict[int, bool] = {}

    def _type_in_file(self, part: st.StructField) -> st.DataType:
        node = self.nodes.get(part.name)
        if not isinstance(node, GroupNode) or self._plan.names == "exact first":
            return part.dataType
        file_type = shape_of(node, range(node.first, node.last)).type
        return named_as_in_file(part.dataType, file_type, self._plan.names)

    def _has_int96(self, node: SchemaNode) -> bool:
        leaves = leaf_numbers(node, st.NullType())
        return any(column.index in leaves and column.element.type == Type.INT96 for column in self.schema.columns)


class FileScan:
    """The reader for one file split. It maps Spark fields to file columns, applies filters and converts the rows to Arrow.

    Args:
        file: the file.
        split: the part to read.
        plan: scan settings.
        columns: the mapping that the plan used for an earlier file. It is used again if the schema is the same object.

    Attributes:
        plan: scan settings.
        constants: partition values by column name.
        columns: the mapping, for further files.
        nodes, int96, types: as in ColumnMapping.
        calendar: calendar that the file's old dates and timestamps use.
    """

    def __init__(self, file: ParquetFile, split: Split, plan: ScanPlan, columns: ColumnMapping | None = None) -> None:
        self.file, self.split, self.plan = file, split, plan
        self.constants = partition_values(split.file, dict(plan.partition_types), plan.time_zone) if plan.partition_types else {}
        if columns is None or columns.schema is not file.schema:
            columns = ColumnMapping(file.schema, plan, self.constants)
        self.columns = columns
        self.nodes, self.types, self.int96 = columns.nodes, columns.types, columns.int96
        self.calendar = Calendar(file.metadata)

    def field(self, name: str) -> pa.Field:
        """Return the Arrow field for a field of the plan. Fields of structs have the names that the file has."""
        field = self.plan.arrow.field(name)
        is_same = self.types[name] == self.plan.schema[name].dataType
        return field if is_same else field.with_type(renamed_type(field.type, self.types[name]))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as Arrow batches."""
        for table in self.tables():
            yield self._batch(pa.table(table) if len(table) else None, table.num_rows)

    def tables(self) -> Iterator[Table]:
        """Return the rows that pass the filters, as tables of file columns. Variants are merged."""
        filters = self.wanted()
        return iter(()) if filters is False else self.tables_of(filters, self.split.row_groups)

    def tables_of(self, filters: Any, row_groups: Sequence[int] | None) -> Iterator[Table]:
        """Return the rows of some row groups that pass filters, as tables. Variants are merged.

        Args:
            filters: conditions for this file. None keeps every row.
            row_groups: row group numbers. None takes every row group.
        """
        tables = self.file.iter_batches(self.plan.batch_rows, self.leaves(), row_groups=row_groups, filters=filters)
        return map(_unshredded, map(self.calendar.checked, tables) if self.calendar.is_hybrid else tables)

    def leaves(self) -> list[int]:
        """Return the numbers of the file columns that the fields need."""
        return self.columns.leaves

    def wanted(self) -> Any:
        """Return the filters for this file. None selects all rows, and False selects none.

        Raises:
            UnsupportedError: a filter has an old date or timestamp, and the file uses another calendar.
        """
        if self.calendar.is_hybrid and (name := old_column(self.plan.filters)) is not None:
            raise refusal(name)
        parts = [] if self.plan.filters is None else [self._folded(self.plan.filters)]
        if self.plan.pruning is not None:
            parts += self._pruning_conditions()
        if any(part is False for part in parts):
            return False
        return And(*(part for part in parts if part is not True)) if any(part is not True for part in parts) else None

    def _pruning_conditions(self) -> list[Any]:
        """Return the plan's pruning conditions, for this file, without those that leave out no row.

        Spark applies pruning conditions again, so a condition may be dropped: if its type differs from the column's, for old
        dates in a file with another calendar, and if it only asks for values that are not null where there is no null.
        """
        conditions = []
        for number, child in enumerate(self.plan.pruning.children):
            if self.calendar.is_hybrid and old_column(child) is not None:
                continue
            part = self._folded(child)
            if isinstance(part, bool) or self._fits(number, part):
                conditions.append(part)
        compared_columns = {part[0] for part in conditions if is_condition(part) and "null" not in part[1]}
        return [part for part in conditions if not (_is_not_null(part) and self._is_needless(part[0], compared_columns))]

    def _is_needless(self, name: str, compared_columns: Container[str]) -> bool:
        """Return whether ``is not null`` leaves out no row: another condition does, or the footer tells that there is no null."""
        if name in compared_columns:
            return True
        leaf = self.file.schema.column(name)
        if leaf.max_definition_level == 0:
            return True
        metadata = self.file.metadata
        groups = range(metadata.num_row_groups) if self.split.row_groups is None else self.split.row_groups
        try:
            statistics = [metadata.row_group(number).column(leaf.index).statistics for number in groups]
        except KeyAccessError:      # a read without the column's key decides what its values are
            return False
        return all(entry is not None and entry.null_count == 0 for entry in statistics)

    def _folded(self, tree: Any) -> Any:
        return folded(tree, self.nodes, self.constants)

    def _fits(self, number: int, condition: Any) -> bool:
        fits = self.columns.fits
        if number not in fits:
            try:
                self.file.explain(condition, (), row_groups=())
                fits[number] = True
            except (SchemaError, UnsupportedError):
                fits[number] = False
        return fits[number]

    def _batch(self, table: pa.Table | None, num_rows: int) -> pa.RecordBatch:
        arrays = []
        for part in self.plan.arrow:
            if part.name in self.constants:
                arrays.append(constant(self.constants[part.name], part, num_rows))
            elif part.name in self.nodes and table is not None:
                column = table.column(self.nodes[part.name].element.name)
                array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
                arrays.append(self.conformed(array, part))
            else:
                arrays.append(nulls_of(part, num_rows))
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * num_rows, pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=self.plan.arrow)

    def conformed(self, array: pa.Array, part: pa.Field) -> pa.Array:
        """Convert an array from the file to a field's type."""
        try:
            return conform_array(array, part)
        except ParquetError as error:
            raise error.at(column=part.name) from None


def _is_not_null(part: Any) -> bool:
    return is_condition(part) and part[1] == "is not null"


def partition_values(file: ListedFile, types: Mapping[str, st.DataType], zone: str | None) -> dict[str, Any]:
    """Return a file's partition values, parsed from its path. Raises the same errors as spark_partition_value."""
    return {name: spark_partition_value(text, types[name], name, zone) for name, text in file.partition if name in types}


def folded(tree: Any, nodes: Mapping[str, SchemaNode], constants: Mapping[str, Any]) -> Any:
    """Simplify a filter tree by partition values and missing columns. The result spells column names like the file.

    Args:
        tree: And, Or and conditions.
        nodes: file columns by their names in the tree.
        constants: the file's partition values by column name.

    Returns:
        True or False if the known values decide the whole tree. Otherwise the remaining tree.
    """
    missing = {name: None for name in columns_of(tree) if name not in nodes}
    return _renamed(and_together(tree, {**missing, **constants}), nodes)


def _renamed(tree: Any, nodes: Mapping[str, SchemaNode]) -> Any:
    if isinstance(tree, And | Or):
        return type(tree)(*(_renamed(child, nodes) for child in tree.children))
    return tree if isinstance(tree, bool) else (nodes[tree[0]].element.name, *tree[1:])


def columns_by_name(
    schema: ParquetSchema, names: Iterable[str], matching: NameMatching = "exact first"
) -> dict[str, SchemaNode]:
    """Return a file's top-level columns by requested name.

    Args:
        schema: the file's schema.
        names: requested names.
        matching: ``"exact"`` as in Spark with spark.sql.caseSensitive, ``"any case"`` as in Spark without it, or
            ``"exact first"``, where the case matters only among columns that have the same name otherwise.

    Raises:
        SchemaError: a name matches several columns that differ only in case.
    """
    nodes = {node.element.name: node for node in schema.root.children}
    return {name: nodes[stored_name] for name, stored_name in matching_names(nodes, names, matching).items()}


def matching_names(stored_names: Iterable[str], names: Iterable[str], matching: NameMatching) -> dict[str, str]:
    """Return the stored name for each requested name that has one. Arguments and errors are as for columns_by_name."""
    spellings: dict[str, list[str]] = {}
    for name in stored_names:
        spellings.setdefault(name.lower(), []).append(name)
    matches: dict[str, str] = {}
    for name in names:
        alike = spellings.get(name.lower(), [])
        near = [name] if name in alike and matching != "any case" else [] if matching == "exact" else alike
        if len(near) > 1:
            raise SchemaError(f"{len(near)} columns differ from the name {name!r} in their case alone", column=name)
        if near:
            matches[name] = near[0]
    return matches


def named_as_in_file(type_: st.DataType, file_type: DataType, matching: NameMatching) -> st.DataType:
    """Return a Spark type in which fields of structs have the names that a file has. Fields that it lacks keep their names.

    Args:
        type_: the Spark type.
        file_type: the file's type.
        matching: as for columns_by_name.

    Raises:
        SchemaError: as for columns_by_name.
    """
    match type_, file_type:
        case st.StructType(), StructType():
            fields = {part.name: part for part in file_type.fields}
            names = matching_names(fields, type_.names, matching)
            return st.StructType([
                st.StructField(stored_name, named_as_in_file(part.dataType, fields[stored_name].type, matching), part.nullable)
                if (stored_name := names.get(part.name)) is not None else part
                for part in type_.fields
            ])
        case st.ArrayType(), ListType():
            return st.ArrayType(named_as_in_file(type_.elementType, file_type.element.type, matching), type_.containsNull)
        case st.MapType(), MapType():
            key = named_as_in_file(type_.keyType, file_type.key.type, matching)
            return st.MapType(key, named_as_in_file(type_.valueType, file_type.value.type, matching), type_.valueContainsNull)
    return type_


def renamed_type(type_: pa.DataType, spark_type: st.DataType) -> pa.DataType:
    """Return an Arrow type whose structs have the names of a Spark type's structs."""
    match spark_type:
        case st.StructType() if pa.types.is_struct(type_):
            fields = [type_.field(number) for number in range(type_.num_fields)]
            return pa.struct([
                field.with_name(part.name).with_type(renamed_type(field.type, part.dataType))
                for field, part in zip(fields, spark_type.fields, strict=True)
            ])
        case st.ArrayType():
            return pa.list_(type_.value_field.with_type(renamed_type(type_.value_type, spark_type.elementType)))
        case st.MapType():
            item = type_.item_field.with_type(renamed_type(type_.item_type, spark_type.valueType))
            return pa.map_(renamed_type(type_.key_type, spark_type.keyType), item)
    return type_


def _unshredded(table: Table) -> Table:
    """Merge shredded variants, in any column, into structs of metadata and value. This is Spark's layout."""
    return Table({name: _merged(column) for name, column in table.items()}, num_rows=table.num_rows)


def _merged(column: AnyColumn) -> AnyColumn:
    if isinstance(column, StructColumn) and column.type.annotation == "VARIANT":
        return column if len(column.children) == len(VARIANT) else VariantColumn.of(column).to_struct()
    match column:
        case ListColumn():
            return column._with(elements=_merged(column.elements))
        case StructColumn():
            return column._with(children=tuple(map(_merged, column.fields())))
    return column


def leaf_numbers(node: SchemaNode, type_: st.DataType) -> list[int]:
    """Return the leaf column numbers that a Spark type needs below a schema node. A struct gives only its requested fields."""
    if not isinstance(node, GroupNode):
        return [node.index] if isinstance(node, ColumnDescriptor) else []
    return [leaf.column.index for leaf in _leaves(shape_of(node, range(node.first, node.last)), type_)]


def _leaves(shape: Shape, type_: st.DataType) -> Sequence[LeafShape]:
    match shape, type_:
        case StructShape(annotation=None), st.StructType():
            types = {part.name: part.dataType for part in type_.fields}
            children = [child for child in shape.children if child.name in types]
            leaves = [leaf for child in children for leaf in _leaves(child, types[child.name])]
            return leaves or shape.leaves       # any leaf's definition levels tell whether the struct is null
        case ListShape(is_map=False), st.ArrayType():
            return _leaves(shape.element, type_.elementType)
        case ListShape(is_map=True, element=StructShape(children=(key, value))), st.MapType():
            return [*key.leaves, *_leaves(value, type_.valueType)]
    return shape.leaves


def constant(value: Any, part: pa.Field, num_rows: int) -> pa.Array:
    """Return an array that has the same value in every row. None means null."""
    if value is None:
        return nulls_of(part, num_rows)
    return pa.repeat(pa.scalar(value, part.type), num_rows)
