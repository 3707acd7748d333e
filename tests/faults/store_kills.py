"""``python -m tests.faults.store_kills``: kills a process at each of its requests to a store, before and after it has acted.

No row may be lost, doubled or half visible to fastpq's readers. ``clean`` then leaves nothing abandoned, and the work done again
gives its result. A whole run beside readers at every request shows the rows before, and from one request on the rows after.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import fsspec
import pytest

import fastpq.spark
from fastpq.datasets import records
from fastpq.spark.write.store_writer import require_store
from tests.faults.store_ways import FAULTY, WAYS, StoreWay, read
from tests.io.azure_server import azure_server
from tests.io.faulty_s3 import Proxy, faulty
from tests.io.google_server import google_server
from tests.io.object_stores import KINDS, Store, moto_server, unfinished

ROOT = Path(__file__).parents[2]
MOMENTS = ("before", "after")


@dataclass
class Trials:
    """Children of a server of store_ways, and what was found behind their ends.

    Attributes:
        folder: URL for the datasets.
        proxy: server of the children.
        children: the process that forks the children.
        failures: descriptions of what must not be.
    """

    folder: str
    proxy: Proxy
    children: subprocess.Popen[str]
    failures: list[str] = field(default_factory=list)
    # fsspec makes a filesystem for each thread
    _reader: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def of(self, name: str, every: int = 1, first: int = 0) -> int:
        """Kill at every so-many-th request of a way, from the first on; returns the number of trials."""
        way = self._new(name)
        count = self._watched(way)
        chosen = range(first, count, every)
        for number in chosen:
            for moment in MOMENTS:
                self._killed(self._new(name), number, moment)
        return len(chosen) * len(MOMENTS)

    def _new(self, name: str) -> StoreWay:
        way = {**WAYS, **FAULTY}[name](f"{self.folder}/{uuid.uuid4().hex}")
        way.set_up()
        return way

    def _watched(self, way: StoreWay) -> int:
        """Look at the dataset at every request of a whole run; returns the number of requests."""
        self.proxy.reset()
        seen: list[list[int]] = []

        def look(number: int, moment: str) -> bool:
            if not seen or self.proxy.requests[number].split()[0] not in ("GET", "HEAD"):   # readers change nothing
                seen.append(self._read(way))
            return False

        self.proxy.trouble = look
        self._expect(self._run(way) == 0, way, "the child failed")
        count = len(self.proxy.requests)
        self.proxy.reset()
        happened = [rows == way.after for rows in seen]
        torn = [rows for rows in seen if rows not in (way.before, way.after)]
        self._expect(not torn and happened == sorted(happened), way, f"readers saw {torn[:3]}, {happened}")
        self._expect(self._read(way) == way.after, way, "the run has another result")
        return count

    def _killed(self, way: StoreWay, number: int, moment: str) -> None:
        self.proxy.reset()
        started = threading.Event()
        child: list[int] = []

        def kill(found: int, when: str) -> bool:
            if (found, when) != (number, moment):
                return False
            started.wait()
            os.kill(child[0], signal.SIGKILL)
            return True

        def tell(pid: int) -> None:
            child.append(pid)
            started.set()

        self.proxy.trouble = kill
        ended = self._run(way, tell)
        what = f"killed {moment} {self.proxy.requests[-1] if self.proxy.requests else number}"
        came = len(self.proxy.requests) > number        # jobs ask how far tasks are: some runs need fewer requests
        self.proxy.reset()
        self._expect(ended == (-signal.SIGKILL if came else 0), way, f"{what}: ended with {ended}")
        found = self._read(way)
        self._expect(found in (way.before, way.after), way, f"{what}: rows {found[:9]}")
        if number % 2:      # every other time the work is done again beside what the dead process left
            self._check_clean(way, found, what)
        self._again(way, what)
        wanted = way.again if found == way.after else way.after
        self._expect(self._read(way) == wanted, way, f"{what}: done again, rows {self._read(way)[:9]}")
        self._check_clean(way, wanted, what)

    def _check_clean(self, way: StoreWay, wanted: list[int], what: str) -> None:
        fastpq.spark.clean(way.path)
        place = require_store(way.path)
        self._expect(self._read(way) == wanted, way, f"{what}: cleaned, rows {self._read(way)[:9]}")
        counted = records.snapshot(place.filesystem, place.path)
        left = [*unfinished(place), *counted.uploads, *counted.committed_jobs]
        left += [path for path in counted.files if path not in counted.visible(place.path) or path.startswith("_")]
        self._expect(not left, way, f"{what}: left behind {left}")

    def _again(self, way: StoreWay, what: str) -> None:
        try:
            way.repeat()
        except Exception as error:
            self.failures.append(f"{type(way).__name__} {way.path}: {what}: done again, {error!r}")

    def _read(self, way: StoreWay) -> list[int]:
        return self._reader.submit(read, way.path).result()

    def _run(self, way: StoreWay, tell: Callable[[int], object] = lambda pid: None) -> int:
        assert self.children.stdin is not None
        assert self.children.stdout is not None
        print(type(way).__name__, way.path, self.proxy.url, file=self.children.stdin, flush=True)
        pid = int(self.children.stdout.readline())
        tell(pid)
        return int(self.children.stdout.readline())

    def _expect(self, is_so: bool, way: StoreWay, problem: str) -> None:
        if not is_so:
            self.failures.append(f"{type(way).__name__} {way.path}: {problem}")


@contextmanager
def trials(store: Store) -> Iterator[Trials]:
    """Trials on a store. For its duration this process finds the server by its environment."""
    bucket = store.new_bucket()
    class_ = fsspec.get_filesystem_class(store.scheme)
    with pytest.MonkeyPatch.context() as environment, faulty(store.url) as proxy:
        for name, value in store.environment().items():
            environment.setenv(name, value)
        class_.clear_instance_cache()
        command = [sys.executable, "-m", "tests.faults.store_ways", store.kind, store.url, bucket]
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as children:
            yield Trials(f"{store.scheme}://{bucket}", proxy, children)
            assert children.stdin is not None
            children.stdin.close()      # the end of its work
    class_.clear_instance_cache()


SERVERS = {"s3": moto_server, "azure": azure_server, "google": google_server}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.store_kills", description=__doc__)
    parser.add_argument("--ways", nargs="*", default=[*WAYS], choices=[*WAYS, *FAULTY], metavar="WAY", help=", ".join(WAYS))
    parser.add_argument("--stores", nargs="*", default=[*KINDS], choices=KINDS, metavar="STORE", help=", ".join(KINDS))
    parser.add_argument("--every", type=int, default=1, help="kill at every so-many-th request (default: %(default)s)")
    options = parser.parse_args(arguments)
    failures: list[str] = []
    for kind in options.stores:
        with SERVERS[kind]() as url, trials(Store(kind, url)) as running:
            for name in options.ways:
                before = len(running.failures)
                count = running.of(name, options.every)
                print(f"{kind} {name}: {count} kills, {len(running.failures) - before} failures", flush=True)
            failures += running.failures
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
