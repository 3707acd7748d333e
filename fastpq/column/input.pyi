from fastpq.column.layout import Layout
from fastpq.table import Column

class ColumnInput:
    @property
    def rows(self) -> int: ...
    def __init__(self, column: Column, layout: Layout) -> None: ...
