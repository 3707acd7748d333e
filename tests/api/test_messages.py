"""Errors of wrong calls say what to do."""

from __future__ import annotations

import io
import pickle
import re
import sys
import traceback
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pytest

import fastpq
from fastpq.common.foreign_options import WRITING
from fastpq.convert.casting import decimal_type, time_type, timestamp_type
from fastpq.options import WriterProperties
from tests.io.range_server import serving

DATA: dict[str, tuple[Any, str]] = {
    "two dimensions": ({"a": np.zeros((2, 3), object)}, r"shape \(2, 3\).*list\(array\).*array\.T.*column a"),
    "one value": ({"a": 5}, r"int 5 is one value.*\[value\] \* rows.*column a"),
    "a set": ({"a": {1, 2}}, r"a set has no order: give a list.*column a"),
    "sets": ({"a": [None, {1, 2}]}, r"value 1: a set has no order: give a list.*column a"),
    "sets in lists": ({"a": [[{1, 2}]]}, r"value 0: a set has no order: give a list.*column a"),
    "nanoseconds in a zone": ({"a": [pd.Timestamp("2026-01-01 00:00:00.000000001Z")]}, r"give pd.Series\(values\).*column a"),
    "a generator": ({"a": (i for i in range(3))}, r"give list\(values\).*column a"),
    "a query": (pl.LazyFrame({"a": [1]}), r"LazyFrame.*\.collect\(\)"),
    "rows": ([{"a": 1}], r"rows become columns by"),
    "one array": (np.arange(3), r"give \{name: array\}"),
    "a series": (pd.Series([1, 2]), r"one column .* use \{name: values\}"),
}


@pytest.mark.parametrize("name", DATA)
def test_data(tmp_path: Path, name: str) -> None:
    data, message = DATA[name]
    with pytest.raises(fastpq.SchemaError, match=message):
        fastpq.write_table(data, tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("metadata", "mend"),
    [
        ({"k": 5}, r"json\.dumps"), ({5: "v"}, r"json\.dumps"), ({"k": None}, r"json\.dumps"),
        ({"k": b"v"}, r"value\.decode\(\)"), ({b"k": "v"}, r"value\.decode\(\)"),
    ],
    ids=str,
)
def test_metadata(tmp_path: Path, metadata: Any, mend: str) -> None:
    with pytest.raises(TypeError, match=f"maps text to text.*{mend}.* makes a text"):
        fastpq.write_table({"a": [1]}, tmp_path / "x", key_value_metadata=metadata)
    assert not (tmp_path / "x").exists()


def test_metadata_that_are_no_unicode() -> None:
    for metadata in ({"key": "\ud800"}, {"\udfff\ud800": "text"}):
        with pytest.raises(fastpq.SchemaError, match=r"key_value_metadata: .* is not Unicode text"):
            fastpq.write_table({"a": [1]}, io.BytesIO(), key_value_metadata=metadata)
    sink = io.BytesIO()
    fastpq.write_table({"a": [1]}, sink, key_value_metadata={"key": "\udcff"})      # the byte FF of another file
    assert fastpq.read_metadata(sink.getvalue()).key_value_metadata["key"] == "\udcff"


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


