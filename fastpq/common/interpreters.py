"""The interpreter of this thread: NumPy and compiled modules belong to the main interpreter of a process alone."""

from __future__ import annotations

import importlib
import sys


def refuse_subinterpreters() -> None:
    """Raise an ImportError in a subinterpreter: threads in compiled code would wait forever for its lock.

    Raises:
        ImportError: this is no main interpreter.
    """
    try:
        interpreters = importlib.import_module("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    except ImportError:     # a Python without subinterpreters
        return
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError(
            "fastpq cannot be used in a subinterpreter: NumPy and the compiled modules of fastpq work in the main interpreter of "
            "a process alone (for mod_wsgi: WSGIApplicationGroup %{GLOBAL})"
        )
