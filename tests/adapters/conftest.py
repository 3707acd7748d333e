"""Fixtures for the tests of adapters."""

from __future__ import annotations

import pytest

from tests.adapters.counted import CountedDataset


@pytest.fixture(params=[False, True], ids=["plain", "encrypted"])
def counted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CountedDataset:
    """A dataset whose reads are counted, plain and encrypted."""
    return CountedDataset(tmp_path_factory.mktemp("counted"), request.param)


@pytest.fixture
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> CountedDataset:
    """An encrypted dataset whose reads are counted."""
    return CountedDataset(tmp_path_factory.mktemp("encrypted"), True)
