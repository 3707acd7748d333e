"""Rows by number: read(row_ranges=), take, head, tail and sample against a full read, and which pages they touch."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpq

ROWS = 2000
FILES = ["v1", "v2", "no index", "optional"]


def data() -> pa.Table:
    rows = range(ROWS)
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "maybe": pa.array([None if i % 7 == 0 or 300 < i < 500 else i / 3 for i in rows]),
            "flag": pa.array([i % 5 == 0 for i in rows]),
            "text": pa.array([None if i % 11 == 0 else f"{i} " + "x" * (i % 30) for i in rows]),
            "word": pa.array([f"word {i % 13}" for i in rows]),
            "list": pa.array([None if i % 9 == 0 else [f"{i}.{j}" for j in range(i % 6)] for i in rows]),
            "deep": pa.array([[[j] * (j % 3) for j in range(i % 4)] for i in rows]),
            "struct": pa.array([None if i % 8 == 0 else {"a": i, "b": [i] * (i % 3), "c": f"{i}"} for i in rows]),
            "map": pa.array([[(str(i), j) for j in range(i % 3)] for i in rows], pa.map_(pa.string(), pa.int32())),
        }
    )


@functools.cache
def folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@functools.cache
def path_of(kind: str) -> Path:
    path = Path(folder().name) / f"{kind}.parquet"
    pq.write_table(
        data(),
        path,
        row_group_size=700,
        max_rows_per_page=ROWS if kind == "no index" else 37,
        write_batch_size=8,
        write_page_index=kind != "no index",
        data_page_version="2.0" if kind == "v2" else "1.0",
        use_dictionary=["word"],
        compression="none" if kind == "optional" else "zstd",
    )
    return path


@functools.cache
def opened(kind: str, strings: str = "views") -> fastpq.ParquetFile:
    return fastpq.ParquetFile(path_of(kind), strings=strings)      # type: ignore[arg-type]


@functools.cache
def truth() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = data().to_pylist()
    return rows


@st.composite
def ranges(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Ranges far apart, or many short ones close together."""
    edges = sorted(draw(st.lists(st.integers(0, ROWS), max_size=12)))
    if draw(st.booleans()):
        first, longest = draw(st.integers(0, ROWS // 2)), draw(st.integers(1, 60))
        steps = np.random.default_rng(draw(st.integers(0, 1000))).integers(1, longest + 1, draw(st.integers(0, 100)))
        edges = [int(edge) for edge in first + np.cumsum(steps) if edge <= ROWS]
    return [*zip(edges[::2], edges[1::2], strict=False)]


columns = st.none() | st.lists(st.sampled_from([*data().column_names, "struct.a", "struct.b"]), max_size=5, unique=True)


def expected_of(file: fastpq.ParquetFile, indices: Any, chosen: list[str] | None) -> fastpq.Table:
    whole = file.read(chosen)
    indices = np.asarray(indices, np.int64)
    return fastpq.Table({name: column.take(indices) for name, column in whole.items()}, num_rows=len(indices))


@settings(max_examples=60)
@given(kind=st.sampled_from(FILES), bounds=ranges(), chosen=columns, strings=st.sampled_from(["views", "offsets", "dictionary"]))
def test_ranges_are_slices_of_a_full_read(kind: str, bounds: list[tuple[int, int]], chosen: Any, strings: str) -> None:
    file = opened(kind, strings)
    rows = [row for start, stop in bounds for row in range(start, stop)]
    got = file.read(chosen, row_ranges=bounds)
    assert got.equals(expected_of(file, rows, chosen))
    if chosen is None:
        assert got.to_pylist() == [truth()[row] for row in rows]
    batches = list(file.iter_batches(41, chosen, row_ranges=bounds))
    assert sum(batch.num_rows for batch in batches) == len(rows)
    if batches:
        assert fastpq.Table.concat(batches).equals(got)


@settings(max_examples=40)
@given(kind=st.sampled_from(FILES), indices=st.lists(st.integers(-ROWS, ROWS - 1), max_size=60), chosen=columns)
def test_take_is_that_of_numpy(kind: str, indices: list[int], chosen: Any) -> None:
    file = opened(kind)
    rows: Any = np.arange(ROWS).take(indices) if indices else []
    assert file.take(indices, chosen).equals(expected_of(file, rows, chosen))


@settings(max_examples=30)
@given(kind=st.sampled_from(FILES), bounds=ranges(), low=st.integers(0, ROWS), group=st.sampled_from([None, [1], [2, 0], [1, 1]]))
def test_filters_and_row_groups_beside_ranges(kind: str, bounds: list[tuple[int, int]], low: int, group: Any) -> None:
    file = opened(kind)
    rows = [row for start, stop in bounds for row in range(start, stop)]
    if group is not None:
        rows = [row for index in group for row in rows if row // 700 == index]
    assert file.read(["id"], row_groups=group, row_ranges=bounds)["id"].to_pylist() == rows
    filters = [("id", ">=", low), ("maybe", "is not null")]
    kept = [row for row in rows if row >= low and truth()[row]["maybe"] is not None]
    got = file.read(["list", "id"], row_groups=group, row_ranges=bounds, filters=filters)
    assert got["id"].to_pylist() == kept
    assert got["list"].to_pylist() == [truth()[row]["list"] for row in kept]
    parts = list(file.iter_batches(100, ["id"], row_groups=group, row_ranges=bounds, filters=filters))
    assert [row for part in parts for row in part["id"].to_pylist()] == kept


@pytest.mark.parametrize("kind", FILES)
def test_head_tail_and_sample(kind: str) -> None:
    file = opened(kind)
    assert file.head(750).to_pylist() == truth()[:750]
    assert file.tail(3, ["id"]).to_pylist() == [{"id": row} for row in range(ROWS - 3, ROWS)]
    assert file.head(0, ["id"]).num_rows == file.tail(0).num_rows == 0
    assert file.head(9 * ROWS, ["id"]).num_rows == file.tail(9 * ROWS, ["id"]).num_rows == ROWS
    sample = file.sample(100, seed=5)
    ids = sample["id"].to_pylist()
    assert sample.to_pylist() == [truth()[row] for row in ids]
    assert ids == sorted(set(ids))
    assert file.sample(100, ["id"], seed=5)["id"].to_pylist() == ids != file.sample(100, ["id"], seed=6)["id"].to_pylist()
    assert file.sample(ROWS, ["id"])["id"].to_pylist() == list(range(ROWS))


def test_what_does_not_fit() -> None:
    file = opened("v1")
    for bad in ([(0, ROWS + 1)], [(-1, 3)], [(5, 4)], [(5, 9), (8, 12)], [(5, 9), (1, 3)], [(1, 2, 3)], [("a", 3)], [7]):
        with pytest.raises(fastpq.SchemaError):
            file.read(row_ranges=bad)       # type: ignore[arg-type]
    for outside in ([ROWS], [-ROWS - 1], np.array([2**64 - 1], np.uint64), [[1, 2]]):
        with pytest.raises(fastpq.SchemaError):
            file.take(outside)
    for wrong in ([1.5], [True], ["a"]):
        with pytest.raises(TypeError):
            file.take(wrong)
    with pytest.raises(fastpq.SchemaError, match="different rows"):
        file.sample(ROWS + 1)
    for method in (file.head, file.tail, file.sample):
        with pytest.raises(ValueError, match="at least 0"):
            method(-1)


@pytest.mark.parametrize("kind", ["v1", "v2"])
def test_no_other_page_is_read(kind: str) -> None:
    """Every byte of every page that holds no row asked for is altered: nobody notices."""
    stored = bytearray(path_of(kind).read_bytes())
    wanted = [0, 36, 37, 1000, 1999]
    with fastpq.ParquetFile(path_of(kind)) as file:
        for group in range(file.num_row_groups):
            for column in file.schema.columns:
                index = file.offset_index(group, column.index)
                assert index is not None
                for page, rows in zip(index.page_locations, index.row_counts.tolist(), strict=True):
                    first = group * 700 + page.first_row_index
                    if not any(first <= row < first + rows for row in wanted):
                        stored[page.offset : page.offset + page.compressed_page_size] = b"\xff" * page.compressed_page_size
    with fastpq.ParquetFile(bytes(stored)) as file:
        assert file.take(wanted).to_pylist() == [truth()[row] for row in wanted]
        with pytest.raises(fastpq.ParquetError):
            file.take([500])
        with pytest.raises(fastpq.ParquetError):
            file.read()


def test_bytes_are_counted() -> None:
    with fastpq.ParquetFile(path_of("v1"), memory_map=False) as file:
        opening = file.io
        assert opening.requests == 1
        file.take([1000], ["id"])
        assert file.io.requests <= opening.requests + 2
        with fastpq.ParquetFile(path_of("v1")) as mapped:
            before = mapped.io.bytes_read
            mapped.take([1000], ["id"])
            assert mapped.io.bytes_read - before < 2000
