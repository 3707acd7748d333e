"""The runner of foreign suites: a few tests of pyarrow and pandas pass through the shims. The shims stay thin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import needs, peer

needs(peer("pyarrow"))
needs(peer("pandas"))

ROOT = Path(__file__).resolve().parents[2]
SHIMS = ROOT / "tools" / "foreign_suites"
MOST_LINES = 200


def test_shims_are_thin() -> None:
    for path in SHIMS.glob("*.py"):
        assert len(path.read_text().splitlines()) <= MOST_LINES, path.name


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "tests"), [
    ("pyarrow", "test_large_list_records or test_column_of_lists or test_multiple_path_types"),
    ("pandas", "test_cross_engine_pa_fp or test_use_nullable_dtypes or test_timezone_aware_index"),
])
def test_some_tests_pass(suite: str, tests: str) -> None:
    command = [sys.executable, "-m", "tools.foreign_suites", suite, "--tb=short", "-k", tests]
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    passed, total = map(int, run.stdout.rstrip().rpartition(": ")[2].removesuffix(" pass").split(" of "))
    assert 0 < passed == total, run.stdout
