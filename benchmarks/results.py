"""Measured figures of the benchmark, kept in JSON: one record for each job, peer and number of threads."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.jobs import BY_NAME
from benchmarks.peers import PEERS

FOLDER = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Record:
    """One measurement.

    Attributes:
        job, peer: names.
        threads: most threads of the peer; a peer of one thread has records for one thread only.
        seconds: time of every run; the shortest counts, of processes the median.
        rows: rows read or written.
        bytes: size of the file read or written.
        memory: most memory that the runs took, in bytes; 0 if unknown.
    """

    job: str
    peer: str
    threads: int
    seconds: list[float]
    rows: int
    bytes: int
    memory: int = 0

    @property
    def best(self) -> float:
        return median(self.seconds) if BY_NAME[self.job].is_process else min(self.seconds)


@dataclass
class Results:
    """All measurements at one scale factor.

    Attributes:
        scale: TPC-H scale factor.
        machine: processor, cores, system, Python.
        versions: version of each peer.
        records: records by (job, peer, threads).
        refused: reasons by "job peer", for peers with errors or with differing results.
        kernels: GB/s by kernel, memcpy included.
        selective: fields of each Lookup (benchmarks.selective).
        equal_work: fields of each EqualRecord (benchmarks.equal_work).
        file_size: fields of each SizeRecord (benchmarks.file_size).
        floor: fields of each FloorRecord (benchmarks.floor).
        shapes: fields of each ShapeRecord (benchmarks.shapes).
    """

    scale: float
    machine: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    records: dict[tuple[str, str, int], Record] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, float] = field(default_factory=dict)
    selective: list[dict[str, Any]] = field(default_factory=list)
    equal_work: list[dict[str, Any]] = field(default_factory=list)
    file_size: list[dict[str, Any]] = field(default_factory=list)
    floor: list[dict[str, Any]] = field(default_factory=list)
    shapes: list[dict[str, Any]] = field(default_factory=list)

    def add(self, record: Record) -> None:
        self.records[record.job, record.peer, record.threads] = record
        self.refused.pop(f"{record.job} {record.peer}", None)

    def record(self, job: str, peer: str, threads: int) -> Record | None:
        """The record with a number of threads; for a peer of one thread, with one thread."""
        return self.records.get((job, peer, threads if PEERS[peer].parallel else 1))

    @property
    def path(self) -> Path:
        return FOLDER / f"scale-{self.scale:g}.json"

    def save(self) -> Path:
        """Write the JSON file."""
        FOLDER.mkdir(parents=True, exist_ok=True)
        content = asdict(self) | {"records": [asdict(record) for record in self.records.values()]}
        self.path.write_text(json.dumps(content, indent=1) + "\n")
        return self.path

    @classmethod
    def load(cls, scale: float) -> Results:
        """Saved results of a scale factor; empty without a file, or with a file from another machine."""
        results = cls(scale)
        if results.path.exists():
            content: dict[str, Any] = json.loads(results.path.read_text())
            if content["machine"] == machine():
                records = [Record(**record) for record in content.pop("records") if record["job"] in BY_NAME]
                results = cls(**content)
                results.records = {(record.job, record.peer, record.threads): record for record in records}
        results.machine = machine()
        return results


def machine() -> dict[str, str]:
    """Properties of this machine relevant to figures: processor, cores, system, Python."""
    return {
        "processor": processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
