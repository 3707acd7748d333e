"""An HTTP server with latency, in its own process: serving takes no interpreter time from the measured reader."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from tests.io.range_server import serving


class Traffic(NamedTuple):
    """Number of data requests, and number of bytes sent."""

    requests: int
    bytes_sent: int


class Served:
    """A folder served at a URL.

    Attributes:
        url: URL of the folder.
    """

    def __init__(self, url: str, control: Connection) -> None:
        self.url = url
        self._control = control

    def traffic(self) -> Traffic:
        """Traffic since the previous call."""
        self._control.send(True)
        return Traffic(*self._control.recv())


@contextmanager
def served(folder: Path, latency: float) -> Iterator[Served]:
    """Serve a folder on a free local port; each answer waits for latency seconds."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(folder, latency, theirs), daemon=True)
    process.start()
    try:
        yield Served(ours.recv(), ours)
    finally:
        ours.send(False)
        process.join()


def _serve(folder: Path, latency: float, control: Connection) -> None:
    with serving(folder, latency) as server:
        control.send(server.url)
        while control.recv():
            control.send((server.requests, server.bytes_sent))
            server.reset()
