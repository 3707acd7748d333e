from numpy import int64
from numpy.typing import NDArray

from fastpq.column.input import ColumnInput

class SortKey:
    def __init__(self, input: ColumnInput, order: int, descending: bool, nulls_first: bool) -> None: ...

def first_unsorted(keys: list[SortKey], rows: int) -> int: ...
def sorted_rows(keys: list[SortKey], rows: int) -> NDArray[int64]: ...
