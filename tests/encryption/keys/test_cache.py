"""Caches: what lives how long, and for whom."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from fastpq.encryption.keys.cache import TokenCache

MINUTE = timedelta(minutes=1)
GUARD = 600     # seconds until a test fails that hangs


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Maker:
    """Makes 1, 2, 3 ..."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> int:
        self.made += 1
        return self.made


def test_a_lifetime_begins_when_the_value_is_made() -> None:
    clock, make = Clock(), Maker()
    cache: TokenCache[int] = TokenCache(clock)
    assert cache.get("token", "a", MINUTE, make) == 1
    clock.now = 59.9
    assert cache.get("token", "a", MINUTE, make) == 1
    clock.now = 60
    assert cache.get("token", "a", MINUTE, make) == 2
    clock.now = 119.9
    assert cache.get("token", "a", MINUTE, make) == 2


def test_the_shorter_of_two_lifetimes_holds() -> None:
    clock, make = Clock(), Maker()
    cache: TokenCache[int] = TokenCache(clock)
    cache.get("token", "a", MINUTE, make)
    clock.now = 30
    assert cache.get("token", "a", timedelta(seconds=10), make) == 2
    clock.now = 45
    assert cache.get("token", "a", MINUTE, make) == 3
    assert cache.get("token", "a", timedelta(0), make) == 4


def test_nothing_expired_stays() -> None:
    clock = Clock()
    cache: TokenCache[int] = TokenCache(clock)
    for name in "abc":
        cache.get(f"token {name}", name, MINUTE, Maker())
    assert len(cache) == 3
    clock.now = 61
    cache.get("another", "d", MINUTE, Maker())
    assert len(cache) == 1
    assert [key.token for key in cache._entries] == ["another"]


def test_tokens_share_nothing() -> None:
    cache: TokenCache[int] = TokenCache()
    make = Maker()
    assert [cache.get(token, "a", MINUTE, make) for token in ("one", "two", "one")] == [1, 2, 1]
    cache.remove("one")
    cache.remove("none")
    assert [cache.get(token, "a", MINUTE, make) for token in ("one", "two")] == [3, 2]
    cache.clear()
    assert [cache.get(token, "a", MINUTE, make) for token in ("one", "two")] == [4, 5]


def test_a_failure_is_not_kept() -> None:
    cache: TokenCache[int] = TokenCache()
    with pytest.raises(ZeroDivisionError):
        cache.get("token", "a", MINUTE, lambda: 1 // 0)
    assert len(cache) == 0
    assert not cache._entries
    assert cache.get("token", "a", MINUTE, lambda: 7) == 7


def test_threads_make_a_value_once_and_do_not_wait_for_others() -> None:
    cache: TokenCache[int] = TokenCache()
    make = Maker()
    started, go = threading.Event(), threading.Event()

    def slowly() -> int:
        started.set()
        assert go.wait(GUARD)
        return make()

    with ThreadPoolExecutor(8) as pool:
        slow = [pool.submit(cache.get, "token", "slow", MINUTE, slowly) for _ in range(7)]
        assert started.wait(GUARD)
        assert pool.submit(cache.get, "token", "fast", MINUTE, lambda: 99).result(GUARD) == 99
        go.set()
        assert [future.result(GUARD) for future in slow] == [1] * 7


def test_a_thread_that_waited_for_a_failure_keeps_its_value() -> None:
    cache: TokenCache[int] = TokenCache()
    started, go, make = threading.Event(), threading.Event(), Maker()

    def fail() -> int:
        started.set()
        assert go.wait(GUARD)
        raise OSError

    with ThreadPoolExecutor(8) as pool:
        failed = pool.submit(cache.get, "token", "a", MINUTE, fail)
        assert started.wait(GUARD)
        waiting = [pool.submit(cache.get, "token", "a", MINUTE, make) for _ in range(7)]
        while sum(future.running() for future in waiting) < 7:
            time.sleep(0.001)
        time.sleep(0.05)
        go.set()
        with pytest.raises(OSError, match=r"^$"):
            failed.result(GUARD)
        assert [future.result(GUARD) for future in waiting] == [1] * 7
    assert cache.get("token", "a", MINUTE, make) == 1
    assert cache.values() == [1]


def test_a_full_cache_drops_the_value_longest_without_use() -> None:
    cache: TokenCache[int] = TokenCache(most=3)
    make = Maker()
    for name in "abc":
        cache.get("token", name, MINUTE, make)
    assert cache.get("token", "a", MINUTE, make) == 1
    assert cache.get("another", "d", MINUTE, make) == 4
    assert sorted(cache.values()) == [1, 3, 4]
    assert cache.get("token", "b", MINUTE, make) == 5
    assert len(cache) == 3


def test_no_trace_of_dropped_values_grows() -> None:
    clock = Clock()
    cache: TokenCache[int] = TokenCache(clock, most=10)
    for number in range(1000):
        cache.get("token", number, MINUTE, lambda: 0)
        cache.get("token", "always new", timedelta(0), lambda: 0)
    assert len(cache._entries) == 10
    assert len(cache._expiries) < 50
    cache.remove("token")
    assert not cache._entries
    cache.clear()
    assert not cache._expiries


def seconds_of(count: int) -> float:
    """Time for as many names, each used twice; the least of five, without the noise of the machine."""
    taken = []
    for _ in range(5):
        cache: TokenCache[int] = TokenCache(most=1 << 20)
        began = time.process_time()
        for number in (*range(count), *range(count)):
            cache.get("token", (number,), MINUTE, lambda: 0)
        taken.append(time.process_time() - began)
        assert len(cache) == count
    return min(taken)


def test_the_time_for_many_values_is_linear() -> None:
    """4,000 files with a key encryption key each, and four times as many: 4 times as long, not 16 times."""
    assert seconds_of(16_000) / seconds_of(4_000) < 12
