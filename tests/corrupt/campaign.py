"""Runs mutations in child processes, replaces those that die or hang, and collects what came of each."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

START_TIME = 1200.0     # seconds until a child is ready: a last guard
REFUSALS = {"FormatError", "UnsupportedError", "LimitError", "SchemaError"}
ENCRYPTION_REFUSALS = {"CryptoError", "TagVerificationError", "KeyAccessError"}     # a mutation can name encryption
ACCEPTED = {"ok"} | REFUSALS | ENCRYPTION_REFUSALS


@dataclass(frozen=True)
class Settings:
    """Of one campaign.

    Attributes:
        count: mutations.
        seed: with the mutation's number, decides what it is.
        corpus: a folder of files, or None for the usual ones of the target.
        workers: child processes.
        time_limit: seconds of processor time for one mutation, which does not hang on the machine's load.
        patience: seconds for one mutation, of a child that sleeps.
        memory: bytes by which a child may grow.
        target: what is done with the bytes, by its name in targets.py.
    """

    count: int
    seed: int = 1
    corpus: Path | None = None
    workers: int = 2
    time_limit: float = 10.0
    patience: float = 300.0
    memory: int = 2 << 30
    target: str = "read"


@dataclass
class Findings:
    """Outcomes and what is wrong: (index, outcome, detail) for everything that is neither a table nor a typed error."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, index: int, outcome: str, detail: str) -> None:
        self.outcomes[outcome] += 1
        if outcome not in ACCEPTED:
            self.failures.append((index, outcome, detail))


class DeathError(Exception):
    """The child did not answer: args[0] says how it ended."""


class Worker:
    """One child process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._errors = tempfile.TemporaryFile()     # noqa: SIM115 (closed with the child)
        request = {
            "seed": settings.seed,
            "corpus": settings.corpus and str(settings.corpus),
            "memory": settings.memory,
            "time_limit": settings.time_limit,
            "target": settings.target,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.corrupt.worker", json.dumps(request)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
        )
        self.samples: int = self._answer(START_TIME)["samples"]

    def do(self, index: int) -> dict[str, Any]:
        """Do one mutation.

        Raises:
            DeathError: the child crashed or hung; it is gone.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(b"%d\n" % index)
        self._process.stdin.flush()
        return self._answer(self._settings.patience)

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        line = self._process.stdout.readline() if ready else b""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        if not ready:
            self._process.kill()
        code = self._process.wait()
        if code == -signal.SIGPROF:
            how = f"no answer within {self._settings.time_limit} s of processor time"
        else:
            how = f"ended with {code}" if ready else f"no answer within {seconds} s"
        self._errors.seek(0)
        said = self._errors.read()[-4000:].decode(errors="replace")
        self.close()
        raise DeathError(how, said)

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()
        self._process.wait()
        self._errors.close()


def run(settings: Settings) -> Findings:
    """Run a whole campaign."""
    findings = Findings()
    indices = iter(range(settings.count))       # shared by the threads; next() on it is atomic
    with ThreadPoolExecutor(settings.workers) as pool:
        for done in [pool.submit(serve, settings, indices, findings) for _ in range(settings.workers)]:
            done.result()
    return findings


def serve(settings: Settings, indices: Iterator[int], findings: Findings) -> None:
    """Keep one child busy until the numbers are used up."""
    worker = Worker(settings)
    for index in indices:
        try:
            answer = worker.do(index)
        except DeathError as death:
            findings.add(index, "death", "\n".join(death.args))
            worker = Worker(settings)
            continue
        findings.add(index, answer["outcome"], answer.get("detail", ""))
    worker.close()
