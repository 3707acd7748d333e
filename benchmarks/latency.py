"""The HTTP server with latency in a process of its own: it takes no interpreter time from those whom it serves."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from tests.io.range_server import serving


class Traffic(NamedTuple):
    """Requests for data, and the bytes that were sent."""

    requests: int
    bytes_sent: int


class Served:
    """A folder at a URL.

    Attributes:
        url: of the folder.
    """

    def __init__(self, url: str, control: Connection) -> None:
        self.url = url
        self._control = control

    def traffic(self) -> Traffic:
        """What was asked for since the last time."""
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
