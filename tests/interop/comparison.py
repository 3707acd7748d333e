"""Comparison of Arrow columns of two libraries by value, bit for bit; differences of Arrow types alone do not count."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DECIMAL_DIGITS = 76


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column cast to one type for all Arrow types of equal values: without extension type, dictionary, time zone and layout,
    in a unit of Parquet."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    if pa.types.is_dictionary(kind):
        return plain(column.cast(kind.value_type))
    if pa.types.is_string(kind) or pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return column.cast(pa.large_string()).cast(pa.large_binary())
    if pa.types.is_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.large_binary())
    if pa.types.is_decimal(kind):
        return column.cast(pa.decimal256(DECIMAL_DIGITS, kind.scale))
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("ms" if kind.unit == "s" else kind.unit))
    if pa.types.is_time32(kind):
        return column.cast(pa.time32("ms"))
    if pa.types.is_date64(kind):
        return column.cast(pa.date32())
    if pa.types.is_duration(kind):
        return column.cast(pa.int64())
    return column


def bits(column: pa.ChunkedArray) -> np.ndarray:
    """The bits of floating-point values as integers, which differ for different NaNs and zeros; zero for nulls."""
    values: np.ndarray = pc.fill_null(column, pa.scalar(0, column.type)).to_numpy()
    return values.view(f"u{values.itemsize}")


def difference(got: pa.ChunkedArray, truth: pa.ChunkedArray) -> str | None:
    """A description of the first difference between two columns; None for equal columns."""
    if pa.types.is_nested(truth.type):
        return nested_difference(got.combine_chunks(), truth.combine_chunks())
    got, truth = plain(got), plain(truth)
    if pa.types.is_null(truth.type):
        return None if got.null_count == len(got) == len(truth) else "not all null"
    if got.type != truth.type:
        return f"type {got.type}, not {truth.type}"
    if len(got) != len(truth):
        return f"{len(got)} values, not {len(truth)}"
    if pa.types.is_floating(truth.type):
        same = pc.is_null(got).equals(pc.is_null(truth)) and np.array_equal(bits(got), bits(truth))
    else:
        same = got.equals(truth)
    return None if same else first_difference(got, truth)


def as_list(array: pa.Array) -> pa.Array:
    """A map array as a list array of its pairs; any other array unchanged."""
    if not pa.types.is_map(array.type):
        return array
    pairs = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    return pa.ListArray.from_arrays(array.offsets, pairs, mask=array.is_null())


def lengths_of(lists: pa.Array) -> pa.Array:
    """Lengths of lists, null for null lists."""
    return lists.value_lengths().cast(pa.int64())


def elements_of(lists: pa.Array) -> pa.Array:
    """All elements of lists, extension arrays as storage: pyarrow's flatten loses bytes of an extension array of views."""
    if isinstance(lists.type.value_type, pa.BaseExtensionType) and isinstance(lists, pa.ListArray | pa.LargeListArray):
        mask = pa.concat_arrays([lists.is_null()])      # without an offset
        lists = type(lists).from_arrays(lists.offsets, lists.values.storage, mask=mask)
    return lists.flatten()


def nested_difference(got: pa.Array, truth: pa.Array) -> str | None:
    """A description of the first difference between two arrays of lists, maps or structs; None for equal arrays.

    Names of fields, elements, keys and values do not count.
    """
    got, truth = as_list(got), as_list(truth)
    if len(got) != len(truth):
        return f"{len(got)} values, not {len(truth)}"
    if not got.is_null().equals(truth.is_null()):
        return "other nulls"
    if pa.types.is_struct(truth.type):
        if not pa.types.is_struct(got.type) or got.type.num_fields != truth.type.num_fields:
            return f"type {got.type}, not {truth.type}"
        below = list(zip(got.flatten(), truth.flatten(), strict=True))
    elif not hasattr(got, "value_lengths") or not lengths_of(got).equals(lengths_of(truth)):
        return f"other lengths, or type {got.type}, not {truth.type}"
    else:
        below = [(elements_of(got), elements_of(truth))]
    found = (difference(pa.chunked_array([one]), pa.chunked_array([other])) for one, other in below)
    return next((f"below: {what}" for what in found if what), None)


def first_difference(got: pa.ChunkedArray, truth: pa.ChunkedArray) -> str:
    for row, (one, other) in enumerate(zip(got, truth, strict=True)):
        if not one.equals(other) and repr(one) != repr(other):
            return f"row {row}: {one!r}, not {other!r}"
    return "bits of floating-point values"


def assert_same(got: pa.Table, truth: pa.Table) -> None:
    """Assert equality of the columns of two tables, in order.

    Raises:
        AssertionError: two columns differ; the message names the columns.
    """
    assert got.column_names == truth.column_names
    pairs = zip(got.column_names, got.columns, truth.columns, strict=True)
    differences = {name: difference(one, other) for name, one, other in pairs}
    assert not any(differences.values()), {name: what for name, what in differences.items() if what}
