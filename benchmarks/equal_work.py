"""Equal work on lineitem: ``tools/bench --jobs equal-work``, or ``python -m benchmarks.equal_work``.

Every library reads the same file into the same result, and writes the same input. Result and input are an Arrow table in Arrow's
plain layout (text without a dictionary, decimals of 16 bytes), a frame of Polars, or NumPy arrays. Text in an Arrow result has
the plain layout that costs the library least: views from fastpq and Polars, offsets from pyarrow and DuckDB. A result is compared
with pyarrow's after the runs, and the time counts only if they are equal. Each measurement has a process of its own, in one of
these ways:

- in a row: the process repeats the job, and the shortest run counts, without the first. Allocators may keep memory between runs.
- first call: the process imports the library, does the job once, and ends. Only the call counts: the median of several processes.
- first call, busy: likewise, while two other processes fill and free memory.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.child import measured, resident_memory
from benchmarks.data import path_of
from benchmarks.equality import DifferenceError, require_equal
from benchmarks.jobs import NUMERIC, STRINGS
from benchmarks.peers import ROW_GROUP_SIZE, environment

PEERS = ("fastpq", "pyarrow", "polars", "duckdb")
OURS = "fastpq"
DECIMALS = ("l_quantity", "l_extendedprice", "l_discount", "l_tax")
NUMBERS = tuple(name for name in NUMERIC if name not in DECIMALS)
COLUMNS: dict[str, tuple[str, ...] | None] = {
    "all": None, "text": STRINGS, "decimals": DECIMALS, "numbers": NUMBERS, "one decimal": ("l_discount",),
}
ARROW_COLUMNS = ("all", "text", "decimals", "numbers")
CHUNK_ROWS = 1 << 16        # rows of a chunk in "Arrow chunks"
NUMPY_ROWS = 5_000_000      # rows of a write from NumPy arrays
NUMPY_TEXTS = 1000          # different texts of such a write
CHECKED_OBJECTS = 100_000   # rows of which objects are compared
TIMEOUT = 600               # seconds of one measurement
PROCESSES = 5               # processes of a first call
HOG_BYTES = 512 << 20       # memory that each busy process fills and frees

Kind = Literal["read", "write"]
Run = Literal["in a row", "first call", "first call, busy"]
Action = Callable[[], Any]


@dataclass(frozen=True)
class EqualJob:
    """A job that is the same work for every library.

    Attributes:
        kind: read a file, or write one.
        form: what is read into or written from: ``"Arrow"`` (one chunk), ``"Arrow chunks"``, ``"Polars"`` (a frame of Polars,
            the same for each library), or ``"NumPy"``.
        columns: a name in COLUMNS, or for writes from NumPy ``"numbers"`` or ``"text"``, which are made up.
        run: how the runs are made.
    """

    kind: Kind
    form: Literal["Arrow", "Arrow chunks", "Polars", "NumPy"]
    columns: str
    run: Run = "in a row"

    @property
    def name(self) -> str:
        """Name in the tables."""
        return f"{self.kind} {'into' if self.kind == 'read' else 'from'} {self.form}: {self.columns}"


JOBS = (
    *(EqualJob("read", "Arrow", columns) for columns in ARROW_COLUMNS),
    *(EqualJob("read", "Polars", columns) for columns in ("all", "text", "decimals")),
    *(EqualJob("read", "NumPy", columns) for columns in ("numbers", "text", "one decimal")),
    *(EqualJob("write", "Arrow", columns) for columns in ARROW_COLUMNS),
    EqualJob("write", "Arrow chunks", "all"),
    EqualJob("write", "Polars", "all"),
    *(EqualJob("write", "NumPy", columns) for columns in ("numbers", "text")),
    *(EqualJob("read", "Arrow", "all", run) for run in ("first call", "first call, busy")),
    *(EqualJob("write", "Arrow", "all", run) for run in ("first call", "first call, busy")),
    *(EqualJob("write", "Arrow chunks", "all", run) for run in ("first call", "first call, busy")),
)


@dataclass(frozen=True)
class EqualRecord:
    """One measurement.

    Attributes:
        job: name of the EqualJob.
        run: its way of running.
        peer: the library.
        threads: most threads of the library.
        seconds: elapsed seconds.
        processor: processor seconds of the process in the same runs.
        memory: growth of the process at its highest, in bytes.
    """

    job: str
    run: str
    peer: str
    threads: int
    seconds: float
    processor: float
    memory: int


# ---- the work


def reader(peer: str, job: EqualJob, path: Path, threads: int) -> Action:
    """A function that reads the job's columns into an Arrow table, a frame of Polars, or a dict of NumPy arrays."""
    columns = COLUMNS[job.columns]
    names = list(columns) if columns else None
    if job.form == "Polars":
        return _polars_readers(path, names, threads)[peer]
    into_arrow = _arrow_readers(path, names, threads)
    if job.form == "Arrow":
        return into_arrow[peer]
    if peer == "fastpq":
        import fastpq

        def of_fastpq() -> Any:
            table = fastpq.read_table(path, list(columns or ()), threads=threads)
            return {name: table[name].to_numpy() for name in table.names}

        return of_fastpq
    return lambda: arrays_of(into_arrow[peer]())


