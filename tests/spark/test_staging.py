"""Jobs that replace files take the lock of overwrites for their commits: what an overwrite does meanwhile is seen."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from pyspark.sql import Row

import fastpq
from fastpq.spark.jobs import replacing
from fastpq.spark.tables import journal

PATIENCE = 60.0     # seconds; a last guard


@pytest.mark.parametrize("overwrites", [True, False])
def test_a_job_waits_for_an_overwrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrites: bool) -> None:
    """An overwrite that holds the lock replaces the job's source: the job changes nothing. Else the job goes on behind it."""
    root, waiting = str(tmp_path), threading.Event()
    fastpq.write_table({"id": [1]}, tmp_path / "a.parquet")
    stage = replacing.stage_of(root, "test", None)
    [one] = stage.replacements([[str(tmp_path / "a.parquet")]])

    def write(sources: list[str], target: str, place: str, name: str) -> int:
        fastpq.write_table({"id": [2]}, target)
        return 1

    made = stage.make(one, write).message
    rows = [Row(path=str(tmp_path / "a.parquet"), made=made, status="ok")]
    problems: list[BaseException] = []
    locked = journal._locked

    def told(path: str) -> int | None:
        found = locked(path)
        if found is None:
            waiting.set()
        return found

    def commit() -> None:
        try:
            stage.commit([one], rows)
        except BaseException as error:
            problems.append(error)

    job = threading.Thread(target=commit)
    with journal.one_overwrite(root):
        monkeypatch.setattr(journal, "_locked", told)
        job.start()
        assert waiting.wait(PATIENCE)
        assert sorted(path.name for path in tmp_path.glob("*.parquet")) == ["a.parquet"]
        if overwrites:
            fastpq.write_table({"id": [3]}, tmp_path / "b.parquet")
            os.unlink(tmp_path / "a.parquet")
    job.join(PATIENCE)
    assert [type(problem) for problem in problems] == ([fastpq.SchemaError] if overwrites else [])
    assert fastpq.read_dataset(root)["id"].to_pylist() == ([3] if overwrites else [2])
