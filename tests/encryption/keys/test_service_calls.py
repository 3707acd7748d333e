"""Key services that hang, fail, are slow or answer nonsense: time limits, attempts, and many calls at the same time."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.encryption import CryptoFactory, EncryptionConfiguration, KmsConnectionConfig
from fastpq.encryption.keys.kms import answer_text
from fastpq.encryption.service_calls import DOWN_SECONDS, MOST_FAILURES, CallTime, ServiceCalls, call_all
from tests.encryption.keys.peers import InMemoryKms

CONNECTION = KmsConnectionConfig()
UNIFORM = EncryptionConfiguration("kf", uniform_encryption=True)
TABLE = {"a": np.arange(10)}
MANY = [f"k{number}" for number in range(500)]
MANY_AT_ONCE = 8
MOST_SECONDS = 30   # a call that hangs would never end


class Scripted(InMemoryKms):
    """A key service that runs a step of a script before each call. The last step is repeated."""

    def __init__(self, *steps: Callable[[], Any] | None) -> None:
        super().__init__()
        self.steps: Iterator[Any] = iter(steps)
        self.step: Any = None
        self.calls = 0

    def run(self) -> None:
        self.calls += 1
        self.step = next(self.steps, self.step)
        if self.step is not None:
            self.step()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        self.run()
        return super().wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        self.run()
        return super().unwrap_key(wrapped_key, master_key_identifier)


class Distant(InMemoryKms):
    """A key service that takes 20 ms for a call, with the keys of MANY.

    Attributes:
        most_at_once: the largest number of simultaneous calls. A test of times would fail on a machine with much to do.
    """

    def __init__(self) -> None:
        super().__init__()
        self.wrapping = self.unwrapping = {"kf": b"0123456789012345"} | {name: name.encode().rjust(16, b"k") for name in MANY}
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()

    @contextmanager
    def _call(self) -> Iterator[None]:
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        time.sleep(0.02)
        yield
        with self._lock:
            self._at_once -= 1

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        with self._call():
            return super().wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        with self._call():
            return super().unwrap_key(wrapped_key, master_key_identifier)


def fail(error: Exception) -> Callable[[], Any]:
    def step() -> None:
        raise error

    return step


@pytest.fixture(scope="module")
def data() -> bytes:
    out = io.BytesIO()
    keys = CryptoFactory(lambda connection: InMemoryKms()).file_encryption_properties(CONNECTION, UNIFORM)
    fastpq.write_table(TABLE, out, encryption_properties=keys)
    return out.getvalue()


def read(data: bytes, client: Any, **limits: Any) -> fastpq.Table:
    keys = CryptoFactory(lambda connection: client, **limits).file_decryption_properties(CONNECTION)
    return fastpq.read_table(data, decryption_properties=keys)


def test_a_service_that_hangs(data: bytes) -> None:
    released = threading.Event()
    start = time.monotonic()
    with pytest.raises(fastpq.KeyAccessError, match="did not answer in time") as caught:
        read(data, Scripted(released.wait), timeout=0.3)
    words = "the key service was asked to unwrap a key with the master key 'kf', and did not answer in time (0.3 seconds"
    assert f"{words} for all keys of a file)" in str(caught.value)
    assert time.monotonic() - start < MOST_SECONDS
    assert caught.value.is_unavailable
    assert not caught.value.is_denied
    released.set()
    factory = CryptoFactory(lambda connection: Scripted(released.wait), timeout=5)
    assert factory.file_encryption_properties(CONNECTION, UNIFORM).footer_key_metadata


def test_a_client_that_hangs_when_it_is_made(data: bytes) -> None:
    released = threading.Event()

    def make(connection: KmsConnectionConfig) -> Any:
        released.wait()

    keys = CryptoFactory(make, timeout=0.2).file_decryption_properties(CONNECTION)
    start = time.monotonic()
    with pytest.raises(fastpq.KeyAccessError, match="did not answer in time"):
        fastpq.read_table(data, decryption_properties=keys)
    assert time.monotonic() - start < MOST_SECONDS
    released.set()


def test_a_service_that_hangs_is_not_awaited_twice(data: bytes) -> None:
    released = threading.Event()
    client = Scripted(released.wait)
    keys = CryptoFactory(lambda connection: client, timeout=0.3).file_decryption_properties(CONNECTION)
    for number in range(20):
        words = "did not answer in time" if number == 0 else "not asked again for"
        with pytest.raises(fastpq.KeyAccessError, match=words) as caught:
            fastpq.read_table(data, decryption_properties=keys)
        assert caught.value.is_unavailable
    assert client.calls == 1
    released.set()


def test_a_call_without_a_file_has_a_time_of_its_own() -> None:
    with pytest.raises(fastpq.KeyAccessError, match=r"service did not answer in time \(0.1 seconds\)"):
        ServiceCalls(0.1, 1).call("kms", lambda: time.sleep(1))
    calls = ServiceCalls(2)
    start = time.monotonic()
    for _ in range(3):
        calls.call("kms", lambda: time.sleep(0.8))
    assert time.monotonic() - start > 2


def many_columns() -> tuple[dict[str, Any], Any]:
    """50 columns, each with a data key of its own that the service wraps, and their keys."""
    names = [f"c{number}" for number in range(50)]
    configuration = EncryptionConfiguration("kf", {"kf": names}, double_wrapping=False)
    keys = CryptoFactory(lambda connection: InMemoryKms()).file_encryption_properties(CONNECTION, configuration)
    return {name: np.arange(3) for name in names}, keys


def test_all_keys_of_a_file_share_the_time(tmp_path: Path) -> None:
    """Each call answers within the time, but those for the footer and for 50 columns, 32 at once, do not do so together."""
    columns, keys = many_columns()
    fastpq.write_table(columns, tmp_path / "slow.parquet", encryption_properties=keys)
    client = Scripted(lambda: time.sleep(0.8))
    keys = CryptoFactory(lambda connection: client, timeout=2).file_decryption_properties(CONNECTION)
    with pytest.raises(fastpq.KeyAccessError, match=r"in time \(2 seconds for all keys of a file\)") as caught:
        fastpq.read_table(tmp_path / "slow.parquet", decryption_properties=keys)
    assert caught.value.is_unavailable


@pytest.mark.parametrize("is_folder", [False, True])
@pytest.mark.parametrize("answers", [1, 2, 9])
def test_a_read_ends_in_time_if_the_service_begins_to_hang(tmp_path: Path, is_folder: bool, answers: int) -> None:
    for number in range(1 + 2 * is_folder):
        columns, keys = many_columns()
        fastpq.write_table(columns, tmp_path / f"{number}.parquet", encryption_properties=keys)
    released = threading.Event()
    client = Scripted(*[None] * answers, released.wait)
    keys = CryptoFactory(lambda connection: client, timeout=1).file_decryption_properties(CONNECTION)
    start = time.monotonic()
    with pytest.raises(fastpq.KeyAccessError, match=r"in time \(1 seconds for all keys|not asked again") as caught:
        fastpq.read_table(tmp_path if is_folder else tmp_path / "0.parquet", decryption_properties=keys)
    assert caught.value.is_unavailable
    assert time.monotonic() - start < MOST_SECONDS
    released.set()


def test_the_time_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    file_time = CallTime(10)
    with file_time.spent() as left:
        assert left == 10
        now[0] += 3
        with file_time.spent() as left:     # at the same time
            assert left == 7
            now[0] += 1
    now[0] += DOWN_SECONDS - 1              # does not count
    with file_time.spent() as left:
        assert left == 6
        now[0] += 8
    with file_time.spent() as left:
        assert left == -2
    with pytest.raises(fastpq.KeyAccessError, match="did not answer in time") as caught:
        ServiceCalls(10).call("kms", pytest.fail, call_time=file_time)
    assert caught.value.is_unavailable
    now[0] += DOWN_SECONDS
    with file_time.spent() as left:         # the caller asks anew
        assert left == 10


def test_refused_calls_are_part_of_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that asks every second gets an answer as soon as one that waits."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    file_time, calls = CallTime(10), ServiceCalls(10)
    with file_time.spent():
        now[0] += 10
    for _ in range(int(DOWN_SECONDS)):
        with pytest.raises(fastpq.KeyAccessError, match="did not answer in time"):
            calls.call("kms", pytest.fail, call_time=file_time)
        now[0] += 1
    assert calls.call("kms", lambda: 7, call_time=file_time) == 7


def test_a_call_that_got_little_time_does_not_mean_that_the_service_is_down() -> None:
    """A service may be too slow for all keys of one file. Others still get theirs."""
    released, calls = threading.Event(), ServiceCalls(60)
    for _ in range(MOST_FAILURES):
        with pytest.raises(fastpq.KeyAccessError, match="in time") as caught:
            calls.call("kms", released.wait, call_time=CallTime(0.01))
        assert caught.value.is_unavailable
    assert calls.call("kms", lambda: 7) == 7
    released.set()


def test_further_attempts(data: bytes) -> None:
    client = Scripted(fail(ConnectionResetError()), fail(TimeoutError()), None)
    assert read(data, client).num_rows == 10
    assert client.calls == 3
    client = Scripted(fail(ConnectionRefusedError()))
    with pytest.raises(fastpq.KeyAccessError, match=r"ConnectionRefusedError \(3 attempts\)"):
        read(data, client)
    assert client.calls == 3
    client = Scripted(fail(ConnectionRefusedError()), None)
    with pytest.raises(fastpq.KeyAccessError, match="ConnectionRefusedError"):
        read(data, client, attempts=1)


@pytest.mark.parametrize("error", [PermissionError(), KeyError(), RuntimeError(), fastpq.KeyAccessError.denied("no")])
def test_answers_are_final(data: bytes, error: Exception) -> None:
    client = Scripted(fail(error))
    with pytest.raises(fastpq.KeyAccessError):
        read(data, client)
    assert client.calls == 1


def test_the_attempts_share_the_time(data: bytes) -> None:
    client = Scripted(fail(ConnectionRefusedError()))
    start = time.monotonic()
    with pytest.raises(fastpq.KeyAccessError):
        read(data, client, attempts=1000, timeout=0.8)
    assert 0.3 < time.monotonic() - start < MOST_SECONDS
    assert client.calls < 8


def test_a_service_that_is_down_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("fastpq.encryption.service_calls.time.monotonic", lambda: now[0])
    calls, made = ServiceCalls(None, 1), []

    def down() -> None:
        made.append(1)
        error = fastpq.KeyAccessError("no answer")
        error.is_unavailable = True
        raise error

    for _ in range(MOST_FAILURES + 4):
        with pytest.raises(fastpq.KeyAccessError):
            calls.call("service", down)
    assert len(made) == MOST_FAILURES
    assert calls.call("another", lambda: 7) == 7
    now[0] += DOWN_SECONDS
    with pytest.raises(fastpq.KeyAccessError, match="no answer"):      # one call finds out whether it is up again
        calls.call("service", down)
    with pytest.raises(fastpq.KeyAccessError, match="not asked again"):
        calls.call("service", lambda: 7)
    now[0] += DOWN_SECONDS
    assert calls.call("service", lambda: 7) == calls.call("service", lambda: 7) == 7


def test_no_limit_calls_in_the_own_thread(data: bytes) -> None:
    threads: list[Any] = []
    read(data, Scripted(lambda: threads.append(threading.current_thread())), timeout=None)
    assert set(threads) == {threading.main_thread()}


@pytest.mark.parametrize(
    ("limits", "error"),
    [({"timeout": 0}, ValueError), ({"timeout": -1}, ValueError), ({"timeout": float("nan")}, ValueError),
     ({"timeout": float("inf")}, ValueError), ({"timeout": "10"}, TypeError), ({"timeout": True}, TypeError),
     ({"attempts": 0}, ValueError), ({"attempts": 1.5}, TypeError), ({"attempts": None}, TypeError)],
)
def test_limits_that_make_no_sense(limits: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(limits))):
        CryptoFactory(lambda connection: InMemoryKms(), **limits)


def test_five_hundred_master_keys_are_asked_for_at_once() -> None:
    columns = {f"column {name}": np.arange(3) for name in MANY}
    configuration = EncryptionConfiguration("kf", column_keys={name: [f"column {name}"] for name in MANY})
    client = Distant()
    keys = CryptoFactory(lambda connection: client).file_encryption_properties(CONNECTION, configuration)
    assert client.most_at_once >= MANY_AT_ONCE
    out = io.BytesIO()
    fastpq.write_table(columns, out, encryption_properties=keys)
    options: tuple[Any, ...] = ("raise", "null")
    for option in options:
        client = Distant()
        fresh = CryptoFactory(lambda connection, client=client: client).file_decryption_properties(CONNECTION)     # type: ignore[misc]
        fastpq.ParquetFile(out.getvalue(), decryption_properties=fresh).close()      # the footer's key is in the cache
        table = fastpq.read_table(out.getvalue(), decryption_properties=fresh, on_missing_key=option)
        assert client.most_at_once >= MANY_AT_ONCE
        assert table["column k7"].to_pylist() == [0, 1, 2]


def test_statistics_and_rotations_of_many_keys_ask_for_them_at_once(tmp_path: Path) -> None:
    names = MANY[:200]
    path = tmp_path / "many.parquet"
    configuration = EncryptionConfiguration(
        "kf", column_keys={name: [f"column {name}"] for name in names}, internal_key_material=False
    )
    keys = CryptoFactory(lambda connection: Distant()).file_encryption_properties(CONNECTION, configuration, path)
    fastpq.write_table({f"column {name}": np.arange(3) for name in names}, path, encryption_properties=keys)
    clients: list[Distant] = []

    def make_client(connection: KmsConnectionConfig) -> Distant:
        clients.append(Distant())
        return clients[-1]

    reading = CryptoFactory(make_client).file_decryption_properties(CONNECTION, None, path)
    with fastpq.ParquetFile(path, decryption_properties=reading) as file:
        group = file.metadata.row_group(0)
        assert group.column(0).statistics is not None
        assert group.column(1).statistics is not None
        assert len(clients[0].unwrapped) == 3       # a look at two columns asks for no others
        statistics = [group.column(number).statistics for number in range(200)]
    assert clients[0].most_at_once >= MANY_AT_ONCE
    assert all(each is not None and each.max == 2 for each in statistics)
    assert len(clients[0].unwrapped) == 201
    CryptoFactory(make_client).rotate_master_keys(CONNECTION, path)
    assert clients[-1].most_at_once >= MANY_AT_ONCE
    opened = CryptoFactory(make_client).file_decryption_properties(CONNECTION, None, path)
    assert fastpq.read_table(path, ["column k7"], decryption_properties=opened)["column k7"].to_pylist() == [0, 1, 2]


class Batching(InMemoryKms):
    """A client that unwraps many keys by one call, and fails as a test asks.

    Args:
        answer: makes what a batch returns of the right keys, or raises.
    """

    def __init__(self, answer: Callable[[list[bytes]], Any]) -> None:
        super().__init__()
        self.batches, self._answer = 0, answer

    def unwrap_keys(self, wrapped_keys: Any, master_key_identifier: str) -> Any:
        self.batches += 1
        keys = [super(Batching, self).unwrap_key(one, master_key_identifier) for one in wrapped_keys]
        self.unwrapped.clear()
        return self._answer(keys)


def _columns_of_one_key() -> bytes:
    configuration = EncryptionConfiguration("kf", {"kc1": ["a", "b", "c"]}, double_wrapping=False)
    keys = CryptoFactory(lambda connection: InMemoryKms()).file_encryption_properties(CONNECTION, configuration)
    out = io.BytesIO()
    fastpq.write_table(dict.fromkeys("abc", np.arange(3)), out, encryption_properties=keys)
    return out.getvalue()


def test_a_batch_takes_one_call() -> None:
    client = Batching(lambda keys: keys)
    read(_columns_of_one_key(), client)
    assert (client.batches, client.unwrapped) == (1, [])


@pytest.mark.parametrize(
    "answer",
    [lambda keys: keys[:2], lambda keys: None, lambda keys: [*keys[:2], b"short"], lambda keys: fail(PermissionError())()],
)
def test_a_batch_that_fails_is_asked_for_one_by_one(answer: Callable[[list[bytes]], Any]) -> None:
    client = Batching(answer)
    assert read(_columns_of_one_key(), client)["c"].to_pylist() == [0, 1, 2]
    assert (client.batches, client.unwrapped) == (1, ["kc1"] * 3)


def test_a_batch_in_the_wrong_order_opens_nothing() -> None:
    with pytest.raises(fastpq.TagVerificationError):
        read(_columns_of_one_key(), Batching(lambda keys: keys[::-1]))


def test_a_batch_without_an_answer_is_not_asked_for_one_by_one() -> None:
    client = Batching(lambda keys: fail(ConnectionError())())
    with pytest.raises(fastpq.KeyAccessError, match="ConnectionError"):
        read(_columns_of_one_key(), client, attempts=1)
    assert client.unwrapped == []


def test_one_key_of_many_fails() -> None:
    def slow(number: int) -> int:
        time.sleep(0.01)
        if number == 7:
            raise PermissionError
        return number

    futures = call_all(slow, [*range(40), 3])
    assert list(futures) == list(range(40))
    assert isinstance(futures.pop(7).exception(), PermissionError)
    assert [future.result() for future in futures.values()] == [number for number in range(40) if number != 7]


INTERRUPTED = """
import sys, time
import fastpq
from fastpq.encryption import CryptoFactory, EncryptionConfiguration, KmsConnectionConfig
from tests.encryption.keys.peers import InMemoryKms

