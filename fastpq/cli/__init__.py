"""The command ``fastpq``: look into Parquet files, compare, convert, encrypt and repair them.

``program`` is the command itself. Each file in ``verbs`` is one verb, and adding a file adds a verb: its docstring is the text in
``fastpq --help``, and its ``command`` is made by ``fastpq.cli.verb.verb``. Everything that is printed goes through
``terminal.Screen``, which escapes control characters in names and values from files.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def main() -> None:
    """Run the command with the arguments in ``sys.argv``, and end the process with its exit code."""
    try:
        from fastpq.cli.program import run_command

        signal.signal(signal.SIGTERM, _stop)  # as Ctrl-C does, so that unfinished files are removed
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print("fastpq: the command needs more packages: pip install click rich", file=sys.stderr)
        sys.exit(5)
    except KeyboardInterrupt:       # during the imports
        print("fastpq: interrupted", file=sys.stderr)
        sys.exit(130)
    sys.exit(run_command(sys.argv[1:]))
