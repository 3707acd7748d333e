"""The memory that a process may use: machine, control groups of both versions, resource limits."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import fastpq
from fastpq.common.process_memory import group_limits, usable_memory

GIB = 1 << 30
MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def limits(tmp_path: Path, own: str, files: dict[str, str]) -> list[int]:
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return sorted(group_limits(tmp_path / "own", tmp_path / "unified", tmp_path / "memory"))


@pytest.mark.parametrize(
    ("own", "files", "found"),
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
def test_control_groups(own: str, files: dict[str, str], found: list[int], tmp_path: Path) -> None:
    assert limits(tmp_path, own, files) == found


def test_a_system_without_control_groups(tmp_path: Path) -> None:
    assert group_limits(tmp_path / "none", tmp_path, tmp_path) == []


def test_the_machine_is_a_bound() -> None:
    assert 0 < usable_memory() <= MACHINE
    assert fastpq.ReaderProperties().allocation_limit == usable_memory() * 3 // 4
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
    assert limit == usable * 3 // 4
