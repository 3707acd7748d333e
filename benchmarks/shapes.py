"""Shapes of tables beside peers, with equal work: ``python -m benchmarks.shapes`` (``tools/bench --jobs shapes``).

Equal work: every library reads the same file into an Arrow table, and writes the same Arrow table with Snappy. Each measurement
runs in a process of its own. A result is compared with the table before a time counts. Time is wall-clock time, the least of
several runs, without the first. Memory is the growth of the process at its highest.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.child import measured
from benchmarks.peers import environment
from benchmarks.shape_data import DATASETS, LARGE, TABLES, file_options

SCRATCH = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())
DATA = Path(__file__).parent / "data" / "shapes"
TIMEOUT = 120           # seconds of one measurement
PEERS = ("fastpq", "pyarrow", "polars", "duckdb")
Action = Callable[[], Any]


def readers(path: Path, threads: int) -> dict[str, Action]:
    """Functions that read a file or a folder into an Arrow table."""
    pattern = f"{path}/**/*.parquet" if path.is_dir() else str(path)

    def of_fastpq() -> Any:
        import fastpq

        return pa.table(fastpq.read_table(path, threads=threads))

    def of_polars() -> Any:
        import polars as pl

        return pl.read_parquet(pattern, hive_partitioning=path.is_dir()).to_arrow()

    def of_duckdb() -> Any:
        import duckdb

        connection = duckdb.connect(config={"threads": threads})
        return connection.sql(f"SELECT * FROM read_parquet('{pattern}')").to_arrow_table()

    return {
        "fastpq": of_fastpq,
        "pyarrow": lambda: pq.read_table(path, use_threads=threads > 1),
        "polars": of_polars,
        "duckdb": of_duckdb,
    }


def writers(name: str, table: pa.Table, target: Path, threads: int) -> dict[str, Callable[[], Action]]:
    """Functions that return a function that writes an Arrow table.

    A library takes the table over before the time counts, if that is a step of its own.
    """
    options: dict[str, Any] = file_options(name)
    size = options.get("row_group_size")

    def of_fastpq() -> Action:
        import fastpq

        return lambda: fastpq.write_table(table, target, threads=threads, **options)

    def of_polars() -> Action:
        import polars as pl

        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        return lambda: frame.write_parquet(target, compression="snappy", **options)

    def of_duckdb() -> Action:
        import duckdb

        connection = duckdb.connect(config={"threads": threads})
        connection.register("source", table)
        rows = "" if size is None else f", ROW_GROUP_SIZE {size}"
        return lambda: connection.execute(f"COPY source TO '{target}' (FORMAT parquet, COMPRESSION snappy{rows})")

    return {
        "fastpq": of_fastpq,
        "pyarrow": lambda: lambda: pq.write_table(table, target, **options),
        "polars": of_polars,
        "duckdb": of_duckdb,
    }


def path_of(name: str) -> Path:
    """Path of the file or folder of a shape, which pyarrow writes once."""
    path = DATA / (name if name in DATASETS else f"{name}.parquet")
    if not path.exists():
        DATA.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        if part.is_dir():
            shutil.rmtree(part)
        if name in DATASETS:
            DATASETS[name](part)
        else:
            pq.write_table(TABLES[name][0](), part, **file_options(name))
        part.replace(path)
    return path


def require_equal(got: pa.Table, truth: pa.Table) -> None:
    """Compare tables by value; types may differ in width and layout.

    Raises:
        ValueError: the values differ.
    """
    if got.num_rows != truth.num_rows or sorted(got.column_names) != sorted(truth.column_names):
        raise ValueError(f"{got.num_rows} rows of {len(got.column_names)} columns")
    for column in truth.column_names[:: max(1, truth.num_columns // 50)]:
        theirs = truth[column]
        if pa.types.is_dictionary(theirs.type) and not pa.types.is_dictionary(got[column].type):
            theirs = theirs.cast(theirs.type.value_type)
        mine = got[column] if got[column].type == theirs.type else got[column].cast(theirs.type)
        if not mine.combine_chunks().equals(theirs.combine_chunks()):
            raise ValueError(f"other values in {column}")


def child(name: str, peer: str, kind: str, threads: int, runs: int) -> dict[str, Any]:
    """Measure one library in this process."""
    pa.set_cpu_count(threads)
    if kind == "read":
        path = path_of(name)
        truth = pq.read_table(path)
        require_equal(readers(path, threads)[peer](), truth)
        del truth
        return measured(readers(path, threads)[peer], runs)
    table = TABLES[name][0]()
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        target = Path(folder) / "written.parquet"
        action = writers(name, table, target, threads)[peer]()
        action()
        require_equal(pq.read_table(target), table)
        groups, size = pq.ParquetFile(target).num_row_groups, file_options(name).get("row_group_size")
        if size and groups != -(-table.num_rows // size):
            raise ValueError(f"{groups} row groups of {table.num_rows} rows, which are to have {size} rows each")
        return measured(action, runs, before=lambda: target.unlink(missing_ok=True))


def measure(name: str, peer: str, kind: str, threads: int, runs: int) -> dict[str, Any] | str:
    """Measure one library in a process of its own; return the reason where it fails."""
    command = [sys.executable, "-m", "benchmarks.shapes", "--child", json.dumps([name, peer, kind, threads, runs])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment(threads), timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return f"over {TIMEOUT} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:90]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def jobs(pattern: str) -> Iterator[tuple[str, str]]:
    """Yield shape and kind of each job whose name holds a text."""
    for name in (*TABLES, *DATASETS):
        for kind in ("read", "write") if name in TABLES else ("read",):
            if (name not in LARGE or pattern == name) and pattern in f"{kind} {name}":
                yield name, kind


@dataclass(frozen=True)
class ShapeRecord:
    """One job with one number of threads.

    Attributes:
        job: ``"read"`` or ``"write"``, and the shape's name.
        threads: most threads of each library.
        seconds: elapsed seconds by library, the least of the runs; libraries that failed are missing.
        memory: growth of the process at its highest by library, in bytes.
    """

    job: str
    threads: int
    seconds: dict[str, float]
    memory: dict[str, int]

    @property
    def ratio(self) -> float | None:
        """fastpq's time over that of the fastest peer; None if fastpq or all peers failed."""
        peers = [self.seconds[peer] for peer in self.seconds if peer != "fastpq"]
        return self.seconds["fastpq"] / min(peers) if peers and "fastpq" in self.seconds else None

    def cells(self) -> list[str]:
        """Job, threads, milliseconds by library, megabytes of fastpq and of the peer with least memory, and the ratio."""
        times = [f"{1000 * self.seconds[peer]:.1f}" if peer in self.seconds else "" for peer in PEERS]
        peers = [self.memory[peer] for peer in self.memory if peer != "fastpq"]
        least = f"{min(peers) / 1e6:.0f}" if peers else ""
        own = f"{self.memory['fastpq'] / 1e6:.0f}" if "fastpq" in self.memory else ""
        return [self.job, str(self.threads), *times, own, least, "" if self.ratio is None else f"{self.ratio:.2f}"]


