"""Copies of the package, in which a test adds something and counts the files that it edits."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class PackageCopy:
    """A copy of fastpq and of the tools, with links to the compiled modules.

    Args:
        folder: folder of the copy.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("fastpq", "tools"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.c", "*.so", "*.jar"))
        for library in (ROOT / "fastpq").rglob("*.so"):
            (folder / library.relative_to(ROOT)).symlink_to(library)
        self._texts = {path: path.read_bytes() for path in folder.rglob("*.py*")}

    def insert(self, file: str, after: str, text: str) -> None:
        """Insert a text behind another one, which occurs once in a file."""
        path = self.folder / file
        before, _, rest = path.read_text().partition(after)
        assert rest, f"{file} has no {after!r}"
        assert after not in rest, f"{file} has {after!r} twice"
        path.write_text(before + after + text + rest)

    def changed_files(self) -> set[str]:
        """Return the files that differ from the original."""
        return {path.relative_to(self.folder).as_posix() for path, text in self._texts.items() if path.read_bytes() != text}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python with the copy."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
