"""encrypt_dataset, decrypt_dataset, rotate_dataset and revoke in object stores: whole folders, two jobs at once, kills."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import fsspec
import numpy as np
import pytest
from fsspec.asyn import sync

import fastpq
from fastpq.cli.failures import failure_of
from fastpq.datasets import folder_job, job_lock
from fastpq.io.location import RemotePath
from tests.datasets.test_key_changes import (
    CONNECTION,
    TRUSTED,
    VERBS,
    StoppedError,
    factory,
    ids_in,
    opening,
    sealing,
    stopping,
)
from tests.io.object_stores import Store

LOCK = "_fastpq_job.lock"


class Folder:
    """A folder with two plaintext files in a new bucket of a store.

    Attributes:
        where: the folder.
    """

    def __init__(self, store: Store) -> None:
        self.filesystem = store.filesystem()
        self.where = RemotePath(self.filesystem, f"{store.new_bucket(self.filesystem)}/people")
        for start in (0, 3):
            fastpq.write_dataset({"id": np.arange(start, start + 3), "pay": np.arange(start, start + 3)}, self.where)

    def objects(self) -> dict[str, bytes]:
        self.filesystem.invalidate_cache()
        return {path: self.filesystem.cat_file(path) for path in self.filesystem.find(self.where.path)}

    def put_back(self, objects: dict[str, bytes]) -> None:
        for path in self.objects().keys() - objects.keys():
            self.filesystem.rm_file(path)
        for path, content in objects.items():
            self.filesystem.pipe_file(path, content)

    def own_names(self) -> list[str]:
        """Names of objects that a job should not leave behind."""
        names = [path.rpartition("/")[2] for path in self.objects()]
        return [name for name in names if name.startswith("_fastpq")]

    def remove_lock(self) -> None:
        self.filesystem.rm_file(f"{self.where.path}/{LOCK}")


def test_there_and_back(object_store: Store) -> None:
    folder = Folder(object_store)
    all_ids = ids_in(folder.where)
    with pytest.raises(StoppedError):
        fastpq.encrypt_dataset(folder.where, sealing("people", internal_key_material=False), progress=stopping(1))
    assert fastpq.encrypt_dataset(folder.where, sealing("people", internal_key_material=False)).is_resumed
    assert ids_in(folder.where, opening("people")) == all_ids
    fastpq.rotate_dataset(folder.where, opening("people"), new_data_keys=True)
    fastpq.revoke(folder.where, ["pay"], "kn", opening("people"))
    assert ids_in(folder.where, opening("people")) == all_ids
    fastpq.decrypt_dataset(folder.where, opening("people"))
    assert ids_in(folder.where) == all_ids
    assert len(folder.objects()) == 2


def test_two_jobs_never_change_a_folder_at_once(object_store: Store) -> None:
    folder, other = Folder(object_store), object_store.filesystem()
    refusals = []

    def second(done: int, total: int) -> None:
        where = RemotePath(other, folder.where.path)
        with pytest.raises(fastpq.CryptoError, match="another job is changing") as caught:
            fastpq.encrypt_dataset(where, sealing(internal_key_material=False), allow_plaintext_files=True)
        refusals.append(caught.value)

    report = fastpq.encrypt_dataset(folder.where, sealing(internal_key_material=False), progress=second)
    assert len(report.changed_files) == len(refusals) == 2
    assert re.search(rf"encrypt job \w+ in process \d+ on .*remove the object {object_store.scheme}://.*{LOCK}", str(refusals[0]))
    assert ids_in(folder.where, opening()) == list(range(6))
    assert folder.own_names() == []


def test_jobs_on_a_folder_and_on_one_in_it_are_kept_apart(object_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(object_store)
    inner = RemotePath(folder.filesystem, f"{folder.where.path}/older/part")
    fastpq.write_dataset({"id": [6], "pay": [6]}, inner)
    refusals = []

    def refuse(where: RemotePath) -> Callable[[int, int], None]:
        def second(done: int, total: int) -> None:
            with pytest.raises(fastpq.CryptoError, match="another job is changing the files of the folder") as caught:
                fastpq.encrypt_dataset(RemotePath(object_store.filesystem(), where.path), sealing(), allow_plaintext_files=True)
            refusals.append(str(caught.value))

        return second

    fastpq.encrypt_dataset(folder.where, sealing(), progress=refuse(inner))
    assert re.search(rf"the folder {object_store.scheme}://\S+/people: encrypt job \w+ in process .*/people/{LOCK}", refusals[0])
    fastpq.decrypt_dataset(inner, opening(), progress=refuse(folder.where))
    assert re.search(rf"/people/older/part: decrypt job \w+ in process .*part/{LOCK}", refusals[-1])
    assert folder.own_names() == []
    read = job_lock._content

    def forbidden(root: Any, path: str) -> bytes | None:
        if path == f"{folder.where.path.partition('/')[0]}/{LOCK}":
            raise PermissionError(path)
        return read(root, path)

    monkeypatch.setattr(job_lock, "_content", forbidden)
    fastpq.encrypt_dataset(inner, sealing())
    assert ids_in(folder.where, opening()) == list(range(7))


@pytest.mark.parametrize("error", [StoppedError("of the job"), fastpq.KeyAccessError("of the job")])
def test_the_error_of_a_job_is_not_hidden_if_the_store_is_away_at_the_end(moto_url: str, error: Exception) -> None:
    folder = Folder(Store("s3", moto_url))
    victim = Victim(Store("s3", moto_url), folder.where.path)
    victim._changes_left = 1000

    def stop(done: int, total: int) -> None:
        victim.is_dead = True
        raise error

    with pytest.raises(type(error), match="of the job") as caught:
        fastpq.encrypt_dataset(victim.where, sealing(), progress=stop)
    keys, lock = caught.value.__notes__
    assert keys.startswith("external keys of replaced files may still stand beside the new ones (DeadError")
    assert re.fullmatch(rf"the lock could not be removed: .*remove the object s3://\S+/people/{LOCK} \(DeadError: \w+\)", lock)
    assert failure_of(caught.value).message.count("; ") == 2
    folder.remove_lock()
    assert fastpq.encrypt_dataset(folder.where, sealing()).is_resumed


def test_a_lock_that_cannot_be_removed_is_named(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(Store("s3", moto_url))
    victim = Victim(Store("s3", moto_url), folder.where.path)
    victim._changes_left = 1000
    report = folder_job.FolderJob._report

    def die(job: folder_job.FolderJob, changes: Any) -> Any:
        victim.is_dead = True
        return report(job, changes)

    monkeypatch.setattr(folder_job.FolderJob, "_report", die)
    with pytest.raises(DeadError) as caught:
        fastpq.encrypt_dataset(victim.where, sealing())
    [note] = caught.value.__notes__
    assert f"/people/{LOCK}" in note
    assert ids_in(folder.where, opening()) == list(range(6))


def test_a_job_stops_if_its_lock_is_removed(object_store: Store) -> None:
    """Somebody may take a job for dead that only stood still."""
    folder = Folder(object_store)

    def taken(done: int, total: int) -> None:
        folder.remove_lock()
        folder.filesystem.pipe_file(f"{folder.where.path}/{LOCK}", b"\x00 of another job")

    with pytest.raises(fastpq.CryptoError, match="somebody removed its lock"):
        fastpq.encrypt_dataset(folder.where, sealing(), progress=taken)
    assert LOCK in folder.own_names()       # that of the other job
    with pytest.raises(fastpq.CryptoError, match=r"its lock does not tell which.*remove the object"):
        fastpq.encrypt_dataset(folder.where, sealing())
    folder.remove_lock()
    assert fastpq.encrypt_dataset(folder.where, sealing()).is_resumed
    assert ids_in(folder.where, opening()) == list(range(6))
    assert folder.own_names() == []


def test_a_lock_that_is_gone_when_the_last_file_is_done(object_store: Store) -> None:
    folder = Folder(object_store)

    def remove_at_end(done: int, total: int) -> None:
        if done == total:
            folder.remove_lock()

    with pytest.raises(fastpq.CryptoError, match="somebody removed its lock"):
        fastpq.encrypt_dataset(folder.where, sealing(), progress=remove_at_end)
    assert "_fastpq_job.parquet" in folder.own_names()
    assert ids_in(folder.where, opening()) == list(range(6))


@pytest.mark.parametrize("verb", VERBS)
def test_filesystems_without_conditional_requests_are_refused(verb: str) -> None:
    memory = fsspec.filesystem("memory")
    try:
        fastpq.write_dataset({"id": [1], "pay": [1]}, "memory://unlocked")
        if verb != "encrypt":
            path = memory.find("/unlocked")[0]
            keys = sealing("people")(path)
            fastpq.write_table({"id": [1], "pay": [1]}, f"memory:/{path}", encryption_properties=keys)
        before = {path: memory.cat_file(path) for path in memory.find("/unlocked")}
        with pytest.raises(fastpq.UnsupportedError, match="cannot keep two jobs apart"):
            VERBS[verb]("memory://unlocked", False)
        assert {path: memory.cat_file(path) for path in memory.find("/unlocked")} == before
    finally:
        memory.rm("/unlocked", recursive=True)


class DeadError(OSError):
    """A request of a process that was killed."""


class Victim:
    """A filesystem on S3 whose requests fail from one change of the store on. For the store its process is dead.

    Attributes:
        where: a folder on this filesystem.
        is_dead: whether the change was reached.
    """

    def __init__(self, store: Store, folder: str) -> None:
        filesystem = store.filesystem()
        self.where, self.is_dead, self._changes_left = RemotePath(filesystem, folder), False, 0
        send = filesystem._call_s3

        async def call(method: str, *arguments: Any, **options: Any) -> Any:
            if not method.startswith(("get_", "head_", "list_")):
                self.is_dead = self.is_dead or self._changes_left == 0
                self._changes_left -= 1
            if self.is_dead:
                raise DeadError(method)
            return await send(method, *arguments, **options)

        filesystem._call_s3 = call
        filesystem.call_s3 = lambda *arguments, **options: sync(filesystem.loop, call, *arguments, **options)

    def killed_at_changes(self, work: Callable[[RemotePath], Any]) -> Iterator[int]:
        """Run work, killed before every third change, the first one at random. Yield after each, until the work comes through."""
        for count in range(random.randrange(3), 1000, 3):
            self.is_dead, self._changes_left = False, count
            try:
                work(self.where)
            except (OSError, fastpq.ParquetError):
                assert self.is_dead
            if not self.is_dead:
                return
            yield count


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "external"), [("encrypt", False), *((verb, True) for verb in VERBS)])
def test_kills_at_changes(moto_url: str, verb: str, external: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each kill every file is readable. The next call is refused until the lock is removed, and then finishes the work."""
    monkeypatch.setattr(folder_job, "GRACE_SECONDS", 0.0)
    store = Store("s3", moto_url)
    folder = Folder(store)
    if verb != "encrypt":
        fastpq.encrypt_dataset(folder.where, sealing("people", internal_key_material=not external))
    first = folder.objects()
    either = factory().dataset_decryption_properties(CONNECTION, TRUSTED, table_id="people", allow_plaintext_files=True)
    done = None if verb == "decrypt" else opening("people")
    victim = Victim(store, folder.where.path)
    kills = 0
    for count in victim.killed_at_changes(lambda where: VERBS[verb](where, external)):
        kills += 1
        assert ids_in(folder.where, either) == list(range(6)), count
        left = folder.own_names()
        assert (LOCK in left) == (count > 0)
        if left:
            with pytest.raises(fastpq.CryptoError, match="another job is changing"):
                VERBS[verb](folder.where, external)
            folder.remove_lock()
        is_decrypted = verb == "decrypt" and left == [LOCK] and all(
            content[:4] == b"PAR1" for path, content in folder.objects().items() if path.endswith(".parquet"))
        if not is_decrypted:        # otherwise plaintext files are refused
            VERBS[verb](folder.where, external)
        assert ids_in(folder.where, done) == list(range(6)), count
        assert folder.own_names() == [], count
        assert verb != "decrypt" or len(folder.objects()) == 2, count
        folder.put_back(first)
    assert kills > 1
    assert ids_in(folder.where, done) == list(range(6))
    assert folder.own_names() == []
