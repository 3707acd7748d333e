"""TokenCache: values with a lifetime for each access token, for clients of key services and key encryption keys."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Generic, TypeVar

T = TypeVar("T")
Clock = Callable[[], float]


class _Entry(Generic[T]):
    """A cached value; the first thread makes the value, other threads wait for the lock."""

    __slots__ = ("lifetime", "made", "making", "value")

    def __init__(self) -> None:
        self.making = threading.Lock()
        self.made: float | None = None
        self.lifetime = 0.0
        self.value: T | None = None

    def expired(self, now: float, lifetime: float) -> bool:
        return self.made is not None and now - self.made >= min(self.lifetime, lifetime)


class TokenCache(Generic[T]):
    """Values by access token and name, each with a lifetime from its making on; safe to share between threads.

    Every use of the cache drops all expired values.

    Args:
        clock: monotonic time in seconds.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens: dict[str, dict[Hashable, _Entry[T]]] = {}

    def get(self, token: str, name: Hashable, lifetime: timedelta, make: Callable[[], T]) -> T:
        """The value of a name, made if missing or expired.

        Args:
            token: the access token; tokens never share values.
            name: name within the token.
            lifetime: greatest age of the value.
            make: makes the value; called by one thread at a time for a name, without holding up other names. Its exceptions
                reach the caller, and nothing is kept.
        """
        seconds = lifetime.total_seconds()
        with self._lock:
            self._drop_expired()
            names = self._tokens.setdefault(token, {})
            entry = names.get(name)
            if entry is None or entry.expired(self._clock(), seconds):
                entry = names[name] = _Entry()
        with entry.making:
            if entry.made is None:
                try:
                    entry.value = make()
                except BaseException:
                    self._forget(names, name, entry)
                    raise
                entry.lifetime = seconds
                entry.made = self._clock()
            assert entry.value is not None
            return entry.value

    def remove(self, token: str) -> None:
        """Drop all values of one token."""
        with self._lock:
            self._tokens.pop(token, None)

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._tokens.clear()

    def __len__(self) -> int:
        with self._lock:
            self._drop_expired()
            return sum(entry.made is not None for names in self._tokens.values() for entry in names.values())

    def _forget(self, names: dict[Hashable, _Entry[T]], name: Hashable, entry: _Entry[T]) -> None:
        with self._lock:
            if names.get(name) is entry:
                del names[name]

    def _drop_expired(self) -> None:
        now = self._clock()
        for token, names in list(self._tokens.items()):
            for name in [name for name, entry in names.items() if entry.expired(now, entry.lifetime)]:
                del names[name]
            if not names:
                del self._tokens[token]
