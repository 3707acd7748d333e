"""Pages that views of text and binary keep count against max_allocation before they are decompressed, on every path."""

from __future__ import annotations

import io
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastpq
from fastpq.arrays.allowance import Allowance

MIB = 1 << 20
SIZE, COUNT = 16 * MIB, 6
LIMIT = 56 * MIB                # three values of SIZE fit, four do not
BOUND = fastpq.ReaderProperties(max_allocation=LIMIT)
VALUES = [bytes([65 + number]) * SIZE for number in range(COUNT)]

OPTIONS: dict[str, dict[str, Any]] = {
    "compressed": {"compression": "zstd"},
    "V2": {"compression": "zstd", "data_page_version": "2.0"},
    "uncompressed": {"compression": "none"},
    "row groups": {"compression": "zstd", "row_group_size": 1},
    "DELTA_LENGTH_BYTE_ARRAY": {"compression": "zstd", "column_encoding": {"value": "DELTA_LENGTH_BYTE_ARRAY"}},
    "DELTA_BYTE_ARRAY": {"compression": "zstd", "column_encoding": {"value": "DELTA_BYTE_ARRAY"}},
    "dictionary": {"compression": "zstd", "use_dictionary": True, "dictionary_page_size": 1 << 30},
}
TYPES = {"text": pa.string(), "binary": pa.binary(), "list": pa.list_(pa.binary())}


def written(type_: pa.DataType, **options: Any) -> bytes:
    values = [[value] for value in VALUES] if pa.types.is_list(type_) else VALUES
    table = pa.table({"id": pa.array(range(COUNT)), "value": pa.array(values, type_)})
    sink = io.BytesIO()
    fastpq.write_table(table, sink, **{"use_dictionary": False, "data_page_rows": 1, "write_statistics": ["id"], **options})
    return sink.getvalue()


@pytest.fixture(scope="module")
def stored() -> dict[str, bytes]:
    return {"list": written(TYPES["list"], compression="zstd")} | {
        f"{kind} {name}": written(TYPES[kind], **options)
        for name, options in OPTIONS.items()
        for kind in ("text", "binary")
        if name in ("compressed", "V2") or kind == "binary"
    }


def opened(data: Any, **options: Any) -> fastpq.ParquetFile:
    return fastpq.ParquetFile(data, properties=BOUND, **options)


WAYS: dict[str, Callable[[Any], Any]] = {
    "read": lambda data: opened(data).read(),
    "one thread": lambda data: opened(data, threads=1).read(),
    "offsets": lambda data: opened(data, strings="offsets").read(),
    "dictionary codes": lambda data: opened(data, strings="dictionary").read(),
    "filters": lambda data: opened(data).read(filters=[("id", "!=", 100)]),
    "filters of some": lambda data: opened(data).read(filters=[("id", "in", [0, 2, 4, 5])]),
    "take": lambda data: opened(data).take([5, 0, 3, 1]),
    "row ranges": lambda data: opened(data).read(row_ranges=[(0, 1), (2, 5)]),
    "batches": lambda data: [*opened(data).iter_batches(COUNT)],
    "batches in use": lambda data: [*opened(data).iter_batches(1)],
    "filtered batches": lambda data: [*opened(data).iter_batches(2, filters=[("id", "!=", 100)])],
    "on_error": lambda data: opened(data, on_error="null").read(),
}


@pytest.mark.parametrize("way", WAYS)
def test_kept_pages_are_bounded(way: str, stored: dict[str, bytes]) -> None:
    for name, data in stored.items():
        if way == "dictionary codes" and name == "list":
            continue        # a layout of flat columns
        with pytest.raises(fastpq.LimitError, match=r"max_allocation"):
            WAYS[way](bytearray(data))


FITTING: dict[str, Callable[[Any], list[int]]] = {
    "no text": lambda data: opened(data).read(["id"])["id"].to_pylist(),
    "two rows": lambda data: opened(data).read(row_ranges=[(1, 3)])["id"].to_pylist(),
    "take": lambda data: opened(data).take([4, 1])["id"].to_pylist(),
    "filters": lambda data: opened(data).read(filters=[("id", "in", [3, 4])])["id"].to_pylist(),
    "batches one after the other": lambda data: [
        int(batch["id"].to_numpy()[0]) for batch in opened(data).iter_batches(1) if len(batch["value"].to_pylist()) == 1
    ],
}


@pytest.mark.parametrize("way", FITTING)
def test_pages_of_no_use_count_no_longer(way: str, stored: dict[str, bytes]) -> None:
    for name, data in stored.items():
        if not name.endswith("dictionary"):     # all values of a dictionary are in memory at once
            assert FITTING[way](bytearray(data))


def test_a_filter_on_text_reads_more_than_fits(stored: dict[str, bytes]) -> None:
    with opened(bytearray(stored["binary row groups"])) as file:
        assert file.count([("value", "==", VALUES[4])]) == 1
        assert file.read(["id"], filters=[("value", "==", VALUES[2])])["id"].to_pylist() == [2]


def test_results_that_are_gone_count_no_longer(stored: dict[str, bytes]) -> None:
    for on_error in ("raise", "null"):
        with opened(bytearray(stored["binary compressed"]), on_error=on_error) as file:
            for _ in range(3):
                held = file.read(row_ranges=[(0, 2)])
                again = file.read(row_ranges=[(2, 4)])      # each read has an allowance of its own
                assert held.num_rows == again.num_rows == 2


