"""DataFrames of every dtype, index and kind of column labels, by name."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

BERLIN = "Europe/Berlin"
NUMPY_DTYPES = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bool",
]
NULLABLE_DTYPES = [
    "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", "boolean",
]
UNITS = ("s", "ms", "us", "ns")
OFFSETS = [dt.timezone(dt.timedelta(hours=5, minutes=30)), dt.timezone(-dt.timedelta(hours=3))]


def _frame(values: Any) -> pd.DataFrame:
    return pd.DataFrame({"c": values})


def _numbers() -> dict[str, pd.DataFrame]:
    found = {}
    for dtype in NUMPY_DTYPES:
        found[dtype] = _frame(np.array([0, 1, 1], dtype))
    for dtype in NULLABLE_DTYPES:
        found[dtype] = _frame(pd.array([0, 1, None], dtype=dtype))
        found[f"{dtype} full"] = _frame(pd.array([0, 1, 1], dtype=dtype))
        found[f"{dtype} null"] = _frame(pd.array([None, None], dtype=dtype))
    for dtype in ("complex64", "complex128"):
        found[dtype] = _frame(np.array([1 + 2j, -3j], dtype))
    found["complex nan"] = _frame(pd.Series([1 + 2j, np.nan]))
    found["complex no rows"] = _frame(np.array([], np.complex128))
    found["float nan"] = _frame([1.5, np.nan, -0.0])
    found["float32 nan"] = _frame(np.array([1.5, np.nan, 2], np.float32))
    found["sparse"] = _frame(pd.arrays.SparseArray([0, 0, 1]))
    found["sparse filled"] = _frame(pd.arrays.SparseArray([5, 5, 1], fill_value=5))
    found["sparse zeros"] = _frame(pd.arrays.SparseArray([0.0, 1.5, 0.0], fill_value=0.0))
    found["sparse nan"] = _frame(pd.arrays.SparseArray([np.nan, 1.0, np.nan]))
    return found


def _moments() -> dict[str, pd.DataFrame]:
    found = {}
    for unit in UNITS:
        found[f"datetime {unit}"] = _frame(np.array(["2020-01-01", "NaT", "1969-12-31"], f"M8[{unit}]"))
        found[f"timedelta {unit}"] = _frame(np.array([0, -5, 10**6], f"m8[{unit}]"))
        found[f"timedelta nat {unit}"] = _frame(np.array([0, "NaT", 10**6], f"m8[{unit}]"))
        found[f"zoned {unit}"] = _frame(pd.date_range("2020-06-01", periods=3, freq="12h", tz=BERLIN, unit=unit))
    for zone in ["UTC", "US/Eastern", dt.UTC, *OFFSETS]:
        found[f"zone {zone!r}"] = _frame(pd.date_range("2020-06-01", periods=3, freq="12h", tz=zone))
    found["zoned nat"] = _frame(pd.to_datetime(["2020-01-01", None]).tz_localize("Asia/Kolkata"))
    found["first and last"] = _frame(pd.Series([pd.Timestamp.min, pd.Timestamp.max]))
    found["years 1 and 9999"] = _frame(np.array(["0001-01-01", "9999-12-31"], "M8[s]"))
    for freq in ("D", "M", "h", "Q-NOV", "Y"):
        found[f"period {freq}"] = _frame(pd.period_range("2020-01-01", periods=3, freq=freq))
    found["period nat"] = _frame(pd.PeriodIndex(["2020-01", "NaT"], freq="M"))
    for closed in ("left", "right", "both", "neither"):
        found[f"interval {closed}"] = _frame(pd.interval_range(0, 3, closed=closed))
    found["interval float"] = _frame(pd.arrays.IntervalArray.from_breaks([0.0, 1.5, 2]))
    found["interval null"] = _frame(pd.arrays.IntervalArray.from_tuples([(0.0, 1.0), None]))
    found["interval dates"] = _frame(pd.interval_range(pd.Timestamp("2020"), periods=2))
    found["interval zoned"] = _frame(pd.interval_range(pd.Timestamp("2020", tz="UTC"), periods=2))
    found["interval timedelta"] = _frame(pd.interval_range(pd.Timedelta(0), periods=2))
    return found


def _categories() -> dict[str, pd.DataFrame]:
    size, days = ["low", "mid", "high"], pd.to_datetime(["2021", "2020", "2019"])
    cases: dict[str, Any] = {
        "text": pd.Categorical(["b", "a", None]),
        "unused": pd.Categorical(["b", "a", None], ["z", "b", "y", "a"]),
        "ordered": pd.Categorical(["high", "low", "mid"], size, ordered=True),
        "ordered unused": pd.Categorical(["high", "low", None], size, ordered=True),
        "int": pd.Categorical([3, 1, None], [3, 2, 1]),
        "int ordered": pd.Categorical([3, 1, 2], [3, 2, 1], ordered=True),
        "float": pd.Categorical([3.5, 1, None], [3.5, 2, 1], ordered=True),
        "dates": pd.Categorical(days[:2], days, ordered=True),
        "zoned": pd.Categorical(days.tz_localize(BERLIN)),
        "timedelta": pd.Categorical(pd.to_timedelta(["2D", "1D"]), pd.to_timedelta(["2D", "1D"]), ordered=True),
        "bool": pd.Categorical([True, False, None], [True, False], ordered=True),
        "none": pd.Categorical([None, None], []),
        "all null": pd.Categorical([None, None], ["a", "b"]),
        "period": pd.Categorical(pd.period_range("2020-01", periods=2, freq="M")),
        "interval": pd.cut([1, 2, 3, 9], 3),
        "string": pd.Categorical(pd.array(["b", "a"], dtype="string")),
        "Int64": pd.Categorical(pd.array([2, 1], dtype="Int64")),
        "object": pd.Categorical(pd.Index(["b", "a"], dtype=object)),
        "decimal": pd.Categorical([Decimal("1.5"), Decimal("2.5")]),
        "date objects": pd.Categorical([dt.date(2020, 1, 2), dt.date(2020, 1, 1)]),
    }
    return {f"category {name}": _frame(values) for name, values in cases.items()}


def _objects() -> dict[str, pd.DataFrame]:
    found = {f"text {dtype}": _frame(pd.Series(["a", "é", None], dtype=dtype)) for dtype in ("object", "str", "string")}
    found["text string[python]"] = _frame(pd.Series(["a", "é", None], dtype="string[python]"))
    cases: dict[str, list[Any]] = {
        "bytes": [b"a", None, b"\xff"],
        "date": [dt.date(2020, 1, 1), None, dt.date(1, 1, 1)],
        "time": [dt.time(1, 2, 3), None, dt.time(23, 59, 59, 999999)],
        "decimal": [Decimal("1.25"), None, Decimal("-3")],
        "uuid": [uuid.UUID(int=1), uuid.UUID(int=2)],
        "object bool": [True, None, False],
        "object int": [1, None, 2],
        "object int over int64": [1 << 63, None, (1 << 64) - 1],
        "object none": [None, None],
        "object timedelta": [dt.timedelta(1), dt.timedelta(2)],
        "object timestamp": [pd.Timestamp("2020", tz="UTC"), pd.Timestamp("2020", tz="US/Eastern")],
        "object int and float": [1, 2.5],
        "list": [[1, 2], [], None],
        "list text": [["a"], ["b", None]],
        "list int and float": [[1, 2.5], [3]],
        "list list": [[[1], [2, 3]], []],
        "array": [np.array([1, 2]), np.array([3])],
        "dict": [{"a": 1, "b": "x"}, {"a": 2, "b": None}],
    }
    return found | {name: _frame(pd.Series(values, dtype=object)) for name, values in cases.items()}


def _arrow() -> dict[str, pd.DataFrame]:
    moments, days = [dt.datetime(2020, 1, 1), None], [dt.date(2020, 1, 1), None]
    cases: list[tuple[pa.DataType, list[Any]]] = [
        (pa.int8(), [1, None]), (pa.int64(), [1, None]), (pa.float32(), [1.5, None]), (pa.bool_(), [True, None]),
        (pa.string(), ["a", None]), (pa.large_string(), ["a", None]), (pa.binary(), [b"a", None]), (pa.binary(3), [b"abc", None]),
        (pa.timestamp("s"), moments), (pa.timestamp("us", "UTC"), moments), (pa.duration("ms"), [1, None]),
        (pa.date32(), days), (pa.date64(), days), (pa.time32("ms"), [dt.time(1), None]), (pa.time64("us"), [dt.time(1), None]),
        (pa.decimal128(9, 2), [Decimal("1.25"), None]), (pa.null(), [None, None]),
        (pa.list_(pa.int64()), [[1], None]), (pa.list_(pa.int64(), 2), [[1, 2], None]),
        (pa.struct({"a": pa.int32()}), [{"a": 1}, None]),
        (pa.map_(pa.string(), pa.int32()), [[("a", 1)], None]), (pa.dictionary(pa.int32(), pa.string()), ["a", None]),
    ]
    arrays = {f"arrow {type_}": pd.arrays.ArrowExtensionArray(pa.array(values, type_)) for type_, values in cases}
    return {name: _frame(pd.Series(array)) for name, array in arrays.items()}


def _indexes() -> dict[str, pd.DataFrame]:
    four = [4, 3, 2, 1]
    cases: dict[str, pd.Index[Any]] = {
        "range": pd.RangeIndex(4), "range step": pd.RangeIndex(10, 18, 2, name="s"), "range down": pd.RangeIndex(4, 0, -1),
        "int": pd.Index(four), "named": pd.Index(four, name="i"), "name of a column": pd.Index(four, name="x"),
        "int8": pd.Index(np.array(four, np.int8)), "float": pd.Index([0.5, 1, np.nan, 2]),
        "bool": pd.Index([True, False, True, False]),
        "text": pd.Index(list("abcd"), name="t"), "text without a name": pd.Index(list("abcd")),
        "string": pd.Index(pd.array(list("abcd"), dtype="string")), "Int64": pd.Index(pd.array([1, 2, None, 4], dtype="Int64")),
        "arrow": pd.Index(pd.array(four, dtype="int64[pyarrow]")),
        "dates": pd.Index([dt.date(2020, 1, day) for day in range(1, 5)]),
        "datetime": pd.date_range("2020", periods=4, name="d"), "zoned": pd.date_range("2020", periods=4, tz=BERLIN),
        "offset": pd.date_range("2020", periods=4, tz=OFFSETS[0]), "timedelta": pd.to_timedelta(["1D", "2D", "3D", "50D"]),
        "period": pd.period_range("2020", periods=4, freq="M"), "interval": pd.interval_range(0, 4),
        "category": pd.CategoricalIndex(list("abca"), ["c", "b", "a"], ordered=True),
        "int name": pd.Index(four, name=7), "range int name": pd.RangeIndex(4, name=0),
        "tuple name": pd.Index(four, name=("a", 1)),
        "multi": pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["l", None]),
        "multi range": pd.MultiIndex.from_arrays([pd.RangeIndex(4), list("abab")]),
        "multi category": pd.MultiIndex.from_arrays([pd.Categorical(list("abab")), four], names=["c", "d"]),
        "multi zoned": pd.MultiIndex.from_product([pd.date_range("2020", periods=2, tz="UTC"), [1, 2]], names=["c", "d"]),
        "multi int names": pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=[0, 1]),
        "multi of one name": pd.MultiIndex.from_arrays([four, [5, 6, 7, 8]], names=["a", "a"]),
        "multi null": pd.MultiIndex.from_arrays([["a", None, "b", "b"], four], names=["c", "d"]),
    }
    found = {f"index {name}": pd.DataFrame({"x": [1, 2, 3, 4]}, index=index) for name, index in cases.items()}
    found["concat of keys"] = pd.concat({"k": pd.DataFrame({"x": [1, 2]}), "l": pd.DataFrame({"x": [3, 4]})})
    found["groupby"] = pd.DataFrame({"a": [1, 1, 2], "b": [1.0, 2, 3], "c": list("xyz")}).groupby(["a", "c"]).sum()
    return found


def _labels() -> dict[str, pd.DataFrame]:
    days = pd.to_datetime(["2020-01-01", "2021-01-01"])
    cases: dict[str, Any] = {
        "int": [0, 1], "int named": pd.Index([0, 1], name="n"), "int8": pd.Index(np.array([0, 1], np.int8)),
        "uint64": pd.Index(np.array([0, 1], np.uint64)), "range": pd.RangeIndex(3, 7, 2), "float": [0.5, 1.0],
        "Int64": pd.Index(pd.array([0, 1], dtype="Int64")), "UInt8": pd.Index(pd.array([0, 1], dtype="UInt8")),
        "Float32": pd.Index(pd.array([0.5, 1], dtype="Float32")), "arrow int": pd.Index([0, 1], dtype="int32[pyarrow]"),
        "arrow float": pd.Index([0.5, 1], dtype="double[pyarrow]"), "int name": pd.Index(["a", "b"], name=3),
        "bool": [True, False],
        "text named": pd.Index(["a", "b"], name="n"), "object": pd.Index(["a", "b"], dtype=object),
        "string": pd.Index(["a", "b"], dtype="string"), "null": ["a", None], "bytes": [b"a", b"b"],
        "category": pd.CategoricalIndex(["u", "v"]),
        "decimal": pd.Index([Decimal("1.5"), Decimal("2.5")]), "dates": pd.Index([dt.date(2020, 1, 1), dt.date(2020, 1, 2)]),
        "datetime": days, "datetime named": days.rename("d"), "zoned": days.tz_localize(BERLIN),
        "timedelta": pd.to_timedelta(["1D", "2D"]), "period": pd.period_range("2020", periods=2, freq="M"),
        "interval": pd.interval_range(0, 2), "mixed": ["a", 1], "tuples": pd.Index([("a", 1), ("b", 2)], tupleize_cols=False),
        "multi": pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]), "multi int": pd.MultiIndex.from_tuples([("a", 1),
        ("b", 2)]),
        "multi named": pd.MultiIndex.from_tuples([("a", "x"), ("b", "y")], names=["u", "v"]),
        "multi int names": pd.MultiIndex.from_tuples([("a", "x"), ("b", "y")], names=[0, 1]),
        "multi datetime": pd.MultiIndex.from_product([["a"], days], names=["k", "d"]),
    }
    return {f"labels {name}": pd.DataFrame([[1, 2.5], [3, 4.5]], columns=labels) for name, labels in cases.items()}


def _shapes() -> dict[str, pd.DataFrame]:
    described = pd.DataFrame({"a": [1]})
    described.attrs = {"unit": "m", "n": [1, 2]}
    days = pd.to_datetime(["2020-01-01"])
    nothing = {"a": np.array([], np.int32), "b": pd.Series([], dtype="str"), "c": pd.Series([], dtype="M8[us]")}
    return {
        "empty": pd.DataFrame(),
        "empty, labels of levels": pd.DataFrame(
            columns=pd.MultiIndex.from_product([pd.Index([], dtype="str"), np.array([], np.int64)])
        ),
        "no columns, labels of levels": pd.DataFrame(
            index=[1, 2], columns=pd.MultiIndex.from_product([days[:0], pd.Index([], dtype="str")], names=["d", None])
        ),
        "no columns": pd.DataFrame(index=[1, 2, 3]),
        "no columns, a range": pd.DataFrame(index=range(3)),
        "no rows": pd.DataFrame(nothing),
        "no rows of a category": _frame(pd.Categorical([], ["x"])),
        "no rows of objects": _frame(pd.Series([], dtype=object)),
        "attrs": described,
    }


FRAMES: dict[str, pd.DataFrame] = {
    **_numbers(), **_moments(), **_categories(), **_objects(), **_arrow(), **_indexes(), **_labels(), **_shapes()
}
