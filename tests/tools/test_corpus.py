"""tools/corpus.py: verdicts, the report, and files that end in every way."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.requirements import needs, peer

needs(peer("duckdb"))
needs(peer("polars"))

from tools import corpus, corpus_checks  # noqa: E402 (needs the peers)

TABLE = pa.table({"x": [3, None, 1, 2], "y": [1.5, float("nan"), -0.0, None], "s": pa.array(["a", "b", None, "d"])})


def record(read: str = "right", **members: Any) -> corpus.Record:
    return {"checks": {"read": read, **members.pop("checks", {})}, "peers": members.pop("peers", {"pyarrow": "same"}), **members}


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (record(), "right"),
        (record(peers={"pyarrow": "refuses: x", "duckdb": "same"}), "right"),
        (record(peers={"pyarrow": "refuses: x"}), "alone"),
        (record(peers={"pyarrow": "differs: x", "duckdb": "refuses: y"}), "differs"),
        (record("refused: FormatError: x", peers={"pyarrow": "reads"}), "refused"),
        (record("untyped: IndexError"), "untyped"),
        (record(checks={"merge": "refused: FormatError", "filters": "wrong: x"}), "wrong"),
        (record(checks={"filters": "wrong: x", "merge": "crash: ended with -11"}), "crash"),
    ],
)
def test_verdicts(found: corpus.Record, verdict: str) -> None:
    assert corpus.verdict(found) == verdict


def test_a_run_and_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files of a report are not checked again."""
    folder, report = tmp_path / "files", tmp_path / "report.jsonl"
    (folder / "one").mkdir(parents=True)
    pq.write_table(TABLE, folder / "one/good.parquet", row_group_size=2)
    (folder / "one/bad.parquet").write_bytes(b"PAR1 no footer PAR1")
    arguments = [str(folder), "--report", str(report), "--workers", "1"]
    assert corpus.main(arguments) == 0
    shown = capsys.readouterr().out
    assert "2 files: " in shown
    assert "one: " in shown
    found = {Path(line["file"]).name: line for line in map(json.loads, report.read_text().splitlines())}
    assert {name: line["verdict"] for name, line in found.items()} == {"good.parquet": "right", "bad.parquet": "refused"}
    assert set(found["good.parquet"]["checks"].values()) == {"right"}
    before = report.read_text()
    assert corpus.main(arguments) == 0
    assert report.read_text() == before
    assert capsys.readouterr().out == shown


def test_a_child_that_dies_and_a_peer_that_dies(tmp_path: Path) -> None:
    answers: Iterator[corpus.Record] = iter([
        {"stage": "peer polars", "died": "ended with -6"},
        {"rows": 1, "checks": {"read": "right"}, "peers": {}},
        {"stage": "take", "died": "no answer"},
    ])
    asked = []

    class Dying:
        def check(self, path: Path, skipped: dict[str, str]) -> corpus.Record:
            asked.append(dict(skipped))
            return next(answers)

    child: Any = Dying()
    found, _ = corpus.check_file(tmp_path, child, lambda: child)
    assert found["checks"] == {"read": "right"}
    assert asked == [{}, {"polars": "crashes: ended with -6"}]
    found, _ = corpus.check_file(tmp_path, child, lambda: child)
    assert found["checks"] == {"take": "crash: no answer"}


@pytest.mark.parametrize("fault", ["filters", "take", "row ranges", "untyped"])
def test_faults_are_found(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader with a wrong result in one way of reading."""
    path = tmp_path / "good.parquet"
    pq.write_table(TABLE, path)
    read, take = fastpq.ParquetFile.read, fastpq.ParquetFile.take

    def wrong_read(self: Any, columns: Any = None, **options: Any) -> fastpq.Table:
        table = read(self, columns, **options)
        if options.get("filters") is not None and fault == "filters":
            return table.slice(0, max(0, table.num_rows - 1))
        if options.get("row_ranges") is not None and fault == "row ranges":
            return read(self, columns)
        return table

    def wrong_take(self: Any, indices: Any, columns: Any = None) -> fastpq.Table:
        if fault == "untyped":
            raise IndexError("not a ParquetError")
        return take(self, indices[::-1] if fault == "take" else indices, columns)

    monkeypatch.setattr(fastpq.ParquetFile, "read", wrong_read)
    monkeypatch.setattr(fastpq.ParquetFile, "take", wrong_take)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    result = corpus_checks.Result()
    corpus_checks.FileChecks(path, result).run({})
    name, outcome = ("take", "untyped") if fault == "untyped" else (fault, "wrong")
    assert result.checks[name].startswith(outcome), result.checks
