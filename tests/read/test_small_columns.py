"""Small columns that are read together are what FlatReading makes of them, in sound and in damaged files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.errors import LimitError, ParquetError
from fastpq.read import scan
from fastpq.read.file_reader import FileReader
from fastpq.read.small_columns import SmallColumns

NONE = 1 << 60      # a FEWEST_SMALL that no read reaches


def columns_of(rows: int) -> dict[str, pa.Array]:
    random = np.random.default_rng(1)
    missing = random.random(rows) < 0.2
    numbers = random.integers(0, 100, rows)
    number = pa.field("n", pa.int8(), nullable=False)
    texts = [f"text number {number} is longer than twelve bytes" for number in numbers]
    return {
        "int8": pa.array(numbers.astype(np.int8), mask=missing),
        "uint16": pa.array(numbers.astype(np.uint16)),
        "int32": pa.array(numbers.astype(np.int32), mask=missing),
        "int64": pa.array(numbers),
        "float16": pa.array(numbers.astype(np.float16)),
        "float64": pa.array(numbers.astype(np.float64), mask=missing),
        "bool": pa.array(numbers > 50, mask=missing),
        "text": pa.array(texts, mask=missing),
        "short": pa.array([str(number) for number in numbers]),
        "bytes": pa.array([text.encode() for text in texts], pa.binary()),
        "category": pa.array(texts).dictionary_encode(),
        "fixed": pa.array([b"abc"] * rows, pa.binary(3)),
        "decimal": pa.array([*range(rows)], pa.decimal128(20, 2)),
        "date": pa.array(numbers.astype(np.int32), pa.date32()),
        "time": pa.array(numbers, pa.time64("us")),
        "timestamp": pa.array(numbers, pa.timestamp("us", "UTC")),
        "null": pa.nulls(rows),
        "list": pa.array([[1, 2]] * rows),
        "struct": pa.array([{"a": 1}] * rows),
        "deep": pa.array(
            [{"text": text, "in": {"n": 1, "flag": text is None}} for text in pa.array(texts, mask=missing).to_pylist()],
            pa.struct([("text", pa.string()), ("in", pa.struct([number, ("flag", pa.bool_())]))]),
        ),
        "null struct": pa.array(
            [None if gone else {"a": 1, "b": None} for gone in missing], pa.struct([("a", pa.int32()), ("b", pa.uint8())])
        ),
        "null in struct": pa.array(
            [{"in": None if gone else {"a": 1.5}} for gone in missing],
            pa.struct([pa.field("in", pa.struct([pa.field("a", pa.float64(), nullable=False)]))]),
        ),
        "list in struct": pa.array([{"a": [1, 2]}] * rows, pa.struct([("a", pa.list_(pa.int64()))])),
    }


def both(read: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Return the result of a function that reads small columns together, and one by one. An error is its class and text."""
    results = []
    for fewest in (1, NONE):
        monkeypatch.setattr(scan, "FEWEST_SMALL", fewest)
        try:
            results.append(read())
        except ParquetError as error:
            results.append((type(error), str(error)))
    return results[0], results[1]


@pytest.mark.parametrize("rows", [0, 1, 9, 3000])
@pytest.mark.parametrize(
    "options",
    [{}, {"compression": "none"}, {"use_dictionary": False}, {"data_page_version": "2.0"}, {"row_group_size": 1000}],
    ids=str,
)
def test_equal_columns(rows: int, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table(columns_of(rows))
    pq.write_table(table, path, **options)
    some = ["text", "int8", "struct", "bool", "int64", "null struct", "deep.in.flag"]
    for threads in (1, 2):
        for more in ({}, {"columns": some}, {"strings": "offsets"}):
            arguments: dict[str, Any] = {"threads": threads, **more}
            together, alone = both(partial(fastpq.read_table, path, **arguments), monkeypatch)
            assert together == alone
            for one, other in zip(together.columns, alone.columns, strict=True):
                assert (one.type, one.nullable, one.null_count, one.arrow) == (
                    other.type, other.nullable, other.null_count, other.arrow)
                assert type(getattr(one, "values", None)) is type(getattr(other, "values", None))
    some = ["text", "decimal", "deep", "null struct", "null in struct"]
    assert pa.table(fastpq.read_table(path)).select(some).to_pylist() == table.select(some).to_pylist()


def test_small_columns_are_found(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(columns_of(10)), path)
    with fastpq.ParquetFile(path) as file:
        request = file._request(None, None, None, None)
        reader = file._reader()
        assert isinstance(reader, FileReader)
        opened, plan = reader._whole(request)
        small = SmallColumns(opened.opener, [(column, plan.num_rows) for column in plan.columns])
        others = [column.name for column, _ in small.others]
        small.read()
        others_after_reading = [column.name for column, _ in small.others]
    assert others == ["category", "null", "list", "list in struct"]
    assert others_after_reading == ["category", "null", "list", "null struct", "null in struct", "list in struct"]


def test_columns_keep_only_their_own_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({f"c{number}": ["a text of more than twelve bytes"] * 3 for number in range(100)})
    pq.write_table(table, path, use_dictionary=False)
    one = fastpq.read_table(path).flat("c7")
    assert one.values.nbytes < 1000         # views, and the bytes of three texts
    assert one.to_pylist() == table["c7"].to_pylist()


def test_limit_counts_all_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({f"c{number}": np.arange(100) for number in range(100)}), path)
    with pytest.raises(LimitError, match="max_allocation"):
        fastpq.read_table(path, properties=fastpq.ReaderProperties(max_allocation=50_000))


def test_limit_counts_null_structs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are decoded twice, but what was decoded first is dropped."""
    path = tmp_path / "x.parquet"
    structs = pa.array([None, *[{"number": number, "text": "a text of more than twelve bytes"} for number in range(999)]])
    pq.write_table(pa.table({f"c{number}": structs for number in range(50)}), path)

    def reads_within(limit: int) -> bool:
        try:
            fastpq.read_table(path, properties=fastpq.ReaderProperties(max_allocation=limit))
        except LimitError:
            return False
        return True

    for limit in range(800_000, 4_000_000, 200_000):
        together, alone = both(partial(reads_within, limit), monkeypatch)
        assert together or not alone, limit
    assert alone


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_damaged_files(compression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(columns_of(5)), path, compression=compression, write_statistics=False)
    data = path.read_bytes()
    random = np.random.default_rng(2)
    broken = tmp_path / "broken.parquet"
    for place in random.choice(len(data) - 8, 250, replace=False):
        changed = bytearray(data)
        changed[place] ^= 1 << random.integers(0, 8)
        broken.write_bytes(changed)
        together, alone = both(lambda: fastpq.read_table(broken).to_pylist(), monkeypatch)
        assert together == alone or repr(together) == repr(alone), place
