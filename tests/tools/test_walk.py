"""The walks of calls through the code: counted as documented, and no longer than they are."""

from __future__ import annotations

import pytest

from tools.walk import Walk, jobs, trace

# Most functions, files, moves and returns of each job; ``python -m tools.walk`` prints the present ones.
BOUNDS = {
    "read-flat": (64, 19, 31, 13),
    "read-list-of-strings": (74, 22, 34, 13),
    "read-encrypted": (80, 22, 37, 16),
    "write-flat": (82, 22, 43, 22),
}


def test_moves_and_returns_are_counted() -> None:
    walk = Walk([("a.py", "call"), ("a.py", "inner"), ("b.py", "other"), ("a.py", "last"), ("c.py", "end")])
    assert (walk.files, walk.moves, walk.returns) == (3, ["b.py", "a.py", "c.py"], 1)


def test_every_job_has_bounds() -> None:
    assert jobs().keys() == BOUNDS.keys()


@pytest.mark.parametrize("job", BOUNDS)
def test_no_walk_grows(job: str) -> None:
    walk = trace(jobs()[job])
    found = len(walk.functions), walk.files, len(walk.moves), walk.returns
    assert all(count <= bound for count, bound in zip(found, BOUNDS[job], strict=True)), f"{job}: {found}, bounds {BOUNDS[job]}"
