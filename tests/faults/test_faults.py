"""A short run of the trials, and proof that they notice torn and unlisted files; ``python -m tests.faults`` is the long run."""

from __future__ import annotations

import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.faults.campaign import run_with_shim
from tests.faults.ways import WAYS

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD and /proc are of Linux"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="the shim needs a C compiler"),
]


def test_interrupted_writes_leave_old_or_new_files(tmp_path: Path) -> None:
    ran = run_with_shim(["--trials", "4", "--scratch", str(tmp_path)])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = [line for line in ran.stdout.splitlines() if line]
    assert len(lines) == 2 * len(WAYS)
    assert all(line.endswith("0 failures") for line in lines), ran.stdout
    raised = [int(count) for count in re.findall(r"raised (\d+)", ran.stdout)]
    assert len(raised) > len(WAYS) // 2     # the errors arrive
    assert len(re.findall("SIG[A-Z]+ [0-9]", ran.stdout)) > len(WAYS)


@pytest.mark.parametrize(
    ("way", "found"), [("torn", "not (a Parquet file|whole)|other rows|the (old|new) rows"), ("unlisted", "unlisted")]
)
def test_the_trials_notice(way: str, found: str, tmp_path: Path) -> None:
    ran = run_with_shim(["--trials", "10", "--ways", way, "--scratch", str(tmp_path)])
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert re.search(found, ran.stdout), ran.stdout


def test_trials_under_nohup(tmp_path: Path) -> None:
    """SIGHUP ends a child though the trials ignore SIGHUP."""
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        ran = run_with_shim(["--trials", "10", "--ways", "Keyring.create", "--scratch", str(tmp_path)], seconds=120)
    finally:
        signal.signal(signal.SIGHUP, ignored)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "SIGHUP" in ran.stdout
