"""Raises LimitError, and not Python's RecursionError, for types that are nested too deep for the stack."""

from __future__ import annotations

from fastpq.errors import LimitError


def too_deep(column: str | None = None) -> LimitError:
    """Return the error for a value or a type that is nested too deep for the present stack.

    Args:
        column: column name.
    """
    reason = "the type is nested too deep for the stack of the interpreter (see sys.setrecursionlimit)"
    return LimitError(reason, column=column)


class _NestingLimit:
    """A context in which a RecursionError becomes the error of ``too_deep``."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is RecursionError:
            raise too_deep() from None


nesting_limit = _NestingLimit()


def check_stack(frames: int, column: str | None = None) -> None:
    """Raise LimitError if the stack has no room for some more Python frames.

    Args:
        frames: number of frames.
        column: column name, for the error.
    """
    try:
        _descend(frames)
    except RecursionError:
        raise too_deep(column) from None


def _descend(frames: int) -> None:
    if frames > 0:
        _descend(frames - 1)
