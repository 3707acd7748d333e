"""Code that keeps keys out of tracebacks, copies and pickles. Error trackers record every frame's local variables."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, cast

CallableT = TypeVar("CallableT", bound=Callable[..., Any])


class KeyHolder:
    """Base class for objects that hold keys or give access to them. They cannot be copied or pickled. Their repr shows no key."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} gives access to keys and cannot be copied or pickled")


def clear_frames(error: BaseException | None, earlier: BaseException | None) -> None:
    """Clear the local variables in all finished frames that belong to an error, its causes, its contexts or its group.

    Args:
        error: the error.
        earlier: the error that was being handled before our call, or None. Its frames and causes belong to the caller, and stay.
    """
    visited_errors = {id(earlier), id(None)}
    pending = [error]
    while pending:
        error = pending.pop()
        if error is None or id(error) in visited_errors:
            continue
        visited_errors.add(id(error))
        traceback.clear_frames(error.__traceback__)
        pending += [error.__cause__, error.__context__, *(error.exceptions if isinstance(error, BaseExceptionGroup) else ())]


def hides_arguments(function: CallableT) -> CallableT:
    """Decorate a function that takes keys or a passphrase: its errors show none of its variables.

    Variables are also cleared in the frames of all functions that it called. The caller's frame stays as it is.
    """

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        earlier = sys.exc_info()[1]
        try:
            return function(*args, **options)
        except BaseException as error:
            args, options = (), {}
            clear_frames(error, earlier)
            raise
        finally:
            del earlier

    return cast("CallableT", call)
