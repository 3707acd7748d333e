"""Blocks of memory that outlive their arrays."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.arrays import memory
from fastpq.common.process_memory import usable_memory

MiB = 1 << 20

@pytest.fixture(autouse=True)
def shelves_of_their_own() -> Iterator[None]:
    gc.collect()
    memory.release()
    before = memory.set_idle_limit(64 * MiB)
    yield
    memory.set_idle_limit(before)
    memory.release()


@pytest.mark.parametrize("size", [0, 1, 1000, 256 << 10, (256 << 10) + 1, MiB, 3 * MiB + 5, 37 * MiB])
def test_an_array_of_the_size_asked_for(size: int) -> None:
    array = memory.empty(size)
    assert array.shape == (size,)
    assert array.dtype == np.uint8
    assert array.flags.writeable
    array[:] = 7
    assert int(array.sum(dtype=np.int64)) == 7 * size


@pytest.mark.pooled
def test_a_block_serves_the_next_array_of_its_size() -> None:
    first = memory.empty(5 * MiB)
    where = first.ctypes.data
    view = first[100:].view(np.uint8)
    del first
    assert memory.idle_bytes() == 0     # a view keeps the block
    del view
    assert 5 * MiB <= memory.idle_bytes() <= 6.25 * MiB
    second = memory.empty(5 * MiB - 1000)
    assert second.ctypes.data == where
    assert memory.idle_bytes() == 0
    third = memory.empty(5 * MiB)
    assert third.ctypes.data != where


@pytest.mark.pooled
def test_blocks_are_at_most_a_quarter_too_large() -> None:
    for size in (300_000, MiB - 1, MiB + 1, 9 * MiB, 17 * MiB + 3):
        block: Any = memory.empty(size).base
        while isinstance(block, np.ndarray):
            block = block.base
        assert size <= memoryview(block).nbytes <= 1.25 * size + 1


@pytest.mark.pooled
def test_the_limit_holds() -> None:
    assert memory.set_idle_limit(4 * MiB) == 64 * MiB
    held = [memory.empty(MiB) for _ in range(10)]
    held.clear()
    assert memory.idle_bytes() == 4 * MiB
    memory.set_idle_limit(2 * MiB)
    assert memory.idle_bytes() == 2 * MiB
    memory.release()
    assert memory.idle_bytes() == 0
    memory.set_idle_limit(0)
    memory.empty(8 * MiB)
    assert memory.idle_bytes() == 0


@pytest.mark.pooled
def test_the_limit_at_first_follows_the_usable_memory() -> None:
    memory.set_idle_limit(None)
    assert memory.set_idle_limit(None) is None
    memory.empty(usable_memory() // 8 + MiB)        # not touched
    assert memory.idle_bytes() == 0
    memory.empty(8 * MiB)
    assert memory.idle_bytes() >= 8 * MiB
    memory.set_idle_limit(5)
    assert memory.set_idle_limit(7) == 5
    with pytest.raises(ValueError, match="must not be negative: -1"):
        memory.set_idle_limit(-1)


SMALL = """
    import resource, sys
    import numpy as np
    import fastpq, fastpq.memory
    resource.setrlimit(resource.RLIMIT_AS, (512 << 20, resource.RLIM_INFINITY))
    for path in sys.argv[1:]:
        table = fastpq.read_table(path, threads=2)
        rows = np.arange(table.num_rows)
        assert all((table[f"c{n}"].to_numpy() == rows * n).all() for n in range(200))
        del table
        assert fastpq.memory.idle_bytes() <= 64 << 20
"""
GROUPED = """
    import sys
    from pathlib import Path
    from fastpq.common import process_memory
    assert "fastpq.arrays.memory" not in sys.modules        # memory.pyx asks once, at import
    tree = Path(sys.argv[1])
    process_memory.OWN_GROUPS, process_memory.UNIFIED, process_memory.MEMORY = tree / "own", tree / "unified", tree / "memory"
    import fastpq.memory
    from fastpq.arrays import memory
    held = [memory.empty(1 << 20) for _ in range(200)]
    held.clear()
    print(fastpq.memory.idle_bytes() >> 20)