def test_pages_of_a_column_go_before_those_of_the_next() -> None:
    """Text with offsets is copied: the pages of one column count beside the copies of all."""
    sink = io.BytesIO()
    fastpq.write_table({f"c{number}": [value] for number, value in enumerate(VALUES)}, sink, **OPTIONS["compressed"])
    for most, fits in (((COUNT + 1) * SIZE + MIB, True), (COUNT * SIZE + MIB, False)):
        with nullcontext() if fits else pytest.raises(fastpq.LimitError):
            bound = fastpq.ReaderProperties(max_allocation=most)
            fastpq.read_table(sink.getvalue(), threads=1, strings="offsets", properties=bound)


def test_values_of_fixed_width_count_with_the_pages() -> None:
    sink = io.BytesIO()
    text = np.array([f"{number:0100}" for number in range(10_000)], dtype=np.dtypes.StringDType())
    fastpq.write_table({"number": np.arange(10_000), "text": text}, sink, use_dictionary=False)
    size = 10_000 * (8 + 16 + 104)
    assert fastpq.read_table(sink.getvalue(), properties=fastpq.ReaderProperties(max_allocation=size)).num_rows == 10_000
    with pytest.raises(fastpq.LimitError):
        fastpq.read_table(sink.getvalue(), properties=fastpq.ReaderProperties(max_allocation=size - 20_000))


def test_columns_of_a_filter_count_to_the_end_of_the_read() -> None:
    sink = io.BytesIO()
    numbers = np.random.default_rng(1).integers(0, 1 << 40, 400_000)
    fastpq.write_table({"a": numbers}, sink, row_group_size=50_000, use_dictionary=False)
    bound = fastpq.ReaderProperties(max_allocation=2_000_000)
    some = [("a", ">", 1 << 30)]            # almost all rows, of one row group after the other
    with fastpq.ParquetFile(sink.getvalue(), properties=bound) as file:
        assert file.count(some) == int((numbers > 1 << 30).sum())
        assert sum(batch.num_rows for batch in file.iter_batches(filters=some)) == file.count(some)
        with pytest.raises(fastpq.LimitError, match="max_allocation"):
            file.read(filters=some)


def test_a_dataset_is_one_read(tmp_path: Path) -> None:
    for number in range(4):
        fastpq.write_table({"a": np.arange(100_000) + number}, tmp_path / f"{number}.parquet")
    bound = fastpq.ReaderProperties(max_allocation=1_000_000)
    assert fastpq.read_table(tmp_path / "0.parquet", properties=bound).num_rows == 100_000
    dataset = fastpq.ParquetDataset(tmp_path, properties=bound)
    assert sum(batch.num_rows for batch in dataset.iter_batches()) == 400_000
    with pytest.raises(fastpq.LimitError, match="max_allocation"):
        dataset.read()


PEAK = """
    import resource, sys
    import fastpq
    with open(sys.argv[1], "rb") as file:
        data = bytearray(file.read())
    bound = fastpq.ReaderProperties(max_allocation=56 << 20)
    file = fastpq.ParquetFile(data, properties=bound, threads=1)
    file.read(["id"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = 0
    for read in (
        lambda: file.read(),
        lambda: file.read(filters=[("id", "!=", 100)]),
        lambda: file.take([5, 0, 3, 1]),
        lambda: file.read(row_ranges=[(0, 5)]),
        lambda: list(file.iter_batches(6)),
    ):
        try:
            read()
        except fastpq.LimitError:
            refused += 1
    print(refused, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_is_refused_before_it_is_taken(stored: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(stored["binary compressed"])
    assert path.stat().st_size < 100_000
    command = [sys.executable, "-c", textwrap.dedent(PEAK), str(path)]
    refused, grown = map(int, subprocess.check_output(command, text=True).split())
    assert refused == 5
    assert grown * 1024 < LIMIT + 20 * MIB


def test_an_allowance_counts_from_allocation_to_the_last_view() -> None:
    allowance = Allowance(1000)
    array = np.arange(200, dtype=np.uint8)
    held = allowance.hold(array)
    part = held[50:60]
    assert held.tolist() == array.tolist()
    assert not held.flags.writeable
    assert allowance.taken == 200
    del held
    assert allowance.taken == 200
    assert part.tolist() == list(range(50, 60))
    with allowance.reserved(700):
        assert allowance.taken == 900
        allowance.check(100)
        with pytest.raises(fastpq.LimitError, match=r"need 1001 bytes, more than max_allocation \(1000\)"):
            allowance.check(101)
        with pytest.raises(fastpq.LimitError):
            allowance.hold(array)
    del part
    assert allowance.taken == 0
    with pytest.raises(fastpq.LimitError), allowance.reserved(1001):
        pass
    assert allowance.hold(array[:0]).shape == (0,)
    allowance.keep(1000)
    assert allowance.taken == allowance.limit


def test_counts_beyond_64_bits() -> None:
    """A forged count of values times their width fits no integer of the processor."""
    allowance = Allowance(1 << 80)
    assert allowance.limit == (1 << 63) - 1
    for use in (allowance.check, allowance.keep, lambda size: allowance.reserved(size).__enter__()):
        with pytest.raises(fastpq.LimitError, match=f"need {1 << 70} bytes"):
            use(1 << 70)
    assert allowance.taken == 0
