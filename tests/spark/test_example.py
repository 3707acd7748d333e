"""The pipeline of README runs by hand: from the files of a wheel, in an empty folder, with the environment of a plain shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from fastpq.spark.example.__main__ import compile_client, run_example
from tests.requirements import java_jars, peer
from tests.spark.jvms import quick_jvm
from tools import requirements

artefacts = peer("tools.artefacts", "fastpq[release]")

ROOT = Path(__file__).resolve().parents[2]
PASSED_ON = ("PATH", "HOME", "JAVA_HOME", "TMPDIR", "LANG", "LC_ALL", "LD_LIBRARY_PATH")
TIMEOUT = 600       # seconds


def needed_packages(lines: list[str]) -> Iterator[str]:
    """Yield the names of the packages that requirements bring, and of the packages that these require."""
    for requirement in map(Requirement, lines):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name
            yield from needed_packages(metadata.requires(requirement.name) or [])


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The interpreter of a virtual environment with the files of a wheel, and the packages of the extra ``spark`` alone."""
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    packages = next(home.glob("lib/python*/site-packages"))
    names = set(needed_packages(requirements.of(["library", "spark"])))
    assert "pandas" not in names
    for name in names:
        entries = {file.parts[0] for file in metadata.files(name) or [] if file.parts[0] not in ("..", "__pycache__")}
        for entry in entries:
            (packages / entry).symlink_to(Path(sysconfig.get_path("purelib"), entry))
    for path in (ROOT / "fastpq").rglob("*"):
        name = str(path.relative_to(ROOT))
        if path.is_file() and (artefacts.is_installed(name) or path.suffix in (".so", ".jar")):
            (packages / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, packages / name)
    return home / "bin" / "python"


@pytest.mark.slow
@pytest.mark.usefixtures("class_archive")
def test_the_pipeline(installed: Path, tmp_path: Path) -> None:
    java_jars()
    folder = tmp_path / "empty"
    folder.mkdir()
    environment = {name: value for name, value in os.environ.items() if name in PASSED_ON} | {"JDK_JAVA_OPTIONS": quick_jvm()}
    done = subprocess.run(
        [installed, "-m", "fastpq.spark.example"], cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    page = (ROOT / "docs" / "pages" / "spark.md").read_text()
    for words in ("fastpq reads the dataset:", "rotate_keys puts", "fastpq reads the dataset under", "Spark's own reader"):
        (line,) = (line for line in page.splitlines() if line.startswith(words))
        assert line in done.stdout
    keys = [line.split(":")[1] for line in (folder / "master-keys").read_text().split()]
    assert len(keys) == 3
    assert not any(key in done.stdout + done.stderr for key in keys)


def test_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not compile_client(tmp_path)
    assert "openjdk-17-jdk-headless" in capsys.readouterr().out


def test_the_folder_is_empty(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match="not empty"):
        run_example(tmp_path)
