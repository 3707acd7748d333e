"""Objects in S3: streamed by multipart upload, conditions on the present object, and whole or not there at any death."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import uuid
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq
import pytest
import s3fs

import fastpq
from fastpq.io import multipart
from fastpq.io.location import Remote, RemotePath
from fastpq.io.multipart import MultipartSink, PendingSink
from fastpq.io.object_store import store_at
from fastpq.io.sink_opening import DeferredSink, UploadingSink, open_sink
from tests.io.faulty_s3 import Proxy, faulty
from tests.io.object_stores import Store, unfinished

LEAST_PART = 5 << 20        # moto refuses smaller ones, as S3 does
CREDENTIALS = {"key": "test", "secret": "test"}


def filesystem_of(url: str) -> Any:
    return Store("s3", url).filesystem()


@pytest.fixture(scope="module")
def proxy(moto_url: str) -> Iterator[Proxy]:
    with faulty(moto_url) as running:
        yield running


@pytest.fixture
def store(proxy: Proxy, moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any, str]]:
    """A filesystem through the proxy, one without it, and a new bucket."""
    proxy.reset()
    monkeypatch.setattr(multipart, "PART_BYTES", LEAST_PART)
    direct, bucket = filesystem_of(moto_url), f"bucket-{uuid.uuid4().hex}"
    direct.mkdir(bucket)
    yield filesystem_of(proxy.url), direct, bucket
    proxy.reset()


def place(filesystem: Any, path: str) -> Any:
    return RemotePath(filesystem, path)


def uploads(direct: Any, bucket: str) -> int:
    return len(unfinished(Remote(direct, bucket, bucket)))


def table(rows: int, seed: int = 0) -> dict[str, Any]:
    return {"x": np.random.default_rng(seed).random(rows)}


RAW: dict[str, Any] = {"compression": None}
LARGE = 1_500_000       # rows: 12 MB, three parts
SMALL = 1000


@pytest.mark.parametrize(("rows", "requests"), [(SMALL, ["PUT"]), (LARGE, ["POST", "PUT", "PUT", "PUT", "POST"])])
def test_requests(store: tuple[Any, Any, str], proxy: Proxy, moto_url: str, rows: int, requests: list[str]) -> None:
    filesystem, direct, bucket = store
    filesystem.call_s3("head_bucket", Bucket=bucket)
    proxy.reset()
    fastpq.write_table(table(rows), place(filesystem, f"{bucket}/a.parquet"), compression=None, row_group_size=100_000)
    assert [request.split()[0] for request in proxy.requests] == requests
    arrow = pa_fs.S3FileSystem(access_key="test", secret_key="test", endpoint_override=moto_url, region="us-east-1")
    found = pq.read_table(f"{bucket}/a.parquet", filesystem=arrow)["x"].to_numpy()
    assert np.array_equal(found, table(rows)["x"])
    assert uploads(direct, bucket) == 0


def test_parts_travel_while_rows_are_written(store: tuple[Any, Any, str], proxy: Proxy) -> None:
    """No local file, and memory for parts, not for the file."""
    filesystem, direct, bucket = store
    with fastpq.ParquetWriter(place(filesystem, f"{bucket}/a.parquet"), compression=None) as writer:
        for seed in range(8):
            writer.write_table(table(LARGE // 3, seed))
        assert sum("partNumber=" in request for request in proxy.requests) >= 4
        assert not direct.exists(f"{bucket}/a.parquet")
    assert direct.size(f"{bucket}/a.parquet") > 30e6


MEASURED = """
import sys, tracemalloc
import numpy as np
import s3fs
import fastpq
from fastpq.io.location import RemotePath
url, bucket = sys.argv[1:]
filesystem = s3fs.S3FileSystem(key="test", secret="test", client_kwargs={"endpoint_url": url})
with fastpq.ParquetWriter(RemotePath(filesystem, f"{bucket}/a.parquet"), compression=None) as writer:
    for seed in range(30):
        writer.write_table({"x": np.random.default_rng(seed).random(500_000)})
        if seed == 0:
            tracemalloc.start()
