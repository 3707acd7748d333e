"""threads_of_fastpq: the threads that the package has started and that should have ended."""

from __future__ import annotations

import threading

WAITING = ("fastpq-async", "fastpq-key")      # for the next read in a coroutine, and for a key service that hangs


def threads_of_fastpq() -> set[threading.Thread]:
    """Return the running threads of fastpq, but those that only wait."""
    names = {thread: thread.name for thread in threading.enumerate()}
    return {thread for thread, name in names.items() if name.startswith("fastpq") and not name.startswith(WAITING)}
