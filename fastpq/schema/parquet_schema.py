"""ParquetSchema: the schema of a file as a tree, with column selection by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, cast, get_args, overload

from fastpq import format as fmt
from fastpq.common.display import ELLIPSIS, Grid, Heading, View, counted, more, to_html, to_text
from fastpq.common.extensions import registered
from fastpq.common.lazy import LazyModule
from fastpq.errors import SchemaError
from fastpq.schema.nested_types import DataType, Field
from fastpq.schema.tree import ColumnDescriptor, GroupNode, SchemaNode, group_line, leaf_line
from fastpq.schema.tree_building import MAX_SCHEMA_DEPTH, build_flat_tree, build_tree
from fastpq.schema.types import INT96_SIZE, ColumnType, Timestamp, TimeUnitName, Type

if TYPE_CHECKING:
    import pyarrow
else:       # typing.get_type_hints looks up annotation types here
    pyarrow = LazyModule("pyarrow")

__all__ = ["MAX_SCHEMA_DEPTH", "ColumnDescriptor", "FieldId", "GroupNode", "ParquetSchema", "SchemaNode"]

# Largest number of lines of the schema's text that repr shows, and that a notebook shows.
TEXT_LINES, HTML_LINES = 24, 200

# Number of schemas for writing that are cached for further files, and the largest number of columns that such a schema has.
MOST_CACHED_SCHEMAS = 16
MOST_CACHED_FIELDS = 2048

@dataclass(frozen=True, slots=True)
class FieldId:
    """A column or a group of columns, by the field id that its writer gave it (parquet.thrift, ``SchemaElement.field_id``).

    Attributes:
        number: the id.
    """

    number: int


ColumnKey = str | tuple[str, ...] | int | FieldId
# In-memory units for INT96 timestamps. "auto" means, for each column, the finest unit that can hold all values in the read.
# "stored" means that values keep their 12 stored bytes.
Int96UnitName = TimeUnitName | Literal["auto", "stored"]


class ParquetSchema:
    """A schema: a tree of groups whose leaves are the columns.

    Iteration, ``len`` and ``[]`` (with a number, a name or a path) use the columns.

    Args:
        root: root of the tree.
        columns: leaves of the tree, in order.

    Attributes:
        root, columns: as the arguments.
        has_int96: whether a column has the physical type INT96.
    """

    def __init__(self, root: GroupNode, columns: Sequence[ColumnDescriptor]) -> None:
        self.root = root
        self.columns = tuple(columns)
        self.has_int96 = any(column.element.type == Type.INT96 for column in self.columns)

    @classmethod
    def from_thrift(cls, elements: Sequence[fmt.SchemaElement]) -> ParquetSchema:
        """Return the schema that a footer's SchemaElements describe.

        Args:
            elements: the nodes, depth first, starting with the root.

        Raises:
            FormatError: the elements do not form one tree.
            LimitError: groups are nested more than 512 levels deep.
        """
        return cls.from_elements(iter(elements), len(elements))

    @classmethod
    def from_elements(cls, elements: Iterator[fmt.SchemaElement], count: int) -> ParquetSchema:
        """Return the schema that SchemaElements describe. They are taken from an iterator one by one.

        Args:
            elements: the nodes, depth first, starting with the root.
            count: element count.

        Raises:
            FormatError: the elements do not form one tree.
            LimitError: groups are nested more than 512 levels deep.
        """
        return cls(*build_tree(elements, count))

    @classmethod
    def of(cls, columns: Iterable[Field | tuple[str, DataType, bool]], name: str = "schema") -> ParquetSchema:
        """Return a schema for writing. Lists and maps have the three levels that LogicalTypes.md prescribes.

        Args:
            columns: for each column its name, its type, and whether nulls are allowed.
            name: root name.

        Raises:
            SchemaError: a name is not a str, or a struct has no fields.
        """
        fields = [_parts(column) if isinstance(column, Field) else column for column in columns]
        if not all(type(each[0]) is str and isinstance(each[1], ColumnType) for each in fields):
            from fastpq.schema.elements import elements_of, leaf_types

            schema = cls.from_thrift(elements_of([Field(*each) for each in fields], name))
            for column, type_ in zip(schema.columns, leaf_types([each[1] for each in fields]), strict=True):
                if type_.physical is not Type.INT96:        # its unit is not in the schema
                    column.type = type_                     # which saves the way back from the element
            return schema
        flat_fields = cast("list[tuple[str, ColumnType, bool]]", fields)
        if len(fields) > MOST_CACHED_FIELDS:
            return cls(*build_flat_tree(flat_fields, fmt.SchemaElement(name=name, num_children=len(fields))))
        # The id of a type is quicker than its hash. A schema in the cache keeps its types, so that no other type gets their ids.
        key = name, tuple([(each[0], id(each[1]), each[2]) for each in flat_fields])
        cached_schema = _cached_schemas.get(key)
        if cached_schema is not None:
            return cached_schema[0]
        schema = cls(*build_flat_tree(flat_fields, fmt.SchemaElement(name=name, num_children=len(fields))))
        with _cache_lock:
            while len(_cached_schemas) >= MOST_CACHED_SCHEMAS:
                del _cached_schemas[next(iter(_cached_schemas))]
            _cached_schemas[key] = schema, flat_fields
        return schema

    def to_thrift(self) -> list[fmt.SchemaElement]:
        """Return the tree's SchemaElements, depth first.

        Files with the same schema share their elements, so do not change them.
        """
        return list(self.elements)

    @cached_property
    def elements(self) -> list[fmt.SchemaElement]:
        """The SchemaElements that ``to_thrift`` returns, made on first use. Do not change the list or its elements."""
        return [node.element for node in self.nodes()]

    @cached_property
    def paths(self) -> list[tuple[str, ...]]:
        """All columns' paths, made on first use."""
        return [column.path for column in self.columns]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the nodes directly under the root."""
        return tuple(child.element.name for child in self.root.children)

    def column(self, key: ColumnKey) -> ColumnDescriptor:
        """Return the column with a name, a path or a number.

        Args:
            key: a name, a dotted path, a tuple of names, or a number.

        Raises:
            SchemaError: no column matches the key, or several do.
        """
        columns = self.select([key])
        if len(columns) != 1:
            raise SchemaError(f"{key!r} means {len(columns)} columns: {_listed([column.name for column in columns])}")
        return columns[0]

    def select(self, columns: Iterable[ColumnKey] | None) -> list[ColumnDescriptor]:
        """Return the columns that names or numbers select, in the given order. Each column is returned once.

        Args:
            columns: leaf or group names, dotted or as tuples, and leaf numbers. A group stands for all its leaves. None means
                every column.

        Raises:
            SchemaError: no column matches one of the names or numbers, or a name is ambiguous.
        """
        if columns is None:
            return list(self.columns)
        if isinstance(columns, str):
            raise SchemaError(f"columns must be a list of names, not the single name {columns!r}")
        if not isinstance(columns, Iterable):
            raise SchemaError(f"columns must be a list of names or numbers, not {columns!r}")
        selected_columns: dict[int, ColumnDescriptor] = {}
        for key in columns:
            for column in self._leaves(key):
                selected_columns.setdefault(column.index, column)
        return list(selected_columns.values())

    def _leaves(self, key: Any) -> Sequence[ColumnDescriptor]:
        if isinstance(key, int):
            if not 0 <= key < len(self.columns):
                raise SchemaError(f"there is no column {key}: the schema has {len(self.columns)} columns")
            return self.columns[key : key + 1]
        if isinstance(key, FieldId):
            return self._leaves_below(self._with_id(key))
        if not isinstance(key, str | tuple):
            if isinstance(key, SupportsIndex):
                return self._leaves(key.__index__())
            raise SchemaError(f"a column key must be a str, a tuple or a number, not {key!r}")
        nodes = _find_path(self.root, key) if isinstance(key, tuple) else _find_dotted(self.root, key)
        if not nodes:
            key_text = key[0] if isinstance(key, tuple) and len(key) == 1 else key
            raise SchemaError(f"there is no column {key_text!r}{self._near(key)}")
        if len(nodes) > 1:
            raise SchemaError(f"{len(nodes)} columns are named {key!r}: use the number of the column")
        return self._leaves_below(nodes[0])

    def _leaves_below(self, node: SchemaNode) -> Sequence[ColumnDescriptor]:
        if isinstance(node, GroupNode):
            return self.columns[node.first : node.last]
        return [node] if isinstance(node, ColumnDescriptor) else []

    def _with_id(self, key: FieldId) -> SchemaNode:
        """Return the only node with a field id."""
        nodes = [node for node in self.nodes() if node.element.field_id == key.number]
        if len(nodes) != 1:
            raise SchemaError(f"{len(nodes)} columns have the field id {key.number}")
        return nodes[0]

    def _near(self, key: str | tuple[str, ...]) -> str:
        name = key if isinstance(key, str) else ".".join(key)
        # difflib is slow. A thousand candidates are enough for a suggestion.
        candidates = [column.name for column in self.columns[:1000]] + list(self.names[:1000])
        same_letters = [candidate for candidate in candidates if candidate.lower() == name.lower()]
        from difflib import get_close_matches

        near = same_letters or get_close_matches(name, candidates, n=3)
        if near:
            return f"; did you mean {_listed(list(dict.fromkeys(near)))}?"
        return f"; the schema has {_listed(self.names)}" if self.columns else "; the schema has no columns"

    def nodes(self) -> Iterator[SchemaNode]:
        """Yield the tree's nodes, depth first, beginning with the root."""
        waiting: list[SchemaNode] = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            if isinstance(node, GroupNode):
                waiting.extend(reversed(node.children))

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[ColumnDescriptor]:
        return iter(self.columns)

    @overload
    def __getitem__(self, key: slice) -> tuple[ColumnDescriptor, ...]: ...
    @overload
    def __getitem__(self, key: ColumnKey) -> ColumnDescriptor: ...
    def __getitem__(self, key: ColumnKey | slice) -> ColumnDescriptor | tuple[ColumnDescriptor, ...]:
        if isinstance(key, slice | int):
            return self.columns[key]
        return self.column(key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParquetSchema) and self.to_thrift() == other.to_thrift()

    __hash__ = None  # type: ignore[assignment]  # elements are mutable

    def equals(self, other: ParquetSchema) -> bool:
        """Return whether another schema has the same nodes. The same as ``==``, but other objects are refused.

        Args:
            other: the other schema.

        Raises:
            TypeError: ``other`` is not a ParquetSchema.
        """
        if not isinstance(other, ParquetSchema):
            raise TypeError(f"a ParquetSchema is not compared with a {type(other).__name__}")
        return self == other

    def to_arrow_schema(self) -> pyarrow.Schema:
        """Return the columns' types as a pyarrow.Schema. Those of a file with ARROW:schema are ``ParquetFile.schema_arrow``.

        Raises:
            UnsupportedError: pyarrow is not installed.
        """
        empty_table = registered("empty_table")
        assert empty_table is not None, "fastpq registers the function of fastpq.convert"
        schema: pyarrow.Schema = empty_table(self).to_arrow().schema
        return schema

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        """Yield the lines of the schema's text, in the notation of the Parquet specification."""
        open_groups: list[GroupNode] = []
        for node in self.nodes():
            while open_groups and open_groups[-1] is not node.parent:
                open_groups.pop()
                yield "  " * len(open_groups) + "}"
            indent = "  " * len(open_groups)
            if isinstance(node, GroupNode):
                yield indent + group_line(node)
                open_groups.append(node)
            elif isinstance(node, ColumnDescriptor):
                yield f"{indent}{leaf_line(node)};"
        yield from ("  " * depth + "}" for depth in reversed(range(len(open_groups))))

    def __repr__(self) -> str:
        return to_text(self._view(TEXT_LINES))

    def _repr_html_(self) -> str:
        return to_html(self._view(HTML_LINES))

    def _view(self, most: int) -> View:
        """Return what the repr shows: the column count and the first ``most`` lines of the schema's text."""
        lines = list(islice(self._lines(), most + 1))
        is_cut = len(lines) > most
        note = f"{ELLIPSIS} str(schema) has all lines" if is_cut else ""
        return View("ParquetSchema", [counted(len(self.columns), "column")], lines=lines[:most], note=note)


