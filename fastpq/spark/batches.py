"""Executor side of a scan: splits of files are read as the Arrow record batches of a Spark schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import pyarrow as pa
from pyspark.sql import types as st
from pyspark.sql.datasource import InputPartition

from fastpq.api.file import ParquetFile
from fastpq.arrays.table import AnyColumn, Column, ListColumn, StructColumn, Table
from fastpq.errors import ParquetError, SchemaError, UnsupportedError
from fastpq.filters.predicate import And, Or
from fastpq.schema.parquet_schema import ColumnKey, ParquetSchema
from fastpq.schema.shape import StructShape, shape_of
from fastpq.schema.tree import ColumnDescriptor, GroupNode, SchemaNode
from fastpq.schema.types import Decimal, Type, column_type
from fastpq.spark.calendars import Calendar, old_column, refusal
from fastpq.spark.filters import and_together, columns_of
from fastpq.spark.handover import AS_IT_IS, Handover, handed_over
from fastpq.spark.keyservice import ServiceOptions
from fastpq.spark.listing import ListedFile, spark_partition_value
from fastpq.spark.planning import Split
from fastpq.spark.types import conform_array, nulls_of, reader_schema
from fastpq.spark.worker import keep_modules
from fastpq.variant.storage import holds_variants
from fastpq.variant.variant_column import VariantColumn

Batch = TypeVar("Batch")
VARIANT = ("metadata", "value")     # fields of an unshredded variant


@dataclass(frozen=True)
class ScanPlan:
    """Settings shared by all tasks of a scan; pickled to executors, and free of keys.

    Attributes:
        schema: projected Spark schema of the batches.
        partition_types: names and types of hive partition columns.
        filters: tree of conditions on rows, all applied here; None keeps every row.
        pruning: conditions pushed down by Spark, and applied again by Spark; here they only reduce the rows read.
        batch_rows: most rows of a batch.
        service: options of the key service; None reads plaintext files only.
        ignore_missing_files: skip files deleted after planning.
        time_zone: time zone of timestamps in paths.
        handover: encoding of columns on the way to the JVM.
        limit: rows after which a task for the JVM may stop; None for all.
        arrow: schema as Arrow types.
        output: Arrow schema of the batches after handover.
    """

    schema: st.StructType
    partition_types: tuple[tuple[str, st.DataType], ...] = ()
    filters: Any = None
    pruning: Any = None
    batch_rows: int = 100_000
    service: ServiceOptions | None = None
    ignore_missing_files: bool = False
    time_zone: str | None = None
    handover: Handover = AS_IT_IS
    limit: int | None = None
    arrow: pa.Schema = field(init=False, compare=False)
    output: pa.Schema = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrow", reader_schema(self.schema))
        object.__setattr__(self, "output", reader_schema(self.handover.schema(self.schema)))


class ScanPartition(InputPartition):
    """The splits of one task together with the scan's plan, since Spark pickles the reader before it asks for partitions."""

    def __init__(self, plan: ScanPlan, splits: tuple[Split, ...]) -> None:
        super().__init__(None)
        self.plan, self.splits = plan, splits

    def batches(self) -> Iterator[pa.RecordBatch]:
        for split in self.splits:
            yield from read_split(split, self.plan)
        keep_modules()


def open_file(path: str, service: ServiceOptions | None, strings: Literal["offsets", "views"] = "offsets") -> ParquetFile:
    """Open a file in an executor: one thread, since Spark runs a task on each core, and Parquet types without ARROW:schema."""
    keys = None if service is None else service.decryption(path)
    return ParquetFile(
        path, threads=1, strings=strings, coerce_int96_timestamp_unit="us", arrow_schema=False, decryption_properties=keys
    )


def read_split(split: Split, plan: ScanPlan) -> Iterator[pa.RecordBatch]:
    """Record batches of one split; raises the errors of scan_split."""
    return scan_split(split, plan, FileScan.batches)


def scan_split(
    split: Split, plan: ScanPlan, batches: Callable[[FileScan], Iterator[Batch]], strings: Literal["offsets", "views"] = "offsets"
) -> Iterator[Batch]:
    """Batches of one split, of any kind.

    Args:
        split: part of a file.
        plan: settings of the scan.
        batches: makes the batches of a file's tables.
        strings: layout of text and binary values in the tables.

    Raises:
        FileNotFoundError: the file was deleted after planning.
        ParquetError: as in fastpq.errors, with the file's path, row group and column.
    """
    try:
        file = open_file(split.file.path, plan.service, strings)
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


