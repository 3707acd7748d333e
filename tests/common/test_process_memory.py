"""The memory that a process may use: machine, control groups of both versions, resource limits."""

from __future__ import annotations

import io
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fastpq
from fastpq.common import process_memory
from fastpq.common.process_memory import LEAST_ALLOCATION, free_memory, group_limits, usable_memory

GIB = 1 << 30
System = Callable[[dict[str, str]], None]
MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], None]:
    """A function that writes the files of the kernel: ``own``, ``meminfo``, and those of the groups."""
    monkeypatch.setattr(process_memory, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(process_memory, "MACHINE", tmp_path / "meminfo")
    monkeypatch.setattr(process_memory, "UNIFIED", tmp_path / "unified")
    monkeypatch.setattr(process_memory, "MEMORY", tmp_path / "memory")
    monkeypatch.setattr(process_memory, "_last_look", (-1.0, 0))

    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)

    return write


@pytest.mark.parametrize(
    ("own", "files", "expected_limits"),
    [
        ("0::/\n", {"unified/memory.max": "max\n"}, []),
        ("0::/\n", {"unified/memory.max": "1000\n", "unified/memory.high": "900\n"}, [900, 1000]),
        ("0::/a/b\n", {"unified/a/b/memory.max": "max\n", "unified/a/memory.max": "5000\n", "unified/memory.max": "max"}, [5000]),
        ("4:memory:/a\n", {"memory/a/memory.limit_in_bytes": "700\n", "memory/memory.limit_in_bytes": "9223372036854771712\n"},
         [700, 9223372036854771712]),
        # a container: its own group is the root of the mount
        ("4:cpu,memory:/docker/1234\n1:cpu:/\n0::/\n", {"memory/memory.limit_in_bytes": "300\n"}, [300]),
        ("0::/../other\n", {"unified/memory.max": "800\n"}, [800]),
        ("3:cpuset:/a\n", {"memory/memory.limit_in_bytes": "300\n", "unified/memory.max": "1\n"}, []),
        ("0::/\n", {"unified/memory.max": "nonsense\n"}, []),
        ("", {}, []),
    ],
)
def test_control_groups(own: str, files: dict[str, str], expected_limits: list[int], system: System) -> None:
    system({"own": own, **files})
    assert sorted(group_limits()) == expected_limits


def test_a_system_without_control_groups(system: System) -> None:
    assert group_limits() == []
    assert free_memory() == process_memory.granted_memory()


def test_the_default_is_three_quarters_of_what_is_free(system: System) -> None:
    system({"meminfo": f"MemTotal: 9 kB\nMemAvailable: {4 << 20} kB\n"})
    assert fastpq.ReaderProperties().allocation_limit == 3 * GIB


@pytest.mark.parametrize(
    ("own", "files"),
    [
        ("0::/a\n", {
            "unified/a/memory.max": str(8 * GIB),
            "unified/a/memory.current": str(7 * GIB),
            "unified/a/memory.stat": f"anon 5\nactive_file {GIB}\ninactive_file {2 * GIB}\n",
        }),
        ("4:memory:/a\n", {
            "memory/a/memory.limit_in_bytes": str(8 * GIB),
            "memory/a/memory.usage_in_bytes": str(7 * GIB),
            "memory/a/memory.stat": f"inactive_file 3\ntotal_active_file {GIB}\ntotal_inactive_file {2 * GIB}\n",
        }),
    ],
)
def test_what_a_group_uses_is_not_free_but_for_its_page_cache(own: str, files: dict[str, str], system: System) -> None:
    system({"own": own, "meminfo": f"MemAvailable: {64 << 20} kB\n", **files})
    assert free_memory() == 4 * GIB


def test_small_reads_do_not_fail_where_nothing_is_free(system: System) -> None:
    system({"meminfo": "MemAvailable: 0 kB\n"})
    assert free_memory() == 0
    assert fastpq.ReaderProperties().allocation_limit == LEAST_ALLOCATION


def test_a_read_beside_other_work(system: System) -> None:
    """A file of few bytes that would fill the memory which other work needs."""
    system({"meminfo": f"MemAvailable: {1 << 20} kB\n"})
    file = io.BytesIO()
    fastpq.write_table({"a": np.zeros(120_000_000, np.int64)}, file)
    assert len(file.getvalue()) < 1 << 20
    with pytest.raises(fastpq.LimitError, match="max_allocation"):
        fastpq.read_table(file.getvalue())
    assert fastpq.ParquetFile(file.getvalue()).head(5)["a"].to_numpy().tolist() == [0] * 5


def test_the_machine_is_a_bound() -> None:
    assert 0 < usable_memory() <= MACHINE
    assert 0 < free_memory() <= usable_memory()
    assert fastpq.ReaderProperties(max_allocation=5).allocation_limit == 5


@pytest.mark.parametrize("which", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_resource_limits_are_followed_at_the_time_of_the_read(which: str) -> None:
    program = f"""
import resource, fastpq, fastpq.memory
from fastpq.common.process_memory import usable_memory
properties = fastpq.ReaderProperties()
resource.setrlimit(resource.{which}, ({2 * GIB}, resource.RLIM_INFINITY))
print(usable_memory(), properties.allocation_limit)
"""
    assert resource.getrlimit(getattr(resource, which))[0] == resource.RLIM_INFINITY
    usable, limit = map(int, subprocess.check_output([sys.executable, "-c", program], text=True).split())
    assert usable == min(2 * GIB, MACHINE)
    assert 0 < limit <= usable * 3 // 4
