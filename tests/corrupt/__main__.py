"""``tools/fuzz``: mutates files and reads them in child processes with bounded memory and time."""

from __future__ import annotations

import argparse
import datetime
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.corrupt import campaign, ledger
from tests.corrupt.targets import TARGETS, bytes_of, mutation_of, prepare, samples_for
from tools import builds, command_lines
from tools.command_lines import FUZZ_TARGETS

SHOWN = 5
MIB = 1 << 20
# Seconds of each target in a turn of a campaign.
TURN = {
    "paths": 240.0, "kernel": 60.0, "codecs": 60.0, "read": 20.0, "nested": 20.0, "select": 20.0, "rewrite": 20.0,
    "variant": 30.0, "wkb": 30.0, "arrow_schema": 30.0, "key_material": 20.0, "keyring": 10.0,
}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line, with the default targets filled in."""
    options = command_lines.fuzz().parse_args(arguments)
    options.target = options.target or (list(FUZZ_TARGETS) if options.campaign else ["read"])
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    if options.summary:
        print(ledger.summary(options.folder))
        return 0
    if options.replay:
        TARGETS[options.target[0]](options.replay.read_bytes(), int(options.replay.stem.split("-")[-1]))
        return 0
    if options.number is not None:
        return once(options)
    if options.campaign:
        return run_campaign(options) if options.build == "release" or options.built else run_copy(options)
    settings = settings_of(options, options.target[0])
    return 1 if show(options, settings, *timed(settings)) else 0


def settings_of(options: argparse.Namespace, target: str) -> campaign.Settings:
    return campaign.Settings(
        count=options.count,
        seed=options.seed,
        corpus=options.corpus and options.corpus.resolve(),
        workers=options.workers,
        time_limit=options.time_limit,
        memory=options.memory * MIB,
        target=target,
    )


def once(options: argparse.Namespace) -> int:
    """Do one mutation in this process."""
    [target] = options.target
    what, mutated = mutation_of(target)(samples_for(target, options.corpus), options.seed, options.number)
    print(what)
    TARGETS[target](mutated, options.number)
    return 0


def timed(settings: campaign.Settings) -> tuple[campaign.Findings, float]:
    started = time.monotonic()
    return campaign.run(settings), time.monotonic() - started


def show(options: argparse.Namespace, settings: campaign.Settings, findings: campaign.Findings, seconds: float) -> list[Path]:
    """Print the outcomes of a run and save the bytes of its findings; returns their paths."""
    outcomes = ", ".join(f"{name} {count}" for name, count in findings.outcomes.most_common())
    target, took = settings.target, f"{seconds:.0f} s, {findings.done / seconds:.0f} a second"
    print(f"fuzz: {target}, {findings.done} mutations, seed {settings.seed}, {took}: {outcomes}", flush=True)
    samples = samples_for(target, settings.corpus) if findings.failures else []
    saved = []
    for place, (number, outcome, detail) in enumerate(sorted(findings.failures)):
        what, mutated = mutation_of(target)(samples, settings.seed, number)
        options.save.mkdir(parents=True, exist_ok=True)
        path = options.save / f"{target}-seed{settings.seed}-{number}"
        path.write_bytes(bytes_of(mutated))
        path.with_suffix(".txt").write_text(f"{outcome}: {what}\n{detail}")
        saved.append(path)
        if place < SHOWN:
            command = f"tools/fuzz --target {target} --seed {settings.seed} --number {number}"
            print(f"\n{outcome}: {what}\n  {command}\n  {path}\n{detail[-1500:]}")
    if saved:
        print(f"\nfuzz: {len(saved)} findings in {options.save}", flush=True)
    return saved


def run_campaign(options: argparse.Namespace) -> int:
    """Take the targets in turns until the time is over; each turn is a line of the ledger."""
    if options.build == "guided":
        from tests.corrupt.guided import run_guided

        return run_guided(options.folder, options.target, options.seconds, options.save, commit())
    deadline, found = time.monotonic() + options.seconds, 0
    for target in itertools.cycle(options.target):
        left = deadline - time.monotonic()
        if left <= 0:
            return 1 if found else 0
        corpus = options.folder / ("keys" if target in ("key_material", "keyring") else "seeds")
        own_seeds = target in ("paths", "key_material", "keyring")
        settings = replace(
            settings_of(options, target),
            count=1 << 62,
            corpus=corpus.resolve() if own_seeds else options.corpus,
            first=ledger.next_number(options.folder, options.build, target, options.seed),
            seconds=min(left, TURN[target]),
        )
        prepare(target, settings.corpus)        # before the children need the samples
        when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        findings, seconds = timed(settings)
        saved = show(options, settings, findings, seconds)
        told = [(number, outcome, str(path)) for (number, outcome, _), path in zip(sorted(findings.failures), saved, strict=True)]
        found += len(told)
        parts = (target, options.seed, settings.first, findings.done, round(seconds, 1))
        made = ledger.Entry(when, options.build, commit(), *parts, dict(findings.outcomes), dict(findings.kinds), told)
        ledger.append(options.folder, made)
    return 0


def commit() -> str:
    """The commit of the tree; the campaign of a copy is told."""
    if given := os.environ.get("FASTPQ_FUZZ_COMMIT"):
        return given
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def run_copy(options: argparse.Namespace) -> int:
    """Run the campaign in a copy of the tree, built with sanitizers or with coverage."""
    environment = {**os.environ, "FASTPQ_FUZZ_COMMIT": commit()}
    if options.build == "debug":
        folder = builds.build("debug", {"FASTPQ_DEBUG": "1"})
        environment["LD_PRELOAD"] = builds.sanitizer_libraries()
        environment["ASAN_OPTIONS"] = "detect_leaks=0:allocator_may_return_null=1"
        environment["PYTHONMALLOC"] = "malloc"      # a read behind the bytes of a Python object is noticed, too
        environment["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
    else:
        from tests.corrupt.guided import build_guided, preloaded

        folder = build_guided()
        environment["LD_PRELOAD"] = preloaded()
    environment["PYTHONPATH"] = str(folder)
    command = [sys.executable, "-m", "tests.corrupt", "--campaign", "--built", "--build", options.build]
    for name in ("seed", "workers", "time_limit", "memory", "seconds"):
        command += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    for name in ("folder", "save", "corpus"):
        if given := getattr(options, name):
            command += [f"--{name}", str(given.resolve())]
    for target in options.target:
        command += ["--target", target]
    return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
