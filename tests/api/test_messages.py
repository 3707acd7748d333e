"""Errors of wrong calls say what to do."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pytest

import fastpq
from fastpq.common.foreign_options import WRITING
from fastpq.options import WriterProperties

DATA: dict[str, tuple[Any, str]] = {
    "two dimensions": ({"a": np.zeros((2, 3), object)}, r"shape \(2, 3\).*list\(array\).*array\.T.*column a"),
    "one value": ({"a": 5}, r"int 5 is one value.*\[value\] \* rows.*column a"),
    "a set": ({"a": {1, 2}}, r"a set has no order: give a list.*column a"),
    "a generator": ({"a": (i for i in range(3))}, r"give list\(values\).*column a"),
    "a query": (pl.LazyFrame({"a": [1]}), r"LazyFrame.*\.collect\(\)"),
    "rows": ([{"a": 1}], r"rows become columns by"),
    "one array": (np.arange(3), r"give \{name: array\}"),
    "a series": (pd.Series([1, 2]), r"one column .* give \{name: values\}"),
}


@pytest.mark.parametrize("name", DATA)
def test_data(tmp_path: Path, name: str) -> None:
    data, message = DATA[name]
    with pytest.raises(fastpq.SchemaError, match=message):
        fastpq.write_table(data, tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("metadata", [{"k": 5}, {5: "v"}, {"k": None}, {"k": b"v"}], ids=str)
def test_metadata(tmp_path: Path, metadata: Any) -> None:
    with pytest.raises(TypeError, match=r"maps text to text.*json\.dumps"):
        fastpq.write_table({"a": [1]}, tmp_path / "x", key_value_metadata=metadata)
    assert not (tmp_path / "x").exists()


def test_options_of_other_libraries(tmp_path: Path) -> None:
    assert not WRITING.keys() & WriterProperties.__dataclass_fields__.keys()
    options: dict[str, Any]
    for options, message in (
        ({"version": "2.6"}, "unknown options: version; version: there is one version"),
        ({"partition_cols": ["a"]}, r"partition_cols: write_dataset\(data, root, partition_by"),
        ({"compresion": "zstd"}, "did you mean compression"),
    ):
        with pytest.raises(TypeError, match=message):
            fastpq.write_table({"a": [1]}, tmp_path / "x", **options)
    for text in WRITING.values():       # names of options in the advice are names of options
        assert set(re.findall(r"\w+_\w+", text)) <= ALLOWED | WriterProperties.__dataclass_fields__.keys()


ALLOWED = {"write_table", "write_dataset", "reset_index", "storage_options", "partition_by", "BYTE_STREAM_SPLIT"}


def test_targets(tmp_path: Path) -> None:
    with pytest.raises(fastpq.UnsupportedError, match="only reads over HTTP"):
        fastpq.write_table({"a": [1]}, "http://127.0.0.1:9/x")
    with pytest.raises(IsADirectoryError):
        fastpq.write_table({"a": [1]}, tmp_path)


def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(importlib.import_module("fsspec.registry")._registry, "s3", raising=False)
    assert fsspec.available_protocols()
    with pytest.raises(fastpq.UnsupportedError, match=r"s3fs.*pip install fastpq\[s3\]"):
        fastpq.read_table("s3://bucket/x")


FILTERS: list[tuple[str, Callable[[], Any], Any, str]] = [
    ("d", lambda: np.array(["2024-01-01", "2024-01-02"], "M8[D]"), np.datetime64("2024-01-02"), "2024-01-02"),
    ("t", lambda: np.array(["2024-01-01T10", "2024-01-01T11"], "M8[us]"), np.datetime64("2024-01-01T11"), "2024-01-01 11:00"),
    ("n", lambda: np.array([0, 1], "M8[ns]"), np.datetime64(1, "ns"), "1970-01-01T00:00:00.000000001"),
]


@pytest.mark.parametrize(("name", "make", "value", "text"), FILTERS, ids=[name for name, *_ in FILTERS])
def test_texts_of_moments_in_filters(tmp_path: Path, name: str, make: Any, value: Any, text: str) -> None:
    fastpq.write_table({name: make()}, tmp_path / "x")
    for op in ("==", "<", ">=", "!="):
        by_text = fastpq.read_table(tmp_path / "x", filters=[(name, op, text)])
        assert by_text == fastpq.read_table(tmp_path / "x", filters=[(name, op, value)])
    assert fastpq.read_table(tmp_path / "x", filters=[(name, "in", [text])]).num_rows == 1
    for wrong in ("today", "2024", "2024-13-01", "01/02/2024", "", "2024-01-01T10:00+01:00", "NaT"):
        with pytest.raises(fastpq.SchemaError, match="does not fit"):
            fastpq.read_table(tmp_path / "x", filters=[(name, "==", wrong)])


def test_texts_of_zoned_moments_and_times_in_filters(tmp_path: Path) -> None:
    pd.DataFrame({"z": pd.to_datetime(["2024-01-01 10:00", "2024-01-01 11:00"]).tz_localize("UTC")}).to_parquet(tmp_path / "z")
    assert fastpq.read_table(tmp_path / "z", filters=[("z", ">", "2024-01-01T11:30+01:00")]).num_rows == 1
    assert fastpq.read_table(tmp_path / "z", filters=[("z", ">", "2024-01-01T10:00Z")]).num_rows == 1
    assert fastpq.read_table(tmp_path / "z", filters=[("z", ">", "2024-01-01")]).num_rows == 2
    with pytest.raises(fastpq.SchemaError, match="does not fit"):
        fastpq.read_table(tmp_path / "z", filters=[("z", ">", "2024-01-01 10:00")])
    import datetime as dt

    fastpq.write_table({"t": [dt.time(10), dt.time(11)]}, tmp_path / "t")
    assert fastpq.read_table(tmp_path / "t", filters=[("t", ">=", "10:30")]).num_rows == 1


def test_wrong_arguments(tmp_path: Path) -> None:
    path = tmp_path / "x"
    fastpq.write_table({"a": [1], "b": [2]}, path)
    table: Any = fastpq.read_table(path)
    (tmp_path / "empty").mkdir()
    wrong: Any = 0
    text: Any = "2"
    empty: Any = {}
    for call, kind, message in (
        (lambda: fastpq.read_table(path, row_groups=wrong), fastpq.SchemaError, r"row_groups is a list of indices: \[0\]"),
        (lambda: fastpq.read_table(path, threads=text), TypeError, "threads is a whole number, or None"),
        (lambda: fastpq.write_table(table, path, threads=text), TypeError, "threads is a whole number, or None"),
        (lambda: fastpq.read_table(path, properties=empty), TypeError, "properties is a ReaderProperties, not {}"),
        (lambda: fastpq.write_table(table, path, properties=empty), TypeError, "properties is a WriterProperties, not {}"),
        (lambda: fastpq.write_dataset(table, tmp_path / "d", properties=empty), TypeError, "properties is a WriterProperties"),
        (lambda: table[["a", "b"]], fastpq.SchemaError, r"select\(\['a', 'b'\]\)"),
        (lambda: fastpq.write_table(table, io.StringIO()), fastpq.SchemaError, "StringIO, a file of text: open it in binary"),
        (lambda: fastpq.read_table(tmp_path / "empty"), FileNotFoundError, "no data file in the folder .*empty"),
    ):
        with pytest.raises(kind, match=message):
            call()
    assert fastpq.read_table(path) == table
