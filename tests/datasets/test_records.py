"""Commits of datasets in object stores: cut off at any request, at the same time as others, and cleaned up.

Readers see all or nothing.
"""

from __future__ import annotations

import io
import json
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.dirfs import DirFileSystem

import fastpq
from fastpq.datasets import records
from fastpq.io.location import Remote, RemotePath
from fastpq.io.multipart import PendingSink
from fastpq.io.object_store import Upload, store_at
from tests.io.faulty_s3 import Proxy, faulty
from tests.io.object_stores import Store, unfinished


@pytest.fixture(scope="module")
def proxy(object_store: Store) -> Iterator[Proxy]:
    with faulty(object_store.url) as running:
        yield running


@pytest.fixture
def places(proxy: Proxy, object_store: Store) -> Iterator[tuple[Remote, Remote]]:
    """The folder of a dataset, through the proxy and without it."""
    proxy.reset()
    filesystems = object_store.filesystem(proxy.url), object_store.filesystem()
    bucket = object_store.new_bucket(*filesystems)
    yield tuple(Remote(filesystem, f"{bucket}/set", "set") for filesystem in filesystems)     # type: ignore[misc]
    proxy.reset()


def pending(place: Remote, *values: int, folder: str = "") -> list[Upload]:
    """Uploads of a file for each value."""
    found = []
    for value in values:
        sink = PendingSink(Remote(place.filesystem, f"{place.path}/{folder}part-{value}-{uuid.uuid4().hex}.parquet", "part"))
        fastpq.write_table({"x": [value]}, sink)
        assert sink.upload is not None
        found.append(sink.upload)
    return found


def everything(files: Any) -> list[str]:
    return list(files)


def read(place: Remote) -> list[int]:
    """The values of the dataset, as fastpq's readers see it."""
    place.filesystem.invalidate_cache()
    try:
        return sorted(fastpq.read_dataset(RemotePath(place.filesystem, place.path))["x"].to_pylist())
    except FileNotFoundError:
        return []


def job() -> str:
    return uuid.uuid4().hex


def test_append_and_overwrite(places: tuple[Remote, Remote]) -> None:
    place, _ = places
    assert records.commit_uploads(place, job(), pending(place, 1, 2))
    records.commit_uploads(place, job(), pending(place, 3))
    assert read(place) == [1, 2, 3]
    records.commit_uploads(place, job(), pending(place, 4, 5), everything)
    assert read(place) == [4, 5]
    names = place.filesystem.find(place.path)
    assert len([name for name in names if name.endswith(".parquet")]) == 2      # the removed ones are gone
    assert len(names) <= 2 + records.KEPT


@pytest.mark.parametrize("overwrites", [False, True])
def test_cut_off_at_any_request(places: tuple[Remote, Remote], proxy: Proxy, overwrites: bool) -> None:
    """Nothing or everything of a commit has happened, also while it is cleaned up and after that."""
    place, direct = places
    removed: Any = everything if overwrites else lambda files: ()
    records.commit_uploads(direct, job(), pending(direct, 0), everything)
    before, value, outcomes = [0], 1, set()
    uploads = pending(direct, 1, 2)
    proxy.reset()
    records.commit_uploads(place, job(), uploads, removed)
    count = len(proxy.requests)
    records.commit_uploads(direct, job(), pending(direct, 0), everything)
    for number in range(count):
        for moment in ("before", "after"):
            value += 2
            uploads = pending(direct, value, value + 1)
            proxy.cut(number, moment)
            with pytest.raises(Exception, match=r".+"):     # an OSError, or botocore's from a listing by fsspec
                records.commit_uploads(place, job(), uploads, removed)
            assert proxy.is_cut
            after = [value, value + 1] if overwrites else sorted([*before, value, value + 1])
            found = read(direct)
            assert found in (before, after), (number, moment, proxy.requests)
            outcomes.add(found == after)
            proxy.reset()
            records.clean_up(direct, 0)
            assert read(direct) == found
            assert unfinished(direct) == []
            names = direct.filesystem.find(direct.path)
            assert not any("begun-" in name for name in names)
            assert sum(name.endswith(".parquet") for name in names) == len(found)
            before = found
    assert outcomes == {False, True}


