"""Objects shared by threads. Under a free-threaded Python nothing here has a GIL; elsewhere threads are switched very often."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

import fastpq
from fastpq.arrays import memory
from fastpq.encryption import evp
from fastpq.encryption.backend import AesBackend
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.errors import FormatError
from fastpq.variant import Variant

T = TypeVar("T")
THREADS = 8
ROUNDS = 20
ROWS, GROUP = 12_000, 1_500
IMPORT_ALL = """
import importlib, pkgutil, sys
import fastpq
for module in pkgutil.walk_packages(fastpq.__path__, "fastpq.", onerror=lambda name: None):
    if not module.name.startswith("fastpq.spark") and not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError as error:        # of a package that is not installed
            assert not str(error.name).startswith("fastpq"), error
assert not sys._is_gil_enabled()
"""


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[int], T]) -> list[T]:
    """Results of a call in each of several threads, which begin together."""
    start = threading.Barrier(THREADS)

    def begin(number: int) -> T:
        start.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def columns(seed: int = 0) -> dict[str, Any]:
    numbers = np.arange(ROWS) + seed * ROWS
    return {
        "number": numbers,
        "text": [f"a text of its own, number {number}" for number in numbers],
        "word": [f"one of some words {number % 97}" for number in numbers],
        "maybe": [None if number % 3 == 0 else float(number) for number in numbers],
        "list": [[int(number), 1] for number in numbers],
    }


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of many row groups and pages."""
    target = tmp_path_factory.mktemp("shared") / "table.parquet"
    options: Any = {"row_group_size": GROUP, "data_page_size": 4096, "use_dictionary": ["word"], "compression": "snappy"}
    fastpq.write_table(columns(), target, **options)
    return target


@pytest.mark.free_threaded
def test_no_extension_turns_the_gil_on() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-W", "error::RuntimeWarning", "-c", IMPORT_ALL], check=True, env=environment)


def test_one_file_read_by_many_threads(path: Path) -> None:
    expected = {name: list(values) for name, values in columns().items()}
    with fastpq.ParquetFile(path, threads=2) as file:

        def read(_: int) -> None:
            for _turn in range(3):
                found = file.read()
                assert {name: found[name].to_pylist() for name in expected} == expected

        at_once(read)


def test_views_point_into_the_buffers_of_their_pages(tmp_path: Path) -> None:
    """The chunks of a column, decoded by many threads, number their pages in one list: here 30,000 pages of two texts."""
    texts = [f"a text of its own, number {number}" for number in range(60_000)]
    target = tmp_path / "pages.parquet"
    fastpq.write_table({"text": texts}, target, row_group_size=500, data_page_size=64, use_dictionary=False)
    for _ in range(5):
        assert fastpq.read_table(target, threads=THREADS, strings="views")["text"].to_pylist() == texts


def test_metadata_of_one_file(path: Path) -> None:
    for _ in range(ROUNDS):
        with fastpq.ParquetFile(path) as file:

            def facts(_: int, file: fastpq.ParquetFile = file) -> list[Any]:
                metadata = file.metadata
                chunks = [
                    (metadata.row_group(group).num_rows, metadata.row_group(group).column(column).num_values)
                    for group in range(metadata.num_row_groups)
                    for column in range(metadata.num_columns)
                ]
                return [*chunks, metadata.first_rows.tolist(), [column.name for column in metadata.schema.columns]]

            first, *others = at_once(facts)
            assert all(other == first for other in others)
            assert first[-2] == list(range(0, ROWS + 1, GROUP))


def test_a_writer_for_each_thread(tmp_path: Path) -> None:
    def write(number: int) -> None:
        with fastpq.ParquetWriter(tmp_path / f"{number}.parquet") as writer:
            writer.write_table(columns(number))

    at_once(write)
    for number in range(THREADS):
        table, expected = fastpq.read_table(tmp_path / f"{number}.parquet"), columns(number)
        assert table["text"].to_pylist() == expected["text"]
        assert table["number"].to_pylist() == expected["number"].tolist()


def test_one_dataset(tmp_path: Path) -> None:
    for number in range(4):
        fastpq.write_table(columns(number), tmp_path / f"{number}.parquet", row_group_size=GROUP)
    dataset = fastpq.ParquetDataset(tmp_path)

    def read(number: int) -> None:
        part = number % 4
        wanted = [("number", ">=", part * ROWS), ("number", "<", (part + 1) * ROWS)]
        assert dataset.read(columns=["text"], filters=wanted)["text"].to_pylist() == columns(part)["text"]
        assert sorted(dataset.read(columns=["number"])["number"].to_pylist()) == list(range(4 * ROWS))

    at_once(read)


def test_variants_of_different_metadata() -> None:
    """A decode keeps the metadata of the value before."""
    values = [{f"name {number} {field}": field for field in range(number + 3)} for number in range(THREADS)]
    stored = [Variant.from_python(value) for value in values]
    broken = Variant(stored[0].metadata[:-1], stored[0].value)

    def decode(number: int) -> None:
        for turn in range(2000):
            if turn % 100 == 0:
                with pytest.raises(FormatError):
                    broken.to_python()
            which = (number + turn // 3) % THREADS
            assert stored[which].to_python() == values[which]

    at_once(decode)


def test_no_nonce_of_a_key_is_used_twice() -> None:
    """The ciphers of all threads share a key; its operations are counted, and all modules are opened again."""
    key = evp.AesKey(os.urandom(16))
    plains = [os.urandom(50), os.urandom(evp.aes_backend().crossover or 20_000)]

    def seal(number: int) -> list[bytes]:
        cipher = GcmModuleCipher(key, b"file", 0, number)
        sealed = [cipher.seal(ModuleType.DATA_PAGE, page, plains[page % 2]) for page in range(500)]
        opener = GcmModuleCipher(key, b"file", 0, number)
        for page, module in enumerate(sealed):
            assert bytes(opener.open(ModuleType.DATA_PAGE, page, module)) == plains[page % 2]
        return [module[4:16] for module in sealed]

    nonces = [nonce for of_thread in at_once(seal) for nonce in of_thread]
    assert len(set(nonces)) == THREADS * 500
    assert key.operations == THREADS * 500


def test_the_aes_backend_is_chosen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = []

    def choose(*_: Any) -> AesBackend:
        chosen.append(threading.get_ident())
        time.sleep(0.05)
        return AesBackend("evp", None, None, "a test")

    monkeypatch.setattr("fastpq.encryption.backend.choose", choose)
    monkeypatch.setattr(evp, "_backend", None)
    backends = at_once(lambda _: evp.aes_backend())
    assert len(chosen) == 1
    assert all(backend is backends[0] for backend in backends)


@pytest.mark.pooled
def test_idle_memory_is_no_threads_and_within_its_limit() -> None:
    limit = 16 << 20
    before = memory.set_idle_limit(limit)
    try:

        def take(number: int) -> None:
            held = []
            for turn in range(300):
                array = memory.empty((256 << 10) * (1 + (number + turn) % 5))
                array[:] = number
                held.append(array)
                if len(held) > 3:
                    assert (held.pop(turn % 3) == number).all()
                assert 0 <= memory.idle_bytes() <= limit
                if turn % 50 == 0:
                    memory.release(limit // 4)

        at_once(take)
        memory.release()
        assert memory.idle_bytes() == 0
    finally:
        memory.set_idle_limit(before)
