"""Evaluates predicates on column values. The results are NumPy masks over rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.flat_column import DictionaryValues, fixed_values
from fastpq.arrays.layouts import Array, CodedViews
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import Column
from fastpq.encodings.dictionary import flags_of_codes
from fastpq.filters.compare import begin_with, compare_values
from fastpq.filters.literals import NAN, FloatDomain, IntegerDomain, Ordering, SortKey, domain_of
from fastpq.filters.predicate import Comparison, Condition, Membership, NullTest, Predicate, Prefix, fold, leaves

Mask = NDArray[np.bool_]

# Largest number of conditions on one column whose results fit into one byte, with a bit for each.
MOST_CONDITIONS = 8

_ORDERINGS: dict[Ordering, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def mask_of(predicate: Predicate, column_of: Callable[[Condition], Column]) -> Mask:
    """Return a mask of the rows where a predicate holds.

    Args:
        predicate: the predicate.
        column_of: returns the column that a condition is about. All columns must have the same length.

    Returns:
        Shape (rows,), bool.
    """
    return fold(predicate, lambda leaf: leaf_mask(leaf, column_of(leaf)), np.logical_and, np.logical_or)


def leaf_mask(leaf: Condition, column: Column) -> Mask:
    """Return a mask of the values where a condition holds."""
    match leaf:
        case NullTest(_, is_null):
            valid = column.validity_mask()
            return ~valid if is_null else valid
        case Membership(_, keys, is_negated) if not keys:
            return column.validity_mask() if is_negated else np.zeros(len(column), np.bool_)
    match column.values:
        case DictionaryValues(codes, dictionary):
            return _coded_mask(leaf, column, codes, dictionary)
        case CodedViews(codes, entries):
            return _coded_mask(leaf, column, codes, Column._made(column.type, entries, nullable=False))
    mask = _variable_mask(leaf, column) if column.type.is_variable else _fixed_mask(leaf, column)
    if isinstance(leaf, Membership) and leaf.is_negated:
        mask = ~mask
    return mask & column.validity_mask() if column.null_count else mask


def _coded_mask(leaf: Condition, column: Column, codes: Array, dictionary: Column) -> Mask:
    mask = flags_of_codes(codes, leaf_mask(leaf, dictionary))
    return mask & column.validity_mask() if column.null_count else mask


def _variable_mask(leaf: Condition, column: Column) -> Mask:
    reader = SliceReader(column.values, column.validity if column.null_count else None)
    match leaf:
        case Comparison(_, ordering, key):
            return np.asarray(_ORDERINGS[ordering](compare_values(reader, key), 0))
        case Prefix(_, prefix):
            return begin_with(reader, prefix)
        case Membership(_, keys) if len(keys) == 1:
            return np.asarray(compare_values(reader, next(iter(keys))) == 0)
        case Membership(_, keys):
            return keys.among_bytes(reader)
    raise TypeError(f"{leaf!r} is not a condition on bytes")


def _fixed_mask(leaf: Condition, column: Column) -> Mask:
    values, domain = fixed_values(column), domain_of(column.type)
    if isinstance(leaf, Membership):
        return leaf.keys.among_fixed(values) if values.dtype.kind == "V" else leaf.keys.among_numbers(values)
    if values.dtype.kind == "V":
        return _wide_mask(leaf, _words(values, isinstance(domain, IntegerDomain)), values.dtype.itemsize)
    assert isinstance(leaf, Comparison), "no other condition is bound to a column of numbers"
    if isinstance(domain, FloatDomain):
        return _float_mask(leaf, values)
    return np.asarray(_ORDERINGS[leaf.ordering](values, values.dtype.type(leaf.key)))


def _float_mask(leaf: Comparison, values: Array) -> Mask:
    """Return a mask of the floats where a comparison holds. NaN equals NaN and is above every number."""
    nans, compare = np.isnan(values), _ORDERINGS[leaf.ordering]
    if leaf.key == NAN:
        return np.asarray(compare(nans, True))      # False is a number, and True is NaN: numbers are below NaN
    mask = np.asarray(compare(values, values.dtype.type(leaf.key[1])))
    return mask | nans if leaf.ordering in (">", ">=") else mask


def _words(values: Array, integers: bool) -> list[Array]:
    """Split wide values into 8-byte words, so that values can be compared word by word. The most significant word comes first.

    Args:
        values: little-endian signed integers (V16 or V32), or byte strings of any width.
        integers: whether the values are integers.
    """
    width = values.dtype.itemsize
    raw = np.frombuffer(values.tobytes(), np.uint8).reshape(len(values), width)
    if integers:
        words = raw.view("<u8")
        return [words[:, -1].astype(np.int64), *(words[:, place] for place in range(words.shape[1] - 2, -1, -1))]
    padded_bytes = np.zeros((len(values), (width + 7) // 8 * 8), np.uint8)
    padded_bytes[:, :width] = raw
    words = padded_bytes.view(">u8").astype(np.uint64)
    return [words[:, place] for place in range(words.shape[1])]


def _wide_mask(leaf: Condition, words: list[Array], width: int) -> Mask:
    match leaf:
        case Comparison(_, ordering, key):
            return np.asarray(_ORDERINGS[ordering](_wide_order(words, _key_words(key, words, width)), 0))
        case Prefix(_, prefix):
            if len(prefix) > width:
                return np.zeros(len(words[0]), np.bool_)
            low = _wide_order(words, _key_words(prefix.ljust(width, b"\0"), words, width))
            high = _wide_order(words, _key_words(prefix.ljust(width, b"\xff"), words, width))
            return np.asarray((low >= 0) & (high <= 0))
    raise TypeError(f"{leaf!r} is not a condition on bytes")


def _key_words(key: SortKey, words: list[Array], width: int) -> list[Any]:
    if isinstance(key, int):
        key_bytes = key.to_bytes(8 * len(words), "big", signed=True)
    else:
        key_bytes = key.ljust(8 * len(words), b"\0")
    return [
        np.frombuffer(key_bytes[8 * place : 8 * place + 8], ">u8").astype(np.uint64).view(word.dtype)[0]
        for place, word in enumerate(words)
    ]


def _wide_order(words: list[Array], key: list[Any]) -> NDArray[np.int8]:
    """Return -1 for each value before the key, 0 for each value equal to the key, and 1 for each value after the key."""
    order = np.zeros(len(words[0]), np.int8)
    for word, other in zip(words, key, strict=True):
        is_undecided = order == 0
        order[is_undecided & (word < other)] = -1
        order[is_undecided & (word > other)] = 1
    return order


class ConditionBits:
    """Results of up to MOST_CONDITIONS conditions on one column, as one byte for each value.

    Bit i of the byte says whether condition i holds for the value. The column that is read then needs one byte for each row, and
    a dictionary entry is evaluated only once. Null tests need no bit.

    Args:
        conditions: the conditions, without null tests.
    """

    def __init__(self, conditions: Iterable[Condition]) -> None:
        self._bits = {condition: bit for bit, condition in enumerate(conditions)}

    def evaluate(self, column: Column) -> Array:
        """Return the byte for each value in a column without nulls. Shape (n,), uint8."""
        bits = np.zeros(len(column), np.uint8)
        for condition, bit in self._bits.items():
            bits |= leaf_mask(condition, column).view(np.uint8) << bit
        return bits

    def mask(self, condition: Condition, column: Column) -> Mask:
        """Return a mask of the values where a condition holds.

        Args:
            condition: one of the conditions, or a null test on the same column.
            column: column that has these bytes as values, and 0 for nulls.
        """
        assert isinstance(column.values, np.ndarray)
        if isinstance(condition, NullTest):
            return leaf_mask(condition, column)
        if len(self._bits) == 1:
            return column.values.view(np.bool_)
        return np.asarray(column.values & np.uint8(1 << self._bits[condition]) != 0)


def columns_of_bits(predicate: Predicate, excluded_columns: Iterable[int]) -> Mapping[int, ConditionBits]:
    """Return ConditionBits for the flat columns that have at most MOST_CONDITIONS conditions, by column number.

    Args:
        predicate: the predicate with the conditions.
        excluded_columns: numbers of columns to leave out, because their values are needed.
    """
    conditions: dict[int, dict[Condition, None]] = {}
    for leaf in leaves(predicate):
        if leaf.column.is_flat and not isinstance(leaf, NullTest):
            conditions.setdefault(leaf.column.index, {})[leaf] = None
    for number in excluded_columns:
        conditions.pop(number, None)
    return {number: ConditionBits(each) for number, each in conditions.items() if len(each) <= MOST_CONDITIONS}
