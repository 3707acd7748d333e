"""Requests to servers: repeated after temporary errors; raised errors have the name of the file.

fsspec's filesystems for S3, Google and Azure repeat requests themselves (REPEAT_THEMSELVES).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import NoReturn, TypeVar

from fastpq.errors import FormatError, RemoteError
from fastpq.io.location import Remote, refused_options

Result = TypeVar("Result")

# Answers of servers that are overloaded, restarted or limited in rate (RFC 9110, 15.5.9 and 15.6; RFC 6585, 4).
PASSING = frozenset({408, 429, 500, 502, 503, 504})
MISSING = frozenset({404, 410})
REPEAT_THEMSELVES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl"})
# Names of error classes of HTTP packages for connections refused, lost or stalled, and for answers cut off.
_BROKEN = frozenset(
    {"ClientConnectionError", "ClientPayloadError", "HTTPClientError", "IncompleteReadError", "ResponseParserError"}
)
FIRST_WAIT = 0.1        # seconds, doubled with each attempt
LONGEST_WAIT = 10.0     # seconds, also where a server asks for more


class ShortAnswerError(Exception):
    """An answer of fewer bytes than asked for.

    Args:
        final: the error for an answer that stays short.
    """

    def __init__(self, final: FormatError) -> None:
        super().__init__(str(final))
        self.final = final


def persistent(place: Remote, request: Callable[[], Result], attempts: int) -> Result:
    """Make a request, repeated after temporary errors; returns the answer.

    Args:
        place: filesystem and name of the file.
        request: makes the request.
        attempts: most requests.

    Raises:
        RemoteError: the server refused the request, was out of reach, or broke off or did not finish all its answers.
        UnsupportedError: the package of the filesystem refuses its options.
        FileNotFoundError: there is no such file.
        OSError: as reported by the filesystem.
    """
    for attempt in range(1, attempts_of(place, attempts) + 1):
        try:
            return request()
        except Exception as raised:
            error = _cause_of(raised)
            if not passes(error) or attempt == attempts_of(place, attempts):
                raise_told(place, error, attempt)
        pause(error, attempt)
    raise AssertionError("the last attempt returns or raises")


def attempts_of(place: Remote, attempts: int) -> int:
    """Number of requests to make: one where the filesystem repeats requests itself."""
    protocol = place.filesystem.protocol
    return 1 if REPEAT_THEMSELVES & ({protocol} if isinstance(protocol, str) else set(protocol)) else attempts


def pause(error: BaseException, attempt: int) -> None:
    """Wait before the next attempt: as long as the server asks for, else longer with each attempt."""
    headers = getattr(error, "headers", None) or {}
    asked = str(headers.get("Retry-After", ""))
    seconds = float(asked) if asked.isdecimal() else FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
    time.sleep(min(seconds, LONGEST_WAIT))


def passes(error: BaseException) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, ConnectionError | TimeoutError | ShortAnswerError):
        return True
    return status_of(error) in PASSING or any(kind.__name__ in _BROKEN for kind in type(error).__mro__)


def status_of(error: BaseException) -> int | None:
    """The HTTP status in an error of aiohttp, gcsfs or botocore; None without one."""
    answer = getattr(error, "response", None)
    of_botocore = answer.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(answer, dict) else None
    for status in (getattr(error, "status", None), vars(error).get("code"), of_botocore):
        if isinstance(status, int):
            return status
    return None


def _cause_of(error: Exception) -> Exception:
    """The cause of an error that fsspec made a FileNotFoundError: HTTPFileSystem does so with every error."""
    cause = error.__cause__
    return cause if isinstance(error, FileNotFoundError) and isinstance(cause, Exception) else error


def raise_told(place: Remote, error: Exception, attempts: int) -> NoReturn:
    """Raise an error of a request with the name of the file.

    Args:
        place: filesystem and name of the file.
        error: the error.
        attempts: number of requests made.
    """
    if isinstance(error, ShortAnswerError):
        raise error.final
    if isinstance(error, FileNotFoundError) or status_of(error) in MISSING:
        raise FileNotFoundError(2, "No such file", place.name) from error
    status, made = status_of(error), f" after {attempts} attempts" if attempts > 1 else ""
    if status is not None:
        raise RemoteError(f"the server answered with status {status}{made}", path=place.name) from error
    if passes(error):
        raise RemoteError(f"{_problem(error)}{made}", path=place.name) from error
    if isinstance(error, TypeError | AttributeError):       # filesystems look at some options at the first request
        raise refused_options(place.name, getattr(place.filesystem, "storage_options", {}), error) from error
    raise error


def _problem(error: Exception) -> str:
    names = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError) or "ClientConnectorError" in names:
        return f"no connection to the server ({error})"
    return "the connection broke off before the end of the answer"

