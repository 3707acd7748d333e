"""KeySet: the keys of an ``in`` or ``not in`` list, converted once, to compare with bounds, bloom filters and stored values."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.layouts import Array
from fastpq.arrays.slices import SliceReader
from fastpq.errors import SchemaError
from fastpq.filters.compare import BytesTable, NumberTable
from fastpq.filters.literals import NAN, Domain, FloatDomain, IntegerDomain, SortKey, domain_of
from fastpq.filters.value_lists import converted_values
from fastpq.index.bloom_filter import hash_each, hash_values
from fastpq.schema.types import ColumnType

_BUILDING = Lock()      # held while a table is built, so that it is built only once if several threads ask for it

# Lists with fewer values are converted value by value. That costs less than to choose another way.
FEW_VALUES = 16


class KeySet:
    """Distinct keys in one domain. They ascend when the set is iterated.

    Args:
        domain: the column's domain.
        keys: the distinct keys, as an ascending sequence. Many numbers may be an ascending array that has the column's dtype,
            and many byte strings may be a set. Float keys are plain numbers here, without NaN.
        has_nan: whether NaN is a key as well.
    """

    def __init__(self, domain: Domain, keys: Sequence[SortKey] | set[bytes] | Array, has_nan: bool = False) -> None:
        self._domain = domain
        self._distinct_keys = keys
        self._has_nan = has_nan
        self._built_table: Any = None

    @classmethod
    def of(cls, domain: Domain, values: Any) -> KeySet:
        """Convert a filter's values to keys. Leave out None, and values that no column value can equal.

        Args:
            domain: the column's domain.
            values: a list of values, or an array.

        Raises:
            SchemaError: a value does not fit the column.
        """
        if len(values) >= FEW_VALUES and (conversion := converted_values(domain, values)) is not None:
            return cls(domain, conversion.keys, conversion.has_nan)
        keys: set[SortKey] = {domain.equal(value) for value in values if value is not None} - {None}
        if not isinstance(domain, FloatDomain):
            return cls(domain, sorted(keys))
        return cls(domain, sorted(number for is_nan, number in keys if not is_nan), NAN in keys)

    @cached_property
    def _keys(self) -> Sequence[SortKey] | Array:
        """The keys, ascending. A million byte strings take a second to sort, so they are sorted only if that is necessary."""
        keys = self._distinct_keys
        return sorted(keys) if isinstance(keys, set) else keys

    def __len__(self) -> int:
        return len(self._distinct_keys) + self._has_nan

    def __iter__(self) -> Iterator[SortKey]:
        keys: Iterable[Any] = self._keys.tolist() if isinstance(self._keys, np.ndarray) else self._keys
        if not isinstance(self._domain, FloatDomain):
            yield from keys
            return
        for number in keys:
            yield 0, number
        if self._has_nan:
            yield NAN

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeySet):
            return NotImplemented
        return self is other or (len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True)))

    @cached_property
    def _hash(self) -> int:
        few_keys = tuple(self) if len(self) < FEW_VALUES else ()    # thousands of conditions may each have one key
        return hash((self._domain.type, len(self), few_keys))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:      # without the keys: there may be a million
        return f"<KeySet of {len(self)} keys>"

    def has_key_between(self, low: SortKey | None, high: SortKey | None) -> bool:
        """Return whether a key lies between two bounds, both included. An unknown bound is None."""
        if isinstance(self._domain, FloatDomain):
            return self._has_float_between(low, high)
        if isinstance(self._distinct_keys, set) and "_keys" not in self.__dict__:       # usually one of the first keys is enough
            for key in islice(self._distinct_keys, FEW_VALUES):
                if (low is None or key >= low) and (high is None or key <= high):
                    return True
        first = 0 if low is None else bisect_left(self._keys, low)
        return first < len(self._keys) and (high is None or bool(self._keys[first] <= high))

    def _has_float_between(self, low: SortKey | None, high: SortKey | None) -> bool:
        if self._has_nan and (high is None or high == NAN):
            return True
        if low == NAN:
            return False
        first = 0 if low is None else bisect_left(self._keys, low[1])
        return first < len(self._keys) and (high is None or high == NAN or bool(self._keys[first] <= high[1]))

    @cached_property
    def plain_hashes(self) -> NDArray[np.uint64] | None:
        """XXH64 of the keys' PLAIN encodings, to look up in bloom filters, or None if the encodings are unknown."""
        if isinstance(self._keys, np.ndarray) and len(self._keys):
            if self._has_nan or self._domain.stored(next(iter(self))) is None:
                return None
            numbers = self._with_both_zeros(self._keys)
            return hash_values(np.ascontiguousarray(numbers).view(np.uint8), numbers.dtype.itemsize)
        encodings: list[bytes] = []
        if isinstance(self._distinct_keys, set):
            return hash_each(list(self._distinct_keys))
        for key in self:
            key_encodings = self._domain.stored(key)
            if key_encodings is None:
                return None
            encodings += key_encodings
        return hash_each(encodings)

    def among_numbers(self, values: Array) -> NDArray[np.bool_]:
        """Return whether each integer or float of a column is a key.

        Args:
            values: shape (n,), in the column's dtype.
        """
        if len(self._keys) == 1 and not self._has_nan:
            return np.asarray(values == values.dtype.type(self._keys[0]))
        table: NumberTable = self._table(lambda: NumberTable(self._bits(values.dtype)))
        are_keys = table.are_keys(np.ascontiguousarray(values))
        return are_keys | np.isnan(values) if self._has_nan else are_keys

    def among_fixed(self, values: Array) -> NDArray[np.bool_]:
        """Return whether each wide integer or fixed-width byte string is a key.

        Args:
            values: shape (n,), in a void dtype.
        """
        table: BytesTable = self._table(lambda: BytesTable(self._fixed_bytes(values.dtype.itemsize)))
        return table.are_fixed_keys(values)

    def among_bytes(self, values: SliceReader) -> NDArray[np.bool_]:
        """Return whether each text or byte string is a key. The result is False for nulls."""
        table: BytesTable = self._table(lambda: BytesTable(list(self._distinct_keys)))
        return table.are_keys(values)

    def _table(self, build: Callable[[], Any]) -> Any:
        """Return the table of the keys, which the first call builds. All calls need the same one: the keys have one column."""
        with _BUILDING:
            if self._built_table is None:
                self._built_table = build()
            return self._built_table

    def _bits(self, dtype: np.dtype[Any]) -> Array:
        """Return the numbers as unsigned integers with the same bits, ascending, with both zeros if zero is a key."""
        numbers = self._with_both_zeros(np.asarray(self._keys, dtype))
        bits = numbers.view(f"u{dtype.itemsize}")
        return np.sort(bits) if dtype.kind == "f" else bits

    def _with_both_zeros(self, numbers: Array) -> Array:
        """Return the numbers. If they are floats with a zero, -0.0 and 0.0 are both among them."""
        if numbers.dtype.kind != "f" or not (numbers == 0).any():
            return numbers
        return np.append(numbers[numbers != 0], np.array([0.0, -0.0], numbers.dtype))

    def _fixed_bytes(self, width: int) -> list[bytes]:
        """Return the keys as a column with this width holds them in memory."""
        if isinstance(self._domain, IntegerDomain):
            return [key.to_bytes(width, "little", signed=True) for key in self._keys]
        return list(self._distinct_keys)


