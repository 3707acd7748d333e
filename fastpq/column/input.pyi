from typing import Any

import numpy as np

from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import Column
from fastpq.column.layout import Layout
from fastpq.column.leaf_entries import Levels
from fastpq.encodings.dictionary import DictionaryEncoder

class ColumnInput:
    @property
    def rows(self) -> int: ...
    @property
    def reader(self) -> SliceReader | None: ...
    def __init__(self, column: Column, layout: Layout, levels: Levels | None = None) -> None: ...
    def count_values(self) -> int: ...
    def codes(self, encoder: DictionaryEncoder) -> np.ndarray[Any, Any]: ...
