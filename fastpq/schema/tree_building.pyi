from collections.abc import Iterator
from typing import Self, final

from fastpq.format.parquet import SchemaElement
from fastpq.schema.tree import ColumnDescriptor, GroupNode
from fastpq.schema.types import ColumnType

MAX_SCHEMA_DEPTH: int

@final
class StoredElements:
    def __init__(self, data: bytes, count: int) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> SchemaElement: ...

def build_tree(elements: Iterator[SchemaElement], count: int) -> tuple[GroupNode, list[ColumnDescriptor]]: ...
def build_flat_tree(
    fields: list[tuple[str, ColumnType, bool]], root_element: SchemaElement
) -> tuple[GroupNode, list[ColumnDescriptor]]: ...
