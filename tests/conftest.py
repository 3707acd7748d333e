"""What all tests share."""

from __future__ import annotations

import os


def pytest_report_header() -> str:
    """Say whether the tests that need real files run."""
    return f"test data (FASTPQ_TEST_DATA): {os.environ.get('FASTPQ_TEST_DATA', 'none; tests that need it are skipped')}"