ALLOWED = {
    "write_table", "write_dataset", "reset_index", "storage_options", "partition_by", "write_metadata_file", "BYTE_STREAM_SPLIT",
    "append_table",
}


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
    with pytest.raises(fastpq.UnsupportedError, match=r"s3fs.*pip install s3fs"):
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
        (lambda: fastpq.read_table(path, row_groups=wrong), fastpq.SchemaError, r"row_groups must be a list of integers: \[0\]"),
        (lambda: fastpq.read_table(path, threads=text), TypeError, "threads must be a whole number, or None"),
        (lambda: fastpq.write_table(table, path, threads=text), TypeError, "threads must be a whole number, or None"),
        (lambda: fastpq.read_table(path, properties=empty), TypeError, "properties must be a ReaderProperties, not a dict"),
        (lambda: fastpq.write_table(table, path, properties=empty), TypeError, "must be a WriterProperties, not a dict"),
        (lambda: fastpq.write_dataset(table, tmp_path / "d", properties=empty), TypeError, "must be a WriterProperties"),
        (lambda: table[["a", "b"]], fastpq.SchemaError, r"select\(\['a', 'b'\]\)"),
        (lambda: fastpq.write_table(table, io.StringIO()), fastpq.SchemaError, "StringIO, a text file: open it in binary"),
        (lambda: fastpq.read_table(tmp_path / "empty"), FileNotFoundError, "no data file in the folder .*empty"),
    ):
        with pytest.raises(kind, match=message):
            call()
    assert fastpq.read_table(path) == table


