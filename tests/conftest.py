"""What all tests share."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# machines that run tests are shared: how long an example takes says nothing
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")


def pytest_report_header() -> str:
    """Say whether the tests that need real files run."""
    return f"test data (FASTPQ_TEST_DATA): {os.environ.get('FASTPQ_TEST_DATA', 'none; tests that need it are skipped')}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long the search for false negatives of bloom filters is."""
    parser.addoption("--bloom-probes", type=int, default=2_000_000, help="values inserted and probed (the issue asks for 10^8)")
