"""refuse_subinterpreters: NumPy and compiled modules work only in a process's main interpreter."""

from __future__ import annotations

import importlib
import sys


def refuse_subinterpreters() -> None:
    """Refuse a subinterpreter, where threads in compiled code would wait for its lock forever.

    Raises:
        ImportError: this is not the main interpreter.
    """
    try:
        interpreters = importlib.import_module("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    except ImportError:     # a Python without subinterpreters
        return
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError(
            "fastpq cannot be used in a subinterpreter: NumPy and the compiled modules of fastpq work only in the main "
            "interpreter of a process (for mod_wsgi: WSGIApplicationGroup %{GLOBAL})"
        )