print(tracemalloc.get_traced_memory()[1])
"""


def test_memory_is_for_parts_and_no_local_file(store: tuple[Any, Any, str], moto_url: str, tmp_path: Path) -> None:
    _, direct, bucket = store
    environment = {**os.environ, "TMPDIR": str(tmp_path / "missing")}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, moto_url, bucket], env=environment, check=True, capture_output=True, text=True
    )
    assert direct.size(f"{bucket}/a.parquet") > 110e6
    assert int(done.stdout) < 70e6      # three parts of 8 MiB, which botocore and aiohttp copy, and a row group of 4 MB


@pytest.mark.parametrize("rows", [SMALL, LARGE])
def test_cut_off_at_any_request(store: tuple[Any, Any, str], proxy: Proxy, rows: int) -> None:
    """The object is the old one or the whole new one; abort_uploads leaves nothing."""
    filesystem, direct, bucket = store
    path, old, new = f"{bucket}/a.parquet", table(SMALL, 1), table(rows, 2)
    options: dict[str, Any] = {"compression": None, "row_group_size": 100_000}
    filesystem.call_s3("head_bucket", Bucket=bucket)
    proxy.reset()
    fastpq.write_table(new, place(filesystem, path), **options)
    count, outcomes = len(proxy.requests), set()
    assert count == (1 if rows == SMALL else 5)
    for number in range(count):
        for moment in ("before", "after"):
            fastpq.write_table(old, place(direct, path))
            proxy.cut(number, moment)
            with pytest.raises(OSError, match=r".+"):
                fastpq.write_table(new, place(filesystem, path), **options)
            assert proxy.is_cut
            found = fastpq.read_table(place(direct, path))["x"].to_numpy()
            is_new = np.array_equal(found, new["x"])
            assert is_new or np.array_equal(found, old["x"])
            assert is_new == ((number, moment) == (count - 1, "after"))
            outcomes.add(is_new)
            gc.collect()
            proxy.reset()
            fastpq.abort_uploads(place(direct, bucket), older_than=0)
            assert uploads(direct, bucket) == 0
    assert outcomes == {True, False}


@pytest.mark.parametrize("rows", [SMALL, LARGE])
def test_a_lost_answer_is_no_failure(store: tuple[Any, Any, str], proxy: Proxy, rows: int) -> None:
    """The object is there, and its metadata tell that it is the writer's own, also against its own condition."""
    filesystem, direct, bucket = store
    last = 0 if rows == SMALL else 4
    filesystem.call_s3("head_bucket", Bucket=bucket)
    for number, condition in enumerate((None, "*")):
        proxy.lose(last)
        path = f"{bucket}/{number}.parquet"
        fastpq.write_table(table(rows), place(filesystem, path), compression=None, if_none_match=condition)
        assert fastpq.read_table(place(direct, path)).num_rows == rows


@pytest.mark.parametrize("rows", [SMALL, LARGE])
def test_conditions(store: tuple[Any, Any, str], rows: int) -> None:
    filesystem, direct, bucket = store
    path, options = f"{bucket}/a.parquet", RAW
    target = place(filesystem, path)
    fastpq.write_table(table(rows, 1), target, if_none_match="*", **options)
    first = direct.info(path)["ETag"]
    with pytest.raises(FileExistsError):
        fastpq.write_table(table(rows, 2), target, if_none_match="*", **options)
    fastpq.write_table(table(rows, 3), target, if_match=first, **options)
    with pytest.raises(OSError, match="if_match"):
        fastpq.write_table(table(rows, 4), target, if_match=first, **options)
    assert np.array_equal(fastpq.read_table(place(direct, path))["x"].to_numpy(), table(rows, 3)["x"])
    with pytest.raises(ValueError, match="one of them"):
        fastpq.write_table(table(1), target, if_match=first, if_none_match="*")
    with pytest.raises(ValueError, match="if_none_match"):
        fastpq.write_table(table(1), target, if_none_match=first)
    assert uploads(direct, bucket) == 0


def test_conditions_elsewhere(tmp_path: Path) -> None:
    fastpq.write_table(table(3), tmp_path / "a.parquet", if_none_match="*")
    with pytest.raises(FileExistsError):
        fastpq.write_table(table(4), tmp_path / "a.parquet", if_none_match="*")
    assert fastpq.read_table(tmp_path / "a.parquet").num_rows == 3
    with (tmp_path / "b").open("wb") as file:
        targets: list[tuple[Any, dict[str, str]]] = [
            (tmp_path / "a.parquet", {"if_match": "x"}),
            ("memory://bucket/a.parquet", {"if_none_match": "*"}),
            (file, {"if_none_match": "*"}),
        ]
        for target, condition in targets:
            with pytest.raises(fastpq.UnsupportedError, match="conditions on the target"):
                fastpq.write_table(table(4), target, **condition)       # type: ignore[arg-type]