def test_metadata_of_the_files_before(places: tuple[Remote, Remote]) -> None:
    """``_metadata`` is used while the objects are the same, by their ETags, and goes with a commit."""
    _, direct = places
    root = RemotePath(direct.filesystem, direct.path)
    (path,) = fastpq.write_dataset({"x": [1, 2]}, root, write_metadata_file=True)

    def read_again() -> tuple[list[int], bool]:
        direct.filesystem.invalidate_cache()
        dataset = fastpq.ParquetDataset(root)
        return sorted(dataset.read()["x"].to_pylist()), dataset._open_files._footers is not None

    (second,) = fastpq.write_dataset({"x": [3, 4]}, root)
    assert read_again() == ([1, 2, 3, 4], True)
    size = direct.filesystem.info(path)["size"]
    fastpq.write_table({"x": [5, 6]}, RemotePath(direct.filesystem, path))
    direct.filesystem.invalidate_cache()
    assert direct.filesystem.info(path)["size"] == size
    assert read_again() == ([3, 4, 5, 6], False)
    fastpq.write_dataset_metadata(root)
    assert read_again() == ([3, 4, 5, 6], True)
    records.commit_uploads(direct, job(), pending(direct, 7))
    assert not direct.filesystem.exists(f"{direct.path}/_metadata")
    assert not direct.filesystem.exists(f"{direct.path}/_common_metadata")
    assert read_again() == ([3, 4, 5, 6, 7], False)
    fastpq.write_dataset_metadata(root)
    assert read_again() == ([3, 4, 5, 6, 7], True)
    assert second.endswith(".parquet")


def test_lost_answers(places: tuple[Remote, Remote], proxy: Proxy) -> None:
    """Each lost answer is an error of reading, before which nothing happened, or none at all."""
    place, direct = places
    before: list[int] = []
    for number in range(12):
        uploads = pending(direct, number)
        proxy.lose(number)
        try:
            records.commit_uploads(place, job(), uploads)
        except OSError:
            pass
        else:
            assert number in read(direct)
        found = read(direct)
        assert found in (before, [*before, number])
        records.clean_up(direct, 0)
        assert read(direct) == found
        before = found
    assert len(before) > 6


def test_overwriters_at_the_same_time(places: tuple[Remote, Remote]) -> None:
    """One of them counts, whole."""
    _, direct = places
    ready = threading.Barrier(4)
    sets = [[10 * number + 1, 10 * number + 2] for number in range(4)]

    def overwrite(values: list[int]) -> None:
        uploads = pending(direct, *values)
        ready.wait()
        records.commit_uploads(direct, job(), uploads, everything)

    writers = [threading.Thread(target=overwrite, args=(values,)) for values in sets]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert read(direct) in sets
    assert sum(name.endswith(".parquet") for name in direct.filesystem.find(direct.path)) == 2


def test_appenders_at_the_same_time(places: tuple[Remote, Remote]) -> None:
    _, direct = places
    writers = [
        threading.Thread(target=lambda value=value: records.commit_uploads(direct, job(), pending(direct, value)))
        for value in range(6)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert read(direct) == list(range(6))


def test_a_batch_is_committed_once(places: tuple[Remote, Remote]) -> None:
    _, direct = places
    assert records.commit_uploads(direct, job(), pending(direct, 1), stream=("s", 0))
    assert not records.commit_uploads(direct, job(), pending(direct, 1), stream=("s", 0))
    assert records.commit_uploads(direct, job(), pending(direct, 2), stream=("s", 1))
    assert records.commit_uploads(direct, job(), pending(direct, 3), stream=("other", 0))
    assert not records.commit_uploads(direct, job(), pending(direct, 1), stream=("s", 0))
    assert read(direct) == [1, 2, 3]
    assert unfinished(direct) == []


def test_a_job_that_was_cleaned_up_does_not_commit(places: tuple[Remote, Remote]) -> None:
    """A driver that sleeps between its uploads and its record."""
    _, direct = places
    name, uploads = job(), pending(direct, 1)

    def removed(files: Any) -> list[str]:
        records.clean_up(direct, 0)
        return []

    with pytest.raises(records.CommitRefused):
        records.commit_uploads(direct, name, uploads, removed)
    assert read(direct) == []
    records.abandon_job(direct, name)
    assert not any(path.endswith(".parquet") for path in direct.filesystem.find(direct.path))


def test_partitions_and_globs_keep_to_the_record(places: tuple[Remote, Remote]) -> None:
    _, direct = places
    records.commit_uploads(direct, job(), pending(direct, 1, folder="part=1/"))
    hidden = pending(direct, 2, folder="part=1/")
    records._put(direct, "begun-x.json", {"version": 1, "uploads": [vars(upload) for upload in hidden]})
    for upload in hidden:
        store_at(direct.filesystem).complete(upload)
    for path in ("set", "set/part=1", "set/*/*.parquet", "set/part=1/*"):
        where = f"{direct.path.removesuffix('set')}{path}"
        direct.filesystem.invalidate_cache()
        assert fastpq.read_dataset(RemotePath(direct.filesystem, where))["x"].to_pylist() == [1], path
    assert len(direct.filesystem.glob(f"{direct.path}/*/*.parquet")) == 2


def test_records_in_another_filesystem(places: tuple[Remote, Remote], object_store: Store) -> None:
    """Files of an uncommitted job are not taken for rows by readers through filesystems other than those of the stores."""
    _, direct = places
    records.commit_uploads(direct, job(), pending(direct, 1))
    others = [(DirFileSystem(direct.path, direct.filesystem), "")]
    if object_store.kind == "s3":
        host = object_store.url.removeprefix("http://")
        arrow = pyarrow.fs.S3FileSystem(access_key="test", secret_key="test", endpoint_override=host, scheme="http")
        others.append((arrow, direct.path))
    for filesystem, path in others:
        with pytest.raises(fastpq.UnsupportedError, match="storage_options"):
            fastpq.read_table(path, filesystem=filesystem)
    assert fastpq.read_table(direct.path, filesystem=direct.filesystem)["x"].to_pylist() == [1]


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"version": 3}', b'{"version": 1, "number": "x"}', b'{"version": 2}'])
def test_broken_records(places: tuple[Remote, Remote], content: bytes) -> None:
    _, direct = places
    records.commit_uploads(direct, job(), pending(direct, 1))
    direct.filesystem.pipe_file(f"{direct.path}/{records.FOLDER}/{7:020d}.json", content)
    with pytest.raises(fastpq.FormatError, match="a commit record"):
        read(direct)


