"""Reading from every kind of place gives the same bytes; written files appear whole or not at all."""

from __future__ import annotations

import gc
import http.server
import importlib
import io
import mmap
import os
import re
import signal
import socketserver
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpq.errors import FormatError, SchemaError, UnsupportedError
from fastpq.io.coalescing import coalesce
from fastpq.io.new_file import TEMPORARY_SUFFIX
from fastpq.io.origin import StoredBytes, total_within
from fastpq.io.sink_opening import open_sink
from fastpq.io.source_opening import open_source
from fastpq.options import DEFAULT_TAIL_READ

DATA = np.random.default_rng(3).bytes(100_000)
RANGES = [(99_000, 1000), (0, 4), (50_000, 10_000), (4, 4), (10, 0), (55_000, 100), (100_000, 0)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "data.parquet"
    target.write_bytes(DATA)
    return target


class OnlyRead:
    """A file object without readinto that gives less than it is asked for."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int) -> bytes:
        return self._file.read(min(size, 777))


def mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


PLACES = {
    "str": lambda path: open_source(str(path)),
    "path": lambda path: open_source(path),
    "mapped": lambda path: open_source(path, memory_map="keep"),
    "file url": lambda path: open_source(f"file://{path}"),
    "bytes": lambda path: open_source(DATA),
    "bytearray": lambda path: open_source(bytearray(DATA)),
    "memoryview": lambda path: open_source(memoryview(DATA)),
    "array": lambda path: open_source(np.frombuffer(DATA, "<i4")),
    "mmap": lambda path: open_source(mapped(path)),
    "raw file": lambda path: open_source(path.open("rb", buffering=0)),
    "buffered file": lambda path: open_source(path.open("rb")),
    "BytesIO": lambda path: open_source(io.BytesIO(DATA)),
    "read alone": lambda path: open_source(OnlyRead(DATA)),
    "fsspec local": lambda path: open_source(f"local://{path}"),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # files opened in PLACES belong to nobody
@pytest.mark.parametrize("place", PLACES)
def test_every_place_reads_the_same(place: str, path: Path) -> None:
    with PLACES[place](path) as source:
        assert source.size == len(DATA)
        assert repr(source)
        for offset, length in RANGES:
            array = source.read(offset, length)
            assert array.dtype == np.uint8
            assert not array.flags.writeable
            assert array.tobytes() == DATA[offset : offset + length]
        for gap, limit in ((0, 0), (100, 1000), (1 << 20, 1 << 20)):
            arrays = source.read_ranges(RANGES, gap=gap, limit=limit)
            assert [array.tobytes() for array in arrays] == [DATA[at : at + length] for at, length in RANGES]
        for offset, length in ((-1, 1), (0, -1), (0, len(DATA) + 1), (len(DATA), 1), (1 << 62, 1 << 62)):
            with pytest.raises(FormatError, match="outside the file"):
                source.read(offset, length)
            with pytest.raises(FormatError, match="outside the file"):
                source.read_ranges([(0, 4), (offset, length)])


def test_requests_are_counted_and_coalesced(path: Path) -> None:
    with open_source(path, memory_map=False) as source:
        source.read(0, 10)
        source.read(0, 0)
        assert (source.requests, source.bytes_read) == (1, 10)
        source.read_ranges([(20, 10), (0, 10), (40, 10), (5000, 10)], gap=10, limit=1000)
        assert (source.requests, source.bytes_read) == (3, 10 + 50 + 10)
        source.read_ranges([(0, 10), (15, 10)], gap=10, limit=20)
        assert (source.requests, source.bytes_read) == (5, 90)


def test_bytes_are_not_copied_and_other_buffers_on_request(path: Path) -> None:
    assert np.shares_memory(open_source(DATA).read(10, 20), np.frombuffer(DATA, np.uint8))
    assert np.shares_memory(open_source(memoryview(DATA)[5:]).read(10, 20), np.frombuffer(DATA, np.uint8))
    data = np.arange(1000, dtype=np.uint8) % 100
    for memory_map in (False, True, "keep"):
        with open_source(data, memory_map=memory_map) as source:
            assert not np.shares_memory(source.read(10, 20), data)
            (stored,) = source.walk([[(10, 20)]], authentic=False)
            assert isinstance(stored, np.ndarray) == (memory_map == "keep") == source.gives_views
            assert isinstance(stored, StoredBytes) or np.shares_memory(stored, data)
            (sealed,) = source.walk([[(10, 20)]], authentic=True)
            assert isinstance(sealed, StoredBytes)
    with open_source(path, memory_map="keep") as source:
        first, second = (source.walk([[place]], authentic=False)[0] for place in ((0, 100), (50, 100)))
        assert isinstance(first, np.ndarray)
        assert isinstance(second, np.ndarray)
        assert np.shares_memory(first, second)
        assert not first.flags.writeable


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("place", PLACES)
def test_ranges_are_walked_one_behind_the_other(place: str, path: Path) -> None:
    chunks = [[(99_000, 1000)], [(0, 4), (50_000, 10_000), (10, 0), (4, 4)], [(7, 0)], []]
    with PLACES[place](path) as source:
        for chunk, stored in zip(chunks, source.walk(chunks, authentic=False), strict=True):
            data = stored.read() if isinstance(stored, StoredBytes) else stored
            assert data.tobytes() == b"".join(DATA[offset : offset + length] for offset, length in chunk)
        for wrong in ((-1, 1), (0, -1), (0, len(DATA) + 1), (1 << 62, 1 << 62)):
            with pytest.raises(FormatError, match="outside the file"):
                source.walk([[(0, 4), wrong]], authentic=True)


def test_a_closed_source_reads_nothing(path: Path) -> None:
    for where in (path, DATA, bytearray(DATA)):
        source = open_source(where)
        source.close()
        source.close()
        with pytest.raises(ValueError, match="is closed"):
            source.read(0, 10)


def test_files_are_closed_with_their_last_use(path: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = descriptors()
    source = open_source(path)
    (stored,) = source.walk([[(10, 100)]], authentic=False)
    assert isinstance(stored, StoredBytes)
    source.close()
    assert descriptors() == before + 1
    assert stored.read().tobytes() == DATA[10:110]      # a read under way never meets another file under the same number
    del stored
    assert descriptors() == before
    open_source(path)
    assert descriptors() == before


def test_arrays_outlive_the_source(path: Path) -> None:
    for memory_map in (True, False, "keep"):
        with open_source(path, memory_map=memory_map) as source:
            array = source.read(1000, 5000)
        source.close()
        del source
        gc.collect()
        assert array.tobytes() == DATA[1000:6000]


def test_an_array_keeps_the_old_file_when_the_path_is_replaced(path: Path) -> None:
    array = open_source(path).read(0, len(DATA))
    with open_sink(path) as sink:
        sink.write(b"new")
    assert array.tobytes() == DATA
    assert path.read_bytes() == b"new"


def test_empty_files(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for memory_map in (True, False, "keep"):
        with open_source(tmp_path / "empty", memory_map=memory_map) as source:
            assert source.size == 0
            assert source.read(0, 0).size == 0
    assert open_source(b"").size == 0
    assert open_source(np.empty((0, 3))).size == 0


@pytest.mark.parametrize("where", ["raw", "pread"])
def test_a_file_that_shrinks_is_noticed(where: str, path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        source = open_source(file) if where == "raw" else open_source(path, memory_map=False)
        with source:
            os.truncate(path, 500)
            assert source.read(0, 500).tobytes() == DATA[:500]
            with pytest.raises(FormatError, match="100 bytes came where 200") as caught:
                source.read(400, 200)
            assert caught.value.context["offset"] == 400


def test_threads_share_a_file_object(path: Path) -> None:
    source = open_source(io.BytesIO(DATA))
    right: list[bool] = []

    def work(seed: int) -> None:
        offsets = np.random.default_rng(seed).integers(0, 99_000, 300).tolist()
        right.extend(source.read(offset, 1000).tobytes() == DATA[offset : offset + 1000] for offset in offsets)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(right) == 1200
    assert all(right)
    assert (source.requests, source.bytes_read) == (1200, 1_200_000)


def test_things_that_cannot_be_read(tmp_path: Path) -> None:
    for thing in (None, 7, [b"x"], io.StringIO("text")):
        with pytest.raises(SchemaError, match="cannot read from"):
            open_source(thing)
    with pytest.raises(SchemaError, match="contiguous"):
        open_source(np.zeros((4, 4), np.uint8)[:, ::2])
    with pytest.raises(FileNotFoundError):
        open_source(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        open_source(tmp_path)
    reading, writing = os.pipe()
    with open(reading, "rb") as pipe, open(writing, "wb"), pytest.raises(UnsupportedError, match="seek"):
        open_source(pipe)


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 500)), max_size=30),
    st.integers(0, 300),
    st.integers(0, 2000),
)
def test_coalesce(ranges: list[tuple[int, int]], gap: int, limit: int) -> None:
    merged, places = coalesce(ranges, gap, limit)
    assert merged == sorted(merged)
    used: dict[int, list[tuple[int, int]]] = {}
    for (offset, length), (request, start) in zip(ranges, places, strict=True):
        assert merged[request][0] + start == offset
        assert start + length <= merged[request][1]
        used.setdefault(request, []).append((offset, length))
    for request, (offset, size) in enumerate(merged):
        parts = sorted(used[request])  # nothing is read that nobody asked for
        assert offset == parts[0][0]
        assert offset + size == max(at + length for at, length in parts)
        assert size <= max(limit, max(length for _, length in parts))
        reached = offset
        for at, length in parts:
            assert at - reached <= gap
            reached = max(reached, at + length)


def test_coalesce_by_example() -> None:
    assert coalesce([], 10, 100) == ([], [])
    merged, places = coalesce([(100, 10), (0, 10), (20, 10)], 10, 100)
    assert merged == [(0, 30), (100, 10)]
    assert places == [(1, 0), (0, 0), (0, 20)]
    assert coalesce([(0, 10), (21, 10)], 10, 100)[0] == [(0, 10), (21, 10)]
    assert coalesce([(0, 10), (20, 10)], 10, 29)[0] == [(0, 10), (20, 10)]
    assert coalesce([(0, 1000), (100, 10)], 0, 29)[0] == [(0, 1000)]


# ---- remote


class RangeHandler(http.server.BaseHTTPRequestHandler):
    """Serves DATA, whole or one range of it; the end, as long as is asked for, unless the path says not."""

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        asked = re.fullmatch(r"bytes=(\d*)-(\d+)", self.headers.get("Range", ""))
        if asked and not asked[1] and "endless" in self.path:
            self.send_error(416)
            return
        start, stop = (int(asked[1]), int(asked[2]) + 1) if asked and asked[1] else (-int(asked[2]), None) if asked else (0, None)
        part = DATA[start:stop]
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Accept-Ranges", "bytes")
        if asked:
            first = start % len(DATA)
            self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(DATA)}")
        self.end_headers()
        if body:
            self.wfile.write(part)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), RangeHandler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/data.parquet"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("query", "tail"), [("?token=secret", DEFAULT_TAIL_READ), ("?token=secret&endless", 0)])
def test_http(url: str, query: str, tail: int) -> None:
    with open_source(url + query) as source:
        assert "secret" not in source.name
        assert source.size == len(DATA)
        assert source.counts == (tail > 0, tail)
        arrays = source.read_ranges(RANGES, gap=10, limit=100)
        assert [array.tobytes() for array in arrays] == [DATA[at : at + length] for at, length in RANGES]
        assert source.bytes_read == tail + 10 + (0 if tail else 10_000 + 1000)     # these are in the tail
        assert source.read(7, 70).tobytes() == DATA[7:77]


@pytest.fixture
def memory() -> Iterator[Any]:
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    yield filesystem
    filesystem.store.clear()


def test_fsspec_reading(memory: Any) -> None:
    memory.pipe_file("/folder/data", DATA)
    handle = SimpleNamespace(fs=memory, path="/folder/data")
    for where in ("memory://folder/data", handle):
        with open_source(where) as source:
            assert source.read(100, 100).tobytes() == DATA[100:200]
            arrays = source.read_ranges(RANGES)
            assert [array.tobytes() for array in arrays] == [DATA[at : at + length] for at, length in RANGES]
            memory.pipe_file("/folder/data", DATA[:500])
            with pytest.raises(FormatError, match="came where"):
                source.read(400, 200)
            with pytest.raises(FormatError, match="came where"):
                source.read_ranges([(400, 200)])
            memory.pipe_file("/folder/data", DATA)
    with pytest.raises(FileNotFoundError):
        open_source("memory://folder/missing")


def test_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    for opened in (open_source, open_sink):
        with pytest.raises(UnsupportedError, match=r"s3://bucket/key needs the package fsspec") as caught:
            opened("s3://user:password@bucket/key?signature=1")
        assert "password" not in str(caught.value)


def test_schemes_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedError, match="nonsense"):
        open_source("nonsense://x")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    for scheme in ("s3", "s3a"):        # classes of filesystems that earlier tests used
        monkeypatch.delitem(importlib.import_module("fsspec.registry")._registry, scheme, raising=False)
    with pytest.raises(UnsupportedError, match="s3fs"):
        open_source("s3://bucket/key")


def test_fsspec_writing(memory: Any) -> None:
    memory.pipe_file("/folder/old", b"old")
    with open_sink("memory://folder/old") as sink:
        sink.write(DATA)
        assert memory.cat_file("/folder/old") == b"old"
    assert memory.cat_file("/folder/old") == DATA
    with pytest.raises(KeyboardInterrupt), open_sink("memory://folder/old") as sink:
        sink.write(b"half")
        raise KeyboardInterrupt
    sink = open_sink(SimpleNamespace(fs=memory, path="/folder/old"))
    sink.write(b"half")
    del sink
    gc.collect()
    assert memory.cat_file("/folder/old") == DATA
    assert list(memory.store) == ["/folder/old"]


class ObjectStore:
    """As much of an object store as a sink uses."""

    protocol = ("s3", "s3a")

    def __init__(self) -> None:
        self.objects = {"bucket/key": b"old"}
        self.fails = False

    def cat_file(self, path: str) -> bytes:
        return self.objects[path]

    def put_file(self, local: str, path: str) -> None:
        if self.fails:
            raise OSError("no connection")
        self.objects[path] = Path(local).read_bytes()

    def open(self, path: str, mode: str, autocommit: bool) -> Any:
        """A file without a commit of its own."""
        return io.BytesIO()


def test_object_stores_get_the_whole_object_on_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = ObjectStore()
    where = SimpleNamespace(fs=store, path="bucket/key")
    with open_sink(where) as sink:
        sink.write(DATA)
        assert store.objects == {"bucket/key": b"old"}
    assert store.objects == {"bucket/key": DATA}
    sink = open_sink(where)
    sink.write(b"half")
    sink.abort()
    store.fails = True
    sink = open_sink(where)
    sink.write(b"new")
    with pytest.raises(OSError, match="no connection"):
        sink.commit()
    assert store.objects == {"bucket/key": DATA}
    assert not list(tmp_path.iterdir())


class Liar:
    """A file object of ten bytes with wrong answers."""

    def __init__(self, **answers: Any) -> None:
        self.read = lambda size: b""
        for name, answer in answers.items():
            setattr(self, name, lambda *_, answer=answer: answer)

    def seek(self, offset: int, whence: int = 0) -> int:
        return offset

    def tell(self) -> Any:
        return 10


@pytest.mark.parametrize("answer", [-1, 11, 1 << 70, "10", 2.0, True])
def test_file_objects_that_lie_about_a_read(answer: Any) -> None:
    with pytest.raises(SchemaError, match=r"a file object returned .* from readinto of 10 bytes"):
        open_source(Liar(readinto=answer)).read(0, 10)
    with pytest.raises(SchemaError, match="a file object returned"):
        open_source(Liar(read=bytes(11) if answer == 11 else answer)).read(0, 10)


@pytest.mark.parametrize("answer", [-1, "10", 2.0, True, None])
def test_file_objects_that_lie_about_their_size(answer: Any) -> None:
    with pytest.raises(SchemaError, match="from tell"):
        open_source(Liar(tell=answer))


def test_file_objects_without_bytes() -> None:
    for liar in (Liar(readinto=None), Liar(read=None)):
        with pytest.raises(BlockingIOError, match=r"read(into)? of a file object .* no bytes"):
            open_source(liar).read(0, 10)
    for liar in (Liar(readinto=0), Liar(read=b"")):
        with pytest.raises(FormatError, match="truncated"):
            open_source(liar).read(0, 10)
    with pytest.raises(SchemaError, match="a file object returned a str"):
        open_source(Liar(read="0123456789")).read(0, 10)
    # an object that says more than it does gives no memory of this process
    assert open_source(Liar(readinto=10)).read(0, 10).tobytes() == bytes(10)


# ---- sinks


def test_a_file_appears_on_commit(tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    sink = open_sink(target)
    sink.write(b"PAR1")
    sink.write(np.arange(3, dtype="<i4").data)
    sink.write(b"")
    sink.write(bytearray(b"PAR1"))
    assert sink.size == 20
    assert not target.exists()
    sink.commit()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.parquet"]
    assert target.read_bytes() == b"PAR1\0\0\0\0\1\0\0\0\2\0\0\0PAR1"
    sink.abort()
    assert target.exists()
    for again in (sink.commit, lambda: sink.write(b"x")):
        with pytest.raises(ValueError, match="committed or aborted"):
            again()


@pytest.mark.parametrize("how", ["abort", "exception", "garbage", "failed commit"])
def test_the_old_file_stays(how: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = open_sink(str(path))
    sink.write(b"half")
    if how == "abort":
        sink.abort()
        sink.abort()
    elif how == "exception":
        with pytest.raises(ZeroDivisionError), sink:
            sink.write(bytes([1 // 0]))
    elif how == "garbage":
        del sink
        gc.collect()
    else:
        monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            sink.commit()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == DATA


def run(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_kill_in_mid_write_leaves_the_old_file(path: Path) -> None:
    child = run(
        """
        import sys
        from fastpq.io.sink_opening import open_sink
        sink = open_sink(sys.argv[1])
        for _ in range(100):
            sink.write(bytes(100_000))
        sink.persist()
        print("written", flush=True)
        sys.stdin.read()
        """,
        path,
    )
    assert child.stdout
    assert child.stdout.readline() == "written\n"
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert path.read_bytes() == DATA
    left = [entry.name for entry in path.parent.iterdir() if entry != path]
    assert len(left) == 1
    assert re.fullmatch(rf"\.{path.name}\.[0-9a-f]{{16}}\.tmp", left[0])


def test_a_missing_folder_is_named_as_it_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        open_sink(tmp_path / "nowhere" / "out.parquet")
    assert raised.value.filename == str(tmp_path / "nowhere" / "out.parquet")


def test_an_exit_in_mid_write_removes_the_temporary_file(path: Path) -> None:
    child = run(
        """
        import sys
        from fastpq.io.sink_opening import open_sink
        sink = open_sink(sys.argv[1])
        sink.write(bytes(100_000))
        sys.exit(3)
        """,
        path,
    )
    child.communicate()
    assert child.returncode == 3
    assert list(path.parent.iterdir()) == [path]
    assert path.read_bytes() == DATA


def test_a_forked_child_does_not_remove_its_parents_file(path: Path) -> None:
    child = run(
        """
        import os, sys
        from fastpq.io.sink_opening import open_sink
        sink = open_sink(sys.argv[1])
        sink.write(b"new")
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        os.waitpid(pid, 0)
        sink.commit()
        """,
        path,
    )
    child.communicate()
    assert child.returncode == 0
    assert path.read_bytes() == b"new"


def test_a_file_object_that_takes_nothing() -> None:
    class Full(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> None:
            return None

    with pytest.raises(BlockingIOError, match=r"write of a file object .* no bytes"):
        with open_sink(Full()) as sink:
            sink.write(b"abc")


def test_a_folder_that_cannot_be_synced_is_refused_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    sink = open_sink(path)
    sink.write(b"new")
    opened = os.open

    def refuse(where: Any, flags: int, *arguments: Any) -> int:
        if where == str(tmp_path):
            raise PermissionError(13, "refused", where)
        return opened(where, flags, *arguments)

    monkeypatch.setattr("fastpq.io.new_file.os.open", refuse)
    with pytest.raises(PermissionError):
        sink.commit()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        for name, mode in (("private", 0o600), ("open", 0o666)):
            (tmp_path / name).touch()
            (tmp_path / name).chmod(mode)
        for name, expected in (("private", 0o600), ("open", 0o666), ("new", 0o640)):
            with open_sink(tmp_path / name) as sink:
                sink.write(b"x")
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == expected
    finally:
        os.umask(before)


def test_symbolic_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link, dangling = tmp_path / "real" / "file", tmp_path / "link", tmp_path / "dangling"
    target.write_bytes(b"old")
    link.symlink_to(target)
    dangling.symlink_to(tmp_path / "real" / "made")
    for where in (link, dangling):
        with open_sink(where) as sink:
            sink.write(b"new")
        assert where.is_symlink()
        assert where.read_bytes() == b"new"
    assert target.read_bytes() == b"new"
    assert sorted(entry.name for entry in (tmp_path / "real").iterdir()) == ["file", "made"]


def test_names_of_every_length(tmp_path: Path) -> None:
    for name in ("x" * 255, "é" * 127):
        with open_sink(tmp_path / name) as sink:
            sink.write(b"x")
        assert (tmp_path / name).read_bytes() == b"x"
    assert len(TEMPORARY_SUFFIX.format("0" * 16)) < 255


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_sink(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_sink(tmp_path / "missing" / "file")
    for thing in (None, 7, b"bytes"):
        with pytest.raises(SchemaError, match="cannot write to"):
            open_sink(thing)
    assert not list(tmp_path.iterdir())


def test_devices_are_written_to_not_replaced() -> None:
    with open_sink(os.devnull) as sink:
        sink.write(b"x")
        assert sink.size == 1
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_file_objects_stay_their_owners(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with open_sink(buffer) as sink:
        sink.write(b"abc")
        sink.write(memoryview(b"def"))
    assert buffer.getvalue() == b"abcdef"
    with (tmp_path / "raw").open("wb", buffering=0) as file:
        sink = open_sink(file)
        sink.write(DATA)
        sink.abort()
        assert not file.closed
    assert (tmp_path / "raw").read_bytes() == DATA


def test_the_bytes_of_ranges() -> None:
    assert total_within([(0, 4), (3, 7), (10, 0)], 10) == (11, None)
    assert total_within([], 0) == (0, None)
    for outside in ((0, 11), (11, 0), (-1, 1), (1, -1), (1 << 70, 1), (1, 1 << 70)):
        assert total_within([(0, 4), outside, (99, 99)], 10) == (0, outside)
