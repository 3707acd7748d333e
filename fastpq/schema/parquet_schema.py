"""ParquetSchema: a schema's tree built from the SchemaElements of a footer, and the selection of columns by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, Literal, SupportsIndex, get_args, overload

from fastpq import format as fmt
from fastpq.common.display import ELLIPSIS, Grid, Heading, View, counted, more, to_html, to_text
from fastpq.errors import FormatError, LimitError, SchemaError
from fastpq.schema.elements import elements_of
from fastpq.schema.nested_types import DataType, Field
from fastpq.schema.tree import (
    OPTIONAL,
    REPEATED,
    REQUIRED,
    ColumnDescriptor,
    GroupNode,
    SchemaNode,
    group_line,
    leaf_line,
)
from fastpq.schema.types import ColumnType, Timestamp, TimeUnitName, Type

__all__ = ["ColumnDescriptor", "GroupNode", "ParquetSchema", "SchemaNode"]

MAX_SCHEMA_DEPTH = 512      # groups inside each other
# Greatest number of lines of the tree shown in text and in a notebook.
TEXT_LINES, HTML_LINES = 24, 200

# Greatest number of schemas for writing kept for further files, and of columns of a kept schema.
MOST_SCHEMAS_KEPT = 16
MOST_FIELDS_KEPT = 2048

_REPETITIONS = (REQUIRED, OPTIONAL, REPEATED)

ColumnKey = str | tuple[str, ...] | int
# Units of INT96 timestamps in memory. "auto": of each column, the finest unit in which the values of a read fit.
Int96UnitName = TimeUnitName | Literal["auto"]


class ParquetSchema:
    """A schema: a tree of groups, and the columns, the leaves of the tree.

    Iteration, ``len`` and ``[]`` (by number, name or path) apply to the columns.

    Args:
        root: the root of the tree.
        columns: the leaves of the tree, in their order.

    Attributes:
        root: as given.
        columns: as given.
        has_int96: whether a column is of the physical type INT96.
    """

    def __init__(self, root: GroupNode, columns: Sequence[ColumnDescriptor]) -> None:
        self.root = root
        self.columns = tuple(columns)
        self.has_int96 = any(column.element.type == Type.INT96 for column in self.columns)

    @classmethod
    def from_thrift(cls, elements: Sequence[fmt.SchemaElement]) -> ParquetSchema:
        """The schema of a footer's SchemaElements.

        Args:
            elements: the nodes, depth first, from the root on.

        Raises:
            FormatError, LimitError: as ``from_elements``.
        """
        return cls.from_elements(iter(elements), len(elements))

    @classmethod
    def from_elements(cls, elements: Iterator[fmt.SchemaElement], count: int) -> ParquetSchema:
        """The schema of SchemaElements from an iterator, consumed one by one.

        Args:
            elements: the nodes, depth first, from the root on.
            count: number of elements.

        Raises:
            FormatError: the elements are not one tree.
            LimitError: groups are nested deeper than 512.
        """
        if not count:
            raise FormatError("the schema has no root")
        first = next(elements)
        root = parent = GroupNode(first, None, 0)
        columns: list[ColumnDescriptor] = []
        missing = _child_count(first, count - 1)        # children of the innermost open group still to come
        outer: list[tuple[GroupNode, int]] = []         # groups around the innermost, with their children still to come
        for left, element in zip(range(count - 2, -1, -1), elements, strict=True):
            while missing == 0:
                parent.last = len(columns)
                if not outer:
                    raise FormatError(f"the schema goes on after its root's last child, with {element.name!r}")
                parent, missing = outer.pop()
            missing -= 1
            _check_element(element)
            if element.type is not None:
                column = ColumnDescriptor(element, parent, len(columns))
                columns.append(column)
                parent.children.append(column)
                continue
            group = GroupNode(element, parent, len(columns))
            parent.children.append(group)
            outer.append((parent, missing))
            if len(outer) >= MAX_SCHEMA_DEPTH:
                raise LimitError(f"the schema is nested deeper than MAX_SCHEMA_DEPTH ({MAX_SCHEMA_DEPTH})")
            parent, missing = group, _child_count(element, left)
        while missing == 0 and outer:
            parent.last = len(columns)
            parent, missing = outer.pop()
        parent.last = len(columns)
        if missing:
            raise FormatError(f"the schema ends before the last child of {parent.element.name!r}")
        return cls(root, columns)

    @classmethod
    def of(cls, columns: Iterable[Field | tuple[str, DataType, bool]], name: str = "schema") -> ParquetSchema:
        """A schema for writing, from columns; lists and maps have the three levels prescribed by LogicalTypes.md.

        Args:
            columns: name, type and whether nulls are allowed, for each column.
            name: name of the root.

        Raises:
            SchemaError: a name is not a str, or a struct has no fields.
        """
        fields = tuple(column if isinstance(column, Field) else Field(*column) for column in columns)
        is_kept = len(fields) <= MOST_FIELDS_KEPT and all(
            type(field.name) is str and isinstance(field.type, ColumnType) for field in fields
        )
        return _kept_schema(fields, name) if is_kept else cls.from_thrift(elements_of(fields, name))

    def to_thrift(self) -> list[fmt.SchemaElement]:
        """The SchemaElements of the tree, depth first, as read or made.

        Files of one schema share their elements: do not alter these.
        """
        return list(self.elements)

    @cached_property
    def elements(self) -> list[fmt.SchemaElement]:
        """The SchemaElements of ``to_thrift``, made on first use; do not alter the list or its elements."""
        return [node.element for node in self._walk()]

    @cached_property
    def paths(self) -> list[tuple[str, ...]]:
        """Paths of all columns, made on first use."""
        return [column.path for column in self.columns]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the nodes directly under the root."""
        return tuple(child.element.name for child in self.root.children)

    def column(self, key: ColumnKey) -> ColumnDescriptor:
        """The one column of a name, a path or a number.

        Args:
            key: name, dotted path, tuple of names or number.

        Raises:
            SchemaError: no column has the key, or several columns have the key.
        """
        found = self.select([key])
        if len(found) != 1:
            raise SchemaError(f"{key!r} is {len(found)} columns: {_listed([column.name for column in found])}")
        return found[0]

    def select(self, columns: Iterable[ColumnKey] | None) -> list[ColumnDescriptor]:
        """The columns of names or numbers, each column once, in the order of the names.

        Args:
            columns: names of leaves or of groups (all their leaves), dotted or as tuples; numbers of leaves; None for
                every column.

        Raises:
            SchemaError: a name is missing from the schema or occurs twice; a number lies beyond the last column.
        """
        if columns is None:
            return list(self.columns)
        if isinstance(columns, str):
            raise SchemaError(f"columns is a list of names, not the one name {columns!r}")
        if not isinstance(columns, Iterable):
            raise SchemaError(f"columns is a list of names or numbers, not {columns!r}")
        found: dict[int, ColumnDescriptor] = {}
        for key in columns:
            for column in self._leaves(key):
                found.setdefault(column.index, column)
        return list(found.values())

    def _leaves(self, key: Any) -> Sequence[ColumnDescriptor]:
        if isinstance(key, int):
            if not 0 <= key < len(self.columns):
                raise SchemaError(f"there is no column {key}: the schema has {len(self.columns)}")
            return self.columns[key : key + 1]
        if not isinstance(key, str | tuple):
            if isinstance(key, SupportsIndex):
                return self._leaves(key.__index__())
            raise SchemaError(f"a column is named by a str, a tuple or a number, not by {key!r}")
        nodes = _find_path(self.root, key) if isinstance(key, tuple) else _find_dotted(self.root, key)
        if not nodes:
            shown = key[0] if isinstance(key, tuple) and len(key) == 1 else key
            raise SchemaError(f"there is no column {shown!r}{self._near(key)}")
        if len(nodes) > 1:
            raise SchemaError(f"{len(nodes)} columns are named {key!r}: select one by its number")
        node = nodes[0]
        if isinstance(node, GroupNode):
            return self.columns[node.first : node.last]
        return [node] if isinstance(node, ColumnDescriptor) else []

    def _near(self, key: str | tuple[str, ...]) -> str:
        name = key if isinstance(key, str) else ".".join(key)
        # difflib is slow: a thousand candidates are enough for a hint.
        candidates = [column.name for column in self.columns[:1000]] + list(self.names[:1000])
        folded = [candidate for candidate in candidates if candidate.lower() == name.lower()]
        from difflib import get_close_matches

        near = folded or get_close_matches(name, candidates, n=3)
        if near:
            return f"; did you mean {_listed(list(dict.fromkeys(near)))}?"
        return f"; the schema has {_listed(self.names)}" if self.columns else "; the schema has no columns"

    def _walk(self) -> Iterator[SchemaNode]:
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

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        """The lines of the tree in the text notation of Parquet's specification."""
        open_groups: list[GroupNode] = []
        for node in self._walk():
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
        """The display of the schema: the number of columns, and at most `most` lines of the tree."""
        lines = list(islice(self._lines(), most + 1))
        is_cut = len(lines) > most
        note = f"{ELLIPSIS} str(schema) has all lines" if is_cut else ""
        return View("ParquetSchema", [counted(len(self.columns), "column")], lines=lines[:most], note=note)