def _arrow_readers(path: Path, columns: list[str] | None, threads: int) -> dict[str, Action]:
    def of_fastpq() -> Any:
        import fastpq

        # text as views, and decimals with 16 bytes from the decoder on
        return pa.table(fastpq.read_table(path, columns, threads=threads, arrow_schema=False, decimals="decimal128"))

    def of_polars() -> Any:
        import polars as pl

        return pl.read_parquet(path, columns=columns).to_arrow(compat_level=pl.CompatLevel.newest())

    return {
        "fastpq": of_fastpq,
        "pyarrow": lambda: pq.read_table(path, columns=columns, use_threads=threads > 1, memory_map=True),
        "polars": of_polars,
        "duckdb": lambda: _duckdb_relation(path, columns, threads).to_arrow_table(),
    }


def _polars_readers(path: Path, columns: list[str] | None, threads: int) -> dict[str, Action]:
    import polars as pl

    import fastpq

    return {
        "fastpq": lambda: fastpq.read_table(path, columns, threads=threads, decimals="decimal128").to_polars(),
        "pyarrow": lambda: pl.from_arrow(pq.read_table(path, columns=columns, use_threads=threads > 1, memory_map=True)),
        "polars": lambda: pl.read_parquet(path, columns=columns),
        "duckdb": lambda: _duckdb_relation(path, columns, threads).pl(),
    }


def _duckdb_relation(path: Path, columns: list[str] | None, threads: int) -> Any:
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    return connection.sql(f"SELECT {', '.join(columns or ['*'])} FROM read_parquet('{path}')")


def arrays_of(table: pa.Table) -> dict[str, Any]:
    """NumPy arrays of an Arrow table, as fastpq gives them: text as StringDType, decimals as objects."""
    arrays: dict[str, Any] = {}
    for name in table.column_names:
        column = table[name]
        array = column.to_numpy()
        is_text = pa.types.is_string(column.type) or pa.types.is_string_view(column.type) or pa.types.is_large_string(column.type)
        arrays[name] = array.astype(np.dtypes.StringDType()) if is_text else array
    return arrays


def source_of(job: EqualJob, scale: float) -> Any:
    """The input of a write: an Arrow table, a frame of Polars, or a dict of NumPy arrays."""
    if job.form == "NumPy":
        return made_arrays(job.columns, max(1000, int(NUMPY_ROWS * min(scale, 1))))
    columns = COLUMNS[job.columns]
    table = pq.read_table(path_of("snappy", scale), columns=list(columns) if columns else None).combine_chunks()
    if job.form == "Polars":
        import polars as pl

        return pl.from_arrow(table)
    return pa.Table.from_batches(table.to_batches(max_chunksize=CHUNK_ROWS)) if job.form == "Arrow chunks" else table