class Hanging(InMemoryKms):
    def wrap_key(self, key_bytes, master_key_identifier):
        if master_key_identifier == "kc1":
            print("hanging", flush=True)
            time.sleep(60)
        return super().wrap_key(key_bytes, master_key_identifier)

configuration = EncryptionConfiguration("kf", column_keys={"kc1": ["a"], "kc2": ["b"]})
try:
    CryptoFactory(lambda connection: Hanging(), timeout=50).file_encryption_properties(KmsConnectionConfig(), configuration)
except KeyboardInterrupt:
    sys.exit(7)
"""


def test_an_interruption_does_not_wait() -> None:
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], cwd=root, stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "hanging\n"
        time.sleep(1)       # Python loses a signal that comes in the moment before it waits for a lock
        start = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.wait(20) == 7
        assert time.monotonic() - start < 10


def test_words_of_a_service() -> None:
    secret = b"0123456789abcdef"
    assert answer_text("key is disabled", secret) == ": key is disabled"
    assert answer_text("two\nlines\x1b[0m", secret) == ": two lines [0m"
    assert len(answer_text("x" * 5000, secret)) < 310
    for spelling in (secret.hex(), secret.hex().upper(), "MDEyMzQ1Njc4OWFiY2RlZg==", secret.decode()):
        assert not answer_text(f"you sent {spelling}", secret)
        assert not answer_text("x" * 400 + spelling, secret)
        assert not answer_text(f"you sent {spelling}", "MDEyMzQ1Njc4OWFiY2RlZg==")
    assert not answer_text("", secret)
