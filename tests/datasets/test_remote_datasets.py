"""Datasets of many remote files: how many requests are made, and how many at the same time."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.datasets import opened_files
from fastpq.options import DEFAULT_TAIL_READ
from tests.io.range_server import RangeServer, serving

FILES = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("remote")
    for number in range(FILES):
        rows = pa.table({"id": np.arange(100) + 100 * number, "text": [f"{number}"] * 100})
        pq.write_table(rows, folder / f"{number:02}.parquet")
    return folder


def urls(server: RangeServer) -> list[str]:
    return [f"{server.url}/{number:02}.parquet" for number in range(FILES)]


def test_small_files_take_one_request_each(folder: Path) -> None:
    with serving(folder) as server:
        dataset = fastpq.ParquetDataset(urls(server))
        assert server.requests == FILES
        assert dataset.num_rows == 100 * FILES
        wanted = pl.read_parquet(sorted(folder.iterdir()))
        assert pl.DataFrame(dataset.read()).equals(wanted)
        assert server.requests == FILES
        assert dataset.read(["id"], filters=[("id", ">=", 3990)])["id"].to_pylist() == list(range(3990, 4000))
        assert server.requests == 2 * FILES         # a later read asks whether the files are the same
        assert dataset.count([("text", "==", "7")]) == 100
        assert server.requests == 3 * FILES


def test_files_are_opened_at_the_same_time(folder: Path) -> None:
    """Answers are held back until as many requests are open as files may be opened at a time."""
    with serving(folder) as server:
        server.gate = lambda _: server.wait_for(lambda state: state.at_once >= opened_files.REMOTE_FILES)
        assert fastpq.read_table(urls(server)).num_rows == 100 * FILES
        assert server.at_once == opened_files.REMOTE_FILES


def test_the_first_schema_opens_each_file_when_its_rows_are_read(folder: Path) -> None:
    with serving(folder) as server:
        dataset = fastpq.ParquetDataset(urls(server), schema="first")
        assert server.requests == 1
        assert dataset.head(150)["id"].to_pylist() == list(range(150))
        assert server.requests == 2
        assert dataset.read(["id"]).num_rows == 100 * FILES
        assert server.requests == FILES + 2


class QuotingHandler(http.server.SimpleHTTPRequestHandler):
    """A server whose pages of links have ``%3D`` for ``=``, as those of http.server."""

    def log_message(self, *_: object) -> None:
        """Not on the screen."""


def test_partitions_on_a_server_that_lists_folders(tmp_path: Path) -> None:
    rows = {"k": np.array(["a/b", "c d", "e=f", None], object), "x": np.arange(4)}
    fastpq.write_dataset(rows, tmp_path / "t", partition_by=["k"])
    expected = fastpq.read_dataset(tmp_path / "t").to_pylist()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(QuotingHandler, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/t/"
    try:
        for table in (fastpq.read_dataset(url), fastpq.read_table(url)):
            assert sorted(table.to_pylist(), key=str) == sorted(expected, key=str)
        assert fastpq.read_table(url, filters=[("k", "==", "a/b")])["x"].to_pylist() == [0]
        with pytest.raises(FileNotFoundError, match="no file at"):
            fastpq.read_table(url.replace("/t/", "/none/"))
    finally:
        server.shutdown()
        server.server_close()


def test_larger_files_take_two_requests(tmp_path: Path) -> None:
    for number in range(3):
        pq.write_table(pa.table({"x": np.random.default_rng(number).random(20_000)}), tmp_path / f"{number}.parquet")
    assert (tmp_path / "0.parquet").stat().st_size > 2 * DEFAULT_TAIL_READ
    with serving(tmp_path) as server:
        dataset = fastpq.ParquetDataset([f"{server.url}/{number}.parquet" for number in range(3)])
        dataset.read()
        assert server.requests == 6
        dataset.read()
        assert server.requests == 12


class Calls(list[tuple[str, str]]):
    """Calls of a filesystem in memory: name and path of each."""

    def read(self) -> list[str]:
        """Paths of the files read, in order."""
        return [path for call, path in self if call == "cat_file"]


@pytest.fixture
def calls(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    """A dataset of four partitions at memory://counted, and the calls from now on."""
    filesystem, found = fsspec.filesystem("memory"), Calls()
    for path in folder.iterdir():
        filesystem.pipe(f"/counted/k={int(path.stem) % 4}/{path.name}", path.read_bytes())
    for name, content in (("README.txt", b"notes"), ("k=1/part.crc", b"crc"), ("_SUCCESS", b"")):
        filesystem.pipe(f"/counted/{name}", content)
    for name in ("cat_file", "info", "size"):
        monkeypatch.setattr(type(filesystem), name, recorded(found, name, getattr(type(filesystem), name)))
    yield found
    filesystem.rm("/counted", recursive=True)


