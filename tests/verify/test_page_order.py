"""Pages with dictionary indexes after pages with values: verify_file names the readers that differ, and advice mends the file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.advice.recipe_steps import replay
from tests.verify.late_indexes import ROWS, file_in_order, file_with_late_indexes

CASE = "pages with values before pages with dictionary indexes"


@pytest.mark.parametrize("quick", [False, True])
def test_the_order_is_legal_and_named(quick: bool) -> None:
    data = file_with_late_indexes()
    report = fastpq.verify_file(data, quick=quick)
    assert report.is_sound, [*map(str, report.violations)]
    [difference] = [each for each in report.differences if each.case == CASE]
    assert (difference.place.column, difference.place.row_group) == ("text", 0)
    assert "Spark" in difference.readers
    assert sorted(fastpq.read_table(data)["text"].to_pylist()) == sorted(pq.read_table(io.BytesIO(data))["text"].to_pylist())
    assert not [each for each in fastpq.verify_file(file_in_order(), quick=quick).differences if each.case == CASE]


@pytest.mark.parametrize("use", ["scan", "lookup", "web", "archive", "gpu"])
def test_advice_mends_the_file(use: Any, tmp_path: Path) -> None:
    source, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    source.write_bytes(file_with_late_indexes())
    report = fastpq.advise(source, use)
    first = report.advice[0]
    assert (first.topic, first.columns, first.unit, first.before, first.after) == ("pages", ("text",), "column chunks", 1, 0)
    for recipe in (first.recipe, report.recipe):
        assert recipe
        replay(source, target, recipe)
        assert not fastpq.verify_file(target).differences
        assert not [each for each in fastpq.advise(target, use).advice if each.unit == "column chunks"]
        assert pq.read_table(target)["text"].to_pylist() == pq.read_table(source)["text"].to_pylist()


def test_advice_on_a_folder_mends_its_files(tmp_path: Path) -> None:
    folder, new = tmp_path / "old", tmp_path / "new"
    folder.mkdir()
    for number in range(2):
        (folder / f"{number}.parquet").write_bytes(file_with_late_indexes())
    replay(folder, new, fastpq.advise(folder).recipe)
    for path in new.rglob("*.parquet"):
        assert not fastpq.verify_file(path).differences
    assert fastpq.read_table(new).num_rows == 2 * ROWS


def test_no_advice_on_files_in_order() -> None:
    assert not [each for each in fastpq.advise(file_in_order()).advice if each.unit == "column chunks"]
