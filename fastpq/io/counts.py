"""checked_count: checks the byte count that a file object's method returned. The file object is the caller's."""

from __future__ import annotations

import errno
import operator
from typing import Any, SupportsIndex

from fastpq.errors import SchemaError


def checked_count(count: Any, most: int | None, method: str, name: str) -> int:
    """Check the byte count that a file object's method returned, and return it as an int.

    Args:
        count: what the method returned.
        most: the largest allowed count. None means no limit.
        method: the method's name.
        name: the file's name.

    Raises:
        BlockingIOError: the method returned None, which means that the object does not block and handled no bytes.
        SchemaError: the method did not return a number, or the number is not allowed.
    """
    if type(count) is int and count >= 0 and (most is None or count <= most):
        return count
    if count is None and most is not None:
        raise BlockingIOError(errno.EAGAIN, f"{method} of a file object that does not block handled no bytes", name)
    if isinstance(count, SupportsIndex) and not isinstance(count, bool):
        number = operator.index(count)
        if number >= 0 and (most is None or number <= most):
            return number
    limit = "" if most is None else f" of {most} bytes"
    raise SchemaError(f"a file object returned {count!r} from {method}{limit}", path=name)
