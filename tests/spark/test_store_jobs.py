"""Jobs over datasets in object stores: all files change at one record, again and again, also after errors, deaths and other
writers. Spark runs the jobs over one store; over every store, tasks run in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row

import fastpq
import fastpq.spark
from fastpq.datasets import records
from fastpq.io.location import Remote
from fastpq.io.object_store import url_of
from fastpq.spark.jobs import replacing
from fastpq.spark.keyservice import Encryption, ServiceOptions
from fastpq.spark.scan.file_scan import open_file
from fastpq.spark.tables.listing import list_files
from fastpq.spark.write.store_writer import data_files
from fastpq.spark.write.write_task import material_of
from tests.encryption.keys.peers import MASTER_KEYS, key_list
from tests.io.object_stores import begun, unfinished
from tests.spark.conftest import CLIENT, KEYS_VARIABLE
from tests.spark.here import Here
from tests.spark.test_stores import batch, listed, objects, store, written

__all__ = ["store"]     # the fixture

SERVICE: dict[str, Any] = {"kms.client": CLIENT}
KEYS: dict[str, Any] = {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:id", **SERVICE}
EXTERNAL = {**KEYS, "parquet.encryption.key.material.store.internally": "false"}


@pytest.fixture
def table(store: Remote) -> Iterator[Remote]:
    """Four plaintext files in two partitions."""
    written(store, batch(1, part=1), batch(2, part=2), partitionBy="part")
    written(store, batch(3, part=1), batch(4, part=2), partitionBy="part")
    yield store
    assert unfinished(store) == []
    assert not store.filesystem.find(f"{store.path}/{records.NOTES}")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A session without Spark, and the master keys in this process, which is its worker."""
    monkeypatch.setenv(KEYS_VARIABLE, key_list(MASTER_KEYS))
    return Here()


def statuses(report: Any) -> list[str]:
    return sorted(row.status for row in report.collect())


