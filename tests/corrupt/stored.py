"""Folders of samples that several workers may make at the same time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def make_once(folder: Path, make: Callable[[Path], None]) -> None:
    """Fill a folder, unless the folder exists.

    Workers that start together each fill a folder of their own; the first one gets the name, the others are removed.
    """
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    make(made)
    try:
        made.rename(folder)
    except OSError:
        shutil.rmtree(made)
        if not folder.exists():
            raise