@lru_cache(maxsize=MOST_SCHEMAS_KEPT)
def _kept_schema(fields: tuple[Field, ...], name: str) -> ParquetSchema:
    """The schema of flat columns. Tables of one schema are often written one after another."""
    return ParquetSchema.from_thrift(elements_of(fields, name))


def _child_count(element: fmt.SchemaElement, remaining: int) -> int:
    count = element.num_children or 0
    if not 0 <= count <= remaining:
        raise FormatError(f"{element.name!r} has {count} children where {remaining} elements are left")
    return count


def _check_element(element: fmt.SchemaElement) -> None:
    if element.repetition_type is None:
        element.repetition_type = REQUIRED      # left out by some writers
    if not element.name.isascii() and any("\ud800" <= character <= "\udfff" for character in element.name):
        raise FormatError(f"the name {element.name!r} is not UTF-8")
    if element.repetition_type not in _REPETITIONS:
        raise FormatError(f"repetition type {element.repetition_type!r}", column=element.name)
    if element.type is not None and element.num_children:
        raise FormatError(f"a {element.type!r} with {element.num_children} children", column=element.name)
    if element.type is None and element.num_children is None:
        raise FormatError("neither a type nor children", column=element.name)


def _find_path(root: GroupNode, path: tuple[str, ...]) -> list[SchemaNode]:
    nodes: list[SchemaNode] = [root] if path else []
    for name in path:
        nodes = [child for node in nodes if isinstance(node, GroupNode) for child in node.named(name)]
    return nodes


