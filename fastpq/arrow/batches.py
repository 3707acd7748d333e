"""Concatenation of the batches of a stream into one column, and of their dictionaries into one."""

from __future__ import annotations

from collections.abc import Sequence

from fastpq.arrays.concat import concat_validity, concat_values
from fastpq.arrays.table import Column, DictionaryValues


def concat_batches(columns: Sequence[Column]) -> Column:
    """Concatenate columns.

    Args:
        columns: one or more columns of equal type and layout. A single column is returned unchanged.

    Returns:
        One column. Offsets become int64 where int32 is too small. Views keep every buffer. Different dictionaries are
        merged.

    Raises:
        LimitError: more dictionary entries than int32 codes count.
    """
    if len(columns) == 1:
        return columns[0]
    values = [column.values for column in columns]
    dictionaries = [value for value in values if isinstance(value, DictionaryValues)]
    validity = concat_validity([column.validity if column.null_count else None for column in columns], [*map(len, columns)])
    return Column._made(
        columns[0].type,
        concat_values(_with_one_dictionary(dictionaries) if dictionaries else values, validity),
        validity=validity,
        null_count=sum(column.null_count for column in columns),
        nullable=any(column.nullable for column in columns),
    )


def _with_one_dictionary(parts: Sequence[DictionaryValues]) -> list[DictionaryValues]:
    """Parts recoded to one shared dictionary: the first part's where all are equal, a merged one, in no order, otherwise."""
    first = parts[0].dictionary
    if all(part.dictionary is first or part.dictionary.equals(first) for part in parts):
        return [DictionaryValues(part.codes, first, part.is_ordered) for part in parts]
    entries = concat_values([part.dictionary.as_views().values for part in parts])
    merged = Column._made(first.type, entries, nullable=False).as_dictionary().values
    assert isinstance(merged, DictionaryValues)
    out = []
    start = 0
    for part in parts:
        stop = start + len(part.dictionary)
        # A part without dictionary entries has only nulls, all with code 0.
        codes = merged.codes[start:stop][part.codes] if stop > start else part.codes
        out.append(DictionaryValues(codes, merged.dictionary))
        start = stop
    return out
