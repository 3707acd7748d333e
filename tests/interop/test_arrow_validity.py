"""No forged file makes an Arrow array that a consumer aborts at or finds invalid."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Least number of cases of each battery, so that no battery becomes empty unseen.
BATTERIES = {"annotated": 8000, "hinted": 13000, "keys": 4, "memory": 12}


@pytest.mark.parametrize(
    ("battery", "strings"),
    [("annotated", "views"), ("annotated", "dictionary"), ("hinted", "views"), ("keys", "dictionary"), ("memory", "views")],
)
def test_every_forged_type_is_exported_whole_or_refused(battery: str, strings: str) -> None:
    command = [sys.executable, "-m", "tests.interop.arrow_validity", battery, strings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    cases = done.stdout.splitlines()
    assert done.returncode == 0, f"{cases[-1] if cases else 'no case'} ended the process\n{done.stderr}"
    assert len(cases) >= BATTERIES[battery]
    assert not [case for case in cases if ": invalid: " in case]
    assert sum(case.endswith(": valid") for case in cases) >= 2
