"""Deep nesting ends in a result or a LimitError, from any depth of the caller's stack; never in a RecursionError."""

from __future__ import annotations

import inspect
import io
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.schema.nested_types import Field, StructType
from fastpq.schema.types import ColumnType, Type

DEPTHS = (100, 190, 200, 300, 511)
MARGIN = 60     # frames that any call of fastpq may need, also for flat columns


def nested(depth: int) -> Any:
    column: Any = fastpq.Column(ColumnType(Type.INT64), np.arange(3), nullable=False)
    for _ in range(depth):
        column = fastpq.StructColumn._made(StructType((Field("a", column.type, False),)), (column,), 3, nullable=False)
    return column


def with_a_large_stack(work: Callable[[], Any]) -> Any:
    """The result of a function in a thread with room for deep recursion."""
    results: list[Any] = []
    limit, size = sys.getrecursionlimit(), threading.stack_size(256 << 20)
    sys.setrecursionlimit(50_000)
    try:
        thread = threading.Thread(target=lambda: results.append(work()))
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    return results[0]


def written(depth: int) -> bytes:
    def write() -> bytes:
        file = io.BytesIO()
        fastpq.write_table(fastpq.Table({"s": nested(depth - 1)}), file)
        return file.getvalue()

    data: bytes = with_a_large_stack(write)
    return data


def from_depth(frames: int, work: Callable[[], Any]) -> Any:
    return from_depth(frames - 1, work) if frames else work()


def is_done(work: Callable[[], Any]) -> bool:
    """True for a result, False for a LimitError; any other error fails the test."""
    try:
        work()
    except fastpq.LimitError:
        return False
    return True


def depth_of_stack() -> int:
    return len(inspect.stack(0))


@pytest.mark.parametrize("depth", DEPTHS)
def test_reading(depth: int) -> None:
    data = written(depth)
    ways: list[Callable[[], Any]] = [
        lambda: fastpq.read_table(io.BytesIO(data)),
        lambda: list(fastpq.ParquetFile(io.BytesIO(data)).iter_batches()),
        lambda: fastpq.recover_table(io.BytesIO(data)),
    ]
    done = {is_done(way) for way in ways}
    # whether 190 or 200 levels fit depends on the depth of pytest's own stack
    assert done == {depth <= 100} or depth in (190, 200)


@pytest.mark.parametrize("depth", DEPTHS)
def test_columns(depth: int) -> None:
    table = with_a_large_stack(lambda: fastpq.Table({"s": nested(depth - 1)}))
    column = table["s"]
    ways: list[Callable[[], Any]] = [
        table.to_pylist,
        column.to_pylist,
        column.to_numpy,
        lambda: column.to_numpy(structured=True),
        lambda: column.__arrow_c_array__(),
        lambda: table.__arrow_c_stream__(),
        lambda: column.equals(column),
        lambda: column.take(np.arange(2)),
        lambda: column.nbytes,
        lambda: fastpq.Table.concat([table, table]),
        lambda: fastpq.write_table(table, io.BytesIO()),
    ]
    for way in ways:
        is_done(way)
    assert str(column)
    assert repr(table)


def test_a_deep_stack_of_the_caller() -> None:
    data = written(100)
    table = fastpq.read_table(io.BytesIO(data))        # the schema's shape is kept: the second read has no recursion of its own
    ways: list[Callable[[], Any]] = [
        lambda: fastpq.read_table(io.BytesIO(data)),
        lambda: fastpq.recover_table(io.BytesIO(data)),
        table.to_pylist,
        table.__arrow_c_stream__,
        lambda: table.equals(table),
    ]
    room = sys.getrecursionlimit() - depth_of_stack() - MARGIN
    for way in ways:
        assert {is_done(lambda: from_depth(frames, way)) for frames in (0, *range(1, room, 23))} == {True, False}      # noqa: B023


@pytest.mark.parametrize("depth", [50, 120])
def test_deep_lists_are_read(depth: int) -> None:
    """A list takes two groups of the schema, but one level of the stack's frames."""
    value: Any = 5
    for _ in range(depth):
        value = [value]
    file = io.BytesIO()
    fastpq.write_table({"c": [value]}, file)
    assert fastpq.read_table(file.getvalue())["c"].to_pylist() == [value]