class FileScan:
    """Read one split of a file: map Spark fields to file columns, apply filters, convert to Arrow.

    Attributes:
        plan: settings of the scan.
        constants: values of the partition columns.
        nodes: columns of the file by the names of the Spark fields.
        int96: names of fields with timestamps stored as INT96.
        calendar: of the file's old dates and timestamps.
    """

    def __init__(self, file: ParquetFile, split: Split, plan: ScanPlan) -> None:
        self.file, self.split, self.plan = file, split, plan
        self.constants = partition_values(split.file, dict(plan.partition_types), plan.time_zone)
        wanted = [*(part.name for part in plan.schema.fields), *self._filtered()]
        self.nodes = columns_by_name(file.schema, [name for name in wanted if name not in self.constants])
        self.digits = {name for name in plan.handover.unscaled if self._is_stored_as_digits(name)}
        self.calendar = Calendar(file.metadata)
        self.int96 = {name for name, node in self.nodes.items() if self._has_int96(node)}

    def _is_stored_as_digits(self, name: str) -> bool:
        """Whether a decimal column is stored as INT32 or INT64 with the scale, and at most the precision, of the Spark type."""
        node, wanted = self.nodes.get(name), self.plan.schema[name].dataType
        assert isinstance(wanted, st.DecimalType)
        if not isinstance(node, ColumnDescriptor) or not isinstance(decimal := node.type.logical, Decimal):
            return False
        fits = decimal.scale == wanted.scale and decimal.precision <= wanted.precision
        is_alone = sum(other is node for other in self.nodes.values()) == 1       # no other field reads the column as decimals
        return fits and is_alone and node.is_flat and node.type.physical in (Type.INT32, Type.INT64)

    def _has_int96(self, node: SchemaNode) -> bool:
        wanted = leaf_numbers(node, st.NullType())
        return any(column.index in wanted and column.element.type == Type.INT96 for column in self.file.schema.columns)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow batches, in the types of the handover."""
        for table in self.tables():
            yield self._batch(pa.table(self._digits(table)) if len(table) else None, table.num_rows)

    def tables(self) -> Iterator[Table]:
        """The rows of the file's columns, variants merged; filters are applied."""
        filters = self.wanted()
        return iter(()) if filters is False else self.tables_of(filters, self.split.row_groups)

    def tables_of(self, filters: Any, row_groups: Sequence[int] | None) -> Iterator[Table]:
        """The rows of some row groups that filters leave, variants merged; None keeps every row, or takes every row group."""
        tables = self.file.iter_batches(self.plan.batch_rows, self.leaves(), row_groups=row_groups, filters=filters)
        return map(_unshredded, map(self.calendar.checked, tables) if self.calendar.is_hybrid else tables)

    def leaves(self) -> list[ColumnKey]:
        """Numbers of the file's columns that the fields need."""
        columns: dict[ColumnKey, None] = {}
        for part in self.plan.schema.fields:
            if part.name in self.nodes:
                columns.update(dict.fromkeys(leaf_numbers(self.nodes[part.name], part.dataType)))
        return list(columns)

    def wanted(self) -> Any:
        """Filters for this file: None selects all rows, False selects none.

        Raises:
            UnsupportedError: a filter with an old date or timestamp, and a file in another calendar.
        """
        if self.calendar.is_hybrid and (name := old_column(self.plan.filters)) is not None:
            raise refusal(name)
        parts = [] if self.plan.filters is None else [self._folded(self.plan.filters)]
        if self.plan.pruning is not None:
            # Spark applies pushed filters again, so a condition of another type than the file's column may be dropped
            hybrid = self.calendar.is_hybrid
            trusted = [child for child in self.plan.pruning.children if not (hybrid and old_column(child) is not None)]
            simple = map(self._folded, trusted)
            parts += [part for part in simple if isinstance(part, bool) or self._fits(part)]
        if any(part is False for part in parts):
            return False
        return And(*(part for part in parts if part is not True)) if any(part is not True for part in parts) else None

    def _folded(self, tree: Any) -> Any:
        return folded(tree, self.nodes, self.constants)

    def _fits(self, condition: Any) -> bool:
        try:
            self.file.explain(condition, (), row_groups=())
        except (SchemaError, UnsupportedError):
            return False
        return True

    def _filtered(self) -> set[str]:
        """Names of the columns used in filters."""
        trees = [tree for tree in (self.plan.filters, self.plan.pruning) if tree is not None]
        return {name for tree in trees for name in columns_of(tree)}

    def _digits(self, table: Table) -> Table:
        """A table with the unscaled integers of decimals, for decimals handed over as integers and stored as integers."""
        names = [self.nodes[name].element.name for name in self.digits]
        found = {name: _as_integers(table.flat(name)) for name in names}
        return Table({**table, **found}, num_rows=table.num_rows) if found else table

    def _batch(self, table: pa.Table | None, num_rows: int) -> pa.RecordBatch:
        arrays = []
        for part in self.plan.arrow:
            if part.name in self.constants:
                arrays.append(constant(self.constants[part.name], part, num_rows))
            elif part.name in self.nodes and table is not None:
                chunked = table.column(self.nodes[part.name].element.name)
                array = chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()
                arrays.append(self.conformed(array, part.with_type(array.type) if part.name in self.digits else part))
            else:
                arrays.append(nulls_of(part, num_rows))
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * num_rows, pa.struct([])))
        return handed_over(self.plan.handover, self.plan.output, self.plan.arrow.names, arrays)

    def conformed(self, array: pa.Array, part: pa.Field) -> pa.Array:
        """An array of the file in the type of a field."""
        try:
            return conform_array(array, part, naive_is_utc=part.name in self.int96)
        except ParquetError as error:
            raise error.at(column=part.name) from None


