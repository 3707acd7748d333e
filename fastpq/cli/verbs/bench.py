"""Measure this machine: codecs, encodings and AES, on one screen.

Section: This machine
"""

from __future__ import annotations

from typing import TypedDict

import click

from fastpq.cli.amounts import count_text
from fastpq.cli.machine_bench import MeasurementGroup, measured_groups
from fastpq.cli.verb import Session, verb


class BenchFacts(TypedDict):
    """Speeds of this machine.

    Attributes:
        version: version of fastpq.
        threads: threads that were used.
        aes: the implementation of AES.
        groups: the measurements.
    """

    version: str
    threads: int
    aes: str
    groups: list[MeasurementGroup]


@verb(
    examples=[
        ("fastpq bench --megabytes 1", "A short run."),
        ("fastpq bench --megabytes 1 --json", "The numbers for a program."),
    ],
    facts=BenchFacts,
    has_keys=False,
    reads_files=False,
)
@click.option("--megabytes", type=click.IntRange(1, 4096), default=32, show_default=True, metavar="N", help="Size of the data.")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Threads of each job.")
def command(session: Session, megabytes: int, threads: int) -> None:
    """Write and read generated data in memory, and print decoded megabytes per second. Your data have other ratios."""
    from fastpq.encryption import aes_backend
    from fastpq.version import VERSION

    backend = aes_backend()
    with session.progress("measuring", "jobs") as bar:
        groups = measured_groups(megabytes * 1_000_000, threads, bar)
    aes = (
        backend.evp if backend.crossover is None else f"{backend.evp}, {backend.cryptography} from {backend.crossover:,} bytes on"
    )
    facts = BenchFacts(version=VERSION, threads=threads, aes=aes, groups=groups)
    session.emit(facts, lambda: _show(session, facts))


def _show(session: Session, facts: BenchFacts) -> None:
    from fastpq.cli.text_table import number, print_facts, text

    session.screen.paragraph(f"fastpq {facts['version']}, {count_text(facts['threads'], 'thread')}, AES by {facts['aes']}")
    width = max(len(each["name"]) for group in facts["groups"] for each in (group, *group["measurements"]))
    for group in facts["groups"]:
        session.screen.blank()
        print_facts(session.screen, group["measurements"], [
            (text(group["name"].ljust(width)), lambda each: each["name"]),
            (number("write MB/s"), lambda each: f"{each['write']:,.0f}"),
            (number("read MB/s"), lambda each: f"{each['read']:,.0f}"),
            (number("ratio"), lambda each: f"{each['ratio']:.1f}x"),
        ])