def list_of(values: Any) -> list[Any] | Array:
    """Return the values of ``in`` or ``not in`` as a list, in which None stands for null, or as an array without nulls.

    Args:
        values: a list, an array of NumPy or Arrow with one dimension, or another iterable.

    Raises:
        SchemaError: anything else.
    """
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise SchemaError(f"in and not in take a list of values, not {values!r}")
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise SchemaError(f"in and not in take an array with one dimension, not the shape {values.shape}")
        if isinstance(values, np.ma.MaskedArray):
            present_values = [*values.compressed()]
            return present_values if len(present_values) == len(values) else [*present_values, None]
        return values
    is_of_arrow = hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__")
    if is_of_arrow and type(values).__module__.partition(".")[0] not in ("fastpq", "pandas", "polars"):
        from fastpq.arrow import import_column

        return import_column(values).to_pylist()        # the elements of Arrow libraries are objects of their own
    return list(values)


class ListOfValues:
    """The values of ``in`` or ``not in``, copied from the caller, with a cache of their keys by column type.

    A read of many files binds its filters once for each file. It passes this class in place of a list, so that a long list is
    converted only once.

    Args:
        values: a list or an array.
    """

    def __init__(self, values: Any) -> None:
        own_values = list_of(values)
        self._values = own_values.copy() if own_values is values else own_values
        self._keys: dict[ColumnType, KeySet] = {}

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<ListOfValues of {len(self)} values>"

    @cached_property
    def _has_durations(self) -> bool:
        return any(isinstance(value, dt.timedelta | np.timedelta64) for value in self._values)

    def keys_for(self, domain: Domain) -> KeySet:
        """Return the keys of the values, as ``KeySet.of`` does."""
        plain = domain_of(domain.type)
        if domain is not plain and self._has_durations:     # not cached: the keys count the unit of one file
            return KeySet.of(domain, self._values)
        if (keys := self._keys.get(domain.type)) is None:
            keys = self._keys[domain.type] = KeySet.of(plain, self._values)
        return keys
