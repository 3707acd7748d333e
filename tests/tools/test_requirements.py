"""A test whose requirement is missing is skipped with a reason, and fails on CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LACKING = """
import pytest
from tests.requirements import peer

nothing = peer("no_such_package", "nothing-at-all")

def test_passes():
    assert not hasattr(nothing, "__wrapped__")

def test_peer():
    nothing.at_all()

@pytest.fixture
def server():
    pytest.skip("needs a server")

def test_fixture(server):
    pass

@pytest.mark.skipif(True, reason="needs data")
def test_mark():
    pass

@pytest.mark.xfail(raises=ZeroDivisionError)
def test_known():
    1 / 0
"""
MODULE = """
import pytest
pytest.importorskip("no_such_package")

def test_passes():
    pass
"""


@pytest.mark.parametrize(
    ("ci", "outcomes"), [("", "1 passed, 4 skipped, 1 xfailed"), ("true", "1 failed, 1 passed, 1 xfailed, 3 errors")]
)
@pytest.mark.parametrize("processes", [(), ("-n", "1")], ids=["one process", "xdist"])
def test_a_skip_fails_on_ci(tmp_path: Path, ci: str, outcomes: str, processes: tuple[str, ...]) -> None:
    (tmp_path / "test_lacking.py").write_text(LACKING)
    (tmp_path / "test_module.py").write_text(MODULE)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", *processes, str(tmp_path)]
    options = ["--rootdir", str(tmp_path), "--continue-on-collection-errors", "-ra"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [*command, *options], cwd=ROOT, env={**environment, "CI": ci}, capture_output=True, text=True, check=False
    )
    assert outcomes in done.stdout.splitlines()[-1], done.stdout + done.stderr
    assert "needs no_such_package (pip install nothing-at-all)" in done.stdout
    assert done.returncode == (1 if ci else 0)
