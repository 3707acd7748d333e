"""Finds how much memory this process may use, and how much of it is free. The machine, its control groups and its resource limits
decide.
"""

from __future__ import annotations

import os
import re
import resource
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

# Where version 2 and version 1 control groups are mounted.
UNIFIED, MEMORY = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")
OWN_GROUPS = Path("/proc/self/cgroup")        # lists this process's groups (proc_pid_cgroup(5))
MACHINE = Path("/proc/meminfo")
# Share of the free memory that a read's values may take by default. The rest is for decoding.
SHARE_OF_VALUES = 3, 4
# A read may take this many bytes by default even if less memory is free, so that small reads never fail for want of memory.
LEAST_ALLOCATION = 192 << 20
# Free memory is asked again after this many seconds, so that many small reads do not ask each time.
SECONDS_BETWEEN_LOOKS = 0.1

_last_look = (-1.0, 0)      # when free memory was asked, and the answer in bytes


def default_allocation() -> int:
    """Return how many bytes a read's values may take by default: three quarters of the memory that is free for the process."""
    global _last_look
    now = time.monotonic()
    if now - _last_look[0] > SECONDS_BETWEEN_LOOKS:
        _last_look = now, free_memory()
    return max(least_allocation(), _share_of(min(_last_look[1], usable_memory())))


def least_allocation() -> int:
    """Return how many bytes a read's values may take by default, whatever is free. Small reads need not ask for more."""
    return min(LEAST_ALLOCATION, _share_of(usable_memory()))


def _share_of(size: int) -> int:
    share, whole = SHARE_OF_VALUES
    return size * share // whole


def free_memory() -> int:
    """Return how many bytes of memory this process may still take before the machine or a control group has no more.

    Pages of the page cache count as free, since the kernel drops them on demand.
    """
    available = re.search(r"^MemAvailable:\s+(\d+) kB$", _text(MACHINE), re.MULTILINE)
    groups = [group.free_bytes for group in memory_groups()]
    return max(0, min([granted_memory() if available is None else int(available[1]) << 10, *groups]))


def usable_memory() -> int:
    """Return how many bytes of memory this process may use, which is its smallest limit.

    The limits are the machine's memory, the control groups' limits (asked once), and the soft limits for address space and data
    (RLIMIT_AS, RLIMIT_DATA). Memory that is already in use counts as usable.
    """
    limits = [resource.getrlimit(which)[0] for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min([granted_memory(), *(limit for limit in limits if limit != resource.RLIM_INFINITY)])


@cache
def granted_memory() -> int:
    """Return how many bytes the machine and the control groups grant to this process. They are asked once."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *group_limits()])


class MemoryGroup(NamedTuple):
    """A control group with a memory limit.

    Attributes:
        folder: the group's files.
        limit: a limit of the group, in bytes.
        usage_file: name of the file that says how many bytes the group uses.
        cache_fields: fields of its ``memory.stat`` with bytes of the page cache.
    """

    folder: Path
    limit: int
    usage_file: str
    cache_fields: tuple[str, ...]

    @property
    def free_bytes(self) -> int:
        """Bytes below the limit, with those of the page cache. The whole limit if the usage is not known."""
        usage = _text(self.folder / self.usage_file).strip()
        if not usage.isdecimal():
            return self.limit
        statistics = dict(line.split() for line in _text(self.folder / "memory.stat").splitlines() if len(line.split()) == 2)
        return self.limit - int(usage) + sum(int(statistics.get(name, 0)) for name in self.cache_fields)


def group_limits() -> list[int]:
    """Return the memory limits, in bytes, that this process's control groups and the groups above them have."""
    return [group.limit for group in memory_groups()]


def memory_groups() -> list[MemoryGroup]:
    """Return this process's control groups, and the groups above them, that limit its memory. One entry for each limit."""
    groups: list[MemoryGroup] = []
    for line in _text(OWN_GROUPS).splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            groups += _groups_at(UNIFIED, path, ("memory.max", "memory.high"), "memory.current", "")
        elif "memory" in controllers.split(","):
            groups += _groups_at(MEMORY, path, ("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_")
    return groups


def _groups_at(mount: Path, path: str, limit_files: tuple[str, ...], usage_file: str, prefix: str) -> Iterator[MemoryGroup]:
    """Yield the groups at a path and above it. In a container, the mount shows the container's own group as its root.

    Args:
        mount: where the groups are mounted.
        path: the process's group.
        limit_files, usage_file: names of the files that hold limits and usage.
        prefix: what fields of memory.stat begin with if they count the groups below, too.
    """
    group = Path(os.path.normpath(f"/{path}"))
    for folder in (mount / str(each).lstrip("/") for each in (group, *group.parents)):
        for text in (_text(folder / name).strip() for name in limit_files):
            if text.isdecimal():        # "max" means no limit
                yield MemoryGroup(folder, int(text), usage_file, (f"{prefix}active_file", f"{prefix}inactive_file"))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""       # no such group, or no control groups at all