"""
FAILING = """
    import resource
    import fastpq, fastpq.memory
    from fastpq.arrays import memory
    fastpq.memory.set_idle_limit(1 << 40)
    held = [memory.empty(1 << 20) for _ in range(256)]      # a class of its own, kept when idle
    for block in held:
        block[:] = 1
    del held, block
    assert fastpq.memory.idle_bytes() == 256 << 20
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (32 << 20), resource.RLIM_INFINITY))
    larger = memory.empty(200 << 20)
    larger[:] = 1
    assert fastpq.memory.idle_bytes() == 0
"""


def run(program: str, *arguments: str) -> str:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}       # each thread of BLAS takes address space
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.pooled
@pytest.mark.parametrize(
    ("own", "limits", "idle"),
    [
        pytest.param("0::/a/b\n", {"unified/a/b/memory.max": 256}, 32, id="v2"),
        pytest.param("0::/a/b\n", {"unified/a/b/memory.max": 1024, "unified/a/memory.max": 512}, 64, id="v2, the group above"),
        pytest.param("0::/a\n", {"unified/a/memory.max": 1024, "unified/a/memory.high": 128}, 16, id="v2, memory.high"),
        pytest.param("0::/docker/1\n", {"unified/memory.max": 512}, 64, id="v2, a container's root"),
        pytest.param("4:memory:/a/b\n", {"memory/a/b/memory.limit_in_bytes": 256}, 32, id="v1"),
        pytest.param("4:cpu,memory:/a/b\n0::/\n",
                     {"memory/a/b/memory.limit_in_bytes": 1024, "memory/a/memory.limit_in_bytes": 512}, 64,
                     id="v1, the group above"),
        pytest.param("0::/a\n", {"unified/b/memory.max": 256}, 200, id="no limit of its own"),
    ],
)
def test_the_limit_at_first_is_an_eighth_of_the_control_groups(
    own: str, limits: dict[str, int], idle: int, tmp_path: Path
) -> None:
    (tmp_path / "own").write_text(own)
    for name, limit in limits.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{limit * MiB}\n")
    assert int(run(GROUPED, str(tmp_path))) == idle


@pytest.mark.pooled
def test_files_of_many_columns_in_little_memory(tmp_path: Path) -> None:
    """Tables of other sizes need blocks of other sizes: the idle ones make room."""
    paths = [str(tmp_path / f"{rows}.parquet") for rows in (60_000, 80_000, 105_000)]
    for path, rows in zip(paths, (60_000, 80_000, 105_000), strict=True):
        fastpq.write_table({f"c{n}": np.arange(rows) * n for n in range(200)}, path)
    run(SMALL, *paths)


@pytest.mark.pooled
def test_idle_blocks_are_freed_when_an_allocation_fails() -> None:
    run(FAILING)


@pytest.mark.pooled
def test_no_memory() -> None:
    with pytest.raises(MemoryError):
        memory.empty(1 << 60)


def test_threads_never_share_a_block() -> None:
    def work(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        for _ in range(200):
            size = int(rng.integers(256 << 10, 2 * MiB))
            array = memory.empty(size)
            array[:] = seed
            if not (array == seed).all():
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_its_own_pages() -> None:
    memory.empty(4 * MiB)
    child = os.fork()
    if child == 0:
        array = memory.empty(4 * MiB)
        array[:] = 1
        os._exit(0)
    array = memory.empty(4 * MiB)
    array[:] = 2
    assert os.waitpid(child, 0)[1] == 0
    assert bool((array == 2).all())


def test_zeros_are_zeros_in_idle_memory_too() -> None:
    for size in (0, 9, 256 << 10, (4 * MiB) + 3):
        array = memory.empty(size)
        array[:] = 7
        del array
        found = memory.zeros(size)
        assert (len(found), bool(found.any()), found.flags.writeable) == (size, False, True)
