"""tools/prose: comments and docstrings of Python, Cython, C and Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import prose

PYTHON = '''"""Rows of a table; all of them."""


def f(of):      # the end of it
    """Return it."""
    text = "of; # of"
    return text
'''
CYTHON = '''"""Rows of a table; all of them."""
# the end of it
cdef int of = 1     # one; two
text = "of;"
'''
HEADER = '''/* Rows of a table,
 * all of them. */
#define OF of;
int of;     // the end; of it
'''


@pytest.mark.parametrize(
    ("suffix", "text", "expected"),
    [("py", PYTHON, (13, 3, 1)), ("pyx", CYTHON, (13, 3, 2)), ("h", HEADER, (11, 3, 1)), ("java", HEADER, (11, 3, 1))],
)
def test_words_are_counted(suffix: str, text: str, expected: tuple[int, int, int], tmp_path: Path) -> None:
    path = tmp_path / f"example.{suffix}"
    path.write_text(text)
    measured = prose.measure_files([path])
    assert measured == expected
    assert measured.of_share == expected[1] / expected[0]
    assert measured.semicolon_rate == 1000 * expected[2] / expected[0]


def test_a_number_above_its_bound_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prose, "BOUNDS", {"spark": prose.Bound(0.0, 0.0)})
    share, rate = prose.excesses()
    assert share.startswith('spark: "of" is ')
    assert rate.endswith("semicolons in 1,000 words, the bound is 0.0")


def test_the_package_is_within_its_bounds() -> None:
    assert prose.excesses() == []
