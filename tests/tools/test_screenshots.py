"""The screenshots of the documentation can still be made, load nothing from elsewhere, and stand on pages."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.requirements import needs, peer

needs(peer("textual"))
screenshots = peer("tools.screenshots")


def test_screenshots_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    screenshots.write_file(tmp_path)
    pictures = screenshots.screenshots()
    for name, text in pictures.items():
        stored_text = (screenshots.PAGES / name).read_text()
        for picture in (text, stored_text):
            ElementTree.fromstring(picture)
            assert not re.search(r"(href|src|@import|url\(h)", picture)
        # Sizes in bytes depend on the versions of codecs, and the rest does not.
        assert len(stored_text) == pytest.approx(len(text), rel=0.2), f"{name} is old: python -m tools.screenshots writes it"
        assert any(f"]({name})" in page.read_text() for page in screenshots.PAGES.glob("*.md")), name
    browser = re.sub(r"<[^>]*>", " ", pictures["screenshot-browse.svg"]).replace("&#160;", " ")
    assert all(word in browser for word in ("items.parquet", "filter", "price", "quit"))