def _find_dotted(root: GroupNode, name: str) -> list[SchemaNode]:
    """The nodes with a path equal to the name when joined by dots; names of nodes may hold dots."""
    found: list[SchemaNode] = []
    waiting: list[tuple[GroupNode, str]] = [(root, name)]
    while waiting:
        group, rest = waiting.pop()
        found.extend(group.named(rest))
        dot = rest.find(".")
        while dot >= 0:
            inner = [child for child in group.named(rest[:dot]) if isinstance(child, GroupNode)]
            waiting.extend((child, rest[dot + 1 :]) for child in inner)
            dot = rest.find(".", dot + 1)
    return found


def _listed(names: Sequence[str], most: int = 10) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more


_INT96_TYPES = {unit: ColumnType(Type.INT96, None, Timestamp(unit)) for unit in get_args(TimeUnitName)}


def int96_types(
    columns: Iterable[ColumnDescriptor], unit: TimeUnitName, units: Mapping[int, TimeUnitName] | None = None
) -> dict[int, ColumnType]:
    """In-memory types of INT96 columns, timestamps, by number of the column; other columns keep the schema's type.

    Args:
        columns: the columns.
        unit: their unit.
        units: other units, by number of the column.
    """
    chosen = units or {}
    return {
        column.index: _INT96_TYPES[chosen.get(column.index, unit)]
        for column in columns
        if column.element.type == Type.INT96
    }


def column_grid(schema: ParquetSchema, most: int) -> Grid:
    """A grid of the names and types of the first `most` columns."""
    rows = [(column.name, leaf_line(column).replace(f" {column.element.name}", "", 1)) for column in schema.columns[:most]]
    return Grid([Heading("column"), Heading("type", is_prose=True)], rows, more(len(schema.columns), len(rows), "column"))
