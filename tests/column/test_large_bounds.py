"""Bounds of large texts and bytes: cut before they are copied, and the same as if they had been kept whole."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpq
from fastpq.stats.bounds import truncate_max, truncate_min

# Prefixes with and without a successor of the same length.
PIECES = ["a", "~", "\x7f", "ä", "\u07ff", "\u0800", "\u4e16", "\uffff", "\U0001f600", "\U0010ffff"]
texts = st.builds(
    lambda piece, count, tail: piece * count + tail, st.sampled_from(PIECES), st.integers(0, 90), st.sampled_from(PIECES)
)
binaries = st.builds(lambda piece, count, tail: piece * count + tail, st.sampled_from([b"\xff", b"\xe4", b"a", b"\0"]),
                     st.integers(0, 90), st.binary(max_size=9))


def expected(values: list[bytes], truncation: int, is_text: bool) -> tuple[Any, ...]:
    """Return the bounds of values that were kept whole."""
    least, is_least = truncate_min(min(values), truncation, is_text)
    greatest, is_greatest = truncate_max(max(values), truncation, is_text)
    return least, is_least, greatest, None if greatest is None else is_greatest


@pytest.mark.parametrize("kind", ["text", "bytes"])
@given(data=st.data())
def test_bounds_are_those_of_whole_values(kind: str, data: st.DataObject) -> None:
    values: list[Any] = data.draw(st.lists(texts if kind == "text" else binaries, min_size=1, max_size=30))
    truncation = data.draw(st.integers(1, 70))
    target = io.BytesIO()
    table = pa.table({"v": pa.array(values, pa.string() if kind == "text" else pa.binary())})
    fastpq.write_table(table, target, statistics_truncation=truncation, data_page_rows=7, write_page_index=True)
    stored = [value.encode() if isinstance(value, str) else value for value in values]
    with fastpq.ParquetFile(io.BytesIO(target.getvalue())) as file:
        statistics = file.metadata.row_group(0).column(0).metadata.statistics
        assert statistics is not None
        found = statistics.min_value, statistics.is_min_value_exact, statistics.max_value, statistics.is_max_value_exact
        assert found == expected(stored, truncation, kind == "text")
        index = file.column_index(0, 0)
        assert index is not None
    for page in range(len(index.min_values)):
        rows = stored[7 * page : 7 * page + 7]
        least, _, greatest, _ = expected(rows, truncation, kind == "text")
        assert (index.min_values[page], index.max_values[page]) == (least, max(rows) if greatest is None else greatest)


def test_others_find_large_values() -> None:
    values = [f"{number:03} " + "x" * 100_000 for number in range(50)]
    target = io.BytesIO()
    fastpq.write_table({"v": values}, target, data_page_size=300_000, write_page_index=True)
    for value in (values[0], values[31], values[49]):
        assert pq.read_table(io.BytesIO(target.getvalue()), filters=[("v", "==", value)])["v"].to_pylist() == [value]
        assert fastpq.read_table(target.getvalue(), filters=[("v", "==", value)])["v"].to_pylist() == [value]


def test_bounds_take_little_memory() -> None:
    """Writing 100 values of 1 MB grows a process by the pages, not by three copies of every bound."""
    program = """
import io, os, resource, sys
import fastpq
values = [bytes([97 + number % 25]) + os.urandom(1 << 20) for number in range(100)]
fastpq.write_table({"v": values[:2]}, os.devnull, compression="none")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fastpq.write_table({"v": values}, os.devnull, compression="none")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    grown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(grown.stdout) < 300      # the values are copied once into a column of 100 MiB
