"""Functions that repeat a request after a temporary error, and that raise any other error with the file's name.

fsspec's filesystems for S3, Google and Azure repeat requests themselves (REPEAT_THEMSELVES).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NoReturn, TypeVar

from fastpq.errors import FormatError, ParquetError, RemoteError, UnsupportedError
from fastpq.io.location import Remote, protocols, refused_options
from fastpq.io.waiting import sleep

Result = TypeVar("Result")

# HTTP status from servers that are overloaded, restart, or limit the rate (RFC 9110, 15.5.9 and 15.6, and RFC 6585, 4).
TEMPORARY = frozenset({408, 429, 500, 502, 503, 504})
MISSING = frozenset({404, 410})
REPEAT_THEMSELVES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl"})
# Error classes in HTTP packages, by name. They mean that a connection was refused, lost or stalled, or an answer was cut off.
_BROKEN = frozenset(
    {"ClientConnectionError", "ClientPayloadError", "HTTPClientError", "IncompleteReadError", "ResponseParserError"}
)
FIRST_WAIT = 0.1        # seconds. The time doubles with each attempt
LONGEST_WAIT = 10.0     # seconds, even if a server asks for more


class ShortAnswerError(Exception):
    """An answer has fewer bytes than the request asked for.

    Args:
        final: the error to raise if the answer stays short.
    """

    def __init__(self, final: FormatError) -> None:
        super().__init__(str(final))
        self.final = final


def persistent(place: Remote, request: Callable[[], Result], attempts: int) -> Result:
    """Make a request, repeat it after temporary errors, and return the answer.

    Args:
        place: the file's filesystem and name.
        request: makes the request.
        attempts: how often the request may be made.

    Raises:
        RemoteError: the server refused the request, was out of reach, or did not finish any answer.
        UnsupportedError: the filesystem's package refuses its options, or the filesystem belongs to another event loop.
        FileNotFoundError: there is no such file.
        OSError: the filesystem reported another error.
    """
    for attempt in range(1, attempts_of(place, attempts) + 1):
        try:
            return request()
        except Exception as raised:
            error = _cause_of(raised)
            if not is_temporary(error) or attempt == attempts_of(place, attempts):
                raise_named(place, error, attempt)
        pause(error, attempt)
    raise AssertionError("the last attempt returns or raises")


def attempts_of(place: Remote, attempts: int) -> int:
    """Return how often a request may be made: once if the filesystem repeats requests itself, else ``attempts`` times."""
    return 1 if REPEAT_THEMSELVES & protocols(place.filesystem) else attempts


def pause(error: BaseException, attempt: int) -> None:
    """Wait before the next attempt: as long as the server asks for, or else longer after each attempt."""
    headers = getattr(error, "headers", None) or {}
    requested_wait = str(headers.get("Retry-After", ""))
    seconds = float(requested_wait) if requested_wait.isdecimal() else FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
    sleep(min(seconds, LONGEST_WAIT))


def is_temporary(error: BaseException) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, ConnectionError | TimeoutError | ShortAnswerError):
        return True
    return status_of(error) in TEMPORARY or any(kind.__name__ in _BROKEN for kind in type(error).__mro__)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status in an error from aiohttp, gcsfs or botocore. None if there is no status."""
    answer = getattr(error, "response", None)
    of_botocore = answer.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(answer, dict) else None
    for status in (getattr(error, "status", None), vars(error).get("code"), of_botocore):
        if isinstance(status, int) and status:      # aiohttp gives 0 to a redirect loop
            return status
    return None


def _cause_of(error: Exception) -> Exception:
    """Return a FileNotFoundError's cause if it has one, because HTTPFileSystem turns every error into a FileNotFoundError."""
    cause = error.__cause__
    return cause if isinstance(error, FileNotFoundError) and isinstance(cause, Exception) else error


def raise_named(place: Remote, error: Exception, attempts: int) -> NoReturn:
    """Raise a request's error, with the file's name.

    Args:
        place: the file's filesystem and name.
        error: the error.
        attempts: how often the request was made.
    """
    if isinstance(error, ShortAnswerError):
        raise error.final.at(path=place.name)
    if isinstance(error, ParquetError):
        raise error.at(path=place.name)
    if isinstance(error, FileNotFoundError) or status_of(error) in MISSING:
        raise FileNotFoundError(2, "No such file", place.name) from error
    status, effort = status_of(error), f" after {attempts} attempts" if attempts > 1 else ""
    if status is not None:
        raise RemoteError(f"the server answered with status {status}{effort}", path=place.name) from error
    if is_temporary(error) or "ClientError" in _class_names(error):
        raise RemoteError(f"{_problem(error)}{effort}", path=place.name) from error
    if type(error) is RuntimeError and getattr(place.filesystem, "asynchronous", False) is True:
        message = "a filesystem with asynchronous=True works only in the event loop in which its session was opened"
        raise UnsupportedError(f"{message}, and until that is closed: make one for each event loop", path=place.name) from error
    if isinstance(error, TypeError | AttributeError):       # some options are checked at the first request
        raise refused_options(place.name, getattr(place.filesystem, "storage_options", {}), error) from error
    raise error


def _problem(error: Exception) -> str:
    names = _class_names(error)
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError) or "ClientConnectorError" in names:
        return f"no connection to the server ({error})"
    if "TooManyRedirects" in names:
        history = getattr(error, "history", ())
        return f"the server redirects without an end (stopped after {len(history)} redirects)"
    if is_temporary(error):
        return "the connection broke off before the end of the answer"
    return f"the request failed in the HTTP client ({type(error).__name__})"


def _class_names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}
