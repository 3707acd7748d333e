from fastpq.column.layout import Layout
from fastpq.column.shredding import Levels
from fastpq.table import Column

class ColumnInput:
    @property
    def rows(self) -> int: ...
    def __init__(self, column: Column, layout: Layout, levels: Levels | None = None) -> None: ...
