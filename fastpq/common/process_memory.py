"""Memory that this process may use: of the machine, of its control groups, and by its resource limits."""

from __future__ import annotations

import os
import resource
from functools import cache
from pathlib import Path

# Where control groups of version 2, and of version 1, are mounted.
UNIFIED, MEMORY = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")
OWN_GROUPS = Path("/proc/self/cgroup")
# Most bytes of the values of a read by default, as a share of the usable memory; the rest is for decoding.
SHARE_OF_VALUES = 3, 4


def default_allocation() -> int:
    """Bytes that the values of a read may take by default: three quarters of the memory that the process may use."""
    share, whole = SHARE_OF_VALUES
    return usable_memory() * share // whole


def usable_memory() -> int:
    """Bytes that this process may use: the least of its bounds.

    The bounds are the memory of the machine, the limits of the process's control groups (asked once), and the soft limits of
    address space and data (RLIMIT_AS, RLIMIT_DATA). Memory in use counts as usable.
    """
    limits = [resource.getrlimit(which)[0] for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min([granted_memory(), *(limit for limit in limits if limit != resource.RLIM_INFINITY)])


@cache
def granted_memory() -> int:
    """Bytes that the machine and the control groups grant this process; asked once."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *group_limits()])


def group_limits(own_groups: Path = OWN_GROUPS, unified: Path = UNIFIED, memory: Path = MEMORY) -> list[int]:
    """Limits of memory, in bytes, of the control groups of this process and of the groups above.

    Args:
        own_groups: list of the process's groups (proc_pid_cgroup(5)).
        unified: mount of groups of version 2.
        memory: mount of the memory controller of version 1.
    """
    found: list[int] = []
    for line in _text(own_groups).splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            found += _limits_above(unified, path, ("memory.max", "memory.high"))
        elif "memory" in controllers.split(","):
            found += _limits_above(memory, path, ("memory.limit_in_bytes",))
    return found


def _limits_above(mount: Path, path: str, names: tuple[str, ...]) -> list[int]:
    """Limits of a group and of the groups above. In a container the mount shows the container's own group as its root."""
    group = Path(os.path.normpath(f"/{path}"))
    texts = [_text(mount / str(each).lstrip("/") / name) for each in (group, *group.parents) for name in names]
    return [int(text) for text in texts if text.strip().isdecimal()]      # "max" is no limit


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""       # no such group, or no control groups at all
