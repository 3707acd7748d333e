"""A few of the kills at requests to object stores, and proof that they notice.

``python -m tests.faults.store_kills`` has all of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.faults.store_kills import Trials, trials
from tests.io.object_stores import Store


@pytest.fixture(scope="module")
def running(object_store: Store) -> Iterator[Trials]:
    with trials(object_store) as found:
        yield found


@pytest.mark.parametrize("way", ["Overwrite", "Compact"])
def test_killed_at_a_request(running: Trials, way: str) -> None:
    running.failures.clear()
    assert running.of(way, every=24, first=random.randrange(24)) >= 2
    assert running.failures == []


def test_the_trials_notice(running: Trials) -> None:
    running.failures.clear()
    running.of("Torn", every=1000, first=999)
    assert "readers saw [[1, 2, 3, 4]" in running.failures[0]
