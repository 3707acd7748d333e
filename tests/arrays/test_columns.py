"""The family of columns: checks of the public constructors, copies, and the flat columns inside of nested ones."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq import Column, ColumnType, FormatError, ListColumn, SchemaError, StructColumn, Type
from fastpq.arrays import binary
from fastpq.arrays.column_base import ColumnBase
from fastpq.arrays.flat_column import DictionaryValues
from fastpq.arrays.layouts import BinaryViews
from fastpq.arrays.table import AnyColumn
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.schema.nested_types import Field, MapType, StructType

INT64 = ColumnType(Type.INT64)


def flat() -> Column:
    return Column(INT64, np.array([1, 0, 3]), np.array([0b101], np.uint8), 1)


def lists() -> ListColumn:
    column = column_from_numpy([[1, 2], None, [], [3, None]])
    assert isinstance(column, ListColumn)
    return column


def structs() -> StructColumn:
    column = column_from_numpy([{"a": {"b": 1}, "c": "x"}, {"a": None, "c": "y"}, None, {"a": {"b": None}, "c": "z"}])
    assert isinstance(column, StructColumn)
    return column


def maps() -> ListColumn:
    key, value = Field("key", INT64), Field("value", INT64)
    pairs = StructColumn(StructType((key, value)), (flat().slice(0, 1), flat().slice(1, 2)), 1, nullable=False)
    return ListColumn(MapType(key, value), np.array([0, 1], np.int32), pairs, nullable=False)


@pytest.mark.parametrize("make", [flat, lists, structs, maps])
def test_copies_are_equal_columns_of_the_same_fields(make: Callable[[], AnyColumn]) -> None:
    column = make()
    assert isinstance(column, ColumnBase)
    for made in (pickle.loads(pickle.dumps(column)), copy.copy(column), copy.deepcopy(column), replace(column), column.slice()):
        assert type(made) is type(column)
        assert made.equals(column)
        assert (made.type, made.null_count, made.nullable) == (column.type, column.null_count, column.nullable)
    assert type(column).__match_args__ == tuple(field.name for field in fields(column))
    assert not hasattr(column, "__dict__")


@pytest.mark.parametrize("make", [flat, lists, structs])
def test_public_constructors_check_the_nulls(make: Callable[[], AnyColumn]) -> None:
    column = make()
    with pytest.raises(SchemaError, match="no validity bitmap"):
        replace(column, validity=None, null_count=1)
    with pytest.raises(SchemaError, match="99 nulls among"):
        replace(column, null_count=99)
    assert column._with(null_count=99).null_count == 99     # for arrays that are right by construction


def test_public_constructors_check_the_arrays() -> None:
    with pytest.raises(SchemaError, match="not ascending within 4 elements"):
        replace(lists(), offsets=np.array([0, 2, 1, 1, 4], np.int32))
    with pytest.raises(SchemaError, match="field 'c' has 2 values in 4 structs"):
        replace(structs(), children=(structs()["a"], structs()["c"].slice(0, 2)))
    with pytest.raises(SchemaError, match="needs int64, not values of shape"):
        replace(flat(), values=np.zeros(3, np.int32))


def test_a_change_names_fields_of_the_column() -> None:
    with pytest.raises(TypeError, match=r"a Column has no fields \['offsets'\]"):
        flat()._with(offsets=None)


def test_leaves_stand_below_their_columns() -> None:
    found = [([type(each) for each in above], leaf.type) for above, leaf in structs().leaves()]
    text = structs()["c"].type
    assert found == [([StructColumn, StructColumn], INT64), ([StructColumn], text)]
    assert [(above, leaf.to_pylist()) for above, leaf in flat().leaves()] == [((), [1, None, 3])]


def test_keys_of_maps_are_required_leaves() -> None:
    key, value = (leaf for _, leaf in maps().leaves())
    assert (key.nullable, value.nullable) == (False, True)


def test_a_leaf_is_null_under_null_structs() -> None:
    column = structs()
    assert column.leaf(["a", "b"]).to_pylist() == [1, None, None, None]
    assert column.leaf(["c"]).to_pylist() == ["x", "y", None, "z"]
    assert column.leaf(["c"]).null_count == 1
    assert flat().leaf([]).to_pylist() == [1, None, 3]


@pytest.mark.parametrize(
    ("make", "path", "message"),
    [
        (flat, ["a"], "has no field 'a'"),
        (structs, ["a"], "is not a leaf"),
        (structs, ["z"], "0 fields are named 'z'"),
        (structs, ["c", "d"], "has no field 'd'"),
        (lists, ["element"], "is repeated"),
    ],
)
def test_paths_without_a_leaf_are_refused(make: Callable[[], AnyColumn], path: list[str], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make().leaf(path)


@pytest.mark.parametrize("make", [flat, lists, structs])
@pytest.mark.parametrize("indices", [np.zeros((2, 1), np.int64), np.int64(1)], ids=["two dimensions", "none"])
def test_places_have_one_dimension(make: Callable[[], AnyColumn], indices: Any) -> None:
    with pytest.raises(SchemaError, match="must have one dimension"):
        make().take(indices)


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_sizes_of_views(count: int) -> None:
    words = np.random.default_rng(count).integers(0, 1 << 31, (count, 4)).astype(np.int32)
    assert binary.size_of_views(words.ravel()) == sum(words[:, 0].tolist())     # above 2^31 in all


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_sizes_of_codes(count: int) -> None:
    random = np.random.default_rng(count)
    sizes = random.integers(0, 1 << 31, 50).astype(np.int32)
    codes = random.integers(0, 50, count).astype(np.int32)
    assert binary.size_of_codes(codes, sizes) == sum(sizes[codes].tolist())     # above 2^31 in all
    for outside in (50, -1):
        with pytest.raises(FormatError):
            binary.size_of_codes(np.append(codes, np.int32(outside)), sizes)


def test_used_bytes_count_each_value(tmp_path: Path) -> None:
    texts = ["a", "a longer text than a view holds", "", "a longer text than a view holds"]
    fastpq.write_table({"x": texts}, tmp_path / "x.parquet")
    column = fastpq.read_table(tmp_path / "x.parquet", strings="views")["x"]
    bits = 0 if column.validity is None else column.validity.nbytes
    assert column.used_bytes() == bits + 16 * len(texts) + sum(map(len, texts))


def test_buffers_of_views_are_shifted() -> None:
    column = column_from_numpy(np.array([b"short", b"longer than a view holds", b"", b"twelve bytes", b"thirteen byte"], object))
    assert isinstance(column, Column)
    values = column.as_views().values
    assert isinstance(values, BinaryViews)
    views = values.views.copy()
    words = views.view(np.int32).reshape(-1, 4)
    before = words.copy()
    binary.shift_buffers(views[1:], 3)
    assert (words - before)[:, 2].tolist() == [0, 3, 0, 0, 3]
    assert not (words - before)[:, [0, 1, 3]].any()


def test_dictionaries_in_older_pickles_load() -> None:
    """Before 0.1 was released, DictionaryValues was defined in arrays.layouts."""
    assert pickle.loads(b"cfastpq.arrays.layouts\nDictionaryValues\n.") is DictionaryValues
