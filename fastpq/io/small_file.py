"""read_small_file: the content of a local file whose size has a bound, such as a keyring or a secret."""

from __future__ import annotations

import errno
import os
import stat

# O_NONBLOCK opens a pipe at once, even if nobody writes to it.
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


def read_small_file(path: str, most: int) -> bytes:
    """Return a local file's first bytes. A pipe is refused: whoever opens it might wait for ever.

    Args:
        path: the file.
        most: largest number of bytes. A caller who passes one more than it allows can tell that the file is too large.

    Raises:
        OSError: the file cannot be read, or is a pipe.
    """
    descriptor = os.open(path, _FLAGS)
    with open(descriptor, "rb") as file:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            raise OSError(errno.ESPIPE, "A pipe cannot be read as a file", path)
        return file.read(most)
