"""Levels of nested columns, made page by page: as the specification defines them, and as pyarrow reads them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpq
from fastpq.column.leaf_entries import Levels
from fastpq.errors import SchemaError

ROWS = 5000


def bitmap(flags: list[bool]) -> np.ndarray:
    return np.packbits(np.array(flags, bool), bitorder="little")


def validity(values: list[Any]) -> np.ndarray | None:
    return None if None not in values else bitmap([value is not None for value in values])


def reference(row: Any, depth: int, definition: int = 0, repetition: int = 0, level: int = 0) -> Iterator[tuple[int, int]]:
    """Yield definition and repetition level of each entry of a nullable list of lists ... of nullable values."""
    if row is None:
        yield definition, repetition
    elif depth == 0 or not row:
        yield definition + 1, repetition
    else:
        for number, element in enumerate(row):
            yield from reference(element, depth - 1, definition + 2, repetition if number == 0 else level + 1, level + 1)


@st.composite
def nested(draw: st.DrawFn, depth: int) -> st.SearchStrategy[Any]:
    """Draw how rows are drawn: with or without nulls, and with or without empty lists, in each layer."""
    nulls = st.booleans().map(lambda has_nulls: st.none() if has_nulls else st.nothing())
    values: st.SearchStrategy[Any] = draw(nulls) | st.just(1)
    for _ in range(depth):
        values = draw(nulls) | st.lists(values, min_size=draw(st.integers(0, 1)), max_size=4)
    return values


def entered(rows: list[Any], depth: int, start: int, stop: int) -> tuple[Levels, Any, list[Any]]:
    """Enter rows layer by layer; return the levels, the slots of the leaf, and the leaf's values with nulls."""
    levels, current = Levels(start, stop), rows
    for level in range(depth):
        levels.enter_value(validity(current), True)
        lengths = [len(row or ()) for row in current]
        levels.enter_list(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64 if level else np.int32), level + 1)
        current = [element for row in current for element in row or ()]
    levels.enter_value(validity(current), True)
    return levels, levels.finish(2 * depth + 1), current


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@given(data=st.data())
def test_levels_are_those_of_the_specification(depth: int, data: st.DataObject) -> None:
    rows = data.draw(st.lists(data.draw(nested(depth)), max_size=40))
    start, stop = sorted(data.draw(st.tuples(*2 * [st.integers(0, len(rows))])))
    levels, slots, leaf = entered(rows, depth, start, stop)
    expected = [list(reference(row, depth)) for row in rows[start:stop]]
    first = data.draw(st.integers(0, stop - start))
    for row, count in ((0, stop - start), (first, stop - start - first), (0, first)):
        definition, repetition = levels.levels(row, count)
        entries = [entry for each in expected[row : row + count] for entry in each]
        assert [*zip(definition, repetition, strict=True)] == entries
    if isinstance(slots, slice):
        slots = range(slots.start, slots.stop)
    assert len(slots) == sum(definition == 2 * depth + 1 for row in expected for definition, _ in row)
    assert all(leaf[slot] is not None for slot in slots)


def test_gathered_values_are_told_from_the_values_of_the_caller() -> None:
    """A page that waits may keep the caller's memory, and must not keep a copy of all values of a chunk."""
    for rows, is_consecutive in (([[1, 2], [3]], True), ([[1], [], [2]], True), ([[1, None, 2]], False)):
        levels, slots, _ = entered(rows, 1, 0, len(rows))
        assert levels.is_consecutive is is_consecutive is isinstance(slots, slice)


def test_a_null_in_a_required_field() -> None:
    levels = Levels(0, 3)
    levels.enter_value(bitmap([True, False, False]), False)
    with pytest.raises(SchemaError, match="2 nulls in a required field"):
        levels.finish(0)


def test_a_null_below_a_null_is_allowed() -> None:
    levels = Levels(0, 2)
    levels.enter_value(bitmap([True, False]), True)
    levels.enter_value(bitmap([True, False]), False)
    assert levels.finish(1) == slice(0, 1)
    assert levels.levels(0, 2) == (b"\1\0", b"\0\0")


