"""is_own_code: tells frames of the package in tracebacks from those of tests, wherever the clone stands."""

from __future__ import annotations

from pathlib import Path

import fastpq

PACKAGE = f"{Path(fastpq.__file__).parent}/"


def is_own_code(filename: str) -> bool:
    """Return whether a frame's file belongs to the package. Compiled modules have paths from the root of the sources."""
    return filename.startswith((PACKAGE, "fastpq/"))