def test_a_record_says_what_counts(places: tuple[Remote, Remote]) -> None:
    _, direct = places
    records.commit_uploads(direct, "one", pending(direct, 1), stream=("s", 4))
    found = json.loads(direct.filesystem.cat_file(f"{direct.path}/{records.FOLDER}/{1:020d}.json"))
    assert found == {
        "version": 2, "number": 1, "by": "one", "committed": ["one"], "abandoned": [], "removed": {}, "streams": {"s": 4},
    }


def write_plainly(place: Remote, name: str, value: int) -> None:
    """As writers do that know nothing of records."""
    content = io.BytesIO()
    pq.write_table(pa.table({"x": [value]}), content)
    place.filesystem.pipe_file(f"{place.path}/{name}", content.getvalue())


def test_a_new_file_under_the_name_of_a_removed_one(places: tuple[Remote, Remote]) -> None:
    """Another writer's ``part-0.parquet`` is replaced by a commit, and written again, even with the same bytes."""
    _, direct = places
    write_plainly(direct, "part-0.parquet", 1)
    write_plainly(direct, "part-1.parquet", 1)
    records.commit_uploads(direct, job(), pending(direct, 2), everything)
    assert read(direct) == [2]
    time.sleep(1.1)         # S3 tells times in seconds
    write_plainly(direct, "part-0.parquet", 1)
    assert read(direct) == [1, 2]
    records.commit_uploads(direct, job(), pending(direct, 3))
    records.clean_up(direct, 0)
    assert read(direct) == [1, 2, 3]


def test_a_removed_file_that_is_still_there(places: tuple[Remote, Remote], monkeypatch: pytest.MonkeyPatch) -> None:
    _, direct = places
    write_plainly(direct, "part-0.parquet", 1)
    with monkeypatch.context() as patch:
        patch.setattr(records, "finish", lambda place: [])
        records.commit_uploads(direct, job(), pending(direct, 2), everything)
    assert f"{direct.path}/part-0.parquet" in records.find(direct.filesystem, direct.path)
    assert read(direct) == [2]
    records.commit_uploads(direct, job(), pending(direct, 3))
    assert read(direct) == [2, 3]
    assert f"{direct.path}/part-0.parquet" not in records.find(direct.filesystem, direct.path)


def test_records_with_paths_of_removed_files(places: tuple[Remote, Remote]) -> None:
    """Of version 1."""
    _, direct = places
    for number in range(2):
        write_plainly(direct, f"part-{number}.parquet", number)
    lists = {"committed": [], "abandoned": [], "removed": ["part-0.parquet"]}
    record = {"version": 1, "number": 1, "by": "one", "streams": {}, **lists}
    direct.filesystem.pipe_file(f"{direct.path}/{records.FOLDER}/{1:020d}.json", json.dumps(record).encode())
    assert read(direct) == [1]
    records.clean_up(direct, 0)
    assert f"{direct.path}/part-0.parquet" not in records.find(direct.filesystem, direct.path)