def _parts(field: Field) -> tuple[str, DataType, bool]:
    return field.name, field.type, field.nullable


# Schemas of flat columns for writing, with the fields that they were made from. They are cached, because tables with the same
# schema are often written one after another.
_cached_schemas: dict[object, tuple[ParquetSchema, list[tuple[str, ColumnType, bool]]]] = {}
_cache_lock = Lock()


def _find_path(root: GroupNode, path: tuple[str, ...]) -> list[SchemaNode]:
    nodes: list[SchemaNode] = [root] if path else []
    for name in path:
        nodes = [child for node in nodes if isinstance(node, GroupNode) for child in node.named(name)]
    return nodes


def _find_dotted(root: GroupNode, name: str) -> list[SchemaNode]:
    """Return the nodes whose path, joined by dots, equals ``name``. The names in a path may contain dots themselves."""
    matches: list[SchemaNode] = []
    waiting: list[tuple[GroupNode, str]] = [(root, name)]
    while waiting:
        group, rest = waiting.pop()
        matches.extend(group.named(rest))
        dot = rest.find(".")
        while dot >= 0:
            inner = [child for child in group.named(rest[:dot]) if isinstance(child, GroupNode)]
            waiting.extend((child, rest[dot + 1 :]) for child in inner)
            dot = rest.find(".", dot + 1)
    return matches


