"""What the driver sends to executors, which refuse it if they have another fastpq or another Python.

A pickled object begins with the driver's versions, and a plan for the JVM's workers has them as an entry. An executor compares
them with its own before it loads anything else. It therefore reports the difference, and not a name or an attribute that its own
version of fastpq lacks.
"""

from __future__ import annotations

import socket
import sys
from typing import Any

from fastpq.spark.core import VERSION, UnsupportedError

PYTHON = "{}.{}".format(*sys.version_info)


class VersionError(UnsupportedError):
    """An executor or the session's jar has another version than the driver's fastpq or Python."""


class Versions:
    """The versions of the process that pickles this object. Another process checks its own versions when it unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return require_versions, tuple(present_versions().values())


class SentToExecutors:
    """Base class for objects that executors unpickle. They need the driver's version of fastpq and of Python."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _new_object, (Versions(), type(self)), self.__dict__


def present_versions() -> dict[str, str]:
    """Return the versions in this process, as the arguments for require_versions on an executor."""
    return {"fastpq": VERSION, "python": PYTHON}


def require_versions(fastpq: str, python: str) -> None:
    """Require that this process has the driver's versions.

    Args:
        fastpq: the driver's version of fastpq.
        python: the driver's version of Python, without its last part.

    Raises:
        VersionError: this process has others.
    """
    if (fastpq, python) != (VERSION, PYTHON):
        raise VersionError(
            f"the driver runs fastpq {fastpq} with Python {python}. A Python worker on {socket.gethostname()} runs fastpq "
            f"{VERSION} with Python {PYTHON} ({sys.executable}). Install the same versions on all machines: "
            "python -m fastpq.spark.check MASTER lists those of each executor"
        )


def _new_object(_versions: None, kind: type[Any]) -> Any:
    return object.__new__(kind)
