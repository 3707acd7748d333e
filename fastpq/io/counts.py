"""checked_count: numbers of bytes that the methods of a caller's file object return."""

from __future__ import annotations

import errno
import operator
from typing import Any, SupportsIndex

from fastpq.errors import SchemaError


def checked_count(count: Any, most: int | None, method: str, name: str) -> int:
    """The number of bytes returned by a method of a file object.

    Args:
        count: the returned object.
        most: largest number allowed; None for no bound.
        method: name of the method.
        name: name of the file.

    Raises:
        BlockingIOError: None, from an object that does not block.
        SchemaError: no number, or a number out of bounds.
    """
    if type(count) is int and count >= 0 and (most is None or count <= most):
        return count
    if count is None and most is not None:
        raise BlockingIOError(errno.EAGAIN, f"a file object that does not block: no bytes in {method}", name)
    if isinstance(count, SupportsIndex) and not isinstance(count, bool):
        number = operator.index(count)
        if number >= 0 and (most is None or number <= most):
            return number
    bound = "" if most is None else f" of {most} bytes"
    raise SchemaError(f"a file object returned {count!r} from {method}{bound}", path=name)
