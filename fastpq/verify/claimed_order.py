"""ClaimedOrder: whether rows are in the order that their row group's first sorting column claims (SortingColumn)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.stats.bounds import FLOAT_ORDERS, order_of
from fastpq.stats.statistics import Order, compare, is_monotonic
from fastpq.verify.value_block import CodedValues, FixedValues, Values

Array: TypeAlias = NDArray[Any]

_NUMBERS: dict[int, str] = {
    Order.ORDER_BOOLEAN: "u1", Order.ORDER_INT32: "<i4", Order.ORDER_INT64: "<i8", Order.ORDER_UINT32: "<u4",
    Order.ORDER_UINT64: "<u8",
}


class ClaimedOrder:
    """Check of one column's order, page after page. Further sorting columns decide between equal values, and are not checked.

    Args:
        column: the column. It must not be repeated.
        sorting: what the row group claims about it.

    Attributes:
        is_known: whether the column's values have an order that writers agree on. Floats have NaNs, whose place is not defined.
    """

    def __init__(self, column: ColumnDescriptor, sorting: fmt.SortingColumn) -> None:
        self._highest = column.max_definition_level
        self._order = order_of(column.type)
        self._sign = -1 if sorting.descending else 1
        self._nulls_first = sorting.nulls_first
        self.is_known = not column.max_repetition_level and self._order not in (Order.ORDER_NONE, *FLOAT_ORDERS)
        self._last: bytes | None = None
        self._has_values = self._has_nulls = False

    def is_broken(self, definition: Array | None, values: Values) -> bool:
        """Return whether a page is in another order, or does not continue the pages before it."""
        return self._nulls_are_misplaced(definition, len(values)) or self._values_are_misplaced(values)

    def _nulls_are_misplaced(self, definition: Array | None, num_values: int) -> bool:
        if definition is None:
            return False
        is_null = definition != self._highest
        num_nulls = len(definition) - num_values
        if self._nulls_first:
            is_apart, continues = is_null[:num_nulls].all(), not (self._has_values and num_nulls)
        else:
            is_apart, continues = is_null[num_values:].all(), not (self._has_nulls and num_values)
        self._has_values |= num_values > 0
        self._has_nulls |= num_nulls > 0
        return not (is_apart and continues)

    def _values_are_misplaced(self, values: Values) -> bool:
        plain = values.plain() if isinstance(values, CodedValues) else values
        if not len(plain):
            return False
        [first], [last] = plain.of(np.array([0])).items(), plain.of(np.array([len(plain) - 1])).items()
        goes_back = self._last is not None and compare(self._order, self._last, first) * self._sign > 0
        self._last = last
        if isinstance(plain, FixedValues) and self._order in _NUMBERS:
            numbers = plain.data.view(_NUMBERS[self._order])
            steps = numbers[1:] < numbers[:-1] if self._sign > 0 else numbers[1:] > numbers[:-1]
            return goes_back or bool(steps.any())
        return goes_back or not is_monotonic(self._order, plain.items(), self._sign)
