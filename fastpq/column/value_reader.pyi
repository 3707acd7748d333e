from fastpq.column.layout import Layout
from fastpq.column.page import PageReader

class ValueReader:
    def __init__(self, pages: PageReader, layout: Layout) -> None: ...
