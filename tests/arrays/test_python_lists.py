"""Lists of an object array as one array of elements and back, against NumPy's own functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastpq.arrays.python_lists import cut, joined, lengths_of
from fastpq.errors import FormatError, SchemaError


def objects(*values: Any) -> np.ndarray[Any, Any]:
    return np.fromiter(values, dtype=object, count=len(values))


class OddList(list[Any]):
    """A list with a length of its own, which is not the number of its elements."""

    def __len__(self) -> int:
        return 7


class OddArray(np.ndarray[Any, Any]):
    pass


def test_lengths() -> None:
    values = objects([1, 2], None, (), (1, 2, 3), np.zeros(4), np.zeros((2, 5)), OddList(), np.ma.zeros(3), [])
    lengths, wrong = lengths_of(values)
    assert (lengths.tolist(), wrong) == ([2, -1, 0, 3, 4, 2, 0, 3, 0], -1)
    assert lengths_of(objects())[0].tolist() == []


@pytest.mark.parametrize("value", ["text", 3, {}, {1}, np.float64(3), np.zeros(()), np.ma.masked])
def test_the_first_other_value(value: Any) -> None:
    assert lengths_of(objects([1], None, value, 3))[1] == 2


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "f8", "M8[us]", "m8[ns]", "c16", "S3", "U5", "f2"])
def test_arrays_of_one_dtype(dtype: str) -> None:
    numbers = np.arange(60) % 2 if dtype == "?" else np.arange(60)
    whole = numbers.astype(np.int64).astype(dtype)
    parts = [whole[:7], whole[7:7], None, whole[7:50], whole[50:]]
    values = objects(*parts)
    found = joined(values, lengths_of(values)[0])
    assert found is not None
    assert found.dtype == np.dtype(dtype)
    assert found.tolist() == whole.tolist()


@pytest.mark.parametrize(
    "values",
    [
        objects(np.zeros(2), [1.0]),
        objects(np.zeros(2), np.zeros(2, "f4")),
        objects(np.zeros(2, "M8[s]"), np.zeros(2, "M8[ms]")),
        objects(np.zeros(2), np.zeros((1, 2))),
        objects(np.zeros(4)[::2], np.zeros(2)),
        objects(np.zeros(2, ">f8")),
        objects(np.zeros(2, object)),
        objects(np.zeros(2, np.dtypes.StringDType())),
        objects(np.zeros(2, "V4")),
        objects(np.zeros(2), np.ma.zeros(2)),
        objects(np.zeros(2).view(OddArray)),
        objects(None, None),
        objects(),
    ],
)
def test_others_are_not_joined(values: Any) -> None:
    assert joined(values, lengths_of(values)[0]) is None


def test_lengths_of_other_arrays_are_refused() -> None:
    values = objects(np.zeros(2), np.zeros(3))
    with pytest.raises(SchemaError, match="changed while"):
        joined(values, np.array([3, 2], np.int64))
    unfit: list[Any] = [np.array([2], np.int64), np.array([2, 3], np.int32)]
    for lengths in unfit:
        with pytest.raises(SchemaError, match="not a contiguous array of 2 int64"):
            joined(values, lengths)


def test_cut() -> None:
    elements = np.arange(10)
    found = cut(elements, np.array([0, 3, 3, 7, 10], np.int64), np.array([True, True, False, True]))
    assert [None if each is None else each.tolist() for each in found] == [[0, 1, 2], [], None, [7, 8, 9]]
    assert found[0].base is elements
    found[3][:] = -1
    assert elements[7:].tolist() == [-1, -1, -1]
    assert cut(elements, np.zeros(1, np.int64), None).tolist() == []


@pytest.mark.parametrize(
    "elements", [np.arange(20)[::2], np.arange(10)[::-1], np.array([*"abcdefghij"], object), np.arange(10).astype("M8[us]")])
def test_cut_of_any_layout(elements: Any) -> None:
    found = cut(elements, np.array([1, 4, 10], np.int64), None)
    assert [each.tolist() for each in found] == [elements[1:4].tolist(), elements[4:10].tolist()]
    assert {each.dtype for each in found} == {elements.dtype}


def test_lists_of_read_only_elements_are_read_only() -> None:
    elements = np.arange(3)
    elements.flags.writeable = False
    assert not cut(elements, np.array([0, 3], np.int64), None)[0].flags.writeable


def test_elements_live_as_long_as_their_lists() -> None:
    found = cut(np.arange(100_000) + 1, np.array([0, 99_999, 100_000], np.int64), None)
    assert found[0].sum() == 99_999 * 100_000 // 2


@pytest.mark.parametrize("bounds", [[0, 4], [-1, 2], [2, 1], [0, 1, 0], [0, np.iinfo(np.int64).max]])
def test_lists_outside_of_the_elements(bounds: list[int]) -> None:
    with pytest.raises(FormatError, match="is outside the elements"):
        cut(np.arange(3), np.array(bounds, np.int64), None)


def test_unfit_arrays() -> None:
    with pytest.raises(SchemaError, match="one-dimensional"):
        cut(np.zeros((2, 2)), np.zeros(1, np.int64), None)
    with pytest.raises(SchemaError, match="booleans"):
        cut(np.zeros(2), np.zeros(3, np.int64), np.ones(3, np.bool_))
    with pytest.raises(SchemaError, match="one-dimensional"):
        lengths_of(objects([1], [2])[::-1])