def lists(lengths: np.ndarray, values: pa.Array, **options: Any) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)), values, **options)


def columns() -> dict[str, pa.Array]:
    """Columns of each shape that has a way of its own, and of shapes that have none."""
    random = np.random.default_rng(5)
    lengths, nulls = random.integers(0, 5, ROWS), pa.array(random.random(ROWS) < 0.2)
    total = int(lengths.sum())
    integers = pa.array(random.integers(0, 1 << 40, total))
    gaps = pa.array(random.integers(0, 9, total), mask=random.random(total) < 0.3)
    texts = pa.array([f"text {number}" for number in random.integers(0, 50, total)])
    floats = pa.array(random.random(ROWS * 128, dtype=np.float32))
    embeddings = pa.FixedSizeListArray.from_arrays(floats, 128)
    struct = pa.StructArray.from_arrays([pa.array(random.random(ROWS)), lists(lengths, integers)], ["a", "b"], mask=nulls)
    return {
        "integers": lists(lengths, integers),
        "with null lists": lists(lengths, integers, mask=nulls),      # values below a null stay in the values
        "with null elements": lists(lengths, gaps),
        "texts": lists(lengths, texts),
        "none empty": lists(np.full(ROWS, 4), pa.array(np.arange(4 * ROWS))),
        "all empty": lists(np.zeros(ROWS, int), pa.array([], pa.int8())),
        "embeddings": embeddings,
        "embeddings of 7": pa.FixedSizeListArray.from_arrays(floats[: ROWS * 7], 7),
        "null embeddings": pa.FixedSizeListArray.from_arrays(floats, 128, mask=nulls),
        "struct": struct,
        "lists of structs": lists(lengths, pa.StructArray.from_arrays([integers, gaps], ["x", "y"])),
        "lists of lists": lists(np.full(ROWS // 10, 10), lists(lengths, gaps)),
        "lists of embeddings": lists(np.full(ROWS // 10, 10), embeddings),
        "map": pa.MapArray.from_arrays(lists(lengths, texts).offsets, texts, integers),
    }


@pytest.mark.parametrize("options", [
    {}, {"use_dictionary": False, "compression": "none"}, {"use_dictionary": False, "compression": "zstd"},
    {"data_page_version": "2.0", "compression": "none", "use_dictionary": False}, {"data_page_version": "2.0"},
    {"data_page_size": 3000, "row_group_size": 1700},
], ids=str)
@pytest.mark.parametrize("name", columns())
def test_pyarrow_reads_what_was_written(name: str, options: dict[str, Any]) -> None:
    column = columns()[name]
    for values in (column, column[123:-77]):
        target = io.BytesIO()
        fastpq.write_table(pa.table({"c": values}), target, write_page_index=True, **options)
        read = pq.read_table(io.BytesIO(target.getvalue()), page_checksum_verification=True)
        assert read["c"].to_pylist() == values.to_pylist()


@pytest.mark.parametrize("options", [{"compression": "none", "use_dictionary": False}, {"compression": "zstd"}])
@pytest.mark.parametrize("name", columns())
def test_level_histograms_count_the_levels(name: str, options: dict[str, Any]) -> None:
    """The histograms of a file of pyarrow are those of a file of ours."""
    table = pa.table({"c": columns()[name]})
    ours, theirs = io.BytesIO(), io.BytesIO()
    fastpq.write_table(table, ours, **options)
    pq.write_table(table, theirs, **options)
    counts = []
    for file in (ours, theirs):
        metadata = fastpq.ParquetFile(io.BytesIO(file.getvalue())).metadata
        counts.append([
            (chunk.metadata.num_values, histogram(chunk.metadata.size_statistics))
            for chunk in (metadata.row_group(0).column(index) for index in range(metadata.num_columns))
        ])
    assert counts[0] == counts[1]


def histogram(statistics: Any) -> tuple[Any, Any] | None:
    return None if statistics is None else (statistics.repetition_level_histogram or None, statistics.definition_level_histogram)
