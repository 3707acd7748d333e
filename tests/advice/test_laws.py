"""The three laws of advice: none for a default file, none after the recipe, and each fault found with the gain that it has."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.advice.planted_faults import FAULTS, PlantedFault, columns, shuffled, written
from tests.cli.conftest import command  # noqa: F401  # a fixture
from tests.cli.running import Runner

USES: list[Any] = ["scan", "lookup", "web", "archive", "gpu"]
SAME = 0.2      # share by which a gain may differ from the gain of the replay


def replayed(data: bytes, recipe: Mapping[str, Any], run: Runner, folder: Path) -> bytes:
    """Return the file that the command makes of a file with a recipe."""
    (folder / "source.parquet").write_bytes(data)
    (folder / "recipe.json").write_text(json.dumps(dict(recipe)))
    source, target, text = (str(folder / name) for name in ("source.parquet", "target.parquet", "recipe.json"))
    result = run("rewrite", source, "-o", target, "--recipe", text)
    assert result.code == 0, result.err
    return (folder / "target.parquet").read_bytes()


class CountingFile(io.BytesIO):
    """A file object that counts the bytes that are read."""

    count = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.count += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer)
        self.count += count
        return count


def bytes_for_one_lookup(data: bytes, key: str) -> float:
    """Return the bytes of opening a file and of looking up one key, counted by the file object itself."""
    counts = []
    for row in np.linspace(1000, 59_000, 12).astype(int):
        source = CountingFile(data)
        with fastpq.ParquetFile(source) as file:
            file.read(filters=[(key, "=", columns()[key][row].item() if key != "path" else str(columns()[key][row]))])
        counts.append(source.count)
    return float(np.mean(counts))


def nested() -> dict[str, Any]:
    """Return nested and nullable columns."""
    return {
        "list": [[number, number + 1] if number % 3 else None for number in range(5000)],
        "struct": [{"a": number, "b": f"text {number % 7}"} for number in range(5000)],
        "maybe": np.ma.masked_array(np.arange(5000) % 13, np.arange(5000) % 5 == 0),
        "switch": np.arange(5000) % 2 == 0,
        "empty": np.ma.masked_array(np.zeros(5000), True),
    }


DEFAULT_FILES: dict[str, Any] = {
    "all kinds": columns,
    "nested": nested,
    "no rows": lambda: {"a": np.empty(0, np.int64)},
    "one row": lambda: {"a": np.array([1]), "b": ["x"]},
    "several row groups": lambda: {"a": np.arange(1_300_000), "b": np.arange(1_300_000) % 100},
    "growing texts": lambda: {"a": ["x" * (number // 100) for number in range(30_000)]},
}


@pytest.mark.parametrize("name", DEFAULT_FILES)
@pytest.mark.parametrize("sample_rows", [1 << 20, 10_000])
def test_a_default_file_has_no_advice_for_scan(name: str, sample_rows: int) -> None:
    target = io.BytesIO()
    fastpq.write_table(DEFAULT_FILES[name](), target)
    report = fastpq.advise(target.getvalue(), sample_rows=sample_rows)
    assert not report.advice, report
    assert report.recipe == {}
    assert "nothing to change" in repr(report)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", ["all kinds", "nested", "shuffled", "bad in several ways", "foreign"])
def test_nothing_is_left_after_the_recipe(
    use: Any, name: str, command: Runner, tmp_path: Path  # noqa: F811
) -> None:
    bad: Any = {"compression": None, "row_group_size": 3000, "use_dictionary": False, "write_page_index": False}
    foreign = io.BytesIO()
    pq.write_table(pa.table({key: list(values) for key, values in columns().items()}), foreign, row_group_size=4000)
    target = io.BytesIO()
    fastpq.write_table(nested(), target)
    files = {
        "all kinds": written(), "nested": target.getvalue, "shuffled": shuffled(), "bad in several ways": written(**bad),
        "foreign": foreign.getvalue,
    }
    data = files[name]()
    report = fastpq.advise(data, use)
    if not report.advice:
        return
    changed = replayed(data, report.recipe, command, tmp_path)
    left = fastpq.advise(changed, use, key=report.key)
    assert not left.advice, left
    if report.advice[0].unit == "stored bytes":
        gain = sum(each.gain for each in report.advice)
        assert gain == pytest.approx(len(data) - len(changed), rel=0.02, abs=1000)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_is_found_with_its_gain(fault: PlantedFault, command: Runner, tmp_path: Path) -> None:  # noqa: F811
    data = fault.make()
    report = fastpq.advise(data, fault.use, key=fault.key)
    found = [each for each in report.advice if each.topic == fault.topic and {*fault.columns} <= {*each.columns}]
    assert found, report
    for advice in found:
        changed = replayed(data, advice.recipe, command, tmp_path)
        if advice.unit == "stored bytes":
            gain: float = len(data) - len(changed)
        else:
            assert fault.key is not None
            gain = bytes_for_one_lookup(data, fault.key) - bytes_for_one_lookup(changed, fault.key)
        assert advice.gain == pytest.approx(gain, rel=SAME, abs=2000)
    gains = [each.gain for each in report.advice if each.decoding_seconds is None]
    assert fault.use in ("scan", "web", "archive") or gains == sorted(gains, reverse=True)


def test_number_of_faults() -> None:
    assert len(FAULTS) >= 25
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_the_first_advice_saves_most() -> None:
    report = fastpq.advise(written(compression=None, use_dictionary=False, data_page_rows=100)(), "archive")
    assert len({each.topic for each in report.advice}) >= 3
    assert report.advice[0].gain == max(each.gain for each in report.advice)


@pytest.mark.parametrize("use", USES)
def test_other_readers_read_what_a_recipe_makes(use: Any, command: Runner, tmp_path: Path) -> None:  # noqa: F811
    data = shuffled(compression="gzip", row_group_size=2000)()
    report = fastpq.advise(data, use)
    assert report.advice
    path = tmp_path / "target.parquet"
    replayed(data, report.recipe, command, tmp_path)
    expected = pq.read_table(io.BytesIO(data)).sort_by("user")
    assert pq.read_table(path).sort_by("user").equals(expected)
    assert pl.read_parquet(path).sort("user").to_arrow()["price"].to_pylist() == expected["price"].to_pylist()
    relation = duckdb.sql(f"select count(*), sum(id), min(path) from '{path}'")
    assert relation is not None
    assert relation.fetchall() == [(60_000, sum(range(60_000)), "/var/log/service/2024/00000000.txt")]


def test_sampled_rows_tell_about_the_whole_file(command: Runner, tmp_path: Path) -> None:  # noqa: F811
    for options, topic in (({"compression": None}, "compression"), ({"use_dictionary": False}, "encoding")):
        data = written("place", "path", **options)()
        report = fastpq.advise(data, sample_rows=8000)
        assert report.sample_rows == 8000
        advice = next(each for each in report.advice if each.topic == topic)
        gain = len(data) - len(replayed(data, advice.recipe, command, tmp_path))
        assert advice.gain == pytest.approx(gain, rel=SAME)
