"""tools/prose: comments and docstrings of Python, Cython and C."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import prose

PYTHON = '''"""Rows that are kept."""


def f(it):      # such a comment
    """Returns what it takes."""
    text = "those # which"
    return text
'''
CYTHON = '''"""Rows that are kept."""
# such a comment
cdef int it = 1     # which one
text = "those"
'''
HEADER = '''/* Rows that are kept,
 * such as these. */
#define IT which
'''


@pytest.mark.parametrize(("suffix", "text", "found"), [("py", PYTHON, (4, 11)), ("pyx", CYTHON, (3, 9)), ("h", HEADER, (2, 7))])
def test_words_are_counted(suffix: str, text: str, found: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / f"example.{suffix}"
    path.write_text(text)
    assert prose.count(path) == found
    assert prose.share_of([path]) == (found[0] / found[1], found[1])


def test_the_package_is_below_the_bound() -> None:
    assert prose.share_of(prose.sources([prose.ROOT / "fastpq"]))[0] <= prose.MOST
