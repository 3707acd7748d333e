"""ARCHITECTURE.md names the rooms that there are, in their order."""

from __future__ import annotations

import re
from pathlib import Path

from tools import rooms

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()


def test_the_tree_has_every_room_in_order() -> None:
    named = re.findall(r"^  (\w+)/", TEXT, re.MULTILINE)
    folders = {path.name for path in (ROOT / "fastpq").iterdir() if (path / "__init__.py").exists()}
    assert named == [room for room in rooms.ORDER if room in folders]


def test_every_named_file_exists() -> None:
    for name in re.findall(r"`((?:\w+/)+\w*(?:\.\w+)?)`", TEXT):
        place = ROOT if name.split("/")[0] in ("fastpq", "tools", "tests") else ROOT / "fastpq"
        assert (place / name).exists(), name


def test_every_module_of_the_drawings_exists() -> None:
    drawings = re.findall(r"```\n(.*?)```", TEXT.split("## The way of a byte, reading")[1], re.DOTALL)
    assert len(drawings) == 2
    for name in (name for drawing in drawings for name in re.findall(r"\w+/\w+", drawing)):
        assert any((ROOT / "fastpq" / f"{name}{suffix}").exists() for suffix in (".py", ".pyx")), name
