"""Times of functions that rewrite files, beside cp, pyarrow and DuckDB: ``tools/bench --jobs rewriting``.

The file has eight million rows in four columns of numbers, in pages compressed with snappy. Each time is the shortest of several
runs, in seconds, with its ratio to the time of cp. The target exists already, as when a file is replaced.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq

import fastpq

ROWS = 8_000_000
NAMES = ("a", "b", "c", "d")
SEED = 5


def write_source(path: Path) -> None:
    """Write the file that is rewritten."""
    random = np.random.default_rng(SEED)
    columns = {name: random.integers(0, 1 << 40, ROWS) for name in NAMES}
    fastpq.write_table(columns, path, use_dictionary=False, row_group_size=ROWS // 8)


def measured(source: Path, target: Path, appended: Path) -> dict[str, Callable[[], object]]:
    """Return what is measured, by name."""
    few = {name: np.arange(4) for name in NAMES}
    return {
        "cp": lambda: subprocess.run(["cp", str(source), str(target)], check=True),
        "append_table, 4 rows": lambda: fastpq.append_table(few, appended),
        "append_table in place, 4 rows": lambda: fastpq.append_table(few, appended, in_place=True),
        "project_file, all columns": lambda: fastpq.project_file(source, target, NAMES[::-1]),
        "project_file, one column": lambda: fastpq.project_file(source, target, ["c"]),
        "evolve_file": lambda: fastpq.evolve_file(source, target, names={"a": "z"}),
        "strip_file": lambda: fastpq.strip_file(source, target),
        "merge_files": lambda: fastpq.merge_files([source], target),
        "delete_rows, 1 row": lambda: fastpq.delete_rows(source, target, rows=[ROWS // 2]),
        "encrypt_file": lambda: fastpq.encrypt_file(source, target, fastpq.FileEncryptionProperties(bytes(16))),
        "split_file, two files": lambda: fastpq.split_file(source, f"{target}-{{number}}", rows=ROWS // 2),
        "redact_file, one column": lambda: fastpq.redact_file(source, target, ["b"]),
        "add_indexes, nothing missing": lambda: fastpq.add_indexes(source, target),
        "add_indexes, one bloom filter": lambda: fastpq.add_indexes(source, target, bloom_filter={"a": True}),
        "rechunk_file, half row groups": lambda: fastpq.rechunk_file(source, target, row_group_size=ROWS // 16),
        "sort_file, one column": lambda: fastpq.sort_file(source, target, ["a"]),
        "recompress_file, zstd": lambda: fastpq.recompress_file(source, target, "zstd"),
        "pyarrow: write_table(read_table)": lambda: pq.write_table(pq.read_table(source), target),
        "DuckDB: COPY": lambda: duckdb.sql(f"copy (from '{source}') to '{target}' (format parquet)"),
        "DuckDB: COPY, sorted": lambda: duckdb.sql(f"copy (from '{source}' order by a) to '{target}' (format parquet)"),
    }


def shortest(run: Callable[[], object], runs: int) -> float:
    """Return the shortest time of several runs, in seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    options = argparse.ArgumentParser("python -m benchmarks.rewriting", description=__doc__)
    options.add_argument("--runs", type=int, default=5, help="runs of each (default: %(default)s)")
    options.add_argument("--scratch", type=Path, help="folder for the files (default: for temporary files)")
    values = options.parse_args()
    with tempfile.TemporaryDirectory(dir=values.scratch) as folder:
        source, target, appended = (Path(folder) / name for name in ("source.parquet", "target.parquet", "appended.parquet"))
        write_source(source)
        shutil.copy(source, target)
        shutil.copy(source, appended)
        print(f"{source.stat().st_size / 1e6:.0f} MB")
        cp_seconds = 0.0
        for name, run in measured(source, target, appended).items():
            seconds = shortest(run, values.runs)
            cp_seconds = cp_seconds or seconds
            print(f"{name:34} {seconds:7.3f} {seconds / cp_seconds:7.1f} x cp", flush=True)


if __name__ == "__main__":
    main()
