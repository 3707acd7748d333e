"""Jobs over the files of a dataset: verified, encrypted, decrypted, put under other keys, compacted; again and again."""

from __future__ import annotations

import base64
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
import fastpq.spark
from fastpq.spark.jobs import compaction, running, staging
from fastpq.spark.options import service_of
from fastpq.spark.scan.file_scan import open_file
from fastpq.spark.tables import journal
from tests.narrowing import present
from tests.spark.conftest import CLIENT

SERVICE: dict[str, Any] = {"kms.client": CLIENT}
KEYS: dict[str, Any] = {
    "parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:price;kc2:tags.list.element", **SERVICE,
}
PLAIN = {"allowPlaintextFiles": "true", **SERVICE}
EXTERNAL = {**KEYS, "parquet.encryption.key.material.store.internally": "false"}
ROWS = 1000


def statuses(report: Any) -> list[str]:
    return sorted(row.status for row in report.collect())


def content(files: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in files.rglob("*") if path.is_file() and "_SUCCESS" not in path.name}


@pytest.fixture(scope="module")
def native(source: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six plaintext files in two partitions, by Spark: dictionaries, nested columns, pages V1, bloom filters."""
    path = tmp_path_factory.mktemp("native") / "t"
    frame = source.range(ROWS, numPartitions=3).selectExpr(
        "id", "id / 4 as price", "concat('name ', id % 7) as name", "array(cast(id as string), null) as tags", "id % 2 as part"
    )
    bloom = {"parquet.bloom.filter.enabled#name": "true", "parquet.bloom.filter.expected.ndv#name": "7",
             "parquet.enable.dictionary#name": "false"}
    frame.write.partitionBy("part").options(**bloom).parquet(str(path))
    return path


@pytest.fixture(scope="module")
def truth(source: Any, native: Path) -> list[Any]:
    """The rows, by Spark."""
    return rows_of(source.read.parquet(str(native)))


@pytest.fixture
def table(native: Path, tmp_path: Path) -> Path:
    """A copy of the files."""
    return Path(shutil.copytree(native, tmp_path / "t"))


def rows_of(frame: Any) -> list[Any]:
    return sorted(frame.select("id", "price", "name", "tags", "part").collect(), key=lambda row: row.id)


def ours(spark: Any, path: Path, **options: Any) -> list[Any]:
    return rows_of(spark.read.format("fastpq").options(**(options or SERVICE)).load(str(path)))


class Stopped(Exception):
    pass


def test_an_exception_from_progress_ends_a_job(source: Any, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastpq.spark.jobs.running._POLL_SECONDS", 0.01)
    before = content(table)

    def stop(done: int, total: int) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        fastpq.spark.encrypt_dataset(source, str(table), progress=stop, **KEYS)
    assert {path: path.read_bytes() for path in before} == before
    assert statuses(fastpq.spark.encrypt_dataset(source, str(table), **KEYS)) == ["ok"] * 6    # and it goes on from there


@pytest.mark.parametrize("is_early", [True, False], ids=["before the job is submitted", "after the first task"])
def test_an_exception_from_progress_cancels_the_tasks(
    source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_early: bool
) -> None:
    """Tasks behind the first wait for a file that appears when the job has ended: without cancelling, all tasks run."""
    monkeypatch.setattr("fastpq.spark.jobs.running._POLL_SECONDS", 0.01)
    items, folder, limit = 20, str(tmp_path), time.time() + 60
    cancelled = threading.Event()

    def act(number: int) -> running.TaskOutcome:
        Path(folder, f"began {number}").touch()
        while number and time.time() < limit and not Path(folder, "over").exists():
            time.sleep(0.05)
        return running.TaskOutcome()

    def stop(done: int, total: int) -> None:
        if is_early or done:
            raise Stopped

    cancel, start = type(source.sparkContext).cancelJobGroup, running._Watcher.start

    def cancel_and_say(context: Any, group: str) -> None:
        cancel(context, group)
        cancelled.set()

    def start_and_wait(watcher: running._Watcher) -> None:
        start(watcher)
        assert not is_early or cancelled.wait(60)

    monkeypatch.setattr(type(source.sparkContext), "cancelJobGroup", cancel_and_say)
    monkeypatch.setattr(running._Watcher, "start", start_and_wait)
    with pytest.raises(Stopped):
        running.run_tasks(source, range(items), running.Work("wait", lambda number: (str(number), 0), act), stop)
    assert cancelled.is_set()
    (tmp_path / "over").touch()
    assert len(list(tmp_path.glob("began *"))) < items


def test_errors_of_the_status_tracker_do_not_end_a_job(
    source: Any, table: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("fastpq.spark.jobs.running._POLL_SECONDS", 0.01)
    failed = []

    class Tracker:
        def getJobIdsForGroup(self, group: str) -> list[int]:  # noqa: N802 - Spark's name
            failed.append(group)
            raise RuntimeError("the gateway is gone")

    monkeypatch.setattr(type(source.sparkContext), "statusTracker", lambda _: Tracker())
    seen: list[tuple[int, int]] = []
    for progress in (None, lambda done, total: seen.append((done, total))):
        assert statuses(fastpq.spark.verify_dataset(source, str(table), progress=progress, **PLAIN)) == ["ok"] * 6
    assert seen == [(6, 6)]
    assert len(set(failed)) == 2
    assert "the gateway is gone" in caplog.text


def test_a_job_over_no_files_is_told_of_once(source: Any, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    assert running.run_tasks(source, [], running.Work("nothing", str, str), lambda *told: seen.append(told)) == []    # type: ignore[arg-type]
    assert seen == [(0, 0)]
    assert running.run_tasks(source, [], running.Work("nothing", str, str), None) == []   # type: ignore[arg-type]


@pytest.mark.parametrize("keys", [KEYS, EXTERNAL], ids=["internal", "external"])
def test_encrypt_rotate_decrypt(source: Any, table: Path, truth: list[Any], keys: dict[str, Any]) -> None:
    files = sorted(path.parent.name for path in table.rglob("*.parquet"))
    seen: list[tuple[int, int]] = []
    report = fastpq.spark.encrypt_dataset(source, str(table), progress=lambda *told: seen.append(told), **keys)
    assert statuses(report) == ["ok"] * 6
    assert (present(report.agg({"rows": "sum"}).first())[0], seen[-1]) == (ROWS, (6, 6))
    assert sorted(path.parent.name for path in table.rglob("*.parquet")) == files
    assert not (table / journal.TEMPORARY).exists()
    with pytest.raises(fastpq.KeyAccessError):
        fastpq.spark.read(source, str(table))
    assert ours(source, table) == truth
    assert rows_of(source.read.parquet(str(table))) == truth
    before = content(table)
    assert statuses(fastpq.spark.encrypt_dataset(source, str(table), **keys)) == ["skipped"] * 6
    assert content(table) == before
    other = {
        **keys, "parquet.encryption.column.keys": "kc2:price", "parquet.encryption.plaintext.footer": "true",
        "parquet.encryption.unlisted": "plaintext",
    }
    assert statuses(fastpq.spark.rotate_keys(source, str(table), **other)) == ["ok"] * 6
    assert not set(before) & set(content(table))
    assert ours(source, table) == truth
    assert rows_of(source.read.parquet(str(table))) == truth
    assert statuses(fastpq.spark.verify_dataset(source, str(table), **SERVICE)) == ["ok"] * 6
    assert statuses(fastpq.spark.decrypt_dataset(source, str(table), **SERVICE)) == ["ok"] * 6
    assert rows_of(source.read.parquet(str(table))) == truth
    path = next(table.rglob("*.parquet"))
    with fastpq.ParquetFile(path) as file:
        assert file.bloom_filter(0, "name") is not None
    assert len(content(table)) == 6     # no key material, and no checksum of Hadoop's, is left behind


def test_jobs_over_plaintext_files(source: Any, table: Path) -> None:
    """Of a dataset that is decrypted, or whose files were replaced."""
    before = content(table)
    for job, options in ((fastpq.spark.decrypt_dataset, SERVICE), (fastpq.spark.rotate_keys, KEYS)):
        with pytest.raises(fastpq.spark.JobError, match="all 6 files are plaintext") as caught:
            job(source, str(table), **options)
        assert statuses(caught.value.report) == ["skipped"] * 6
        assert not (table / journal.TEMPORARY).exists()
        assert statuses(job(source, str(table), **options, allowPlaintextFiles=True)) == ["skipped"] * 6
    assert content(table) == before


def test_a_job_that_is_run_again_goes_on(
    source: Any, table: Path, truth: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file is broken: nothing changes. The others are not made again when it is mended; a driver that dies in its commit
    leaves a table that fastpq reads as after it."""
    before = content(table)
    broken = min(table.rglob("*.parquet"))
    whole = broken.read_bytes()
    broken.write_bytes(whole[:-9])
    with pytest.raises(fastpq.spark.JobError, match="1 of 6 files failed") as caught:
        fastpq.spark.encrypt_dataset(source, str(table), **KEYS)
    assert sorted(row.status for row in present(caught.value.report).collect()) == ["error", *["ok"] * 5]
    broken.write_bytes(whole)
    assert {path: data for path, data in content(table).items() if path in before} == before
    made = {path: path.stat().st_ino for path in (table / journal.TEMPORARY).rglob("*.parquet")}
    assert len(made) == 5

    def die(root: str, job: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(journal, "_finish", die)
        fastpq.spark.encrypt_dataset(source, str(table), **KEYS)
    assert ours(source, table) == truth
    assert statuses(fastpq.spark.encrypt_dataset(source, str(table), **KEYS)) == ["skipped"] * 6
    assert set(made.values()) <= {path.stat().st_ino for path in table.rglob("*.parquet")}
    assert len(list(table.rglob("*.parquet"))) == 6
    assert not (table / journal.TEMPORARY).exists()


def test_files_that_change_meanwhile(source: Any, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = staging.FolderStage(str(table), "").each_file()
    first = table / before[0].sources[0]
    first.write_bytes(first.read_bytes())
    monkeypatch.setattr(staging.FolderStage, "each_file", lambda stage: before)
    with pytest.raises(fastpq.SchemaError, match="changed while a job"):
        fastpq.spark.encrypt_dataset(source, str(table), **KEYS)
    assert all((table / one.sources[0]).exists() for one in before)
    assert len(fastpq.spark.clean(str(table))) == 1
    assert not (table / journal.TEMPORARY).exists()


def test_compact(source: Any, table: Path, truth: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(map(str, table.rglob("part=1/*.parquet")))
    monkeypatch.setattr(compaction, "LEAST_ROW_GROUP_BYTES", 1)
    by_pages = tmp_path / "by-pages.parquet"
    assert compaction.write_together(before, str(by_pages), None, None, {}) == ROWS // 2
    assert pq.ParquetFile(by_pages).num_row_groups == 3
    assert statuses(fastpq.spark.compact_dataset(source, str(table))) == ["ok"] * 2
    assert rows_of(source.read.parquet(str(table))) == truth
    files = list(table.rglob("*.parquet"))
    assert [pq.ParquetFile(path).num_row_groups for path in files] == [1, 1]        # executors decode small row groups
    assert {pq.ParquetFile(path).metadata.row_group(0).column(0).compression for path in files} == {"SNAPPY"}
    for path in (*files, by_pages):
        with fastpq.ParquetFile(path) as file:
            assert file.bloom_filter(0, "name") is not None
    assert statuses(fastpq.spark.compact_dataset(source, str(table))) == []
    fastpq.spark.encrypt_dataset(source, str(table), **KEYS)
    source.range(5).selectExpr("id", "0.0d as price", "'' as name", "array('') as tags", "id % 2 as part").write.format(
        "fastpq").mode("append").options(**KEYS, partitionBy="part").save(str(table))
    truth = ours(source, table)
    with pytest.raises(fastpq.spark.JobError, match=r"kms\.client"):
        fastpq.spark.compact_dataset(source, str(table))
    with pytest.raises(fastpq.SchemaError, match="how the new ones shall be"):
        fastpq.spark.compact_dataset(source, str(table), **SERVICE)
    assert "ok" in statuses(fastpq.spark.compact_dataset(source, str(table), **KEYS))
    assert ours(source, table) == truth


def test_a_forged_plaintext_file_is_not_made_genuine(source: Any, table: Path) -> None:
    """Put among encrypted files: jobs that write what they read refuse it, as readers do."""
    forged = table / "part=1" / "forged.parquet"
    plaintext = next(table.rglob("part=1/*.parquet")).read_bytes()
    fastpq.spark.encrypt_dataset(source, str(table), **KEYS)
    forged.write_bytes(plaintext)
    before = content(table)
    jobs = fastpq.spark.compact_dataset, fastpq.spark.encrypt_dataset, fastpq.spark.decrypt_dataset, fastpq.spark.rotate_keys
    for job in jobs:
        options = SERVICE if job is fastpq.spark.decrypt_dataset else KEYS
        with pytest.raises(fastpq.spark.JobError, match=r"(?i)allow_?plaintext_?files"):
            job(source, str(table), **options)
        assert {path: data for path, data in content(table).items() if path in before} == before
    report = fastpq.spark.encrypt_dataset(source, str(table), **KEYS, allowPlaintextFiles=True)
    assert statuses(report) == ["ok", *["skipped"] * 6]
    assert fastpq.spark.read(source, str(table), ["id"], **SERVICE).count() > ROWS


def test_jobs_without_what_they_need(source: Any, tmp_path: Path) -> None:
    cases: list[tuple[Callable[..., object], dict[str, Any]]] = [
        (fastpq.spark.encrypt_dataset, SERVICE),
        (fastpq.spark.encrypt_dataset, {"parquet.encryption.footer.key": "kf"}),
        (fastpq.spark.decrypt_dataset, {}),
        (fastpq.spark.rotate_keys, {}),
        (fastpq.spark.compact_dataset, {"partitionBy": "a"}),
        (fastpq.spark.encrypt_dataset, {**KEYS, "footer_key": "x"}),
    ]
    for call, options in cases:
        with pytest.raises(fastpq.SchemaError):
            call(source, str(tmp_path), **options)
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(fastpq.SchemaError, match="folder"):
        fastpq.spark.encrypt_dataset(source, str(tmp_path / "a"), **KEYS)


def test_verify_and_rotate_material(source: Any, tmp_path: Path) -> None:
    options = {
        "parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:price",
        "parquet.encryption.key.material.store.internally": "false",
    }
    frame = source.range(1000, numPartitions=2).selectExpr("id", "id / 4 as price")
    frame.write.format("fastpq").mode("append").options(**options, **SERVICE).save(str(tmp_path))
    before = {path: path.read_bytes() for path in tmp_path.glob("_KEY_MATERIAL_FOR_*")}
    assert len(before) == 2
    rotated = fastpq.spark.rotate_keys(source, str(tmp_path), **SERVICE)
    assert [row.status for row in rotated.collect()] == ["ok", "ok"]
    assert all(path.read_bytes() != content for path, content in before.items())
    encrypted = {path: path.read_bytes() for path in tmp_path.glob("part-*")}
    for path in encrypted:      # the key material stays beside
        fastpq.write_table({"id": [1], "price": [0.5]}, path)
    replaced = fastpq.spark.rotate_keys(source, str(tmp_path), **SERVICE).collect()
    assert [row.status for row in replaced] == ["error", "error"]
    assert all("may have been put in the place" in row.error for row in replaced)
    assert statuses(fastpq.spark.rotate_keys(source, str(tmp_path), **PLAIN)) == ["skipped"] * 2
    for path, whole in encrypted.items():
        path.write_bytes(whole)
    damaged = min(tmp_path.glob("part-*"))
    with open_file(str(damaged), service_of(SERVICE)) as file:
        start, size = file.metadata.row_group(0).column(1).byte_range
    data = bytearray(damaged.read_bytes())
    data[start + size - 1] ^= 1
    damaged.write_bytes(data)
    report = sorted(fastpq.spark.verify_dataset(source, str(tmp_path), **SERVICE).collect(), key=lambda row: row.path)
    assert [(row.status, row.rows) for row in report] == [("error", None), ("ok", 500)]
    assert "column price" in report[0].error
    with pytest.raises(fastpq.SchemaError, match=r"kms\.client"):
        fastpq.spark.rotate_keys(source, str(tmp_path))


def test_what_key_value_metadata_tell_survives_compaction(tmp_path: Path) -> None:
    """Durations stay durations of their unit, and categories, which are values, do not go beside encrypted columns."""
    frame = pd.DataFrame({"c": pd.Categorical(["hidden", "veiled"]), "d": pd.array([1, 2], pd.ArrowDtype(pa.duration("s")))})
    sources = [str(tmp_path / name) for name in ("one", "two")]
    for source in sources:
        fastpq.write_table(frame, source, arrow_schema=True)
    target = tmp_path / "target"
    compaction.write_together(sources, str(target), None, None, {})
    assert pq.read_table(target)["d"].cast(pa.duration("s")).to_pylist() == frame["d"].tolist() * 2
    keys: dict[str, Any] = {"footer_key": b"0123456789abcdef", "column_keys": {"c": b"fedcba9876543210"}}
    encryption = fastpq.FileEncryptionProperties(**keys, plaintext_footer=True, unlisted="plaintext")
    compaction.write_together(sources, str(target), encryption, None, {})
    opened: dict[str, Any] = {"decryption_properties": fastpq.FileDecryptionProperties(**keys)}
    copied = fastpq.read_metadata(target, **opened).key_value_metadata["ARROW:schema"]
    assert b"veiled" not in target.read_bytes() + base64.b64decode(copied or "")
    read = fastpq.read_pandas(target, **opened)
    assert read["c"].tolist() == ["hidden", "veiled"] * 2
    assert read["d"].tolist() == frame["d"].tolist() * 2
