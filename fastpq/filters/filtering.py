"""Predicates evaluated on the values of columns; the results are NumPy masks of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.layouts import Array, CodedViews, DictionaryValues
from fastpq.arrays.numpy_output import fixed_values
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import Column
from fastpq.encodings.dictionary import flags_of_codes
from fastpq.filters.compare import are_among, begin_with, compare_values
from fastpq.filters.literals import NAN, FloatDomain, IntegerDomain, Ordering, SortKey, domain_of
from fastpq.filters.predicate import Comparison, Condition, Membership, NullTest, Predicate, Prefix, fold

Mask = NDArray[np.bool_]

_ORDERINGS: dict[Ordering, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def mask_of(predicate: Predicate, column_of: Callable[[Condition], Column]) -> Mask:
    """A mask of the rows where a predicate holds.

    Args:
        predicate: the predicate.
        column_of: returns the column of a condition; all columns have one length.

    Returns:
        Shape (rows,), bool.
    """
    return fold(predicate, lambda leaf: leaf_mask(leaf, column_of(leaf)), np.logical_and, np.logical_or)


def leaf_mask(leaf: Condition, column: Column) -> Mask:
    """A mask of the values where a condition holds."""
    match leaf:
        case NullTest(_, is_null):
            valid = column.validity_mask()
            return ~valid if is_null else valid
        case Membership(_, (), negated):
            return column.validity_mask() if negated else np.zeros(len(column), np.bool_)
    match column.values:
        case DictionaryValues(codes, dictionary):
            return _coded_mask(leaf, column, codes, dictionary)
        case CodedViews(codes, entries):
            return _coded_mask(leaf, column, codes, Column._made(column.type, entries, nullable=False))
    mask = _variable_mask(leaf, column) if column.type.is_variable else _fixed_mask(leaf, column)
    if isinstance(leaf, Membership) and leaf.negated:
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
        case Membership(_, (key,)):
            return np.asarray(compare_values(reader, key) == 0)
        case Membership(_, keys):
            return are_among(reader, keys)
    raise TypeError(f"{leaf!r} is no condition on bytes")


def _fixed_mask(leaf: Condition, column: Column) -> Mask:
    values, domain = fixed_values(column), domain_of(column.type)
    if values.dtype.kind == "V":
        return _wide_mask(leaf, _words(values, isinstance(domain, IntegerDomain)), values.dtype.itemsize)
    if isinstance(domain, FloatDomain):
        return _float_mask(leaf, values)
    match leaf:
        case Comparison(_, ordering, key):
            return np.asarray(_ORDERINGS[ordering](values, values.dtype.type(key)))
        case Membership(_, (key,)):
            return np.asarray(values == values.dtype.type(key))
        case Membership(_, keys):
            return np.isin(values, np.array(keys, values.dtype))
    raise TypeError(f"{leaf!r} is no condition on numbers")


def _float_mask(leaf: Condition, values: Array) -> Mask:
    """A mask of the floats where a condition holds; NaN equals NaN and exceeds every number."""
    match leaf:
        case Comparison(_, ordering, key):
            nans = np.isnan(values)
            if key == NAN:
                return {"<": ~nans, "<=": np.ones(len(values), np.bool_), ">": np.zeros(len(values), np.bool_), ">=": nans}[
                    ordering
                ]
            mask = np.asarray(_ORDERINGS[ordering](values, values.dtype.type(key[1])))
            return mask | nans if ordering in (">", ">=") else mask
        case Membership(_, keys):
            numbers = np.array([number for nan, number in keys if not nan], values.dtype)
            mask = np.isin(values, numbers)
            return mask | np.isnan(values) if NAN in keys else mask
    raise TypeError(f"{leaf!r} is no condition on floats")


def _words(values: Array, integers: bool) -> list[Array]:
    """Wide values split into words of 8 bytes, the most significant word first, so that words are compared in turn.

    Args:
        values: V16 or V32 of little-endian signed integers, or bytes of any width.
        integers: whether the values are integers.
    """
    width = values.dtype.itemsize
    raw = np.frombuffer(values.tobytes(), np.uint8).reshape(len(values), width)
    if integers:
        words = raw.view("<u8")
        return [words[:, -1].astype(np.int64), *(words[:, place] for place in range(words.shape[1] - 2, -1, -1))]
    padded = np.zeros((len(values), (width + 7) // 8 * 8), np.uint8)
    padded[:, :width] = raw
    words = padded.view(">u8").astype(np.uint64)
    return [words[:, place] for place in range(words.shape[1])]


def _wide_mask(leaf: Condition, words: list[Array], width: int) -> Mask:
    match leaf:
        case Comparison(_, ordering, key):
            return np.asarray(_ORDERINGS[ordering](_wide_order(words, _key_words(key, words, width)), 0))
        case Membership(_, keys):
            mask = np.zeros(len(words[0]), np.bool_)
            for key in keys:
                mask |= _wide_order(words, _key_words(key, words, width)) == 0
            return mask
        case Prefix(_, prefix):
            if len(prefix) > width:
                return np.zeros(len(words[0]), np.bool_)
            low = _wide_order(words, _key_words(prefix.ljust(width, b"\0"), words, width))
            high = _wide_order(words, _key_words(prefix.ljust(width, b"\xff"), words, width))
            return np.asarray((low >= 0) & (high <= 0))
    raise TypeError(f"{leaf!r} is no condition on bytes")


def _key_words(key: SortKey, words: list[Array], width: int) -> list[Any]:
    if isinstance(key, int):
        stored = key.to_bytes(8 * len(words), "big", signed=True)
    else:
        stored = key.ljust(8 * len(words), b"\0")
    return [
        np.frombuffer(stored[8 * place : 8 * place + 8], ">u8").astype(np.uint64).view(word.dtype)[0]
        for place, word in enumerate(words)
    ]


def _wide_order(words: list[Array], key: list[Any]) -> NDArray[np.int8]:
    """-1, 0 or 1 for each value before, equal to or behind the key."""
    order = np.zeros(len(words[0]), np.int8)
    for word, other in zip(words, key, strict=True):
        undecided = order == 0
        order[undecided & (word < other)] = -1
        order[undecided & (word > other)] = 1
    return order
