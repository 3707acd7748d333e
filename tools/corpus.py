"""Reads a folder of Parquet files in every way, beside other readers; ``python -m tools.corpus FOLDER``.

Each file is read whole, beside pyarrow, DuckDB and Polars. Then the whole table is the truth for filters, row ranges, batches,
encryption, merging and writing. A file is checked in a child process with bounded memory and time. With ``--report`` outcomes are
kept, a line in JSON for each file, and files of the report are not checked again.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO

from tools.children import Child, ChildDiedError

START_TIME = 300.0      # seconds until a child is ready
GIB = 1 << 30
FAULTS = ("crash", "wrong", "untyped", "differs")
MOST_SAID = 1500        # bytes of standard error in the record of a child that died
SHOWN = 12      # files named in the table for a reason

Record = dict[str, Any]


class Checker:
    """A child process of tools/corpus_checks.py.

    Args:
        memory: bytes by which the child may grow.
        seconds: time of one check of a file.
    """

    def __init__(self, memory: int, seconds: float) -> None:
        self._seconds = seconds
        self._child = Child("tools.corpus_checks", str(memory))
        self._child.answer(START_TIME)

    def check(self, path: Path, skipped: dict[str, str]) -> Record:
        """The result of a file, or ``{"stage": ..., "died": ...}`` of a child without an answer."""
        self._child.ask(json.dumps({"path": str(path), "skipped": skipped}))
        stage = "start"
        while True:
            try:
                answer = self._child.answer(self._seconds)
            except ChildDiedError as death:
                return {"stage": stage, "died": f"{death.how}: {death.said[-MOST_SAID:]}"}
            if "stage" not in answer:
                return answer
            stage = answer["stage"]

    def close(self) -> None:
        self._child.close()


def check_file(path: Path, child: Checker, renew: Callable[[], Checker]) -> tuple[Record, Checker]:
    """The record of a file; a peer that ends the child is left out, and the file checked anew."""
    skipped: dict[str, str] = {}
    while True:
        answer = child.check(path, skipped)
        if "died" not in answer:
            return answer, child
        child = renew()
        stage = answer["stage"]
        if not stage.startswith("peer "):
            return {"rows": None, "checks": {stage: f"crash: {answer['died']}"}, "peers": skipped}, child
        skipped[stage.removeprefix("peer ")] = f"crashes: {answer['died'][:200]}"


def verdict(record: Record) -> str:
    """``right``, ``alone`` (no peer reads the file), ``refused``, or the worst fault among FAULTS."""
    kinds = {outcome.partition(":")[0] for outcome in record["checks"].values()}
    for fault in FAULTS:
        if fault in kinds:
            return fault
    if record["checks"].get("read", "").startswith("refused"):
        return "refused"
    peers = record["peers"].values()
    if "same" in peers:
        return "right"
    return "differs" if any(peer.startswith("differs") for peer in peers) else "alone"


def run(paths: Iterable[Path], options: argparse.Namespace, report: TextIO | None) -> Iterator[tuple[Path, Record]]:
    """Check files in several children; records in the order of their completion within a child."""
    shared = iter(paths)    # next() on an iterator of a list is atomic

    def renew() -> Checker:
        return Checker(options.memory * GIB, options.time_limit)

    def serve() -> list[tuple[Path, Record]]:
        child, done = renew(), []
        for path in shared:
            record, child = check_file(path, child, renew)
            record |= {"file": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
            record["verdict"] = verdict(record)
            done.append((path, record))
            if report:
                report.write(json.dumps(record) + "\n")
                report.flush()
        child.close()
        return done

    with ThreadPoolExecutor(options.workers) as pool:
        served = [pool.submit(serve) for _ in range(options.workers)]
        yield from itertools.chain.from_iterable(done.result() for done in served)


def known(report: Path | None) -> dict[str, Record]:
    """Records of an earlier run by file."""
    lines = report.read_text().splitlines() if report and report.exists() else []
    return {record["file"]: record for record in map(json.loads, lines)}


def table(records: Iterable[Record], folder: Path) -> str:
    """Verdicts by source (the first folder below the corpus), then every reason with its files."""
    sources: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in records:
        name = Path(record["file"]).relative_to(folder)
        sources[name.parts[0] if len(name.parts) > 1 else "."][record["verdict"]] += 1
        for check, outcome in record["checks"].items():
            if outcome != "right":
                readers = [peer for peer, found in record["peers"].items() if found == "reads"]
                beside = f" (read by {', '.join(readers)})" if check == "read" and readers else ""
                reasons[check, reason_of(outcome) + beside].append(str(name))
        if record["verdict"] in ("differs", "alone"):
            peers = "; ".join(f"{peer} {reason_of(outcome)}" for peer, outcome in record["peers"].items())
            reasons[record["verdict"], peers].append(str(name))
    total = sum(sources.values(), Counter[str]())
    lines = [f"{sum(total.values())} files: " + counted(total)]
    lines += [f"  {source}: {counted(verdicts)}" for source, verdicts in sorted(sources.items())]
    for (check, reason), names in sorted(reasons.items()):
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        lines += [f"\n{check}: {reason} ({len(names)} files)", *(f"  {name}" for name in names[:SHOWN])]
        lines += [more] if more else []
    return "\n".join(lines)


def reason_of(outcome: str) -> str:
    """An outcome without its place in a file and without numbers."""
    return re.sub(r"\d+", "N", outcome.partition(" [")[0][:200])


def counted(verdicts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in verdicts.most_common())


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.corpus", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder of Parquet files; every file below the folder is checked")
    parser.add_argument("--report", type=Path, metavar="FILE", help="keep outcomes here; files of an earlier run are not checked")
    parser.add_argument("--workers", type=int, default=2, help="child processes (default: %(default)s)")
    parser.add_argument("--memory", type=int, default=8, help="GiB by which a child may grow (default: %(default)s)")
    parser.add_argument("--time-limit", type=float, default=120, help="seconds for a check of a file (default: %(default)s)")
    parser.add_argument("--only", metavar="TEXT", default="", help="check files with the text in their path alone")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    records = known(options.report)
    paths = sorted(path for path in options.folder.rglob("*") if path.is_file() and options.only in str(path))
    wanted = sorted((path for path in paths if str(path) not in records), key=lambda path: path.stat().st_size)
    if options.report:
        options.report.parent.mkdir(parents=True, exist_ok=True)
    with open(options.report or os.devnull, "a") as report:
        records |= {str(path): record for path, record in run(wanted, options, report)}
    chosen = [records[str(path)] for path in paths]
    print(table(chosen, options.folder))
    return 1 if any(record["verdict"] in FAULTS for record in chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