def recorded(calls: Calls, name: str, method: Any) -> Any:
    def call(self: Any, path: str, *arguments: Any, **options: Any) -> Any:
        calls.append((name, path))
        return method(self, path, *arguments, **options)

    return call


def test_sizes_come_from_the_list(calls: Calls) -> None:
    assert fastpq.read_table("memory://counted").num_rows == 100 * FILES
    assert len(calls.read()) == len(set(calls.read())) == FILES
    assert not [call for call in calls if call[1].endswith(".parquet") and call[0] != "cat_file"]


def test_partitions_ruled_out_are_not_opened(calls: Calls) -> None:
    found = fastpq.read_table("memory://counted", ["id", "k"], filters=[("k", "==", 2), ("id", "<", 1000)])
    assert found["k"].to_pylist() == [2] * found.num_rows
    assert found["id"].to_pylist() == [number for number in range(1000) if number // 100 % 4 == 2]
    assert {path.split("/")[2] for path in calls.read()} == {"k=2"}
    calls.clear()
    empty = fastpq.read_table("memory://counted", filters=[("k", "==", 9)])
    assert empty.names == ["id", "text", "k"]
    assert empty.num_rows == 0
    assert len(calls.read()) == 1
    dataset = fastpq.ParquetDataset("memory://counted", filters=[[("k", "==", 1)], [("k", "==", 3)]])
    assert {path.split("/")[2] for path in dataset.files} == {"k=1", "k=3"}
    assert dataset.num_rows == 50 * FILES
    calls.clear()
    either = [[("k", "==", 1)], [("k", "==", 3), ("id", "<", 400)]]
    assert fastpq.read_table("memory://counted", filters=either).num_rows == dataset.count(either)
    assert {path.split("/")[2] for path in calls.read()} == {"k=1", "k=3"}


def test_a_file_replaced_after_the_list(calls: Calls) -> None:
    """A size from the list that is no longer right is asked for anew."""
    from fastpq.datasets.discovery import find_files

    listed = find_files("memory://counted/k=1")
    bigger = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": np.arange(50_000)}), bigger)
    fsspec.filesystem("memory").pipe(listed[0].path, bigger.getvalue().to_pybytes())
    assert fastpq.read_table(listed[0].where).num_rows == 50_000


def test_the_kept_ends_are_bounded(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    size = fsspec.filesystem("memory").size("/counted/k=0/00.parquet")
    monkeypatch.setattr(opened_files, "KEPT_TAILS", 10 * size)
    dataset = fastpq.ParquetDataset("memory://counted")
    calls.clear()
    assert dataset.read().num_rows == 100 * FILES
    assert FILES - 12 <= len(set(calls.read())) <= FILES - 8


def test_files_replaced_between_reads(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read long after the opening of the dataset, and each later read, takes the footers anew."""
    dataset = fastpq.ParquetDataset("memory://counted/k=1")
    filesystem, path = fsspec.filesystem("memory"), "/counted/k=1/01.parquet"
    other = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": np.arange(-100, 0), "text": ["1"] * 100}), other)
    assert dataset.count([("id", "<", 0)]) == 0
    filesystem.pipe(path, other.getvalue().to_pybytes())
    assert dataset.count([("id", "<", 0)]) == 100
    dataset = fastpq.ParquetDataset("memory://counted/k=1")
    monkeypatch.setattr(opened_files, "KEPT_SECONDS", 0.0)
    filesystem.pipe(path, filesystem.cat("/counted/k=2/02.parquet"))
    assert dataset.count([("id", "<", 0)]) == 0


def test_all_files_together_stay_within_max_allocation(tmp_path: Path) -> None:
    for number in range(FILES):
        pq.write_table(pa.table({"x": np.zeros(100_000)}), tmp_path / f"{number:02}.parquet")
    with serving(tmp_path) as server:
        few = fastpq.ReaderProperties(max_allocation=2_000_000)
        with pytest.raises(fastpq.LimitError, match=r"the values of \d+ files take"):
            fastpq.read_table(urls(server), properties=few)
        assert server.requests < 3 * opened_files.REMOTE_FILES + FILES


def test_a_file_that_shrank_after_the_list(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastpq.datasets.discovery import find_files

    listed = find_files("memory://counted/k=1")[0]
    filesystem = fsspec.filesystem("memory")
    smaller = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1]}), smaller)
    filesystem.pipe(listed.path, smaller.getvalue().to_pybytes())
    assert fastpq.read_table(listed.where).to_pylist() == [{"x": 1}]

    class OutsideError(Exception):
        status = 416

    read = type(filesystem).cat_file

    def strict(self: Any, path: str, start: int | None = None, end: int | None = None, **options: Any) -> Any:
        if end is not None and end > self.size(path):
            raise OutsideError
        return read(self, path, start, end, **options)

    monkeypatch.setattr(type(filesystem), "cat_file", strict)
    assert fastpq.read_table(listed.where).to_pylist() == [{"x": 1}]