HEAD = ["job", "threads", *(f"{peer}, ms" for peer in PEERS), "memory, MB", "least of a peer", "fastpq / best peer"]


def markdown(records: Sequence[ShapeRecord]) -> str:
    """Return the table for the documentation, the smallest ratio first."""
    ordered = sorted(records, key=lambda record: (record.threads, record.ratio is None, record.ratio))
    lines = [HEAD, ["---", *["---:"] * (len(HEAD) - 1)], *(record.cells() for record in ordered)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def measure_all(pattern: str, peers: Sequence[str], threads: Sequence[int], runs: int) -> tuple[list[ShapeRecord], list[str]]:
    """Measure each job whose name holds a text, and print a line for each.

    Returns:
        The records, and why libraries failed.
    """
    records: list[ShapeRecord] = []
    failures: list[str] = []
    widths = [36, 7, *[11] * len(PEERS), 10, 15, 18]
    print(*(text.ljust(width) for text, width in zip(HEAD, widths, strict=True)))
    for name, kind in jobs(pattern):
        if kind == "read":
            path_of(name)
        for count in threads:
            results = {peer: measure(name, peer, kind, count, runs) for peer in peers}
            good = {peer: result for peer, result in results.items() if isinstance(result, dict)}
            seconds = {peer: min(result["seconds"]) for peer, result in good.items()}
            records.append(ShapeRecord(f"{kind} {name}", count, seconds, {peer: good[peer]["memory"] for peer in good}))
            print(*(text.ljust(width) for text, width in zip(records[-1].cells(), widths, strict=True)), flush=True)
            failures += [f"{kind} {name}: {peer}: {result}" for peer, result in results.items() if isinstance(result, str)]
    return records, list(dict.fromkeys(failures))


def main() -> int:
    """Print a line for each job; return 1 if fastpq failed in one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shapes", description=__doc__)
    parser.add_argument("--only", default="", help='jobs whose name holds this text, for example "write list"')
    parser.add_argument("--peers", default=",".join(PEERS), help="libraries to measure (default: %(default)s)")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="the shortest counts (default: %(default)s)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(*json.loads(options.child))))
        return 0
    _, failures = measure_all(options.only, options.peers.split(","), [*map(int, options.threads.split(","))], options.runs)
    print(*failures, sep="\n")
    return 1 if any(": fastpq: " in failure for failure in failures) else 0


if __name__ == "__main__":
    sys.exit(main())
