"""The walks of calls through the code: counted as documented, and no longer than they are."""

from __future__ import annotations

import pytest

from tools.walk import Walk, jobs, trace

# Functions, files, moves and returns of each job, as measured when a bound was set. ``python -m tools.walk`` prints today's.
SLACK = 1.1         # a walk may be this much longer: code is not bent for an exact count
BOUNDS = {
    "read-flat": (78, 22, 39, 18),
    "read-list-of-strings": (92, 26, 43, 18),
    "read-encrypted": (94, 24, 45, 22),
    "write-flat": (81, 21, 48, 28),
}


def test_moves_and_returns_are_counted() -> None:
    walk = Walk([("a.py", "call"), ("a.py", "inner"), ("b.py", "other"), ("a.py", "last"), ("c.py", "end")])
    assert (walk.files, walk.moves, walk.returns) == (3, ["b.py", "a.py", "c.py"], 1)


def test_every_job_has_bounds() -> None:
    assert jobs().keys() == BOUNDS.keys()


@pytest.mark.parametrize("job", BOUNDS)
def test_no_walk_grows(job: str) -> None:
    walk = trace(jobs()[job])
    counts = len(walk.functions), walk.files, len(walk.moves), walk.returns
    bounds = [int(SLACK * count) for count in BOUNDS[job]]
    assert all(count <= bound for count, bound in zip(counts, bounds, strict=True)), f"{job}: {counts}, bounds {bounds}"