ARGUMENTS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "row_ranges": (lambda file: file.read(row_ranges=5), fastpq.SchemaError, r"a list of ranges, .*\[\(0, 100\)\], not 5"),
    "one range": (lambda file: file.read(row_ranges=(0, 5)), fastpq.SchemaError, "0 is not a range of rows: row_ranges must"),
    "row_groups": (lambda file: file.read(row_groups=["a"]), fastpq.SchemaError, "a list of integers: 'a' is not one"),
    "row_groups of text": (lambda file: file.read(row_groups="ab"), fastpq.SchemaError, "row_groups must be a list of integers"),
    "columns": (lambda file: file.read(columns=5), fastpq.SchemaError, "columns must be a list of names or numbers, not 5"),
    "a column": (lambda file: file.read(columns=[None]), fastpq.SchemaError, "must be a str, a tuple or a number, not None"),
    "batch_size": (lambda file: file.iter_batches(batch_size="5"), TypeError, "batch_size must be a whole number of rows"),
    "batch_size of a float": (lambda file: file.iter_batches(batch_size=5.0), TypeError, "batch_size must be a whole number"),
    "batch_size 0": (lambda file: file.iter_batches(batch_size=0), ValueError, "batch_size must be at least 1, not 0"),
    "head": (lambda file: file.head("5"), TypeError, "n must be a whole number of rows, not '5'"),
    "tail": (lambda file: file.tail(-1), ValueError, "n must be at least 0, not -1"),
    "sample": (lambda file: file.sample(None), TypeError, "n must be a whole number of rows, not None"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(tmp_path: Path, name: str) -> None:
    call, kind, message = ARGUMENTS[name]
    fastpq.write_table({"a": np.arange(10)}, tmp_path / "x.parquet")
    with fastpq.ParquetFile(tmp_path / "x.parquet") as file, pytest.raises(kind, match=message):
        call(file)


def test_arguments_of_datasets_and_frames(tmp_path: Path) -> None:
    fastpq.write_table({"a": np.arange(10)}, tmp_path / "x.parquet")
    dataset: Any = fastpq.ParquetDataset(tmp_path)
    frame: Any = fastpq.read_pandas
    with pytest.raises(fastpq.SchemaError, match="columns must be a list of names or numbers, not 5"):
        dataset.read(5)
    with pytest.raises(TypeError, match="batch_size must be a whole number of rows, not '5'"):
        dataset.iter_batches("5")
    with pytest.raises(TypeError, match="n must be a whole number of rows, not '5'"):
        dataset.head("5")
    with pytest.raises(fastpq.SchemaError, match="columns must be a list of names or numbers, not 5"):
        frame(tmp_path / "x.parquet", columns=5)


@pytest.mark.parametrize(
    ("option", "message"),
    [({"ndv": "100"}, "ndv .*whole number of values, not '100'"), ({"fpp": "0.1"}, "fpp .*number between 0 and 1, not '0.1'")],
    ids=str,
)
def test_options_of_bloom_filters(option: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fastpq.write_table({"a": np.arange(10)}, io.BytesIO(), bloom_filter={"a": option})


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    fastpq.write_table({"a": np.arange(10), "b": np.arange(10)}, tmp_path / "x.parquet", row_group_size=5)
    numbers: Any = np.arange(2)
    bloom: Any = {"a": {"ndv": np.int64(10), "fpp": np.float64(0.1)}}
    fastpq.write_table({"a": np.arange(10)}, io.BytesIO(), bloom_filter=bloom)
    with fastpq.ParquetFile(tmp_path / "x.parquet") as file:
        assert file.read(numbers[1:], row_groups=numbers[1:])["b"].to_pylist() == [5, 6, 7, 8, 9]
        assert [batch.num_rows for batch in file.iter_batches(numbers[1] + 5)] == [6, 4]


def test_truncated_files(tmp_path: Path) -> None:
    fastpq.write_table({"a": np.arange(1000)}, tmp_path / "x.parquet")
    whole = (tmp_path / "x.parquet").read_bytes()
    for size in (8, 100, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.parquet").write_bytes(whole[:size])
        reason = rf"ends after {size} bytes, and has no footer there\. .*recover_table"
        with pytest.raises(fastpq.FormatError, match=reason):
            fastpq.read_table(tmp_path / "cut.parquet")
    for other, message in ((b"", "it is empty"), (b"PK", "2 bytes, and the shortest has"), (b"x" * 100, "it ends with b'xxxx'")):
        with pytest.raises(fastpq.FormatError, match=message):
            fastpq.read_table(other)


def test_recover_table_does_not_advise_itself(tmp_path: Path) -> None:
    fastpq.write_table({"a": np.arange(1000)}, tmp_path / "x.parquet")
    whole = (tmp_path / "x.parquet").read_bytes()
    with pytest.raises(fastpq.FormatError, match="has no footer there") as caught:
        fastpq.recover_table(whole[: len(whole) // 2])
    assert "recover_table" not in str(caught.value)


def test_compression_of_a_wrong_type(tmp_path: Path) -> None:
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"compression": 5}, "compression must be the name of a codec, None, or a mapping from columns to these, not 5"),
        ({"compression": {"a": 5}}, "compression must be the name of a codec, .*, not 5"),
        ({"compression_level": "3"}, "compression_level must be a whole number, None, or a mapping .*, not '3'"),
        ({"compression_level": 3.5}, r"compression_level must be a whole number, .*, not 3\.5"),
        ({"compression_level": {"a": True}}, "compression_level must be a whole number, .*, not True"),
    )
    for options, message in wrong:
        with pytest.raises(TypeError, match=message):
            fastpq.write_table({"a": [1]}, tmp_path / "x.parquet", compression=options.pop("compression", "zstd"), **options)
    level: Any = np.int64(3)
    fastpq.write_table({"a": [1]}, tmp_path / "x.parquet", compression="zstd", compression_level=level)


def test_arguments_that_are_nearly_right(tmp_path: Path) -> None:
    fastpq.write_table({"a": [1]}, tmp_path / "x.parquet")
    for read in (fastpq.read_table, fastpq.read_dataset, fastpq.ParquetFile):
        for name, hint in (("filter", "filters"), ("column", "columns")):
            options: dict[str, Any] = {name: ["a"]}
            with pytest.raises(TypeError, match=rf"unknown options: {name}; .*\b{hint}\b"):
                read(tmp_path / "x.parquet", **options)


def test_columns_of_datasets_and_files_have_the_same_errors(tmp_path: Path) -> None:
    fastpq.write_table({"price": [1], "s": [{"a": 1}]}, tmp_path / "x.parquet")
    dataset, file = fastpq.ParquetDataset(tmp_path), fastpq.ParquetFile(tmp_path / "x.parquet")
    wrong: tuple[Any, ...] = ("price", ["prize"], ["s.b"], 5)
    for columns in wrong:
        messages = []
        for source in (dataset, file):
            with pytest.raises(fastpq.SchemaError) as caught:
                source.read(columns)
            messages.append(caught.value.message)
        assert messages[0] == messages[1]


def test_a_table_that_does_not_fit_the_first_one(tmp_path: Path) -> None:
    tables: tuple[tuple[dict[str, Any], str], ...] = (
        ({"a": [1]}, "it lacks 'b'$"),
        ({"a": [1], "b": [2], "c": [3]}, "it also has 'c'$"),
        ({"a": [1], "c": [2]}, "it lacks 'b' and also has 'c'$"),
    )
    for table, message in tables:
        with fastpq.ParquetWriter(tmp_path / "x.parquet") as writer:
            writer.write_table({"a": [1], "b": [2]})
            with pytest.raises(fastpq.SchemaError, match="the table does not have the file's columns: ") as caught:
                writer.write_table(table)
            assert re.search(message, caught.value.message)


def test_a_folder_of_a_server_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    page = b"<!DOCTYPE HTML>\n<html><head><title>Directory listing</title></head><body><a href='x.parquet'>x</a></body></html>"
    (tmp_path / "data" / "index.parquet").write_bytes(page)
    with (
        serving(tmp_path) as server,
        pytest.raises(fastpq.FormatError, match=r"HTML page\. Servers send such pages for folders.*give the URL of a file"),
    ):
        fastpq.ParquetFile(f"{server.url}/data/index.parquet")


SECRET = 777_333_111
SECRETS: dict[str, tuple[Any, dict[str, Any]]] = {
    "too large": ({"a": np.array([SECRET])}, {"schema": {"a": "int16"}}),
    "a fraction": ({"a": [0.5 + SECRET]}, {"schema": {"a": "int32"}}),
    "decimals": ({"a": [Decimal(f"{SECRET}.123")]}, {"schema": {"a": decimal_type(20, 2)}}),
    "no number": ({"a": [Decimal(f"sNaN{SECRET}")]}, {}),
    "one value": ({"a": SECRET}, {}),
    "a mixture": ({"a": [0.5, (1 << 60) + SECRET]}, {}),
    "a time": ({"a": np.array([SECRET * 1000], "m8[s]")}, {"schema": {"a": time_type("us")}}),
    "moments": ({"a": np.array([SECRET], "M8[ns]")}, {"schema": {"a": timestamp_type("ms")}}),
    "keys": ({"a": [{SECRET: 1}]}, {}),
    "later": ([{"a": np.array([1], np.int8)}, {"a": np.array([SECRET])}], {}),
    "surrogates": ({"a": [f"{SECRET}\udc80"]}, {}),
}


@pytest.mark.parametrize("name", SECRETS)
def test_values_of_encrypted_files_are_in_no_message(tmp_path: Path, name: str) -> None:
    data, options = SECRETS[name]
    data = iter(data) if name == "later" else data
    keys = fastpq.FileEncryptionProperties(b"k" * 16)
    with pytest.raises(fastpq.SchemaError) as caught:
        fastpq.write_table(data, tmp_path / "x", encryption_properties=keys, **options)
    shown = "".join(traceback.format_exception(caught.value))
    told = repr(caught.value) + str(caught.value) + shown
    assert str(SECRET) not in told
    assert str((1 << 60) + SECRET) not in told
    assert "1970-01" not in told
    assert "udc80" not in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).message == caught.value.message


@pytest.mark.parametrize("name", SECRETS.keys() - {"surrogates"})
def test_values_of_plaintext_files_are_in_the_message(tmp_path: Path, name: str) -> None:
    data, options = SECRETS[name]
    with pytest.raises(fastpq.SchemaError, match=f"{SECRET}|{(1 << 60) + SECRET}|1970-01"):
        fastpq.write_table(iter(data) if name == "later" else data, tmp_path / "x", **options)
