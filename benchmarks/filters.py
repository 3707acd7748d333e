"""Filters whose rows lie everywhere in lineitem, beside Polars: ``python -m benchmarks.filters``.

Printed for each filter: the share of matching rows, and the processor seconds and the elapsed seconds of fastpq and of Polars,
with their ratio. The readers take turns in one process; printed are medians. Both tables are compared first.

With ``--sweep``, the filters are comparisons of a random column, from one row in a thousand to nearly all, and one column of
each encoding is read. Two trees are compared by the figures that each prints.

With ``--lists``, the filters are ``in`` with 1 to 1,000,000 values on 5,000,000 rows, beside pyarrow, Polars and DuckDB.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastpq
from benchmarks.data import FOLDER, path_of
from benchmarks.equality import require_equal

SEED = 1
ROWS, GROUP = 2_000_000, 250_000        # of the file for --sweep
WORDS = 500
SHARES = (1, 10, 100, 300, 500, 900, 990)       # of 1000 rows
Condition = list[tuple[str, str, Any]]
TWO = ["l_orderkey", "l_extendedprice"]
MODE: Condition = [("l_shipmode", "==", "AIR")]
FEW: Condition = [("l_returnflag", "==", "R"), ("l_quantity", "<", 10)]
RARE: Condition = [("l_partkey", "<", 2000)]
ENCODED = {
    "plain": "PLAIN", "delta": "DELTA_BINARY_PACKED", "text": "PLAIN", "nullable": "PLAIN", "split": "BYTE_STREAM_SPLIT",
    "flag": "PLAIN", "fixed": "PLAIN",
}


class Filter(NamedTuple):
    """One measurement.

    Attributes:
        name: printed.
        condition: in the form of fastpq.
        columns: of the result; None for all.
    """

    name: str
    condition: Condition
    columns: list[str] | None


class Seconds(NamedTuple):
    """Processor and elapsed seconds of one read."""

    processor: float
    elapsed: float


FILTERS = (
    Filter("text ==, 2 columns", MODE, TWO),
    Filter("text in 3, 2 columns", [("l_shipmode", "in", ["AIR", "RAIL", "SHIP"])], TWO),
    Filter("text starts with, 2 columns", [("l_shipinstruct", "starts with", "DELIVER")], TWO),
    Filter("text == and number <, 2 columns", FEW, TWO),
    Filter("number <, 2 columns", [("l_quantity", "<", 10)], TWO),
    Filter("number ==, 2 columns", [("l_discount", "==", Decimal("0.05"))], TWO),
    Filter("long text starts with, 2 columns", [("l_comment", "starts with", "carefully")], TWO),
    Filter("rare number <, 2 columns", RARE, TWO),
    Filter("text ==, text", MODE, ["l_comment"]),
    Filter("text ==, all columns", MODE, None),
    Filter("text == and number <, all columns", FEW, None),
    Filter("rare number <, all columns", RARE, None),
)


def sweep_file() -> Path:
    """A file with a random column ``pick`` from 0 to 999, and a column in each of several encodings; made once."""
    path = FOLDER / "sweep.parquet"
    if path.exists():
        return path
    random = np.random.default_rng(SEED)
    words = pa.array([f"word number {i}" if i % 2 else f"w{i}" for i in range(WORDS)])
    codes, null = random.integers(0, WORDS, ROWS), random.random(ROWS) < 0.1
    table = pa.table({
        "pick": random.integers(0, 1000, ROWS).astype(np.int32),
        "few": pa.array(codes * 12345),
        "words": words.take(pa.array(codes)),
        "few_nullable": pa.array(codes, mask=null),
        "plain": random.integers(0, 1 << 60, ROWS),
        "delta": np.arange(ROWS) * 3,
        "text": pa.array([f"value {i} of it" for i in random.integers(0, 1 << 40, ROWS).tolist()]),
        "nullable": pa.array(random.random(ROWS), mask=null),
        "split": random.random(ROWS).astype(np.float32),
        "flag": random.random(ROWS) < 0.3,
        "fixed": pa.FixedSizeBinaryArray.from_buffers(pa.binary(12), ROWS, [None, pa.py_buffer(random.bytes(12 * ROWS))]),
    })
    FOLDER.mkdir(parents=True, exist_ok=True)
    being_made = path.with_suffix(".part")
    dictionaries = [name for name in table.column_names if name not in ENCODED]
    pq.write_table(
        table, being_made, compression="snappy", use_dictionary=dictionaries, column_encoding=ENCODED, row_group_size=GROUP)
    being_made.replace(path)
    return path


def sweep(path: Path) -> Iterator[Filter]:
    for column in pq.read_schema(path).names[1:]:
        for share in SHARES:
            yield Filter(f"{column}, {share / 10:g} %", [("pick", "<", share)], [column])


LIST_ROWS = 5_000_000
LIST_SIZES = (1, 1000, 100_000, 1_000_000)


def lists_file() -> Path:
    """A file with a random column ``id``, the same numbers as text, and a column of floats; made once."""
    path = FOLDER / "lists.parquet"
    if not path.exists():
        random = np.random.default_rng(SEED)
        numbers = random.integers(0, 10 * LIST_ROWS, LIST_ROWS)
        table = pa.table({"id": numbers, "text": pa.array(numbers).cast(pa.string()), "value": random.random(LIST_ROWS)})
        FOLDER.mkdir(parents=True, exist_ok=True)
        being_made = path.with_suffix(".part")
        pq.write_table(table, being_made, compression="snappy", use_dictionary=False, row_group_size=LIST_ROWS // 10)
        being_made.replace(path)
    return path


def measure_list(path: Path, column: str, count: int, threads: int, rounds: int) -> None:
    """Read the rows with one of so many values by four readers in turn, compare the tables and print the medians."""
    import duckdb
    import polars as pl

    numbers = np.random.default_rng(SEED + 1).choice(10 * LIST_ROWS, count, replace=False).tolist()
    values = numbers if column == "id" else list(map(str, numbers))
    connection = duckdb.connect(config={"threads": threads})
    keys = pa.table({"key": values})

    def by_duckdb() -> pa.Table:
        connection.register("keys", keys)
        return connection.execute(f"SELECT * FROM '{path}' WHERE {column} IN (SELECT key FROM keys)").to_arrow_table()

    readers: dict[str, Callable[[], Any]] = {
        "fastpq": lambda: fastpq.read_table(path, filters=[(column, "in", values)], threads=threads),
        "pyarrow": lambda: pq.read_table(path, filters=[(column, "in", values)]),
        "Polars": lambda: pl.scan_parquet(path).filter(pl.col(column).is_in(values)).collect(),
        "DuckDB": by_duckdb,
    }
    require_equal(readers["pyarrow"](), pa.table(readers["fastpq"]()))
    times: dict[str, list[Seconds]] = {name: [] for name in readers}
    for _ in range(rounds):
        for name, read in readers.items():
            times[name].append(timed(read))
    line = f"{column:4} in {count:9,}"
    for name, each in times.items():
        processor, elapsed = (statistics.median(one[kind] for one in each) for kind in range(2))
        line += f"   {name} {processor:.3f} {elapsed:.3f}"
    print(line, flush=True)


def by_fastpq(path: Path, task: Filter, threads: int) -> Any:
    return fastpq.read_table(path, columns=task.columns, filters=task.condition, threads=threads)


def by_polars(path: Path, task: Filter) -> Any:
    import polars as pl

    expressions: dict[str, Callable[[Any, Any], Any]] = {
        "==": lambda column, value: column == value,
        "<": lambda column, value: column < value,
        "in": lambda column, values: column.is_in(values),
        "starts with": lambda column, prefix: column.str.starts_with(prefix),
    }
    frame = pl.scan_parquet(path).filter(*(expressions[name](pl.col(column), value) for column, name, value in task.condition))
    return (frame.select(task.columns) if task.columns else frame).collect()


def timed(read: Callable[[], Any]) -> Seconds:
    elapsed, processor = time.perf_counter(), time.process_time()
    read()
    return Seconds(time.process_time() - processor, time.perf_counter() - elapsed)


def measure(path: Path, task: Filter, threads: int, rounds: int) -> None:
    """Compare the tables of both readers, then print a line.

    Raises:
        DifferenceError: the tables differ.
    """
    ours, theirs = pa.table(by_fastpq(path, task, threads)), by_polars(path, task).to_arrow()
    require_equal(theirs, ours)
    share = 100 * ours.num_rows / pq.read_metadata(path).num_rows
    del ours, theirs
    times = [(timed(lambda: by_fastpq(path, task, threads)), timed(lambda: by_polars(path, task))) for _ in range(rounds)]
    line = f"{task.name:34} {share:6.1f} %"
    for kind in range(2):
        first, second = (statistics.median(pair[reader][kind] for pair in times) for reader in range(2))
        line += f"   {first:7.3f} {second:7.3f} {first / second:5.2f}"
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.filters", description=__doc__)
    parser.add_argument("--sweep", action="store_true", help="one column at a time, by the share of matching rows")
    parser.add_argument("--scale", type=float, default=1, help="TPC-H scale factor (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="threads of a read (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="timed reads of each reader (default: %(default)s)")
    parser.add_argument("--only", default="", help="names of filters contain this text")
    parser.add_argument("--lists", action="store_true", help="filters 'in', by the number of values")
    options = parser.parse_args()
    os.environ["POLARS_MAX_THREADS"] = str(options.threads)
    if options.lists:
        path = lists_file()
        print(f"{path.name}, {options.threads} threads; processor and elapsed seconds, medians of {options.rounds}")
        for column in ("id", "text"):
            for count in LIST_SIZES:
                measure_list(path, column, count, options.threads, options.rounds)
        return
    path = sweep_file() if options.sweep else path_of("lineitem", options.scale)
    print(f"{path.name}, {options.threads} threads; fastpq, Polars, ratio")
    print(f"{'filter':34} {'rows':>8}   {'processor':>21}   {'elapsed':>21}")
    for task in sweep(path) if options.sweep else FILTERS:
        if options.only in task.name:
            measure(path, task, options.threads, options.rounds)


if __name__ == "__main__":
    main()
