"""Decoded values of a page as they are stored: values of one width, values of any length, or codes of dictionary entries."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.binary import first_invalid_utf8, to_offsets
from fastpq.arrays.layouts import BinaryViews
from fastpq.arrays.slices import SliceReader
from fastpq.index.bloom_filter import SplitBlockBloomFilter, hash_each, hash_values
from fastpq.stats.statistics import Order
from fastpq.verify.page_kernels import min_max, min_max_of

Array: TypeAlias = NDArray[Any]
Extremes: TypeAlias = tuple[bytes | None, bytes | None]

VIEW_WORDS = 4      # of 32 bits in a view. The first is the length of the value
_FLOATS: dict[int, str] = {Order.ORDER_FLOAT16: "<f2", Order.ORDER_FLOAT: "<f4", Order.ORDER_DOUBLE: "<f8"}


class FixedValues:
    """Values of one width. Booleans have one byte each.

    Args:
        data: the values, one after another, uint8.
        width: bytes of a value.
    """

    def __init__(self, data: Array, width: int) -> None:
        self.data, self.width = data, width

    def __len__(self) -> int:
        return len(self.data) // self.width

    @property
    def rows(self) -> Array:
        """The values, shape (values, width)."""
        return self.data.reshape(-1, self.width)

    def of(self, places: Array) -> FixedValues:
        """Return the values at some places."""
        return FixedValues(np.ascontiguousarray(self.rows[places]).reshape(-1), self.width)

    def extremes(self, order: Order) -> Extremes:
        """Return the smallest and the largest value that is not NaN, or (None, None)."""
        return min_max(order, self.data, self.width)[1:]

    def nan_flags(self, order: Order) -> Array | None:
        """Return whether each value is NaN, or None for other types than floats."""
        return np.isnan(self.data.view(_FLOATS[order])) if order in _FLOATS else None

    def count_missing(self, bloom_filter: SplitBlockBloomFilter) -> int:
        """Return how many values a bloom filter denies."""
        return int((~bloom_filter.probe(self.data, self.width)).sum())

    def hashes(self) -> Array:
        """Return the XXH64 of each value, uint64."""
        return hash_values(self.data, self.width)

    def items(self) -> list[bytes]:
        """Return the values as bytes objects."""
        return [row.tobytes() for row in self.rows]

    def sizes(self) -> Array | None:
        """Return None: the bytes of these values are not counted in statistics."""
        return None


class VariableValues:
    """Values of any length.

    Args:
        views: views of the values, as in BinaryViews.
        memory: what the views point into, uint8.
    """

    def __init__(self, views: Array, memory: Array) -> None:
        self.views, self.memory = views, memory

    def __len__(self) -> int:
        return len(self.views)

    @property
    def reader(self) -> SliceReader:
        """A reader of the values."""
        return SliceReader(BinaryViews(self.views, [self.memory]))

    def of(self, places: Array) -> VariableValues:
        """Return the values at some places."""
        return VariableValues(np.ascontiguousarray(self.views[places]), self.memory)

    def sizes(self) -> Array:
        """Return the size of each value in bytes."""
        return self.views.view(np.int32).reshape(-1, VIEW_WORDS)[:, 0].astype(np.int64)

    def joined(self) -> Array:
        """Return the bytes of all values, one after another."""
        return to_offsets(self.reader, True, int(self.sizes().sum()))[1]

    def items(self) -> list[bytes]:
        """Return the values as bytes objects."""
        offsets, data = to_offsets(self.reader, True, int(self.sizes().sum()))
        whole, ends = data.tobytes(), offsets.tolist()
        return [whole[start:end] for start, end in pairwise(ends)]

    def extremes(self, order: Order) -> Extremes:
        """Return the smallest and the largest value, or (None, None)."""
        return min_max_of(order, self.items())[1:] if order in (Order.ORDER_BYTES, Order.ORDER_SIGNED_BYTES) else (None, None)

    def nan_flags(self, order: Order) -> None:
        """Return None: these values are not floats."""

    def count_missing(self, bloom_filter: SplitBlockBloomFilter) -> int:
        """Return how many values a bloom filter denies."""
        return int((~bloom_filter.probe_hashes(self.hashes())).sum())

    def hashes(self) -> Array:
        """Return the XXH64 of each value, uint64."""
        return hash_each(self.items())

    def has_invalid_text(self) -> bool:
        """Return whether a value is not UTF-8."""
        return first_invalid_utf8(self.reader) >= 0


PlainValues: TypeAlias = FixedValues | VariableValues


class CodedValues:
    """Values as codes of dictionary entries.

    Args:
        codes: uint32, each below the number of entries.
        entries: the dictionary.
    """

    def __init__(self, codes: Array, entries: PlainValues) -> None:
        self.codes, self.entries = codes, entries
        self._distinct: PlainValues | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def distinct(self) -> PlainValues:
        """The entries that the codes refer to."""
        if self._distinct is None:
            self._distinct = self.entries.of(self.used_codes())
        return self._distinct

    def used_codes(self) -> Array:
        """Return the codes that occur, in ascending order."""
        flags = np.zeros(len(self.entries), np.bool_)
        flags[self.codes] = True
        return np.flatnonzero(flags)

    def plain(self) -> PlainValues:
        """Return the values without the dictionary."""
        return self.entries.of(self.codes)

    def extremes(self, order: Order) -> Extremes:
        """Return the smallest and the largest value that is not NaN, or (None, None)."""
        return self.distinct.extremes(order)

    def nan_flags(self, order: Order) -> Array | None:
        """Return whether each value is NaN, or None for other types than floats."""
        flags = self.entries.nan_flags(order)
        return None if flags is None else flags[self.codes]

    def count_missing(self, bloom_filter: SplitBlockBloomFilter) -> int:
        """Return how many distinct values a bloom filter denies."""
        return self.distinct.count_missing(bloom_filter)

    def hashes(self) -> Array:
        """Return the XXH64 of each distinct value, uint64."""
        return self.distinct.hashes()

    def sizes(self) -> Array | None:
        """Return the size of each value in bytes, or None for values of one width."""
        sizes = self.entries.sizes()
        return None if sizes is None else sizes[self.codes]


Values: TypeAlias = FixedValues | VariableValues | CodedValues
