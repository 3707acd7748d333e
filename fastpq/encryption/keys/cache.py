"""TokenCache: values with a lifetime, by access token and name, for clients of key services and key encryption keys."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
Clock = Callable[[], float]

MOST_VALUES = 1 << 14       # of a cache; a key encryption key takes about 1 KiB
SPARE_EXPIRIES = 16         # expiries of dropped values that no cache is too small for


class _Name(NamedTuple):
    """The name of a value among all values of a cache."""

    token: str
    name: Hashable


class _Entry(Generic[T]):
    """A cached value; the first thread makes the value, other threads wait for the lock.

    Attributes:
        number: differs from the number of every other entry of the cache.
        is_made: whether ``value`` is there.
        made: time of the making.
        expiry: time of the end of the lifetime.
    """

    __slots__ = ("expiry", "is_made", "made", "making", "number", "value")

    def __init__(self, number: int) -> None:
        self.making = threading.Lock()
        self.number = number
        self.is_made = False
        self.made = self.expiry = 0.0
        self.value: T | None = None

    def expired(self, now: float, lifetime: float) -> bool:
        return self.is_made and (now >= self.expiry or now - self.made >= lifetime)


class TokenCache(Generic[T]):
    """Values by access token and name, each with a lifetime from its making on; safe to share between threads.

    Every use of the cache drops the expired values. A full cache drops the value of the longest time without use. A use takes
    the same time in a full cache as in an empty one, but for a logarithm.

    Args:
        clock: monotonic time in seconds.
        most: most values in the cache.
    """

    def __init__(self, clock: Clock = time.monotonic, most: int = MOST_VALUES) -> None:
        self._clock = clock
        self._most = most
        self._lock = threading.Lock()
        self._entries: OrderedDict[_Name, _Entry[T]] = OrderedDict()    # the last used last
        self._expiries: list[tuple[float, int, _Name]] = []     # a heap of expiries, numbers and names; of dropped entries too
        self._numbers = itertools.count()

    def get(self, token: str, name: Hashable, lifetime: timedelta, make: Callable[[], T]) -> T:
        """The value of a name, made if missing or expired.

        Args:
            token: the access token; tokens never share values.
            name: name within the token.
            lifetime: greatest age of the value.
            make: makes the value; called by one thread at a time for a name, without holding up other names. Its exceptions
                reach the caller, and nothing is kept: a thread that waited for the value makes the value itself.
        """
        key, seconds = _Name(token, name), lifetime.total_seconds()
        while True:
            entry = self._entry(key, seconds)
            with entry.making:
                if entry.is_made:
                    assert entry.value is not None
                    return entry.value
                if self._is_current(key, entry):
                    return self._made(key, entry, seconds, make)

    def remove(self, token: str) -> None:
        """Drop all values of one token."""
        with self._lock:
            for key in [key for key in self._entries if key.token == token]:
                del self._entries[key]

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._entries.clear()
            self._expiries.clear()

    def values(self) -> list[T]:
        """The values in the cache."""
        with self._lock:
            self._drop_expired()
            return [entry.value for entry in self._entries.values() if entry.is_made and entry.value is not None]

    def __len__(self) -> int:
        return len(self.values())

    def _entry(self, key: _Name, lifetime: float) -> _Entry[T]:
        """The entry of a name, the last used one from now on; a new entry if there is none, or an expired one."""
        with self._lock:
            self._drop_expired()
            entry = self._entries.get(key)
            if entry is None or entry.expired(self._clock(), lifetime):
                entry = self._entries[key] = _Entry(next(self._numbers))
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
            return entry

    def _is_current(self, key: _Name, entry: _Entry[T]) -> bool:
        """Whether an entry is still in the cache: another thread may have failed to make the value, or removed the entry."""
        with self._lock:
            return self._entries.get(key) is entry

    def _made(self, key: _Name, entry: _Entry[T], lifetime: float, make: Callable[[], T]) -> T:
        """Make the value of an entry, its lock held."""
        try:
            value = make()
        except BaseException:
            with self._lock:
                if self._entries.get(key) is entry:
                    del self._entries[key]
            raise
        with self._lock:
            entry.value, entry.made = value, self._clock()
            entry.expiry = entry.made + lifetime
            entry.is_made = True
            if self._entries.get(key) is entry:
                heapq.heappush(self._expiries, (entry.expiry, entry.number, key))
                self._forget_dropped()
        return value

    def _drop_expired(self) -> None:
        now = self._clock()
        while self._expiries and self._expiries[0][0] <= now:
            _, number, key = heapq.heappop(self._expiries)
            if self._holds(key, number):
                del self._entries[key]

    def _forget_dropped(self) -> None:
        """Bound the heap: make the heap anew when most of its entries were dropped before their expiry."""
        if len(self._expiries) > 2 * len(self._entries) + SPARE_EXPIRIES:
            self._expiries = [item for item in self._expiries if self._holds(item[2], item[1])]
            heapq.heapify(self._expiries)

    def _holds(self, key: _Name, number: int) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.number == number