def test_errors_and_aborts_leave_nothing(store: tuple[Any, Any, str]) -> None:
    filesystem, direct, bucket = store
    for end in (fastpq.ParquetWriter.abort, lambda writer: writer.write_table({"y": [1]})):
        writer = fastpq.ParquetWriter(place(filesystem, f"{bucket}/a.parquet"), compression=None)
        writer.write_table(table(LARGE))
        assert uploads(direct, bucket) == 1
        with suppress(fastpq.SchemaError):
            end(writer)
        assert uploads(direct, bucket) == 0
    writer = fastpq.ParquetWriter(place(filesystem, f"{bucket}/a.parquet"), compression=None)
    writer.write_table(table(LARGE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)        # a recorded warning keeps the writer
        del writer      # nobody closes it
        gc.collect()
    assert uploads(direct, bucket) == 0
    assert direct.ls(bucket) == []


def test_another_process_completes(store: tuple[Any, Any, str]) -> None:
    filesystem, direct, bucket = store
    sink = PendingSink(Remote(filesystem, f"{bucket}/a.parquet", "a"))
    with fastpq.ParquetWriter(sink, compression=None) as writer:
        writer.write_table(table(LARGE))
    assert sink.upload is not None
    assert not direct.exists(f"{bucket}/a.parquet")
    other = filesystem_of(direct.client_kwargs["endpoint_url"])
    store_at(other).complete(sink.upload)
    store_at(other).complete(sink.upload)     # a driver that does it again
    other.invalidate_cache()
    assert fastpq.read_table(place(other, f"{bucket}/a.parquet")).num_rows == LARGE


def test_uploads_of_others_are_left(store: tuple[Any, Any, str]) -> None:
    """Younger ones, and those beside the folder."""
    _, direct, bucket = store
    for key in ("folder/a", "folder2/a", "folder"):
        direct.call_s3("create_multipart_upload", Bucket=bucket, Key=key)
    assert fastpq.abort_uploads(place(direct, f"{bucket}/folder"), older_than=1e12) == []       # moto's uploads are of 2010
    assert fastpq.abort_uploads(place(direct, f"{bucket}/folder"), older_than=0) == [f"{bucket}/folder", f"{bucket}/folder/a"]
    assert uploads(direct, bucket) == 1
    with pytest.raises(fastpq.UnsupportedError):
        fastpq.abort_uploads("memory://bucket")


KILLED = """
import os, signal, sys
import numpy as np
import s3fs
import fastpq
from fastpq.io.location import RemotePath
url, bucket = sys.argv[1:]
filesystem = s3fs.S3FileSystem(key="test", secret="test", client_kwargs={"endpoint_url": url})
with fastpq.ParquetWriter(RemotePath(filesystem, f"{bucket}/a.parquet"), compression=None) as writer:
    writer.write_table({"x": np.random.default_rng(0).random(3_000_000)})
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_writer(store: tuple[Any, Any, str], moto_url: str) -> None:
    _, direct, bucket = store
    done = subprocess.run([sys.executable, "-c", KILLED, moto_url, bucket], check=False)
    assert done.returncode == -signal.SIGKILL
    assert direct.ls(bucket) == []
    assert fastpq.abort_uploads(place(direct, bucket), older_than=0) == [f"{bucket}/a.parquet"]
    assert uploads(direct, bucket) == 0


def test_a_dataset(store: tuple[Any, Any, str], proxy: Proxy) -> None:
    filesystem, direct, bucket = store
    data = {"x": np.arange(100), "part": np.arange(100) % 3}
    fastpq.write_dataset(data, place(filesystem, f"{bucket}/set"), partition_by=["part"])
    assert fastpq.read_dataset(place(direct, f"{bucket}/set")).num_rows == 100


def test_parts_grow(store: tuple[Any, Any, str]) -> None:
    """10,000 parts hold S3's largest object of 5 TB; stores that want equal parts get these."""
    filesystem, _, bucket = store
    parts = MultipartSink(Remote(filesystem, f"{bucket}/a", "a"))._parts
    sizes = []
    for count in range(10_000):
        parts._count = count
        sizes.append(parts._part_bytes())
    parts._count = 0
    assert sizes == sorted(sizes)
    assert sum(sizes) * 8 / 5 > 5e12        # the parts here begin with 5 MiB, not 8
    parts.store.has_equal_parts = True
    assert parts._part_bytes() == multipart.FIXED_PART_BYTES


class OtherStore(s3fs.S3FileSystem):      # type: ignore[misc]
    """A store of another protocol: fsspec's own way to complete objects later."""

    protocol = "gs"


def test_stores_that_complete_objects_later(moto_url: str, store: tuple[Any, Any, str]) -> None:
    _, direct, bucket = store
    filesystem = OtherStore(**CREDENTIALS, client_kwargs={"endpoint_url": moto_url}, skip_instance_cache=True)
    for rows in (SMALL, LARGE * 5):
        sink = open_sink(place(filesystem, f"{bucket}/a.parquet"))
        assert isinstance(sink, DeferredSink)
        writer = fastpq.ParquetWriter(sink, compression=None)
        writer.write_table(table(rows))
        assert not direct.exists(f"{bucket}/a.parquet")
        assert uploads(direct, bucket) == (rows != SMALL)
        writer.close()
        direct.invalidate_cache()
        assert fastpq.read_table(place(direct, f"{bucket}/a.parquet")).num_rows == rows
        direct.rm(f"{bucket}/a.parquet")
        writer = fastpq.ParquetWriter(place(filesystem, f"{bucket}/a.parquet"), compression=None)
        writer.write_table(table(rows))
        writer.abort()
        direct.invalidate_cache()
        assert not direct.exists(f"{bucket}/a.parquet")
        assert uploads(direct, bucket) == 0


def test_stores_that_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    filesystem = fsspec.filesystem("memory")
    monkeypatch.setattr(type(filesystem), "protocol", ("memory", "hf"))
    assert isinstance(open_sink("memory://bucket/a"), UploadingSink)
