"""Runs mutations in child processes, replaces those that die or hang, and collects what came of each."""

from __future__ import annotations

import json
import math
import os
import signal
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.children import Child, ChildDiedError

START_TIME = 1200.0     # seconds until a child is ready: a last guard
FIRST_RANGE, LARGEST_RANGE = 20, 4096       # mutations that a child is given at once
SHORT_RANGE = 0.5       # seconds; a child that answers sooner is given more at once
REFUSALS = {"FormatError", "UnsupportedError", "LimitError", "SchemaError"}
ENCRYPTION_REFUSALS = {"CryptoError", "TagVerificationError", "KeyAccessError"}     # a mutation can name encryption
ACCEPTED = {"ok"} | REFUSALS | ENCRYPTION_REFUSALS


@dataclass(frozen=True)
class Settings:
    """Of one campaign.

    Attributes:
        count: mutations, at most.
        seed: with the mutation's number, decides what it is.
        first: number of the first mutation.
        seconds: no new mutations are begun after these; None for as long as there are any.
        corpus: a folder of files, or None for the usual ones of the target.
        workers: child processes.
        time_limit: seconds of processor time for one mutation, which does not hang on the machine's load.
        patience: seconds for one mutation, of a child that sleeps.
        memory: bytes by which a child may grow.
        target: what is done with the bytes, by its name in targets.py.
    """

    count: int
    seed: int = 1
    first: int = 0
    seconds: float | None = None
    corpus: Path | None = None
    workers: int = 2
    time_limit: float = 10.0
    patience: float = 300.0
    memory: int = 2 << 30
    target: str = "read"


@dataclass
class Findings:
    """Outcomes, and what is wrong: (number, outcome, detail) for everything that is neither a table nor a typed error.

    Attributes:
        outcomes: number of mutations by outcome.
        kinds: number of mutations by what was mutated.
        failures: what is wrong.
        done: number of mutations.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str, str]] = field(default_factory=list)

    @property
    def done(self) -> int:
        return self.outcomes.total()

    def add(self, answer: dict[str, Any]) -> None:
        self.outcomes.update(answer["outcomes"])
        self.kinds.update(answer["kinds"])
        self.failures += [(number, outcome, detail) for number, outcome, detail in answer["failures"]]
        if unknown := set(answer["outcomes"]) - ACCEPTED - {"unexpected"}:
            raise AssertionError(f"outcomes {unknown}")


class DeathError(Exception):
    """The child did not answer: args[0] says how it ended, args[1] what it said; ``number`` is the mutation's."""

    number: int = -1


class Worker:
    """One child process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._progress = tempfile.NamedTemporaryFile()      # noqa: SIM115 (closed with the child)
        self._progress.write((-1).to_bytes(8, "little", signed=True))
        self._progress.flush()
        request = {
            "seed": settings.seed,
            "corpus": settings.corpus and str(settings.corpus),
            "memory": settings.memory,
            "time_limit": settings.time_limit,
            "target": settings.target,
            "progress": self._progress.name,
        }
        self._child = Child("tests.corrupt.worker", json.dumps(request))
        self.samples: int = self._answer(START_TIME)["samples"]

    def do(self, numbers: range) -> dict[str, Any]:
        """Do some mutations.

        Raises:
            DeathError: the child crashed or hung; it is gone.
        """
        self._child.ask(f"{numbers.start} {numbers.stop}")
        return self._answer(self._settings.patience)

    def _answer(self, seconds: float) -> dict[str, Any]:
        try:
            return self._child.answer(seconds, self._number)
        except ChildDiedError as died:
            late = f"no answer within {self._settings.time_limit} s of processor time"
            death = DeathError(late if died.code == -signal.SIGPROF else died.how, died.said)
            death.number = self._number()
            self._progress.close()
            raise death from None

    def _number(self) -> int:
        """The mutation at work."""
        return int.from_bytes(os.pread(self._progress.fileno(), 8, 0), "little", signed=True)

    def close(self) -> None:
        self._child.close()
        self._progress.close()


class Numbers:
    """The numbers of the mutations still to do, shared by threads."""

    def __init__(self, settings: Settings) -> None:
        self._next, self._stop = settings.first, settings.first + settings.count
        self._seconds, self._deadline = settings.seconds, None if settings.seconds is None else math.inf
        self._lock = threading.Lock()
        self._again: list[range] = []

    def take(self, most: int) -> range:
        """The next numbers; none at the end, or after the deadline."""
        with self._lock:
            if self._again:
                return self._again.pop()
            if self._seconds is not None and self._deadline == math.inf:     # the first child is ready
                self._deadline = time.monotonic() + self._seconds
            if self._deadline is not None and time.monotonic() > self._deadline:
                return range(0)
            taken = range(self._next, min(self._stop, self._next + most))
            self._next = taken.stop
            return taken

    def put_back(self, numbers: range) -> None:
        if numbers:
            with self._lock:
                self._again.append(numbers)


def run(settings: Settings) -> Findings:
    """Run a whole campaign."""
    findings, numbers = Findings(), Numbers(settings)
    with ThreadPoolExecutor(settings.workers) as pool:
        for done in [pool.submit(serve, settings, numbers, findings) for _ in range(settings.workers)]:
            done.result()
    return findings


def serve(settings: Settings, numbers: Numbers, findings: Findings) -> None:
    """Keep one child busy until the numbers are used up."""
    worker, most = Worker(settings), FIRST_RANGE
    while taken := numbers.take(most):
        started = time.monotonic()
        try:
            answer = worker.do(taken)
        except DeathError as death:
            if death.number not in taken:
                raise
            numbers.put_back(range(taken.start, death.number))      # their outcomes died with the child
            numbers.put_back(range(death.number + 1, taken.stop))
            findings.outcomes["death"] += 1
            findings.failures.append((death.number, "death", "\n".join(death.args)))
            worker = Worker(settings)
            continue
        findings.add(answer)
        if time.monotonic() - started < SHORT_RANGE:
            most = min(2 * most, LARGEST_RANGE)
        elif time.monotonic() - started > 4 * SHORT_RANGE:
            most = max(most // 2, FIRST_RANGE)
    worker.close()
