"""progress(done, total): whole numbers that never fall, one call at a time, the last one (total, total)."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rich.console
import rich.progress
from tqdm import tqdm

import fastpq
from fastpq import FileDecryptionProperties, FileEncryptionProperties, ParquetDataset, ParquetFile, ParquetWriter
from fastpq.common.progress import Meter, Progress

ROWS, GROUP = 12_000, 2_000
KEYS = FileEncryptionProperties(b"k" * 16, {"id": b"i" * 16})
OPEN = FileDecryptionProperties(b"k" * 16, {"id": b"i" * 16})
FILTERS = [("id", ">=", 3_000), ("name", "!=", "name 3")]


class Recorder:
    """Keeps the calls; fails the test if two come at the same time."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []
        self._busy = threading.Lock()

    def __call__(self, done: int, total: int) -> None:
        assert self._busy.acquire(blocking=False), "two calls at the same time"
        time.sleep(0.001)
        self.calls.append((done, total))
        self._busy.release()

    def check(self, total: int, least: int = 2) -> None:
        assert len(self.calls) >= least, self.calls
        assert self.calls[-1] == (total, total)
        assert all(type(number) is int for call in self.calls for number in call)
        done = [call[0] for call in self.calls]
        assert done == sorted(done)
        assert all(0 <= number <= of for number, of in self.calls)
        assert len(set(self.calls)) == len(self.calls)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("progress")
    fastpq.write_table(rows(), folder / "rows.parquet", row_group_size=GROUP, write_page_index=False)
    fastpq.write_dataset({**rows(), "part": np.arange(ROWS) % 3}, folder / "parts", partition_by=["part"])
    fastpq.encrypt_file(folder / "rows.parquet", folder / "secret.parquet", KEYS)
    damaged = bytearray((folder / "rows.parquet").read_bytes())
    damaged[40:60] = bytes(20)
    (folder / "damaged.parquet").write_bytes(damaged)
    return folder


