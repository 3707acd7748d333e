"""The pipeline of README runs by hand: from the files of a wheel, in an empty folder, with the environment of a plain shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from fastpq.spark.example.__main__ import compile_client, run_example
from tests.requirements import java_jars, peer
from tests.spark.jvms import quick_jvm

artefacts = peer("tools.artefacts", "fastpq[release]")

ROOT = Path(__file__).resolve().parents[2]
PASSED_ON = ("PATH", "HOME", "JAVA_HOME", "TMPDIR", "LANG", "LC_ALL", "LD_LIBRARY_PATH")
TIMEOUT = 600       # seconds


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The interpreter of a virtual environment with the files of a wheel, and the packages of this environment."""
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    packages = next(home.glob("lib/python*/site-packages"))
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
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
    assert "rotate_keys puts every file under the new keys: {'ok'}" in done.stdout
    assert "Spark's own reader reads the dataset" in done.stdout
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
