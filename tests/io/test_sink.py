"""Writes of a sink: small buffers together, large ones uncopied."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import Any

import pytest

import fastpq
from fastpq.io.sink import MOST_TOGETHER, FileSink, Sink, open_sink


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
    assert len(file.sizes) < 1020       # a write for each chunk; the indexes of all take a few
    assert fastpq.read_table(file.getvalue())["c999"].to_pylist() == [999]


@pytest.mark.parametrize("sizes", [[0], [1] * 10, [MOST_TOGETHER, 1, MOST_TOGETHER + 1, 5], [40_000] * 5, [3 * MOST_TOGETHER, 2]])
def test_a_local_file_has_all_bytes_in_their_order(tmp_path: Path, sizes: list[int]) -> None:
    data = [bytes([number]) * size for number, size in enumerate(sizes)]
    sink = open_sink(tmp_path / "file")
    total = 0
    for part in data:
        reused = bytearray(part)
        sink.write(reused)
        reused[:] = bytes(len(part))        # the sink has taken the bytes
        total += len(part)
        assert sink.written == total
    sink.commit()
    assert (tmp_path / "file").read_bytes() == b"".join(data)


def test_small_buffers_reach_a_local_file_in_one_write(tmp_path: Path) -> None:
    sink = open_sink(tmp_path / "file")
    assert isinstance(sink, FileSink)
    for _ in range(100):
        sink.write(b"0123456789")
    assert os.fstat(sink._new.file.fileno()).st_size == 0
    sink.persist()
    assert os.fstat(sink._new.file.fileno()).st_size == 1000
    sink.write(b"more")
    sink.abort()
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_last_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    sink = open_sink(path)
    sink.write(b"new")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(Sink, "_put", full)
    with pytest.raises(OSError, match="no space"):
        sink.commit()
    assert not sink.is_open
    assert (path.read_bytes(), [*tmp_path.iterdir()]) == (b"old", [path])