def made_arrays(columns: str, rows: int) -> dict[str, Any]:
    """Arrays of numbers or of text, the same in every process."""
    draw = np.random.default_rng(1)
    if columns == "numbers":
        return {"int64": draw.integers(0, 1 << 40, rows), "float64": draw.random(rows)}
    texts = np.array([f"text number {number}" for number in range(NUMPY_TEXTS)], np.dtypes.StringDType())
    return {"text": texts[draw.integers(0, NUMPY_TEXTS, rows * 2 // 5)]}


def writer(peer: str, job: EqualJob, source: Any, target: Path, threads: int) -> Action:
    """A function that writes the source; a library takes it over before the time counts, if that is a step of its own."""
    if peer == "fastpq":
        import fastpq

        return lambda: fastpq.write_table(source, target, threads=threads, row_group_size=ROW_GROUP_SIZE)
    if peer == "polars":
        import polars as pl

        frame: Any = source
        if not isinstance(source, pl.DataFrame):
            frame = pl.DataFrame(source) if job.form == "NumPy" else pl.from_arrow(source)
        return lambda: frame.write_parquet(target, compression="snappy", row_group_size=ROW_GROUP_SIZE)
    table = arrow_of(source)
    if peer == "pyarrow":
        return lambda: pq.write_table(table, target, row_group_size=ROW_GROUP_SIZE)
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    connection.register("source", table)
    options = f"FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {ROW_GROUP_SIZE}"
    return lambda: connection.execute(f"COPY source TO '{target}' ({options})")


def arrow_of(source: Any) -> pa.Table:
    """The Arrow table of a source, or of a result."""
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, dict):
        # pyarrow takes no StringDType
        arrays = {name: array.astype(object) if array.dtype.kind == "T" else array for name, array in source.items()}
        return pa.table({name: pa.array(array) for name, array in arrays.items()})
    return source.to_arrow()


def check(result: Any, truth: pa.Table) -> None:
    """Compare a result with the truth.

    Raises:
        DifferenceError: the values differ.
    """
    if not isinstance(result, dict):
        require_equal(result, truth)
        return
    for name in truth.column_names:
        column, array = truth[name], result[name]
        if array.dtype.kind in "OT":        # objects of Python are compared in some rows
            rows = np.arange(0, len(column), max(1, len(column) // CHECKED_OBJECTS))
            same = array.shape == (len(column),) and array[rows].tolist() == column.take(rows).to_pylist()
        else:
            same = np.array_equal(array, column.to_numpy())
        if not same:
            raise DifferenceError(f"the values of {name} are not those of the file")


# ---- measurements


def child(job: EqualJob, peer: str, threads: int, runs: int, scale: float, scratch: Path) -> dict[str, Any]:
    """Measure one library in this process."""
    pa.set_cpu_count(threads)
    path = path_of("snappy", scale)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        target = Path(folder) / "written.parquet"
        if job.kind == "read":
            action, before = reader(peer, job, path, threads), _nothing
        else:
            source = source_of(job, scale)
            action, before = writer(peer, job, source, target, threads), lambda: target.unlink(missing_ok=True)
        if job.run != "in a row":
            return _first_call(action)
        processor: list[float] = []

        def timed() -> Any:
            started = time.process_time()
            result = action()
            processor.append(time.process_time() - started)
            return result

        facts = measured(timed, runs, before)
        before()
        result = action()
        if job.kind == "read":
            columns = COLUMNS[job.columns]
            table = arrow_of(result) if job.form == "Polars" else result
            check(table, pq.read_table(path, columns=list(columns) if columns else None))
        else:
            require_equal(pq.read_table(target), arrow_of(source))
        return {"seconds": min(facts["seconds"]), "processor": min(processor[1:]), "memory": facts["memory"]}


def _nothing() -> None:
    pass


def _first_call(action: Action) -> dict[str, Any]:
    resident = resident_memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    processor, started = time.process_time(), time.perf_counter()
    result = action()
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
    del result
    return {"seconds": seconds, "processor": processor, "memory": max(0, resident_memory("VmHWM") - resident)}


def measure(job: EqualJob, peer: str, threads: int, runs: int, scale: float, scratch: Path) -> EqualRecord | str:
    """Measure one library in processes of its own; return the reason where it fails."""
    request = json.dumps([JOBS.index(job), peer, threads, runs, scale, str(scratch)])
    command = [sys.executable, "-m", "benchmarks.equal_work", "--child", request]
    answers = []
    for _ in range(1 if job.run == "in a row" else PROCESSES):
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment(threads), timeout=TIMEOUT, check=False)
        except subprocess.TimeoutExpired:
            return f"over {TIMEOUT} s"
        if done.returncode:
            return (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:90]
        answers.append(json.loads(done.stdout.splitlines()[-1]))
    middle = {key: statistics.median(answer[key] for answer in answers) for key in ("seconds", "processor", "memory")}
    return EqualRecord(job.name, job.run, peer, threads, middle["seconds"], middle["processor"], int(middle["memory"]))


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Run processes that fill and free memory, until this process ends at the latest."""
    program = f"import numpy, os\nwhile os.getppid() == {os.getpid()}:\n    numpy.empty({HOG_BYTES}, 'u1').fill(1)"
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure_all(
    peers: list[str], threads: list[int], runs: int, scale: float, scratch: Path, only: str, tell: Callable[[str], object]
) -> list[EqualRecord]:
    """Measure the jobs whose name or way of running holds a text, and tell each result.

    First calls are measured with the largest number of threads.
    """
    records: list[EqualRecord] = []
    for job in JOBS:
        if only not in f"{job.name}, {job.run}":
            continue
        for count in threads if job.run == "in a row" else threads[-1:]:
            with busy_processes(2 if job.run == "first call, busy" else 0):
                found = {peer: measure(job, peer, count, runs, scale, scratch) for peer in peers if peer in PEERS}
            for peer, record in found.items():
                tell(f"{job.name}, {job.run}: {peer}, {count} threads: {described(record)}")
            records += [record for record in found.values() if isinstance(record, EqualRecord)]
    return records


def described(record: EqualRecord | str) -> str:
    if isinstance(record, str):
        return record
    return f"{record.seconds:.3f} s, processor {record.processor:.3f} s, {record.memory / 1e6:.0f} MB"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.equal_work", description=__doc__)
    parser.add_argument("--only", default="", help='jobs whose name holds this text, for example "first call"')
    parser.add_argument("--peers", default=",".join(PEERS), help="libraries to measure (default: %(default)s)")
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}", help="numbers of threads (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="the shortest counts (default: %(default)s)")
    parser.add_argument("--scale", type=float, default=1, help="TPC-H scale factor (default: %(default)s)")
    parser.add_argument("--scratch", type=Path, default=Path("/dev/shm"), help="where writers write (default: %(default)s)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        number, peer, count, runs, scale, scratch = json.loads(options.child)
        print(json.dumps(child(JOBS[number], peer, count, runs, scale, Path(scratch))))
        return 0
    threads = sorted({int(count) for count in options.threads.split(",")})
    path_of("snappy", options.scale)
    peers = options.peers.split(",")
    records = measure_all(peers, threads, options.runs, options.scale, options.scratch, options.only, print)
    return 0 if any(record.peer == OURS for record in records) else 1


if __name__ == "__main__":
    sys.exit(main())
