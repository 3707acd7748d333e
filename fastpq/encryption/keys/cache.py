"""TokenCache: values with a lifetime, by access token and name. It holds key service clients and key encryption keys."""

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

MOST_VALUES = 1 << 14       # largest number of values in one cache. A key encryption key takes about 1 KiB
SPARE_EXPIRIES = 16         # the heap may always have this many expiries for dropped values


class _EntryKey(NamedTuple):
    """A value's access token and name."""

    token: str
    name: Hashable


class _Entry(Generic[T]):
    """A cached value. The first thread makes it, and other threads wait for the lock.

    Attributes:
        number: a number that no other entry in the cache has.
        has_value: whether ``value`` is there.
        creation: the time when the value was made.
        expiry: the time when its lifetime ends.
    """

    __slots__ = ("creation", "expiry", "has_value", "lock", "number", "value")

    def __init__(self, number: int) -> None:
        self.lock = threading.Lock()
        self.number = number
        self.has_value = False
        self.creation = self.expiry = 0.0
        self.value: T | None = None

    def is_expired(self, now: float, lifetime: float) -> bool:
        return self.has_value and (now >= self.expiry or now - self.creation >= lifetime)


class TokenCache(Generic[T]):
    """Values by access token and name. Each has a lifetime from the time when it was made. Threads can share the cache.

    Every use drops the expired values. A full cache drops the value that was unused for the longest time. A use takes a time that
    grows only with the logarithm of the value count.

    Args:
        clock: function that returns a monotonic time in seconds.
        most: largest number of values in the cache.
    """

    def __init__(self, clock: Clock = time.monotonic, most: int = MOST_VALUES) -> None:
        self._clock = clock
        self._most = most
        self._lock = threading.Lock()
        self._entries: OrderedDict[_EntryKey, _Entry[T]] = OrderedDict()    # the last used entry is the last
        # a heap with expiry, number and key. Entries that were dropped early may still be in it
        self._expiries: list[tuple[float, int, _EntryKey]] = []
        self._numbers = itertools.count()

    def get(self, token: str, name: Hashable, lifetime: timedelta, make: Callable[[], T]) -> T:
        """Return the value with a name. It is made if it is missing or expired.

        Args:
            token: the access token. Different tokens never share a value.
            name: the value's name.
            lifetime: the greatest age that a returned value may have.
            make: function that makes the value. Only one thread at a time calls it for a name. Meanwhile, other names are not
                blocked. Its exceptions reach the caller, and nothing is stored: a thread that waited for the value then makes it
                itself.
        """
        key, seconds = _EntryKey(token, name), lifetime.total_seconds()
        while True:
            entry = self._entry(key, seconds)
            with entry.lock:
                if entry.has_value:
                    assert entry.value is not None
                    return entry.value
                if self._is_current(key, entry):
                    return self._make_value(key, entry, seconds, make)

    def remove(self, token: str) -> None:
        """Drop all values that belong to one access token."""
        with self._lock:
            for key in [key for key in self._entries if key.token == token]:
                del self._entries[key]

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._entries.clear()
            self._expiries.clear()

    def values(self) -> list[T]:
        """Return the values in the cache."""
        with self._lock:
            self._drop_expired()
            return [entry.value for entry in self._entries.values() if entry.has_value and entry.value is not None]

    def __len__(self) -> int:
        return len(self.values())

    def _entry(self, key: _EntryKey, lifetime: float) -> _Entry[T]:
        """Return a key's entry and mark it as the last used. If it is missing or expired, return a new entry."""
        with self._lock:
            self._drop_expired()
            entry = self._entries.get(key)
            if entry is None or entry.is_expired(self._clock(), lifetime):
                entry = self._entries[key] = _Entry(next(self._numbers))
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
            return entry

    def _is_current(self, key: _EntryKey, entry: _Entry[T]) -> bool:
        """Return whether the cache still has an entry. Another thread may have removed it, or failed to make its value."""
        with self._lock:
            return self._entries.get(key) is entry

    def _make_value(self, key: _EntryKey, entry: _Entry[T], lifetime: float, make: Callable[[], T]) -> T:
        """Make the value for an entry whose lock the caller holds."""
        try:
            value = make()
        except BaseException:
            with self._lock:
                if self._entries.get(key) is entry:
                    del self._entries[key]
            raise
        with self._lock:
            entry.value, entry.creation = value, self._clock()
            entry.expiry = entry.creation + lifetime
            entry.has_value = True
            if self._entries.get(key) is entry:
                heapq.heappush(self._expiries, (entry.expiry, entry.number, key))
                self._shrink_heap()
        return value

    def _drop_expired(self) -> None:
        now = self._clock()
        while self._expiries and self._expiries[0][0] <= now:
            _, number, key = heapq.heappop(self._expiries)
            if self._has_entry(key, number):
                del self._entries[key]

    def _shrink_heap(self) -> None:
        """Rebuild the heap if most of its entries were dropped before they expired, so that it cannot grow without limit."""
        if len(self._expiries) > 2 * len(self._entries) + SPARE_EXPIRIES:
            self._expiries = [item for item in self._expiries if self._has_entry(item[2], item[1])]
            heapq.heapify(self._expiries)

    def _has_entry(self, key: _EntryKey, number: int) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.number == number
