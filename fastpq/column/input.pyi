from fastpq.column.layout import Layout
from fastpq.slices import SliceReader
from fastpq.table import Column

class ColumnInput:
    @property
    def rows(self) -> int: ...
    @property
    def reader(self) -> SliceReader | None: ...
    def __init__(self, column: Column, layout: Layout) -> None: ...
