"""Datasets of many remote files: time and requests of fastpq, Polars and pyarrow, on a server with slow answers.

``python -m benchmarks.datasets`` prints seconds, requests and the ratio to Polars for whole reads and for a filter that needs one
file. The results of all are compared.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import fastpq
from benchmarks.latency import Served, served

FILES, ROWS = 100, 2_000


def readers(urls: list[str]) -> dict[str, dict[str, Callable[[], Any]]]:
    """Functions by job and reader; each returns an Arrow table."""
    condition = ("id", "==", FILES * ROWS - 1)

    def of_pyarrow(**options: Any) -> Any:
        filesystem = fsspec.filesystem("http", skip_instance_cache=True)
        return pq.ParquetDataset(urls, filesystem=filesystem, **options).read()

    return {
        "whole": {
            "fastpq": lambda: fastpq.read_table(urls).to_arrow(),
            "polars": lambda: pl.read_parquet(urls).to_arrow(),
            "pyarrow": of_pyarrow,
        },
        "one row": {
            "fastpq": lambda: fastpq.read_table(urls, filters=[condition]).to_arrow(),
            "polars": lambda: pl.scan_parquet(urls).filter(pl.col("id") == condition[2]).collect().to_arrow(),
            "pyarrow": lambda: of_pyarrow(filters=[condition]),
        },
    }


def measure(server: Served, read: Callable[[], Any]) -> tuple[Any, float, int]:
    """The result of a read, seconds of the second read, and its number of requests for bytes."""
    read()
    server.traffic()
    start = time.perf_counter()
    found = read()
    return found, time.perf_counter() - start, server.traffic().requests


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds before each answer")
    latency = parser.parse_args().latency
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(FILES):
            table = pa.table({"id": np.arange(ROWS) + number * ROWS, "x": np.random.default_rng(number).random(ROWS)})
            pq.write_table(table, folder / f"{number:03}.parquet")
        with served(folder, latency) as server:
            for job, each in readers([f"{server.url}/{number:03}.parquet" for number in range(FILES)]).items():
                found = {reader: measure(server, read) for reader, read in each.items()}
                wanted = sorted(found["polars"][0].to_pylist(), key=lambda row: row["id"])
                for reader, (result, seconds, requests) in found.items():
                    if sorted(result.to_pylist(), key=lambda row: row["id"]) != wanted:
                        raise SystemExit(f"{job}: {reader} differs from Polars")
                    ratio = seconds / found["polars"][1]
                    print(f"{job:8} {reader:8} {seconds:6.2f} s  {requests:4} requests  {ratio:5.2f} of Polars' time")


if __name__ == "__main__":
    main()
