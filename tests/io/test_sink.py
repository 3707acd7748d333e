"""Writes of a sink: small buffers together, large ones uncopied."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import fastpq
from fastpq.io import disk_writing
from fastpq.io.sink import MOST_TOGETHER, MOST_UNSTARTED
from fastpq.io.sink_opening import open_sink


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
        ([MOST_TOGETHER // 2 + 1] * 3, [MOST_TOGETHER + 2, MOST_TOGETHER // 2 + 1]),
    ],
)
def test_small_buffers_are_written_together(given: list[int], written: list[int]) -> None:
    file, data = Counting(), [bytes([number]) * size for number, size in enumerate(given)]
    sink = open_sink(file)
    sink.write_together(memoryview(part) if number % 2 else part for number, part in enumerate(data))
    assert sink.size == sum(given)
    sink.persist()
    assert file.sizes == written
    assert file.getvalue() == b"".join(data)


def test_a_file_of_many_columns_takes_few_writes() -> None:
    file = Counting()
    fastpq.write_table({f"c{number}": [number] for number in range(1000)}, file)
    assert len(file.sizes) < 20         # a few for the chunks, and a few for the indexes of all
    assert fastpq.read_table(file.getvalue())["c999"].to_pylist() == [999]


def test_small_buffers_wait_for_others() -> None:
    file = Counting()
    sink = open_sink(file)
    sink.write(b"a")
    sink.write_together([b"b", b"c"])
    assert (file.sizes, sink.size) == ([], 3)
    sink.write(b"d" * MOST_TOGETHER)
    assert (file.sizes, sink.size) == ([3 + MOST_TOGETHER], 3 + MOST_TOGETHER)
    sink.write(b"e")
    sink.write(b"f" * (MOST_TOGETHER + 1))
    sink.write(b"g")
    sink.persist()
    sink.write(b"h")
    sink.commit()
    assert file.sizes == [3 + MOST_TOGETHER, 1, MOST_TOGETHER + 1, 1, 1]
    assert file.getvalue() == b"abc" + b"d" * MOST_TOGETHER + b"e" + b"f" * (MOST_TOGETHER + 1) + b"gh"
    assert sink.size == len(file.getvalue())


def test_gathered_buffers_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Counting()
    sink = open_sink(file)

    def write(data: Any) -> int:
        io.BytesIO.write(file, data)
        raise OSError

    monkeypatch.setattr(file, "write", write)
    sink.write(b"a")
    for _ in range(2):
        with pytest.raises(OSError):
            sink.write(bytes(MOST_TOGETHER + 1))
    assert file.getvalue() == b"a" + bytes(MOST_TOGETHER + 1)


def test_an_abort_gives_up_small_buffers() -> None:
    file = Counting()
    sink = open_sink(file)
    sink.write(b"a")
    sink.abort()
    assert file.getvalue() == b""


@pytest.mark.parametrize(("is_replacement", "durable"), [(False, False), (False, True), (True, False), (True, True)])
def test_large_files_go_to_the_disk_while_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_replacement: bool, durable: bool
) -> None:
    """The fsync of the commit then has little left to wait for. A file that is not synced is left to the system."""
    parts: list[tuple[int, int]] = []
    monkeypatch.setattr(disk_writing, "start_writing", lambda _, offset, size: parts.append((offset, size)))
    target = tmp_path / "file"
    if is_replacement:
        target.write_bytes(b"old")
    content = bytes(MOST_UNSTARTED // 2) + b"and the rest"
    with open_sink(str(target), durable=durable) as sink:
        for _ in range(5):
            sink.write(content)
    assert target.read_bytes() == content * 5
    size = 2 * len(content)
    assert parts == ([(0, size), (size, size)] if is_replacement or durable else [])
