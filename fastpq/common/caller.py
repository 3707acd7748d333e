"""warn_caller: warnings at the line that called fastpq."""

from __future__ import annotations

import sys
import warnings

_PACKAGE = __name__.partition(".")[0]


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line outside of fastpq.

    Args:
        message: text of the warning.
        category: its class.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
