"""Sheets about columns: the schema as a tree, all columns with what they take, and one column."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fastpq.cli.amounts import count_text, exact_size_text, ratio_text, share_text, size_text
from fastpq.cli.browser.browsed_file import BrowsedFile
from fastpq.cli.browser.chunk_sheets import ColumnChunksSheet
from fastpq.cli.browser.sheet import Fact, FactSheet, LoadedSheet, RowSheet, Sheet, SheetColumn
from fastpq.cli.browser.value_sheets import RowSet, ValueSheet
from fastpq.cli.cell_values import value_text
from fastpq.cli.column_facts import ColumnFacts, column_facts, encodings_text
from fastpq.cli.failures import failure_of
from fastpq.cli.format_names import column_type_text
from fastpq.cli.terminal import Part, Styled
from fastpq.errors import ParquetError
from fastpq.schema.tree import ColumnDescriptor, GroupNode, SchemaNode

if TYPE_CHECKING:
    from collections.abc import Iterator

INDENT = "  "


class SchemaSheet(RowSheet):
    """The schema as a tree, one node a row.

    Args:
        viewed_file: the file.
    """

    title = "schema"
    columns = (
        SheetColumn("name", widest=60),
        SheetColumn("type", widest=60),
        SheetColumn("repetition"),
        SheetColumn("levels"),
        SheetColumn("field id", True),
    )

    def __init__(self, viewed_file: BrowsedFile) -> None:
        super().__init__()
        self._viewed_file = viewed_file
        self._nodes = list(_tree(viewed_file.file.schema.root))
        self.note = f"{count_text(len(viewed_file.columns), 'column')}; levels are the largest definition and repetition level"

    def __len__(self) -> int:
        return len(self._nodes)

    def make_row(self, row: int) -> Sequence[Part]:
        """Return the facts about a node."""
        depth, node = self._nodes[row]
        field_id = "" if node.field_id is None else str(node.field_id)
        levels = f"{node.max_definition_level} {node.max_repetition_level}"
        name = INDENT * depth + node.element.name
        return name, _node_type(node), node.repetition.name.lower(), levels, field_id

    def opens(self, row: int, column: int) -> bool:
        """A leaf opens its column, and a group the values below it."""
        return 0 <= row < len(self)

    def open(self, row: int, column: int) -> Sheet:
        """Return a leaf's column, or a group's values."""
        node = self._nodes[row][1]
        if isinstance(node, ColumnDescriptor):
            return column_sheet(self._viewed_file, node)
        return ValueSheet(self._viewed_file, RowSet(node.name, 0, self._viewed_file.file.num_rows), [node.top])


def _tree(root: GroupNode) -> Iterator[tuple[int, SchemaNode]]:
    """Yield the nodes below the root with their depths, in schema order."""
    waiting = [(0, child) for child in reversed(root.children)]
    while waiting:
        depth, node = waiting.pop()
        yield depth, node
        if isinstance(node, GroupNode):
            waiting += [(depth + 1, child) for child in reversed(node.children)]


def _node_type(node: SchemaNode) -> Part:
    """Return a leaf's type. A group has its annotation, if it has one."""
    if isinstance(node, ColumnDescriptor):
        return column_type_text(node)
    assert isinstance(node, GroupNode)
    from fastpq.schema.tree import group_line

    line = group_line(node)
    annotation = line[line.rfind(" (") + 2 : line.rfind(")")] if line.endswith(") {") else "group"
    return Styled(annotation, "dim")


