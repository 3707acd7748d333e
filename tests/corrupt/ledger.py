"""The ledger of a campaign: a line of JSON for each run, added up over all runs."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

LEDGER = "ledger.jsonl"


@dataclass(frozen=True)
class Entry:
    """One run.

    Attributes:
        when: UTC, ISO 8601.
        build: ``release``, ``debug`` (sanitizers) or ``guided`` (coverage).
        commit: of the tree.
        target: what was mutated and read.
        seed: of the mutations.
        first: number of the first mutation.
        count: mutations.
        seconds: duration.
        outcomes: mutations by outcome.
        kinds: mutations by what was mutated.
        findings: (number, outcome, path of the saved bytes).
        coverage: of guided runs: edges, features and inputs kept.
    """

    when: str
    build: str
    commit: str
    target: str
    seed: int
    first: int
    count: int
    seconds: float
    outcomes: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    findings: list[tuple[int, str, str]] = field(default_factory=list)
    coverage: dict[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Mutations in a second."""
        return self.count / self.seconds if self.seconds else 0.0


def append(folder: Path, entry: Entry) -> None:
    """Add a run to the ledger of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LEDGER).open("a") as file:
        file.write(json.dumps({**asdict(entry), "rate": round(entry.rate, 1)}) + "\n")


def entries(folder: Path) -> list[Entry]:
    """All runs."""
    path = folder / LEDGER
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        members: dict[str, Any] = json.loads(line)
        members.pop("rate")
        found.append(Entry(**members))
    return found


def next_number(folder: Path, build: str, target: str, seed: int) -> int:
    """The first number of a seed that no run of a build and target has done."""
    done = [e.first + e.count for e in entries(folder) if (e.build, e.target, e.seed) == (build, target, seed)]
    return max(done, default=0)


def summary(folder: Path) -> str:
    """A table in Markdown: mutations by build and target, rates, outcomes, findings."""
    by_target = defaultdict(list)
    for entry in entries(folder):
        by_target[entry.build, entry.target].append(entry)
    lines = ["| Build | Target | Mutants | a second | Read | Refused | Findings |", "| --- | --- | --: | --: | --: | --: | --: |"]
    total = Counter[str]()
    for (build, target), runs in sorted(by_target.items()):
        count, seconds = sum(run.count for run in runs), sum(run.seconds for run in runs)
        read, found = sum(run.outcomes.get("ok", 0) for run in runs), sum(len(run.findings) for run in runs)
        total.update({"count": count, "read": read, "found": found})
        rate = count / seconds if seconds else 0
        cells = (build, target, f"{count:,}", f"{rate:,.0f}", f"{read:,}", f"{count - read - found:,}")
        lines.append(f"| {' | '.join(cells)} | {found} |")
    refused = total["count"] - total["read"] - total["found"]
    lines.append(f"| all | | {total['count']:,} | | {total['read']:,} | {refused:,} | {total['found']} |")
    return "\n".join(lines)
