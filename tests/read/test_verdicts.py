"""Columns read for a predicate alone: entries of dictionaries are judged once, and the rows are pyarrow's."""

from __future__ import annotations

import functools
import io
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrays.table import AnyColumn
from fastpq.read.filtered import filtered_scan
from fastpq.read.flat import VERDICTS
from fastpq.read.scan import Scan

ROWS = 5000
KINDS: dict[str, pa.DataType] = {
    "int": pa.int32(),
    "long": pa.int64(),
    "small": pa.uint16(),
    "float": pa.float64(),
    "money": pa.decimal128(9, 2),
    "wide": pa.decimal128(38, 2),
    "date": pa.date32(),
    "moment": pa.timestamp("us"),
    "text": pa.string(),
    "octets": pa.binary(),
}
OPERATIONS = {"==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}


def entry(kind: pa.DataType, number: int) -> Any:
    if pa.types.is_decimal(kind):
        return Decimal(number - 30) / 4
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        text = f"{number * 7 % 100:02} of the words" + "ä" * (number % 3)
        return text if pa.types.is_string(kind) else text.encode()
    if pa.types.is_floating(kind):
        return number / 8
    return pa.scalar(number, pa.int32() if kind == pa.date32() else pa.int64()).cast(kind).as_py()


@functools.cache
def table(entries: int, nulls: bool) -> pa.Table:
    random = np.random.default_rng(entries)
    columns = []
    for kind in KINDS.values():
        codes = random.integers(0, entries, ROWS).astype(np.int32)
        codes[100:900] = codes[100]         # a run, beside packed indices
        values = pa.array([entry(kind, number) for number in range(entries)], kind)
        columns.append(values.take(pa.array(codes, mask=random.random(ROWS) < 0.2 if nulls else None)))
    fields = [pa.field(name, kind, nulls) for name, kind in KINDS.items()]
    return pa.table([*columns, pa.array(range(ROWS))], pa.schema([*fields, pa.field("row", pa.int64(), False)]))


def stored(data: pa.Table, **options: Any) -> bytes:
    target = io.BytesIO()
    chosen = {"row_group_size": 1300, "max_rows_per_page": 200, "write_batch_size": 50, "store_schema": False}
    pq.write_table(data, target, **chosen | options)
    return target.getvalue()


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each column read for a predicate, whether verdicts were read; small files are read for predicates first, too."""
    seen: list[bool] = []
    columns = Scan.columns

    def noted(self: Scan, *arguments: Any, **options: Any) -> Any:
        read: Sequence[AnyColumn] = columns(self, *arguments, **options)
        if options.get("codes"):
            seen.extend(column.type is VERDICTS for column in read)
        return read

    monkeypatch.setattr(Scan, "columns", noted)
    monkeypatch.setattr(filtered_scan, "MOST_TOGETHER", 0)
    return seen


def check(file: bytes, data: pa.Table, name: str, entries: int) -> None:
    kind = KINDS[name]
    for op, compare in OPERATIONS.items():
        value = entry(kind, entries // 2)
        expected = data.filter(compare(data[name], pa.scalar(value, kind)))["row"].to_pylist()
        assert fastpq.read_table(file, columns=["row"], filters=(name, op, value))["row"].to_pylist() == expected, op
        with fastpq.ParquetFile(file) as opened:
            assert opened.count((name, op, value)) == len(expected)
    some = [entry(kind, number) for number in (1, 2, entries - 1)]
    among = pc.is_in(data[name], pa.array(some, kind))
    got = fastpq.read_table(file, columns=["row"], filters=(name, "in", some))["row"].to_pylist()
    assert got == data.filter(among)["row"].to_pylist()
    either = [[(name, "in", some)], [(name, "is null")]]
    got = fastpq.read_table(file, columns=["row"], filters=either)["row"].to_pylist()
    assert got == data.filter(pc.or_(among, pc.is_null(data[name])))["row"].to_pylist()


@pytest.mark.parametrize("nulls", [False, True], ids=["required", "nullable"])
@pytest.mark.parametrize("entries", [5, 64, 65, 300])
@pytest.mark.parametrize("name", KINDS)
def test_rows_of_judged_columns(name: str, entries: int, nulls: bool, judged: list[bool]) -> None:
    """Up to 64 entries have their verdicts in one word."""
    data = table(entries, nulls).select([name, "row"])
    check(stored(data), data, name, entries)
    assert any(judged)
    check(stored(data, write_page_index=True, data_page_version="2.0", compression="none"), data, name, entries)


@pytest.mark.parametrize("nulls", [False, True], ids=["required", "nullable"])
@pytest.mark.parametrize("count", [2, 8, 9])
def test_conditions_of_one_column(count: int, nulls: bool, judged: list[bool]) -> None:
    """Each has a bit of the verdicts; more than eight conditions read the values."""
    data = table(300, nulls).select(["long", "int", "row"])
    ranges = [[("long", ">=", 30 * each), ("long", "<", 30 * each + 7)] for each in range(count // 2)]
    if count % 2:
        ranges.append([("long", "==", 299)])
    whole = ranges[: count // 2]
    found = [pc.and_(pc.greater_equal(data["long"], low[2]), pc.less(data["long"], high[2])) for low, high in whole]
    found += [pc.equal(data["long"], 299)] * (count % 2)
    expected = data.filter(functools.reduce(pc.or_, found))["row"].to_pylist()
    assert fastpq.read_table(stored(data), columns=["row"], filters=ranges)["row"].to_pylist() == expected
    assert any(judged) == (count <= 8)
    both = pc.and_(functools.reduce(pc.or_, found), pc.less(data["int"], 100))
    got = fastpq.read_table(stored(data), columns=["row"], filters=[[*part, ("int", "<", 100)] for part in ranges])
    assert got["row"].to_pylist() == data.filter(both)["row"].to_pylist()


@pytest.mark.parametrize("nulls", [False, True], ids=["required", "nullable"])
@pytest.mark.parametrize("name", KINDS)
def test_pages_outside_the_dictionary(name: str, nulls: bool, judged: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Metadata claim that all values are in dictionaries, and later pages are PLAIN: their values are judged."""
    monkeypatch.setattr("fastpq.read.dictionary_columns.stored_dictionary_size", lambda column, chunk: 1)
    monkeypatch.setattr("fastpq.read.filtered.dictionary_evidence.stored_dictionary_size", lambda column, chunk: 0)
    data = table(250, nulls).select([name, "row"])
    file = stored(data, dictionary_pagesize_limit=100)
    assert "PLAIN" in pq.ParquetFile(io.BytesIO(file)).metadata.row_group(0).column(0).encodings
    check(file, data, name, 250)
    assert all(judged)
    got = fastpq.read_table(file, columns=["row"], filters=[(name, "!=", entry(KINDS[name], 3)), ("row", "<", 2000)])
    kept = pc.and_(pc.not_equal(data[name], pa.scalar(entry(KINDS[name], 3), KINDS[name])), pc.less(data["row"], 2000))
    assert got["row"].to_pylist() == data.filter(kept)["row"].to_pylist()


def test_an_index_outside_the_dictionary(judged: list[bool]) -> None:
    """Indices of two bits, read as three bits each, are beyond the four entries of the dictionary page."""
    target = io.BytesIO()
    fastpq.write_table({"a": np.arange(200) % 4, "row": np.arange(200)}, target, compression=None, write_page_checksum=False)
    damaged = bytearray(target.getvalue())
    place = damaged.index((np.arange(200) % 4)[:4].tobytes()) + 32
    packed = damaged.index(bytes([0b11100100] * 10), place)     # two bits an index
    damaged[damaged.rindex(b"\x02", 0, packed)] = 3
    with pytest.raises(fastpq.FormatError):
        fastpq.read_table(bytes(damaged), columns=["row"], filters=("a", "==", 1))
    assert judged == []         # the read fails