class ColumnSheet(LoadedSheet):
    """All columns with what they take, added up over the row groups.

    Args:
        viewed_file: the file.
        order: one of ``orders``.
    """

    title = "columns"
    orders = ("file", "stored", "ratio", "name")
    can_go = True
    columns = (
        SheetColumn("column"),
        SheetColumn("type", widest=30),
        SheetColumn("stored", True),
        SheetColumn("share", True),
        SheetColumn("ratio", True),
        SheetColumn("codec"),
        SheetColumn("encoding", widest=30),
        SheetColumn("nulls", True),
        SheetColumn("min", widest=24),
        SheetColumn("max", widest=24),
        SheetColumn("dictionary"),
        SheetColumn("statistics"),
        SheetColumn("page index"),
        SheetColumn("bloom filter"),
    )

    def __init__(self, viewed_file: BrowsedFile, order: str = "file") -> None:
        super().__init__()
        self._viewed_file, self.order = viewed_file, order
        self._places = self._in_order(order)
        self._problems: dict[int, str] = {}
        by = {"file": "in the order of the file", "name": "by name"}.get(order, f"largest {order} first")
        self.note = f"{count_text(len(self), 'column')}, {by}"

    def _in_order(self, order: str) -> Sequence[int]:
        columns = self._viewed_file.columns
        if order == "file":
            return range(len(columns))
        if order == "name":
            return sorted(range(len(columns)), key=lambda place: columns[place].name.lower())
        facts = self._viewed_file.chunk_facts
        stored_sizes = facts.stored_sizes.sum(axis=0)
        keys = stored_sizes if order == "stored" else facts.decoded_sizes.sum(axis=0) / np.maximum(stored_sizes, 1)
        return [int(place) for place in np.argsort(-keys, kind="stable")]

    def __len__(self) -> int:
        return len(self._viewed_file.columns)

    def label(self, row: int) -> Part:
        """Return the column's name."""
        return self._viewed_file.columns[self._places[row]].name

    def make_row(self, row: int) -> Sequence[Part]:
        """Return the facts about a column."""
        column = self._viewed_file.columns[self._places[row]]
        try:
            each = column_facts(self._viewed_file.file.metadata, column)
        except ParquetError as error:
            self._problems[row] = failure_of(error).message
            return self.label(row), "", Styled("broken", "error"), *[""] * (len(self.columns) - 3)
        if not each["readable"]:
            self._problems[row] = "there is no key for this column"
            return self.label(row), each["type"], Styled("no key", "error"), *[""] * (len(self.columns) - 3)
        return self._cells(each)

    def _cells(self, each: ColumnFacts) -> Sequence[Part]:
        return (
            each["column"],
            each["type"],
            size_text(each["stored_bytes"]),
            share_text(each["stored_bytes"], self._viewed_file.stored_bytes),
            ratio_text(each["decoded_bytes"], each["stored_bytes"]),
            "+".join(each["codecs"]).lower(),
            encodings_text(each),
            "?" if each["nulls"] is None else f"{each['nulls']:,}",
            *("" if bound is None else value_text(bound) for bound in (each["min"], each["max"])),
            Styled("given up", "warning") if each["dictionary"] == "given up" else each["dictionary"],
            *(_share_of_chunks(count, each["chunks"]) for count in (
                each["chunks_with_statistics"], each["chunks_with_page_index"], each["chunks_with_bloom_filter"],
            )),
        )

    def message(self, row: int, column: int) -> str:
        """Return why there are no facts about a column."""
        return self._problems.get(row, "")

    def opens(self, row: int, column: int) -> bool:
        """Every column opens."""
        return 0 <= row < len(self)

    def open(self, row: int, column: int) -> Sheet:
        """Return one column."""
        return column_sheet(self._viewed_file, self._viewed_file.columns[self._places[row]])

    def sorted_by(self, order: str) -> Sheet:
        """Return the columns in another order."""
        return ColumnSheet(self._viewed_file, order)


def _share_of_chunks(count: int, whole: int) -> Part:
    """Return in how many chunks something is."""
    return "all" if count == whole and whole else Styled("none", "dim") if not count else f"{count:,} of {whole:,}"


def column_sheet(viewed_file: BrowsedFile, column: ColumnDescriptor) -> Sheet:
    """Return one column: its chunks, its values, and what they have in common."""
    rows = RowSet("values", 0, viewed_file.file.num_rows)
    each = column_facts(viewed_file.file.metadata, column)
    facts = [
        Fact("chunks", count_text(each["chunks"], "row group"), partial(ColumnChunksSheet, viewed_file, column)),
        Fact("values", f"{each['values']:,}", partial(ValueSheet, viewed_file, rows, [column])),
        Fact("", ""),
        Fact("type", each["type"]),
        Fact("repetition", column.repetition.name.lower()),
        Fact("encrypted", "yes" if each["encrypted"] else "no"),
    ]
    if not each["readable"]:
        facts.append(Fact("key", Styled("there is no key for this column", "error")))
        return FactSheet(column.name, facts)
    facts += [
        Fact("stored", exact_size_text(each["stored_bytes"])),
        Fact("decoded", exact_size_text(each["decoded_bytes"])),
        Fact("codec", ", ".join(each["codecs"])),
        Fact("encodings", encodings_text(each) or "not told"),
        Fact("dictionary", each["dictionary"]),
        Fact("nulls", "not told" if each["nulls"] is None else f"{each['nulls']:,}"),
    ]
    facts += [Fact(name, value_text(bound)) for name, bound in (("min", each["min"]), ("max", each["max"])) if bound is not None]
    if each["values_per_row"] is not None:
        facts.append(Fact("values a row", f"{each['values_per_row']:.1f}"))
    if each["declared_sorting"] is not None:
        facts.append(Fact("sorted", f"{each['declared_sorting']} within row groups"))
    if each["row_groups_per_value"] is not None:
        facts.append(Fact("groups a value", f"{each['row_groups_per_value']:.1f}: row groups whose bounds hold one value"))
    return FactSheet(column.name, facts)
