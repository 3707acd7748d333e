from collections.abc import Callable

from fastpq.arrays.flat_column import Column
from fastpq.arrays.nodes import FieldNode
from fastpq.arrow.table_reader import TableReader

def plain_field(
    schema: TableReader, fields: int, index: int, format_of: Callable[[int, TableReader], str]
) -> FieldNode | None: ...
def dictionary_numbers(schema: TableReader, fields: int) -> set[int]: ...
def with_plain_field(column: Column, field: FieldNode) -> Column: ...
