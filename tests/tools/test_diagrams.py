"""The diagrams of the documentation are what tools/diagrams.py writes, fit into their boxes, and name modules that exist."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tools import diagrams

ROOT = Path(__file__).resolve().parents[2]
WIDEST = diagrams.BOX_WIDTH / 6.2       # characters of a line in a box


@pytest.mark.parametrize("diagram", diagrams.DIAGRAMS, ids=lambda diagram: diagram.name)
def test_diagrams_are_up_to_date_and_shown(diagram: diagrams.Diagram) -> None:
    text = (diagrams.PAGES / f"{diagram.name}.svg").read_text()
    assert text == diagrams.svg_of(diagram)
    ElementTree.fromstring(text)
    assert "prefers-color-scheme:dark" in text
    assert not re.search(r"(href|src|@import|url\(h)", text)
    assert any(f"]({diagram.name}.svg)" in page.read_text() for page in diagrams.PAGES.glob("*.md"))


def test_texts_fit_and_modules_exist() -> None:
    for diagram in diagrams.DIAGRAMS:
        for step in (step for row in diagram.rows for step in row):
            assert len(step.lines) <= 2
            for line in step.lines:
                assert len(line) <= WIDEST, line
                if re.fullmatch(r"\w+/\w+", line):
                    path = ROOT / "fastpq" / line
                    assert path.is_dir() or any(path.with_suffix(suffix).exists() for suffix in (".py", ".pyx")), line