def rows() -> dict[str, Any]:
    ids = np.arange(ROWS)
    return {"id": ids, "price": ids / 4, "name": np.char.mod("name %d", ids % 7), "list": [[1, 2], [], [3]] * (ROWS // 3)}


READS: dict[str, tuple[Callable[[Path, Progress | None], Any], int, int]] = {
    "all": (lambda at, tell: fastpq.read_table(at / "rows.parquet", threads=4, progress=tell), ROWS, 10),
    "one thread": (lambda at, tell: fastpq.read_table(at / "rows.parquet", threads=1, progress=tell), ROWS, 10),
    "row groups": (lambda at, tell: fastpq.read_table(at / "rows.parquet", row_groups=[1, 3], progress=tell), 2 * GROUP, 3),
    "no column": (lambda at, tell: fastpq.read_table(at / "rows.parquet", [], progress=tell), ROWS, 1),
    "ranges": (lambda at, tell: fastpq.read_table(at / "rows.parquet", row_ranges=[(5, 50), (9_000, 9_100)], progress=tell), 145,
               2),
    "encrypted": (lambda at, tell: fastpq.read_table(at / "secret.parquet", decryption_properties=OPEN, progress=tell), ROWS, 10),
    "nothing": (lambda at, tell: fastpq.read_table(at / "rows.parquet", row_groups=[], progress=tell), 0, 1),
    "pandas": (lambda at, tell: fastpq.read_pandas(at / "rows.parquet", ["id"], progress=tell), ROWS, 3),
    "damaged": (lambda at, tell: fastpq.read_table(at / "damaged.parquet", on_error="null", progress=tell), ROWS, 6),
    "recover": (lambda at, tell: fastpq.recover_table(at / "damaged.parquet", progress=tell).table, ROWS, 6),
    "dataset": (lambda at, tell: fastpq.read_dataset(at / "parts", progress=tell), ROWS, 6),
    "dataset, one partition": (
        lambda at, tell: fastpq.read_dataset(at / "parts", filters=[("part", "==", 1)], progress=tell), ROWS // 3, 2),
    "dataset, batches": (lambda at, tell: [*ParquetDataset(at / "parts").iter_batches(1_500, progress=tell)], ROWS, 6),
    "batches": (lambda at, tell: [*ParquetFile(at / "rows.parquet").iter_batches(700, progress=tell)], ROWS, 18),
    "damaged batches": (
        lambda at, tell: [*ParquetFile(at / "damaged.parquet", on_error="skip").iter_batches(700, progress=tell)], ROWS, 6),
}


@pytest.mark.parametrize("name", READS)
def test_reading(name: str, files: Path) -> None:
    read, total, least = READS[name]
    tell = Recorder()
    told, untold = read(files, tell), read(files, None)
    tell.check(total, least)
    assert (told.equals(untold) if hasattr(told, "equals") else told == untold)


@pytest.mark.parametrize("filters", [FILTERS, [("id", "<", 10)], [("id", ">=", 0)], [("id", "<", -1)]])
def test_reading_with_filters(filters: Any, files: Path) -> None:
    """The total is known once statistics are looked at: all rows of the row groups that may match."""
    with ParquetFile(files / "rows.parquet") as file:
        candidates = sum(group.rows for group in file.explain(filters).row_groups)
        for read in (lambda tell: file.read(filters=filters, progress=tell),
                     lambda tell: file.read(["price"], filters=filters, progress=tell),
                     lambda tell: [*file.iter_batches(900, filters=filters, progress=tell)]):
            tell = Recorder()
            assert read(tell) == read(None)
            tell.check(candidates, 1)


def test_filters_over_large_row_groups_are_told_of_in_between(tmp_path: Path) -> None:
    ids = np.arange(600_000)
    columns = {name: ids + number for number, name in enumerate("abcd")}
    fastpq.write_table(columns, tmp_path / "large", row_group_size=200_000, compression=None)
    tell = Recorder()
    with ParquetFile(tmp_path / "large") as file:
        found = file.read(filters=[("a", "!=", 17)], progress=tell)
    assert found.num_rows == 599_999
    tell.check(600_000, 4)


def write_in_batches(target: Any, tell: Progress | None) -> None:
    with ParquetWriter(target, row_group_size=GROUP, progress=tell) as writer:
        columns = rows()
        for start in range(0, ROWS, 1_700):
            writer.write_batch({name: values[start : start + 1_700] for name, values in columns.items()})


WRITES: dict[str, Callable[[Path, Any, Progress | None], Any]] = {
    "write_table": lambda at, target, tell: fastpq.write_table(rows(), target, row_group_size=GROUP, progress=tell),
    "one row group": lambda at, target, tell: fastpq.write_table(rows(), target, progress=tell),
    "batches": lambda at, target, tell: write_in_batches(target, tell),
    "encrypt": lambda at, target, tell: fastpq.encrypt_file(at / "rows.parquet", target, KEYS, progress=tell),
    "decrypt": lambda at, target, tell: fastpq.decrypt_file(at / "secret.parquet", target, OPEN, progress=tell),
    "merge": lambda at, target, tell: fastpq.merge_files([at / "rows.parquet", at / "rows.parquet"], target, progress=tell),
    "merge an iterator": lambda at, target, tell: fastpq.merge_files(iter([at / "rows.parquet"]), target, progress=tell),
}


@pytest.mark.parametrize("name", WRITES)
def test_writing(name: str, files: Path, tmp_path: Path) -> None:
    tell = Recorder()
    WRITES[name](files, tmp_path / "told", tell)
    WRITES[name](files, tmp_path / "untold", None)
    tell.check(2 * ROWS if name == "merge" else ROWS, 4)
    keys = OPEN if name == "encrypt" else None
    told, untold = (fastpq.read_table(tmp_path / file, decryption_properties=keys) for file in ("told", "untold"))
    assert told == untold


def test_an_empty_table_is_told_of_once(tmp_path: Path) -> None:
    tell = Recorder()
    fastpq.write_table({"a": np.arange(0)}, tmp_path / "a", progress=tell)
    fastpq.read_table(tmp_path / "a", progress=tell)
    assert tell.calls == [(0, 0), (0, 0)]


def test_write_dataset(tmp_path: Path) -> None:
    tell = Recorder()
    data = {**rows(), "part": np.arange(ROWS) % 3}
    fastpq.write_dataset(data, tmp_path, partition_by=["part"], progress=tell, row_group_size=700)
    tell.check(ROWS, 6)


class Stopped(Exception):
    pass


@pytest.mark.parametrize("at", [1, 3, "last"])
@pytest.mark.parametrize("name", WRITES)
def test_an_exception_leaves_the_target_as_it_was(name: str, at: int | str, files: Path, tmp_path: Path) -> None:
    calls = []

    def stop(done: int, total: int) -> None:
        calls.append(done)
        if len(calls) == at or (at == "last" and done == (2 * ROWS if name == "merge" else ROWS)):
            raise Stopped

    (tmp_path / "target").write_bytes(b"old")
    with pytest.raises(Stopped):
        WRITES[name](files, tmp_path / "target", stop)
    assert (tmp_path / "target").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["target"]
    seen = len(calls)
    time.sleep(0.01)
    assert len(calls) == seen       # nobody is told any more


@pytest.mark.parametrize("name", [name for name, (_, _, least) in READS.items() if least > 2])
def test_an_exception_ends_a_read(name: str, files: Path) -> None:
    calls = []

    def stop(done: int, total: int) -> None:
        calls.append(done)
        if len(calls) == 2:
            raise Stopped

    with pytest.raises(Stopped):
        READS[name][0](files, stop)
    assert len(calls) == 2
    READS[name][0](files, None)     # and nothing is left locked


def test_write_dataset_keeps_whole_files_only(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done > ROWS // 2:
            raise Stopped

    with pytest.raises(Stopped):
        fastpq.write_dataset({**rows(), "part": np.arange(ROWS) % 3}, tmp_path, partition_by=["part"], progress=stop)
    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(found) == 1
    assert ParquetDataset(tmp_path).read().num_rows == ROWS // 3


# ---- writers: the last call, and calls of the writer's own methods


@pytest.mark.parametrize("name", WRITES)
def test_the_last_call_stands_between_footer_and_commit(
    name: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is told of all rows finds the whole file, footer included, under its temporary name, and the old target."""
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)     # else the file has no name yet
    (tmp_path / "target").write_bytes(b"old")
    total = 2 * ROWS if name == "merge" else ROWS
    seen = []

    def look(done: int, total_now: int) -> None:
        whole = [path for path in tmp_path.iterdir() if path.name != "target" and path.read_bytes()[-4:] in (b"PAR1", b"PARE")]
        seen.append((done, len(whole), (tmp_path / "target").read_bytes()))

    WRITES[name](files, tmp_path / "target", look)
    assert [call for call in seen if call[0] == total] == [(total, 1, b"old")]
    assert (tmp_path / "target").stat().st_size > 1_000


@pytest.mark.parametrize("name", ["write_table", "batches", "encrypt", "merge"])
def test_an_error_in_the_footer_is_not_told_of_as_done(
    name: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def fail(*_: object) -> bytes:
        raise Stopped

    monkeypatch.setattr("fastpq.write.row_groups.RowGroups.write_footer", fail)
    with pytest.raises(Stopped):
        WRITES[name](files, tmp_path / "target", lambda done, total: calls.append((done, total)))
    assert calls
    assert all(done < total for done, total in calls)
    assert os.listdir(tmp_path) == []


def test_a_growing_total_is_told_of_with_the_next_table(tmp_path: Path) -> None:
    calls = []
    with ParquetWriter(tmp_path / "a", progress=lambda done, total: calls.append((done, total))) as writer:
        for _ in range(3):
            writer.write_table({"a": np.arange(10)})
    assert calls == [(10, 20), (20, 30), (30, 30)]


@pytest.mark.parametrize("at_end", [False, True], ids=["writing", "closing"])
@pytest.mark.parametrize("method", ["close", "write_table", "write_batch"])
def test_progress_cannot_write(method: str, at_end: bool, tmp_path: Path) -> None:
    """Refused at once, and the write goes on if progress catches the error."""
    data = {"a": np.arange(10), "b": np.arange(10)}
    refused: list[ValueError] = []

    def write(done: int, total: int) -> None:
        if (done == total) == at_end:
            with pytest.raises(ValueError, match="the writer is busy in this thread") as caught:
                getattr(writer, method)(*[data] * (method != "close"))
            refused.append(caught.value)

    writer = ParquetWriter(tmp_path / "a", progress=write)

    def write_all() -> None:
        writer.write_table(data)
        writer.close()

    in_time(write_all)
    assert len(refused) == 1
    assert fastpq.read_table(tmp_path / "a").num_rows == 10


@pytest.mark.parametrize("at_end", [False, True], ids=["writing", "closing"])
def test_progress_can_abort(at_end: bool, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    data = {"a": np.arange(10), "b": np.arange(10)}

    def give_up(done: int, total: int) -> None:
        if (done == total) == at_end:
            writer.abort()

    writer = ParquetWriter(tmp_path / "a", progress=give_up)

    def use() -> None:
        with pytest.raises(ValueError, match="the writer was aborted while it wrote"), writer:
            writer.write_table(data)
            assert at_end
        with pytest.raises(ValueError, match="the writer is closed"):
            writer.write_table(data)

    in_time(use)
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def in_time(action: Callable[[], object]) -> None:
    """Do it in a thread that may hang: a deadlock fails the test and does not stop the others."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            action()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "deadlock"
    if failures:
        raise failures[0]


# ---- counting


def test_nobody_told_costs_nothing() -> None:
    assert Meter(None, 100).span(100) is None


def test_parallel_callers_lose_no_count() -> None:
    """A row that is counted while another thread is in the callable counts too."""
    calls: list[tuple[int, int]] = []
    entered, counted = threading.Event(), threading.Event()

    def show(done: int, total: int) -> None:
        calls.append((done, total))
        if done == 1:
            entered.set()
            counted.wait(0.2)       # the other thread waits for the lock, or, without one, loses its row

    meter = Meter(show, 10)
    first = threading.Thread(target=meter.add, args=(1,))
    first.start()
    assert entered.wait(60)

    def add_two() -> None:
        meter.add(2)
        counted.set()

    second = threading.Thread(target=add_two)
    second.start()
    first.join(60)
    second.join(60)
    assert calls == [(1, 10), (3, 10)]
    meter.finish()
    assert calls[-1] == (10, 10)


def test_nobody_is_told_after_an_exception() -> None:
    calls = []

    def stop(done: int, total: int) -> None:
        calls.append(done)
        raise Stopped

    meter = Meter(stop, 10)
    with pytest.raises(Stopped):
        meter.add(1)
    meter.add(1)
    meter.finish()
    assert calls == [1]


def test_tqdm_takes_it(files: Path) -> None:
    shown = io.StringIO()
    with tqdm(unit=" rows", file=shown, mininterval=0) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        fastpq.read_table(files / "rows.parquet", progress=show)
        assert (bar.n, bar.total) == (ROWS, ROWS)
    assert "12000/12000" in shown.getvalue()


def test_rich_takes_it(files: Path) -> None:
    shown = io.StringIO()
    console = rich.console.Console(file=shown, force_terminal=True)
    with rich.progress.Progress(console=console) as bars:
        task = bars.add_task("reading")
        fastpq.read_table(files / "rows.parquet", progress=lambda done, total: bars.update(task, completed=done, total=total))
        assert bars.tasks[0].finished
        assert (bars.tasks[0].completed, bars.tasks[0].total) == (ROWS, ROWS)
    assert "100%" in shown.getvalue()