def partition_values(file: ListedFile, types: Mapping[str, st.DataType], zone: str | None) -> dict[str, Any]:
    """The values of a file's partition columns, from its path; raises the errors of spark_partition_value."""
    return {name: spark_partition_value(text, types[name], name, zone) for name, text in file.partition if name in types}


def folded(tree: Any, nodes: Mapping[str, SchemaNode], constants: Mapping[str, Any]) -> Any:
    """A filter tree simplified by partition values and missing columns, with the file's spelling of column names.

    Args:
        tree: And, Or and conditions.
        nodes: columns of the file, by the names in the tree.
        constants: values of the file's partition columns.

    Returns:
        True or False if the known values decide the whole tree, else the remaining tree.
    """
    missing = {name: None for name in columns_of(tree) if name not in nodes}
    return _renamed(and_together(tree, {**missing, **constants}), nodes)


def _renamed(tree: Any, nodes: Mapping[str, SchemaNode]) -> Any:
    if isinstance(tree, And | Or):
        return type(tree)(*(_renamed(child, nodes) for child in tree.children))
    return tree if isinstance(tree, bool) else (nodes[tree[0]].element.name, *tree[1:])


def columns_by_name(schema: ParquetSchema, names: Iterable[str]) -> dict[str, SchemaNode]:
    """Top-level columns of a file by requested name: the exact name, else a name that differs in case alone, as Spark matches.

    Raises:
        SchemaError: a name matches several columns that differ in case alone.
    """
    nodes = {node.element.name: node for node in schema.root.children}
    folded: dict[str, list[SchemaNode]] = {}
    for name, node in nodes.items():
        folded.setdefault(name.lower(), []).append(node)
    found: dict[str, SchemaNode] = {}
    for name in names:
        near = [nodes[name]] if name in nodes else folded.get(name.lower(), [])
        if len(near) > 1:
            raise SchemaError(f"{len(near)} columns differ from the name {name!r} in their case alone", column=name)
        if near:
            found[name] = near[0]
    return found


def _as_integers(decimals: Column) -> Column:
    type_ = column_type(decimals.type.physical, None, None)
    return Column(type_, decimals.values, decimals.validity, decimals.null_count, decimals.nullable)


def _unshredded(table: Table) -> Table:
    """A table with shredded variants, in any column, merged into structs of metadata and value, Spark's layout."""
    return Table({name: _merged(column) for name, column in table.items()}, num_rows=table.num_rows)


def _merged(column: AnyColumn) -> AnyColumn:
    if holds_variants(column):
        return column if len(column.children) == len(VARIANT) else VariantColumn.of(column).to_struct()
    match column:
        case ListColumn():
            return column._with(elements=_merged(column.elements))
        case StructColumn():
            return column._with(children=tuple(map(_merged, column.fields())))
    return column


def leaf_numbers(node: SchemaNode, wanted: st.DataType) -> list[ColumnKey]:
    """Leaf column numbers of a schema node needed for a Spark type: of a struct, only the leaves of requested fields."""
    if not isinstance(node, GroupNode):
        return [node.index] if isinstance(node, ColumnDescriptor) else []
    everything: list[ColumnKey] = list(range(node.first, node.last))
    if not isinstance(wanted, st.StructType) or not isinstance(shape_of(node, range(node.first, node.last)), StructShape):
        return everything
    names = {part.name: part.dataType for part in wanted.fields}
    chosen = [
        leaf for child in node.children if child.element.name in names for leaf in leaf_numbers(child, names[child.element.name])
    ]
    return chosen or everything     # any leaf's definition levels tell whether the struct is null


def constant(value: Any, part: pa.Field, num_rows: int) -> pa.Array:
    """An array of one value in every row; None is null."""
    if value is None:
        return nulls_of(part, num_rows)
    return pa.repeat(pa.scalar(value, part.type), num_rows)