def ids(store: Remote) -> list[int]:
    """The rows as tasks read them."""
    found: list[int] = []
    for listed_file in list_files([store.name]):
        with open_file(listed_file.path, ServiceOptions(CLIENT)) as file:
            found += file.read(["id"])["id"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize("object_store", ["s3"], indirect=True)      # the others: test_encrypt_rotate_verify_decrypt_compact
def test_jobs_by_spark(source: Any, table: Remote) -> None:
    seen: list[tuple[int, int]] = []
    report = fastpq.spark.encrypt_dataset(source, table.name, progress=lambda *told: seen.append(told), **KEYS)
    assert [row.path.rpartition("/")[0] for row in report.collect()] == [f"{table.name}/part={part}" for part in (1, 1, 2, 2)]
    assert (statuses(report), seen[-1]) == (["ok"] * 4, (4, 4))
    with pytest.raises(fastpq.KeyAccessError):
        fastpq.spark.read(source, table.name)
    assert statuses(fastpq.spark.rotate_keys(source, table.name, **KEYS)) == ["ok"] * 4
    assert statuses(fastpq.spark.verify_dataset(source, table.name, **SERVICE)) == ["ok"] * 4
    assert statuses(fastpq.spark.compact_dataset(source, table.name, **KEYS)) == ["ok"] * 2
    found = source.read.format("fastpq").options(**SERVICE).load(table.name).collect()
    assert sorted(row.id for row in found) == [1, 2, 3, 4]
    assert statuses(fastpq.spark.decrypt_dataset(source, table.name, **SERVICE)) == ["ok"] * 2
    assert listed(table) == [1, 2, 3, 4]


def test_encrypt_rotate_verify_decrypt_compact(here: Any, table: Remote) -> None:
    name, seen = table.name, []
    report = fastpq.spark.encrypt_dataset(here, name, progress=lambda *told: seen.append(told), **KEYS)
    assert [row.path.rpartition("/")[0] for row in report.collect()] == [f"{name}/part={part}" for part in (1, 1, 2, 2)]
    assert (statuses(report), seen[-1]) == (["ok"] * 4, (4, 4))
    with pytest.raises(fastpq.KeyAccessError):
        open_file(list_files([name])[0].path, None)
    assert ids(table) == [1, 2, 3, 4]
    before = objects(table)
    assert len(before) == 4     # the plaintext files are gone
    assert statuses(fastpq.spark.encrypt_dataset(here, name, **KEYS)) == ["skipped"] * 4
    assert objects(table) == before
    other = {**KEYS, "parquet.encryption.column.keys": "kc2:id"}
    assert statuses(fastpq.spark.rotate_keys(here, name, **other)) == ["ok"] * 4
    assert not set(objects(table)) & set(before)
    assert [len(path) for path in objects(table)] == [len(path) for path in before]     # names do not grow
    assert statuses(fastpq.spark.verify_dataset(here, name, **SERVICE)) == ["ok"] * 4
    assert statuses(fastpq.spark.compact_dataset(here, name, **KEYS)) == ["ok"] * 2
    assert ids(table) == [1, 2, 3, 4]
    assert len(objects(table)) == 2
    assert statuses(fastpq.spark.decrypt_dataset(here, f"{name}/", **SERVICE)) == ["ok"] * 2
    assert listed(table) == [1, 2, 3, 4]
    foreign = [pq.ParquetFile(pa.BufferReader(table.filesystem.cat_file(path))).read()["id"] for path in objects(table)]
    assert sorted(x for column in foreign for x in column.to_pylist()) == [1, 2, 3, 4]
    with pytest.raises(fastpq.spark.JobError, match="all 2 files are plaintext"):
        fastpq.spark.decrypt_dataset(here, name, **SERVICE)


def test_key_material_beside_files(here: Any, table: Remote) -> None:
    """Of others: read, rotated, and removed with its files; not made."""
    with pytest.raises(fastpq.UnsupportedError, match="key material beside files"):
        fastpq.spark.encrypt_dataset(here, table.name, **EXTERNAL)
    paths = objects(table)
    service = fastpq.spark.options.service_of(SERVICE)
    assert service is not None
    for path in paths:
        url, encryption = url_of(table.filesystem, path), Encryption("kf", (("kc1", ("id",)),), {"internal_key_material": False})
        rows = fastpq.read_table(url)
        fastpq.write_table(rows, url, encryption_properties=service.encryption(encryption, url))
    materials = [material_of(path) for path in paths]
    before = [table.filesystem.cat_file(path) for path in materials]
    assert statuses(fastpq.spark.rotate_keys(here, table.name, **SERVICE)) == ["ok"] * 4
    table.filesystem.invalidate_cache()
    assert not set(before) & {table.filesystem.cat_file(path) for path in materials}
    assert ids(table) == [1, 2, 3, 4]
    assert statuses(fastpq.spark.decrypt_dataset(here, table.name, **SERVICE)) == ["ok"] * 4
    assert listed(table) == [1, 2, 3, 4]
    assert not [path for path in table.filesystem.find(table.path) if "KEY_MATERIAL" in path]


def test_a_job_that_is_run_again_goes_on(here: Any, table: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken file: nothing changes, and the uploads of the others are used when it is mended. Then a driver that dies."""
    broken = objects(table)[0]
    whole = table.filesystem.cat_file(broken)
    table.filesystem.pipe_file(broken, whole[:-9])
    with pytest.raises(fastpq.spark.JobError, match="1 of 4 files failed"):
        fastpq.spark.encrypt_dataset(here, table.name, **KEYS)
    uploads = begun(table)
    assert len(uploads) == 3
    table.filesystem.pipe_file(broken, whole)
    assert listed(table) == [1, 2, 3, 4]

    def dies(*_: Any) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(records, "commit_uploads", dies)
        fastpq.spark.encrypt_dataset(here, table.name, **KEYS)
    assert {path for path, _, _ in uploads} < {path for path, _, _ in begun(table)}
    made = {path for path, _, _ in begun(table)}
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(records, "_put_record", dies)
        fastpq.spark.encrypt_dataset(here, table.name, **KEYS)
    assert made < set(objects(table))       # complete, and not yet visible
    assert listed(table) == [1, 2, 3, 4]
    assert statuses(fastpq.spark.encrypt_dataset(here, table.name, **KEYS)) == ["ok"] * 4
    assert ids(table) == [1, 2, 3, 4]
    assert len(objects(table)) == 4


def staged(table: Remote, operation: str, number: int) -> tuple[Any, list[Any], list[Row]]:
    """A job of any operation up to its commit, each of whose files has one row, of a number."""
    stage = replacing.stage_of(table.name, operation, None)
    replacements = stage.each_file()

    def write(sources: list[str], target: Any, place: str, name: str) -> int:
        fastpq.write_table({"id": [number]}, target)
        return 1

    outcomes = [stage.make(one, write) for one in replacements]
    rows = [Row(path=stage.path_of(one.sources[0]), made=done.message) for one, done in zip(replacements, outcomes, strict=True)]
    return stage, replacements, rows


def test_a_source_that_changes_meanwhile(table: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the commit, and by another commit while this one competes for its record."""
    stage, replacements, rows = staged(table, "early", 7)
    again = url_of(table.filesystem, objects(table)[0])
    fastpq.write_table(fastpq.read_table(again), again, compression="none")
    with pytest.raises(fastpq.SchemaError, match="changed while a job"):
        stage.commit(replacements, rows)
    assert len(begun(table)) == 4      # for the next run
    stage, replacements, rows = staged(table, "late", 8)
    put, competitors = records._put_record, [lambda: written(table, batch(9, part=1), overwrite=True)]

    def late(place: Remote, state: records.State) -> bool:
        if competitors:
            competitors.pop()()
        return put(place, state)

    monkeypatch.setattr(records, "_put_record", late)
    with pytest.raises(fastpq.SchemaError, match="changed while a job"):
        stage.commit(replacements, rows)
    assert listed(table) == [9]
    fastpq.spark.clean(table.name)
    assert listed(table) == [9]
    assert len(objects(table)) == 1


def test_jobs_at_the_same_time(table: Remote) -> None:
    """Of two operations one counts, whole. Of two runs of one operation the earlier one is given up or has happened."""
    for names in (("one", "other"), ("same", "same")):
        jobs = [staged(table, name, number) for number, name in enumerate(names)]
        problems: list[BaseException] = []

        def commit(stage: Any, replacements: list[Any], rows: list[Row], problems: list[BaseException] = problems) -> None:
            try:
                stage.commit(replacements, rows)
            except (fastpq.SchemaError, OSError) as error:
                problems.append(error)

        threads = [threading.Thread(target=commit, args=job) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        fastpq.spark.clean(table.name)
        assert len(problems) == 1
        assert listed(table) in ([0] * 4, [1] * 4)
        assert len(objects(table)) == 4


def test_a_run_that_begins_while_another_one_ends(table: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """The uploads of the later run stay, and its commit works."""
    first = staged(table, "same", 1)
    later: list[Any] = []
    finish = records.finish

    def beginning(place: Remote) -> list[str]:
        monkeypatch.setattr(records, "finish", finish)
        later.append(staged(table, "same", 2))
        return finish(place)

    monkeypatch.setattr(records, "finish", beginning)
    first[0].commit(*first[1:])
    assert len(begun(table)) == 4
    assert listed(table) == [1] * 4
    stage, replacements, rows = later[0]
    stage.commit(replacements, rows)
    assert listed(table) == [2] * 4


def test_a_commit_that_cannot_remove_what_it_replaced(
    table: Remote, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The job has happened, and says so; the next one removes the files."""
    stage, replacements, rows = staged(table, "some", 1)
    remove = records.remove

    def refused(filesystem: Any, path: str) -> None:
        if path.endswith(".parquet"):
            raise PermissionError("no right to delete")
        remove(filesystem, path)

    monkeypatch.setattr(records, "remove", refused)
    stage.commit(replacements, rows)
    assert "left to the next job" in caplog.text
    assert listed(table) == [1] * 4
    assert len(objects(table)) == 8
    monkeypatch.setattr(records, "remove", remove)
    fastpq.spark.clean(table.name)
    assert len(objects(table)) == 4


def test_clean_gives_up_the_uploads_of_a_job(table: Remote) -> None:
    staged(table, "some", 1)
    assert len(begun(table)) == 4
    assert len(data_files(table)) == 4
    fastpq.spark.clean(table.name)
    assert listed(table) == [1, 2, 3, 4]


def test_broken_notes(table: Remote) -> None:
    stage = replacing.stage_of(table.name, "some", None)
    [first, *_] = stage.each_file()
    path = records.note_of(table, stage.job, first.fingerprint)
    for note in (b"{", b"{}", b'{"rows": 1, "upload": {"path": "x"}}'):
        table.filesystem.pipe_file(path, note)
        with pytest.raises(fastpq.FormatError, match="a note on an upload"):
            stage.make(first, lambda sources, target, place, name: None)
    fastpq.spark.clean(table.name)


def test_jobs_need_a_dataset(store: Remote) -> None:
    with pytest.raises(fastpq.SchemaError, match="folder of a dataset"):
        replacing.stage_of(store.name, "some", None)
