"""Values under null parents do not exist, whatever their bytes: they are neither checked nor converted."""

from __future__ import annotations

import datetime
import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrow import import_column

NOTHING: pa.Array = pa.array([], pa.string())


def codes(indices: list[int], dictionary: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), dictionary, safe=False)


def under(child: pa.Array, mask: list[bool], *, nullable: bool = True) -> pa.Array:
    return pa.StructArray.from_arrays([child], fields=[pa.field("c", child.type, nullable)], mask=pa.array(mask))


def date64(*values: int) -> pa.Array:
    return pa.array(values, pa.int64()).view(pa.date64())


CASES: dict[str, tuple[pa.Array, list[Any]]] = {
    "an empty dictionary": (under(codes([0, 0], NOTHING), [True, True]), [None, None]),
    "an empty dictionary of numbers": (under(codes([0, 0], pa.array([], pa.int64())), [True, True]), [None, None]),
    "an index outside": (under(codes([9, 0], pa.array(["a"])), [True, False]), [None, {"c": "a"}]),
    "a negative index": (under(codes([-5, 0], pa.array([1.5])), [True, False]), [None, {"c": 1.5}]),
    "a required empty dictionary": (under(codes([0], NOTHING), [True], nullable=False), [None]),
    "a required index outside": (under(codes([9, 0], pa.array(["a"])), [True, False], nullable=False), [None, {"c": "a"}]),
    "two levels": (under(under(codes([0, 0], NOTHING), [False, False]), [True, True]), [None, None]),
    "half a day": (under(date64(1, 0), [True, False]), [None, {"c": datetime.date(1970, 1, 1)}]),
    "a fixed-size list": (
        pa.FixedSizeListArray.from_arrays(codes([0, 0], NOTHING), 2, mask=pa.array([True])), [None],
    ),
    "a list with hidden elements": (
        pa.ListArray.from_arrays(
            pa.array([0, 2, 3], pa.int32()), codes([7, 7, 0], pa.array(["a"])), mask=pa.array([True, False])
        ),
        [None, ["a"]],
    ),
}


@pytest.mark.parametrize("array, expected", CASES.values(), ids=CASES)      # noqa: PT006
def test_values_under_null_parents(array: pa.Array, expected: list[Any]) -> None:
    column = import_column(array)
    assert column.to_pylist() == expected
    file = io.BytesIO()
    fastpq.write_table({"x": column}, file)
    assert fastpq.read_table(io.BytesIO(file.getvalue()))["x"].to_pylist() == expected
    assert pq.read_table(io.BytesIO(file.getvalue()))["x"].to_pylist() == expected


def test_existing_values_are_checked() -> None:
    with pytest.raises(fastpq.SchemaError, match="dictionary index 0 is outside a dictionary of 0 entries"):
        import_column(under(codes([0, 0], NOTHING), [True, False]))
    with pytest.raises(fastpq.SchemaError, match="whole number of int32 days"):
        import_column(under(date64(1, 1), [True, False]))
    with pytest.raises(fastpq.SchemaError, match="dictionary index 9"):
        import_column(under(codes([9, 9], pa.array(["a"])), [True, False]))
