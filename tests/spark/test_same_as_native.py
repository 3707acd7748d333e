"""What Spark's own Parquet source does, by SQL and DataFrames: fastpq's source does the same, or a documented difference."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import fastpq.spark
from fastpq.spark.session import _activate
from tests.spark.native_statements import AREAS
from tests.spark.native_statements.differences import DIFFERENCES
from tests.spark.native_statements.outcomes import Failure, outcomes_of_scene
from tests.spark.native_statements.scene import Place, Refused, Scene

FORMAT = "io.fastpq.spark.FastpqFileFormat"
SOURCES = ("parquet", FORMAT)
SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "America/Los_Angeles",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    "spark.sql.defaultColumn.allowedProviders": f"csv,json,orc,parquet,{FORMAT.lower()},{FORMAT}",
}
Outcomes = tuple[Mapping[str, Any], Mapping[str, Any]]     # of Spark's own source, and of fastpq's
SCENES = [scene for area in AREAS for scene in area.SCENES]
STATEMENTS = [pytest.param(scene, name, id=f"{scene.name}: {name}") for scene in SCENES for name in scene.statements]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "pages" / "spark.md"
PREFIX = "spark.sql.parquet."


@pytest.fixture(scope="module")
def outcomes(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Scene], Outcomes]]:
    """Outcomes of all statements of a scene, by both sources. A scene runs when its first statement is tested."""
    known: dict[str, Outcomes] = {}

    def outcomes_of(scene: Scene) -> Outcomes:
        if scene.name not in known:
            files = tmp_path_factory.mktemp("files")
            if scene.files is not None:
                scene.files(_session(spark, {}), str(files))
            places = (_place(spark, scene, source, files, tmp_path_factory.mktemp("own")) for source in SOURCES)
            native, ours = (outcomes_of_scene(place, scene) for place in places)
            known[scene.name] = native, ours
        return known[scene.name]

    yield outcomes_of
    _activate(spark)


def _place(spark: Any, scene: Scene, source: str, files: Path, folder: Path) -> Place:
    return Place(_session(spark, scene.settings), source, str(files), str(folder), f"same_{folder.name}")


def _session(spark: Any, settings: Mapping[str, str]) -> Any:
    session = spark.newSession()
    fastpq.spark.register(session)
    for name, value in (SETTINGS | dict(settings)).items():
        session.conf.set(name, value)
    return session


@pytest.mark.parametrize(("scene", "name"), STATEMENTS)
def test_same_outcome(outcomes: Callable[[Scene], Outcomes], scene: Scene, name: str) -> None:
    native, ours = outcomes(scene)
    assert isinstance(native[name], Failure) == isinstance(scene.statements[name], Refused), native[name]
    difference = DIFFERENCES.get((scene.name, name))
    if difference is None:
        assert ours[name] == native[name]
    else:
        assert ours[name] != native[name]
        assert ours[name] == difference.outcome


def test_differences_are_documented() -> None:
    section = PAGE.read_text().split("## Differences from Spark's own source")[1].partition("\n## ")[0]
    rows = {row for row in re.findall(r"^\| ([^|`]+?) \|", section, re.MULTILINE) if row not in ("Difference", "---", "Setting")}
    assert {difference.row for difference in DIFFERENCES.values()} <= rows
    assert len(rows) <= 10
    assert DIFFERENCES.keys() <= {(scene.name, name) for scene in SCENES for name in scene.statements}


def test_settings_are_documented(spark: Any) -> None:
    """Each setting of Spark's Parquet source, public or internal, is honoured or said not to apply."""
    entries = getattr(spark._jvm, "org.apache.spark.sql.internal.SQLConf$").__getattr__("MODULE$").getConfigEntries()
    names = {entry.key() for entry in entries.toArray() if entry.key().startswith(PREFIX)}
    assert names == set(re.findall(rf"^\| `({re.escape(PREFIX)}[\w.]+)` \|", PAGE.read_text(), re.MULTILINE))