def _listed(names: Sequence[str], most: int = 10) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more


# Type of INT96 values in memory that stay as they are stored, so that no bit of them changes.
STORED_INT96 = ColumnType(Type.INT96, INT96_SIZE)

_INT96_TYPES = {unit: ColumnType(Type.INT96, None, Timestamp(unit)) for unit in get_args(TimeUnitName)} | {"stored": STORED_INT96}


def int96_types(
    columns: Iterable[ColumnDescriptor], unit: TimeUnitName | Literal["stored"], units: Mapping[int, TimeUnitName] | None = None
) -> dict[int, ColumnType]:
    """Return the types that INT96 columns have in memory, by column number. Other columns are left out.

    Args:
        columns: the columns.
        unit: the unit for columns that are not in ``units``.
        units: units of some columns, by column number.
    """
    own_units = units or {}
    return {
        column.index: _INT96_TYPES[own_units.get(column.index, unit)]
        for column in columns
        if column.element.type == Type.INT96
    }


def column_grid(schema: ParquetSchema, most: int) -> Grid:
    """Return a grid with the names and types of the first ``most`` columns."""
    rows = [(column.name, leaf_line(column).replace(f" {column.element.name}", "", 1)) for column in schema.columns[:most]]
    return Grid([Heading("column"), Heading("type", is_prose=True)], rows, more(len(schema.columns), len(rows), "column"))
