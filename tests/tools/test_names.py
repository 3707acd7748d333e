"""tools/names: participles among the names of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import names

PYTHON = '''
def f(self, wanted, requested_rows, *given):
    found = self.kept = wanted
    matching_rows, is_known = found, nested
    speed: int = 1
    return [known for known in given]
'''


def test_participles_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(PYTHON)
    counts, total = names.participles([path, tmp_path / "none.pyx"])
    assert counts == {"wanted": 1, "given": 1, "found": 1, "kept": 1, "known": 1}
    assert total == 9
    assert names.share_of([path]) == 5 / 9


def test_a_share_above_its_bound_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "MOST", {"spark": 0.0, "the other rooms": 1.0})
    [message] = names.excesses()
    assert message.startswith("spark: bare participles are ")


def test_the_package_is_within_its_bounds() -> None:
    assert names.excesses() == []
