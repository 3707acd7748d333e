"""Memory of a write: stored pages wait in bounded memory for the pages before them, and errors end the threads."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import fastpq
import fastpq.memory
from tests.threads import threads_of_fastpq

COLUMN_BYTES = 4 << 20
COLUMNS = 24

# Prints the growth of resident memory, at its highest, while a slow file is written: the threads are faster than the file.
PEAK = f"""
import io, time, sys
from pathlib import Path
import numpy as np
import fastpq

class SlowFile(io.RawIOBase):
    def writable(self):
        return True
    def write(self, data):
        time.sleep(len(data) / 200e6)
        return len(data)

def resident(name):
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.partition(name + ":")[2].split()[0])

random = np.random.default_rng(1)
columns = {{f"column {{i}}": random.integers(0, 1 << 62, {COLUMN_BYTES} // 8) for i in range({COLUMNS})}}
if sys.argv[2] == "lists":
    import pyarrow
    starts = pyarrow.array(np.arange(0, {COLUMN_BYTES} // 8 + 1, 4, dtype=np.int32))
    columns = {{name: pyarrow.ListArray.from_arrays(starts, values) for name, values in columns.items()}}
table = fastpq.Table(columns)
options = {{"use_dictionary": False, "threads": int(sys.argv[1])}}
fastpq.write_table(table.slice(0, 20_000), SlowFile(), **options)
before = resident("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
fastpq.write_table(table, SlowFile(), **options)
print(resident("VmHWM") - before)
"""


class CountingFile(io.RawIOBase):
    """A file that keeps nothing, and may raise an error after COLUMN_BYTES."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.size = 0
        self.error = error

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> Any:
        if self.size > COLUMN_BYTES and self.error is not None:
            raise self.error
        self.size += len(data)
        return len(data)


def random_table(columns: int, size: int) -> fastpq.Table:
    random = np.random.default_rng(1)
    return fastpq.Table({f"column {i}": random.integers(0, 1 << 62, size // 8) for i in range(columns)})


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = threads_of_fastpq()
    yield
    assert not threads_of_fastpq() - before


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are Linux's")
@pytest.mark.parametrize(("threads", "kind", "most"), [
    (1, "numbers", 1 << 20), (2, "numbers", 26 << 20), (1, "lists", 16 << 20), (2, "lists", 48 << 20)])
def test_pages_wait_in_bounded_memory(threads: int, kind: str, most: int) -> None:
    done = subprocess.run([sys.executable, "-c", PEAK, str(threads), kind], capture_output=True, text=True, check=True)
    assert int(done.stdout) < most


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_chunks_are_in_their_places(threads: int, compression: str) -> None:
    table = random_table(8, 1 << 20)
    file = io.BytesIO()
    fastpq.write_table(table, file, row_group_size=50_000, compression=compression, use_dictionary=False, threads=threads)
    read = pq.read_table(io.BytesIO(file.getvalue()))
    assert all(np.array_equal(read[name].to_numpy(), table[name].to_numpy()) for name in table.names)


@pytest.mark.parametrize("threads", [1, 3])
def test_written_buffers_may_be_kept(threads: int) -> None:
    """A file may keep buffers that it was given: their memory serves no other pages."""

    class KeepingFile(CountingFile):
        def __init__(self) -> None:
            super().__init__()
            self.kept: list[Any] = []

        def write(self, data: Any) -> Any:
            self.kept.append(data)
            return super().write(data)

    table, file, expected = random_table(4, COLUMN_BYTES), KeepingFile(), io.BytesIO()
    fastpq.write_table(table, file, use_dictionary=False, threads=threads)
    fastpq.write_table(table, expected, use_dictionary=False, threads=1)
    assert b"".join(file.kept) == expected.getvalue()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("error", [OSError("no space"), KeyboardInterrupt("no space")])
def test_an_error_of_the_file_ends_the_threads(threads: int, error: BaseException) -> None:
    with pytest.raises(type(error), match="no space"):
        fastpq.write_table(random_table(COLUMNS, COLUMN_BYTES), CountingFile(error), use_dictionary=False, threads=threads)
    assert not threads_of_fastpq()        # while the error is still at hand


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_of_a_column_names_the_column(threads: int) -> None:
    table = random_table(COLUMNS, COLUMN_BYTES)
    with pytest.raises(fastpq.LimitError, match="pages") as raised:
        fastpq.write_table(table, CountingFile(), use_dictionary=False, data_page_rows=10, threads=threads)
    assert raised.value.context["column"] == "column 0"


@pytest.mark.parametrize("threads", [1, 2])
def test_errors_of_the_file_name_no_column(threads: int) -> None:
    """Pages reach the file while their chunk is encoded."""

    class WrongCount(CountingFile):
        def write(self, data: Any) -> Any:
            return super().write(data) if len(data) < 1 << 16 else "many"

    with pytest.raises(fastpq.SchemaError, match="'many' from write") as raised:
        fastpq.write_table(random_table(2, COLUMN_BYTES), WrongCount(), use_dictionary=False, threads=threads)
    assert set(raised.value.context) == {"path"}


def test_a_file_that_keeps_its_error_is_collected() -> None:
    """The error's traceback refers to the chunks, and the function that takes their pages belongs to the file."""

    class KeepingError(CountingFile):
        def __init__(self, most: int) -> None:
            super().__init__()
            self.most = most

        def write(self, data: Any) -> Any:
            self.most -= 1
            if self.most < 0:
                try:
                    raise OSError("no space")
                except OSError as error:
                    self.error = error
                    raise
            return super().write(data)

    for most in range(8):
        file = KeepingError(most)
        reference = weakref.ref(file)
        with pytest.raises(OSError, match="no space"):
            fastpq.write_table(random_table(6, 1 << 18), file, use_dictionary=False, data_page_size=10_000, threads=1)
        del file
        gc.collect()
        assert reference() is None, most


def test_a_writer_leaves_little_idle_memory_behind() -> None:
    """The rows that waited for a row group took much more."""
    fastpq.memory.release()
    batch = {f"column {number}": np.arange(50_000) for number in range(24)}
    with fastpq.ParquetWriter(CountingFile(), row_group_size=1_000_000) as writer:
        for _ in range(14):
            writer.write_batch(batch)
    assert fastpq.memory.idle_bytes() <= 64 << 20
    before = fastpq.memory.idle_bytes()
    fastpq.write_table(batch, CountingFile())
    assert fastpq.memory.idle_bytes() <= max(before, 64 << 20)
