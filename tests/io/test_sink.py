"""Writes of a sink: small buffers together, large ones uncopied."""

from __future__ import annotations

import io
from typing import Any

import pytest

import fastpq
from fastpq.io.sink import MOST_TOGETHER, open_sink


class Counting(io.BytesIO):
    """Notes the bytes of each write."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def write(self, data: Any) -> int:
        self.sizes.append(len(data))
        return super().write(data)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ([], []),
        ([10], [10]),
        ([10] * 5, [50]),
        ([MOST_TOGETHER, 1, 1], [MOST_TOGETHER, 2]),
        ([1, MOST_TOGETHER - 1, 5, 3 * MOST_TOGETHER, 7], [MOST_TOGETHER, 5, 3 * MOST_TOGETHER, 7]),
        ([MOST_TOGETHER // 2 + 1] * 3, [MOST_TOGETHER // 2 + 1] * 3),
    ],
)
def test_small_buffers_are_written_together(given: list[int], written: list[int]) -> None:
    file, data = Counting(), [bytes([number]) * size for number, size in enumerate(given)]
    sink = open_sink(file)
    sink.write_together(memoryview(part) if number % 2 else part for number, part in enumerate(data))
    assert file.sizes == written
    assert file.getvalue() == b"".join(data)
    assert sink.written == sum(given)


def test_a_file_of_many_columns_takes_few_writes() -> None:
    file = Counting()
    fastpq.write_table({f"c{number}": [number] for number in range(1000)}, file)
    assert len(file.sizes) < 20         # a few for the chunks, and a few for the indexes of all
    assert fastpq.read_table(file.getvalue())["c999"].to_pylist() == [999]


def test_gathered_buffers_are_written_at_the_end_of_the_context() -> None:
    file = Counting()
    sink = open_sink(file)
    with sink.gathering():
        sink.write(b"a")
        sink.write_together([b"b", b"c"])
        assert (file.sizes, sink.written) == ([], 3)
        sink.write(b"d" * MOST_TOGETHER)
        assert (file.sizes, sink.written) == ([3], 3 + MOST_TOGETHER)
        sink.write(b"e" * (MOST_TOGETHER + 1))
        sink.write(b"f")
    sink.write(b"g")
    assert file.sizes == [3, MOST_TOGETHER, MOST_TOGETHER + 1, 1, 1]
    assert file.getvalue() == b"abc" + b"d" * MOST_TOGETHER + b"e" * (MOST_TOGETHER + 1) + b"fg"
    assert sink.written == len(file.getvalue())


def test_gathered_buffers_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Counting()
    sink = open_sink(file)

    def write(data: Any) -> int:
        io.BytesIO.write(file, data)
        raise OSError

    monkeypatch.setattr(file, "write", write)
    with pytest.raises(OSError), sink.gathering():
        sink.write(b"a")
        sink.write(bytes(MOST_TOGETHER))
    assert file.getvalue() == b"a"


def test_gathered_buffers_keep_their_places_after_an_error() -> None:
    file = Counting()
    sink = open_sink(file)
    with pytest.raises(KeyError), sink.gathering():
        sink.write(b"a")
        raise KeyError
    assert (file.getvalue(), sink.written) == (b"a", 1)
    with sink.gathering():
        sink.write(b"b")
        sink.abort()
    assert file.getvalue() == b"a"
