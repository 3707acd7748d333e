"""Folders of samples made by several workers at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tests.corrupt.stored import make_once


def test_workers_that_start_together_leave_one_whole_folder(tmp_path: Path) -> None:
    start = Barrier(4)

    def make(folder: Path) -> None:
        start.wait(10)
        (folder / "one").write_text(folder.name)
        (folder / "two").write_text(folder.name)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: make_once(tmp_path / "new" / "keys", make), range(4)))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["keys"]
    assert len({path.read_text() for path in (tmp_path / "new" / "keys").iterdir()}) == 1


def test_an_existing_folder_stays(tmp_path: Path) -> None:
    make_once(tmp_path, lambda folder: pytest.fail(f"made again in {folder}"))
