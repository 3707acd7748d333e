"""The README's examples run as they stand, and what it names is there."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_python_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All in one namespace, in order, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    examples = blocks("python")
    assert len(examples) >= 3
    for place, example in enumerate(examples):
        exec(compile(example, f"README.md, example {place + 1}", "exec"), namespace)
    assert {"items.parquet", "batches.parquet", "secret.parquet", "managed.parquet"} <= {path.name for path in tmp_path.iterdir()}


def test_the_numpy_example_is_short() -> None:
    assert len([line for line in blocks("python")[0].splitlines() if line]) <= 10


def test_commands_exist() -> None:
    commands = [line.split()[0] for block in blocks("sh") for line in block.splitlines() if line]
    assert commands == ["tools/demo", "tools/test"]
    assert all(os.access(ROOT / command, os.X_OK) for command in commands)


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_there_is_a_place_for_the_benchmarks() -> None:
    from benchmarks.report import BEGIN, END

    assert README.index(BEGIN) < README.index(END)
