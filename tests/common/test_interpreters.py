"""fastpq in subinterpreters: refused at once, whatever the main interpreter has imported before."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

MODULE = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
SCRIPT = """
    import faulthandler, importlib, sys
    faulthandler.dump_traceback_later(60, exit=True)
    interpreters = importlib.import_module(sys.argv[1])
    if sys.argv[2] == "after":
        import fastpq, numpy
        fastpq.read_table
    inside = '''
    import sys
    sys.path.insert(0, "")
    try:
        import fastpq
        fastpq.read_table
        print("imported")
    except ImportError as error:
        print(error)
    '''
    import textwrap
    interpreters.run_string(interpreters.create(), textwrap.dedent(inside))
    if sys.argv[2] == "before":
        import fastpq
        print(fastpq.read_table.__name__)
"""


@pytest.mark.parametrize("order", ["after", "before"])
def test_subinterpreters_are_refused(order: str) -> None:
    pytest.importorskip(MODULE)
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), MODULE, order]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    lines = ran.stdout.splitlines()
    assert lines[0].startswith("fastpq cannot be used in a subinterpreter"), ran.stdout + ran.stderr
    assert lines[1:] == (["read_table"] if order == "before" else [])
