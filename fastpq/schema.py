"""The schema tree and its leaves."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from fastpq import format as fmt
from fastpq.errors import FormatError, LimitError, SchemaError
from fastpq.logical import annotate, logical_from_thrift
from fastpq.types import ColumnType, Decimal, Type

DEEPEST = 1024
ROOT_NAME = "schema"

_REQUIRED, _OPTIONAL, _REPEATED = fmt.FieldRepetitionType


@dataclass(frozen=True, slots=True)
class ColumnDescriptor:
    """A leaf of the schema.

    Attributes:
        path: names from the top-level field down.
        type: what it holds.
        max_definition_level, max_repetition_level: of its levels (README.md of parquet-format, "Nested Encoding").
        repetition: of the leaf itself.
        field_id: the writer's id of it, or None.
        index: its place among the leaves.
    """

    path: tuple[str, ...]
    type: ColumnType
    max_definition_level: int
    max_repetition_level: int
    repetition: fmt.FieldRepetitionType
    field_id: int | None
    index: int

    @property
    def name(self) -> str:
        """The dotted path."""
        return ".".join(self.path)

    @property
    def physical_type(self) -> Type:
        return self.type.physical

    @property
    def nullable(self) -> bool:
        return self.max_definition_level > 0

    @property
    def is_flat(self) -> bool:
        """Whether it is a top-level field that is not repeated."""
        return len(self.path) == 1 and self.max_repetition_level == 0


class ParquetSchema(Sequence[ColumnDescriptor]):
    """A schema: its elements as the footer has them, and its leaves.

    Args:
        elements: the tree, flattened depth first, root first.

    Raises:
        FormatError: the elements do not make a tree, or a leaf lacks its type.
        LimitError: the tree is deeper than 1,024.
    """

    def __init__(self, elements: Sequence[fmt.SchemaElement]) -> None:
        self._elements = list(elements)
        self._columns = list(_leaves(self._elements))

    @classmethod
    def from_thrift(cls, elements: Sequence[fmt.SchemaElement]) -> ParquetSchema:
        """A schema from the footer's elements."""
        return cls(elements)

    @classmethod
    def of(cls, fields: Iterable[tuple[str, ColumnType, bool]]) -> ParquetSchema:
        """A flat schema from (name, type, nullable) triples.

        Raises:
            SchemaError: a name that is there twice.
        """
        leaves = [_element(name, column_type, nullable) for name, column_type, nullable in fields]
        names = [leaf.name for leaf in leaves]
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise SchemaError(f"column names that are there twice: {', '.join(twice)}")
        return cls([fmt.SchemaElement(name=ROOT_NAME, num_children=len(leaves)), *leaves])

    def to_thrift(self) -> list[fmt.SchemaElement]:
        """The elements, root first."""
        return list(self._elements)

    @property
    def columns(self) -> list[ColumnDescriptor]:
        """The leaves, in the order of the file's column chunks."""
        return self._columns

    @property
    def names(self) -> list[str]:
        """Names of the top-level fields."""
        return list(dict.fromkeys(column.path[0] for column in self._columns))

    @cached_property
    def _by_name(self) -> dict[str, list[ColumnDescriptor]]:
        """Leaves by dotted path, and by the dotted path of each group above them."""
        found: dict[str, list[ColumnDescriptor]] = {}
        for column in self._columns:
            for depth in range(1, len(column.path) + 1):
                found.setdefault(".".join(column.path[:depth]), []).append(column)
        return found

    def select(self, names: Iterable[str]) -> list[ColumnDescriptor]:
        """The leaves that names choose, in their order; the name of a group chooses its leaves.

        Raises:
            SchemaError: a name that is not there; near names are listed.
        """
        chosen: dict[int, ColumnDescriptor] = {}
        if isinstance(names, str):
            raise SchemaError(f"columns must be a list of names, not the string {names!r}")
        for name in names:
            if name not in self._by_name:
                near = difflib.get_close_matches(name, self._by_name, n=3)
                hint = f"; near names: {', '.join(near)}" if near else f"; there are {', '.join(list(self._by_name)[:20])}"
                raise SchemaError(f"no column {name!r}{hint}")
            chosen |= {column.index: column for column in self._by_name[name]}
        return list(chosen.values())

    def column(self, name: str) -> ColumnDescriptor:
        """The leaf with a dotted path.

        Raises:
            SchemaError: there is none, or the name is that of a group.
        """
        found = self.select([name])
        if found[0].name != name:
            raise SchemaError(f"{name!r} is a group")
        return found[0]

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._columns[index]

    def __iter__(self) -> Iterator[ColumnDescriptor]:
        return iter(self._columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParquetSchema) and self._columns == other._columns

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        """The tree in the usual notation."""
        lines = [f"message {self._elements[0].name} {{"]
        open_groups: list[int] = [self._elements[0].num_children or 0]
        for element in self._elements[1:]:
            indent = "  " * len(open_groups)
            open_groups[-1] -= 1
            lines.append(indent + _line(element))
            if element.type is None:
                open_groups.append(element.num_children or 0)
            while open_groups and open_groups[-1] == 0:
                open_groups.pop()
                lines.append("  " * len(open_groups) + "}")
        return "\n".join(lines) if len(lines) > 1 else lines[0] + "}"

    def __repr__(self) -> str:
        return f"<ParquetSchema: {len(self)} columns>"


