"""Child processes that answer requests with lines of JSON; one that crashes or hangs is gone, and says how."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

MOST_SAID = 6000        # bytes of standard error kept of a child that died
LONGEST_POLL = 1.0      # seconds between two looks at the progress


class ChildDiedError(Exception):
    """The child did not answer.

    Attributes:
        how: how the child ended.
        said: end of its standard error.
        code: exit code of the child; negative for a signal.
    """

    def __init__(self, how: str, said: str, code: int) -> None:
        super().__init__(how, said)
        self.how, self.said, self.code = how, said, code


class Child:
    """A child process; one that died is closed.

    Args:
        module: module of the child, run as ``python -m``.
        argument: its only argument.
    """

    def __init__(self, module: str, argument: str) -> None:
        self._errors = tempfile.TemporaryFile()     # noqa: SIM115 (closed with the child)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, argument],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,      # select sees every line
            env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
        )

    def ask(self, request: str) -> None:
        """Send a request, a line without its end."""
        assert self._process.stdin is not None
        self._process.stdin.write(request.encode() + b"\n")

    def answer(self, seconds: float, progress: Callable[[], object] = lambda: None) -> dict[str, Any]:
        """The next line of the child.

        Args:
            seconds: longest time without an answer and without progress.
            progress: returns another value when the child has made progress.

        Raises:
            ChildDiedError: the child crashed or hung; it is gone.
        """
        assert self._process.stdout is not None
        at, since, ready = progress(), time.monotonic(), False
        while not ready and time.monotonic() - since < seconds:
            ready = bool(select.select([self._process.stdout], [], [], min(seconds / 8, LONGEST_POLL))[0])
            if progress() != at:
                at, since = progress(), time.monotonic()
        line = self._process.stdout.readline() if ready else b""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        if not ready:
            self._process.kill()
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read()[-MOST_SAID:].decode(errors="replace")
        self.close()
        raise ChildDiedError(f"ended with {code}" if ready else f"no answer within {seconds} s", said, code)

    def close(self) -> None:
        """End the child by the end of its input."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()
        self._process.wait()
        self._errors.close()
