"""The size of files that nobody tuned: ``tools/bench --jobs file-size``, or ``python -m benchmarks.file_size``.

lineitem and the tables of benchmarks.ten_tables are written with ZSTD by each library, with the options that its documentation
recommends for small files. Each library writes from its own table, and reads its own file into its own table. A figure counts
only if pyarrow, DuckDB and Polars read the table's values from the file. The libraries take turns in one process, with one
thread. Time is processor time, and the shortest run counts.
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "1"

import argparse
import gc
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import fastpq
from benchmarks.data import source
from benchmarks.equality import require_equal
from benchmarks.ten_tables import TEN_TABLES

DEFAULT_RUNS = 3
LINEITEM = "lineitem"
TABLES = (*TEN_TABLES, LINEITEM)
OURS = "fastpq"


@dataclass(frozen=True)
class SizeRecord:
    """One measurement.

    Attributes:
        table: name of the table.
        writer: name of the writer.
        bytes: size of the file.
        write, read: processor seconds of the shortest run.
    """

    table: str
    writer: str
    bytes: int
    write: float
    read: float


class SizeWriter(ABC):
    """A library with the options that it writes with."""

    def take(self, table: pa.Table) -> Any:
        """Return the table in the library's own form."""
        return table

    @abstractmethod
    def write(self, table: Any, path: Path) -> object: ...

    @abstractmethod
    def read(self, path: Path) -> Any: ...


class FastpqWriter(SizeWriter):
    def __init__(self, encoding: Literal["auto"] | None) -> None:
        self.encoding = encoding

    def take(self, table: pa.Table) -> Any:
        return table

    def write(self, table: Any, path: Path) -> object:
        return fastpq.write_table(table, path, compression="zstd", encoding=self.encoding, threads=1)

    def read(self, path: Path) -> Any:
        return fastpq.read_table(path, threads=1)


class PyArrowWriter(SizeWriter):
    def write(self, table: Any, path: Path) -> object:
        return pq.write_table(table, path, compression="zstd", store_decimal_as_integer=True)

    def read(self, path: Path) -> Any:
        return pq.read_table(path, use_threads=False, pre_buffer=False, memory_map=True)


class PolarsWriter(SizeWriter):
    def take(self, table: pa.Table) -> Any:
        return pl.from_arrow(table)

    def write(self, table: Any, path: Path) -> object:
        return table.write_parquet(path, compression="zstd")

    def read(self, path: Path) -> Any:
        return pl.read_parquet(path)


class DuckDBWriter(SizeWriter):
    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": 1})

    def take(self, table: pa.Table) -> Any:
        self.connection.register("given", table)
        self.connection.execute("CREATE OR REPLACE TABLE source AS SELECT * FROM given")
        self.connection.unregister("given")
        return "source"

    def write(self, table: Any, path: Path) -> object:
        return self.connection.execute(f"COPY {table} TO '{path}' (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2)")

    def read(self, path: Path) -> Any:
        return self.connection.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow_table()


WRITERS: dict[str, Callable[[], SizeWriter]] = {
    OURS: lambda: FastpqWriter(None),
    "fastpq auto": lambda: FastpqWriter("auto"),
    "pyarrow": PyArrowWriter,
    "polars": PolarsWriter,
    "duckdb": DuckDBWriter,
}


def table_of(name: str, scale: float) -> pa.Table:
    """Return a table by its name. The scale factor is for lineitem."""
    return source(scale) if name == LINEITEM else TEN_TABLES[name]()


def check(path: Path, table: pa.Table) -> None:
    """Compare a file with its table, as pyarrow, DuckDB and Polars read it.

    Raises:
        DifferenceError: a library reads other values.
    """
    require_equal(pq.read_table(path), table)
    with duckdb.connect() as connection:
        require_equal(connection.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow_table(), table)
    require_equal(pl.read_parquet(path).to_arrow(), table)


def measure_table(name: str, table: pa.Table, runs: int, writers: Iterable[str], folder: Path) -> list[SizeRecord]:
    """Measure the writers on one table."""
    chosen = {writer: WRITERS[writer]() for writer in writers}
    taken = {writer: each.take(table) for writer, each in chosen.items()}
    paths = {writer: folder / f"{name}-{writer.replace(' ', '-')}.parquet" for writer in chosen}
    seconds: dict[tuple[str, str], float] = {}

    def timed(writer: str, kind: str, action: Callable[[], object]) -> None:
        gc.collect()
        started = time.process_time()
        result = action()
        spent = time.process_time() - started
        del result
        seconds[writer, kind] = min(spent, seconds.get((writer, kind), float("inf")))

    for run in range(runs + 1):
        for writer, each in chosen.items():
            path = paths[writer]
            path.unlink(missing_ok=True)
            timed(writer, "write", partial(each.write, taken[writer], path))
            timed(writer, "read", partial(each.read, path))
            if run == 0:
                check(path, table)
                del seconds[writer, "write"], seconds[writer, "read"]
    return [
        SizeRecord(name, writer, paths[writer].stat().st_size, seconds[writer, "write"], seconds[writer, "read"])
        for writer in chosen
    ]


def measure(
    runs: int, scale: float, scratch: Path | None, tables: Iterable[str], writers: Iterable[str], note: Callable[[str], object]
) -> list[SizeRecord]:
    """Measure all tables, and give a line about each to ``note``."""
    pa.set_cpu_count(1)
    records: list[SizeRecord] = []
    for name in tables:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            measured = measure_table(name, table_of(name, scale), runs, writers, Path(folder))
        note(line_of(measured))
        records += measured
    return records


def line_of(records: list[SizeRecord]) -> str:
    """Return the figures for one table: MB, then seconds to write and to read, by writer."""
    cells = [f"{each.writer} {each.bytes / 1e6:.3f} MB {each.write:.3f} {each.read:.3f} s" for each in records]
    return f"{records[0].table:11} {' | '.join(cells)}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.file_size", description=__doc__)
    parser.add_argument("--runs", type=int, default=DEFAULT_RUNS, help="the shortest counts (default: %(default)s)")
    parser.add_argument("--scale", type=float, default=1, help="TPC-H scale factor (default: %(default)s)")
    parser.add_argument("--scratch", type=Path, help="folder for the files (default: for temporary files)")
    parser.add_argument("--tables", default=",".join(TABLES), help="any of %(default)s (default: all)")
    parser.add_argument("--writers", default=",".join(WRITERS), help="any of %(default)s (default: all)")
    values = parser.parse_args()
    measure(
        values.runs, values.scale, values.scratch, values.tables.split(","), values.writers.split(","),
        lambda line: print(line, file=sys.stdout, flush=True),
    )


if __name__ == "__main__":
    main()