def _leaves(elements: list[fmt.SchemaElement]) -> Iterator[ColumnDescriptor]:
    """Walk the flattened tree."""
    if not elements:
        raise FormatError("a schema without a root")
    # For each open group: children left, name, and the levels inside it.
    stack = [[elements[0].num_children or 0, 0, 0]]
    path: list[str] = []
    index = 0
    for position, element in enumerate(elements[1:], 1):
        while stack and stack[-1][0] == 0:
            stack.pop()
            del path[-1:]
        if not stack:
            raise FormatError(f"schema element {position} ({element.name!r}) belongs to no group")
        stack[-1][0] -= 1
        repetition = element.repetition_type or _REQUIRED       # some writers leave it out
        definition = stack[-1][1] + (repetition != _REQUIRED)
        repeated = stack[-1][2] + (repetition == _REPEATED)
        if element.type is None:
            children = element.num_children or 0
            if children < 0 or children > len(elements) - position:
                raise FormatError(f"schema element {position} ({element.name!r}) has {children} children")
            if len(stack) >= DEEPEST:
                raise LimitError(f"a schema deeper than {DEEPEST}")
            stack.append([children, definition, repeated])
            path.append(element.name)
            continue
        yield _describe(element, (*path, element.name), definition, repeated, index)
        index += 1
    if any(left for left, _, _ in stack):
        raise FormatError("the schema ends before its groups do")


def _describe(
    element: fmt.SchemaElement, path: tuple[str, ...], definition: int, repeated: int, index: int
) -> ColumnDescriptor:
    name = ".".join(path)
    if element.type not in Type._value2member_map_:
        raise FormatError(f"physical type {element.type}", column=name)
    if (element.repetition_type or 0) not in fmt.FieldRepetitionType._value2member_map_:
        raise FormatError(f"repetition type {element.repetition_type}", column=name)
    physical = Type(element.type)  # type: ignore[arg-type]
    length = element.type_length if physical is Type.FIXED_LEN_BYTE_ARRAY else None
    if physical is Type.FIXED_LEN_BYTE_ARRAY and (length is None or length < 0):
        raise FormatError(f"a FIXED_LEN_BYTE_ARRAY of length {length}", column=name)
    column_type = ColumnType(physical, length, logical_from_thrift(element))
    repetition = fmt.FieldRepetitionType(element.repetition_type or _REQUIRED)
    return ColumnDescriptor(path, column_type, definition, repeated, repetition, element.field_id, index)


def _element(name: str, column_type: ColumnType, nullable: bool) -> fmt.SchemaElement:
    element = fmt.SchemaElement(
        name=name,
        type=column_type.physical,
        type_length=column_type.length,
        repetition_type=_OPTIONAL if nullable else _REQUIRED,
    )
    annotate(element, None if column_type.physical is Type.INT96 else column_type.logical)
    return element


def _line(element: fmt.SchemaElement) -> str:
    repetition = fmt.FieldRepetitionType(element.repetition_type or 0).name.lower()
    if element.type is None:
        return f"{repetition} group {element.name} {{"
    physical = Type(element.type).name.lower()
    if element.type_length is not None:
        physical += f"({element.type_length})"
    logical = logical_from_thrift(element)
    if logical is None:
        return f"{repetition} {physical} {element.name};"
    annotation = f"DECIMAL({logical.precision},{logical.scale})" if isinstance(logical, Decimal) else str(logical)
    return f"{repetition} {physical} {element.name} ({annotation});"
