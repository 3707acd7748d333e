"""Checks of Ray, Daft and Hugging Face datasets, and all examples of docs/pages/adapters.md, in an environment of their own.

The packages are large.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.pinned import ROOT, pinned_python

ENGINES = ("ray[data]==2.60.0", "daft==0.7.26", "datasets==5.2.0", "pandas==3.1.1", "pyarrow==25.0.1")
TIMEOUT = 900
PAGE = "docs/pages/adapters.md"


def run_in_environment(folder: Path, *arguments: str) -> None:
    """Run a module of Python with the engines, which keep their files in a folder and report nothing to anybody."""
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder), "HF_HOME": str(folder), "HF_HUB_OFFLINE": "1",
        "RAY_USAGE_STATS_ENABLED": "0", "DO_NOT_TRACK": "true", "DAFT_PROGRESS_BAR": "0", "RAY_AUTH_MODE": "disabled",
        "CI": "false",
    }
    command = [pinned_python("engines", *ENGINES, with_fastpq=True), "-m", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["daft", "hugging_face", "ray"])
def test_engine(engine: str, tmp_path: Path) -> None:
    run_in_environment(
        tmp_path, "pytest", "-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider", "-W", "default",
        f"tests/adapters/{engine}_checks.py")


@pytest.mark.slow
def test_examples_of_the_page(tmp_path: Path) -> None:
    run_in_environment(tmp_path, "tests.adapters.page_driver", str(ROOT / PAGE), str(tmp_path))
