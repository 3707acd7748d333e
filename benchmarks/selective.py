"""``python -m benchmarks.selective``: a few rows of a file with page indexes and bloom filters, beside peers.

From a local file and from an HTTP server with latency, whose own counters tell requests and bytes. Each result is compared with
NumPy's before it is timed; a peer that fails or differs is named.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

import fastpq
from benchmarks.data import FOLDER
from tests.remote.range_server import serving

ROWS, GROUP, PAGE = 400_000, 100_000, 5_000
OTHERS = 14
SEED = 1
Condition = list[tuple[str, str, Any]]


def table() -> pa.Table:
    """A sorted key, a token that occurs once each in no order, and OTHERS columns of numbers: about 50 MB."""
    random = np.random.default_rng(SEED)
    columns = {"key": np.arange(ROWS) * 3, "token": random.permutation(ROWS) * 7}
    return pa.table(columns | {f"other_{i}": random.random(ROWS) for i in range(OTHERS)})


def write_with_pyarrow(data: pa.Table, path: Path) -> None:
    pq.write_table(
        data, path, row_group_size=GROUP, max_rows_per_page=PAGE, write_page_index=True, use_dictionary=False,
        compression="none", bloom_filter_options={"token": {"ndv": GROUP, "fpp": 0.01}},
    )  # fmt: skip


def jobs(data: pa.Table) -> dict[str, tuple[Condition, list[str]]]:
    """What each job's conditions are, and which columns it returns."""
    middle, few, every = ROWS // 2 * 3, ["key", "other_0"], data.column_names

    def share(part: float) -> Condition:
        return [("key", ">=", middle), ("key", "<", middle + int(3 * ROWS * part))]

    return {
        "point-sorted": ([("key", "==", middle)], few),
        "range-0.1%": (share(0.001), few),
        "range-1%": (share(0.01), few),
        "range-10%": (share(0.1), few),
        "point-bloom": ([("token", "==", data["token"][ROWS // 3].as_py())], few),
        "filter-15-others": (share(0.001), every),
    }


def truth_of(data: pa.Table, where: Condition, columns: list[str]) -> pa.Table:
    """The rows as NumPy finds them."""
    compare: dict[str, Callable[[Any, Any], Any]] = {"==": np.equal, ">=": np.greater_equal, "<": np.less}
    mask = np.logical_and.reduce([compare[op](data[name].to_numpy(), value) for name, op, value in where])
    return data.filter(pa.array(mask)).select(columns)


def sql(where: Condition) -> str:
    return " AND ".join(f"{name} {'=' if op == '==' else op} {value}" for name, op, value in where)


def by_fastpq(place: str, where: Condition, columns: list[str]) -> pa.Table:
    return pa.table(fastpq.read_table(place, columns, filters=where))


def by_pyarrow(place: str, where: Condition, columns: list[str]) -> pa.Table:
    filesystem = None
    if place.startswith("http"):
        import fsspec

        filesystem = fsspec.filesystem("http")
    return pq.read_table(place, columns=columns, filters=where, filesystem=filesystem)


def by_polars(place: str, where: Condition, columns: list[str]) -> pa.Table:
    import polars as pl

    return pl.scan_parquet(place).filter(pl.sql_expr(sql(where))).select(columns).collect().to_arrow()


def by_duckdb(place: str, where: Condition, columns: list[str]) -> pa.Table:
    import duckdb

    with duckdb.connect() as connection:
        query = f"SELECT {', '.join(columns)} FROM read_parquet('{place}') WHERE {sql(where)}"
        return connection.sql(query).to_arrow_table()


def by_datafusion(place: str, where: Condition, columns: list[str]) -> pa.Table:
    import datafusion
    from datafusion.object_store import Http

    options = {"datafusion.execution.parquet.pushdown_filters": "true"}
    context = datafusion.SessionContext(datafusion.SessionConfig(options))
    if place.startswith("http"):
        root = place.rpartition("/")[0]
        context.register_object_store("http://", Http(root), root.removeprefix("http://"))
    context.register_parquet("data", place)
    return context.sql(f"SELECT {', '.join(columns)} FROM data WHERE {sql(where)}").to_arrow_table()


PEERS = {
    "fastpq": by_fastpq,
    "pyarrow": by_pyarrow,
    "polars": by_polars,
    "duckdb": by_duckdb,
    "datafusion": by_datafusion,
}


def shortest(action: Callable[[], Any], runs: int) -> float:
    seconds = []
    for _ in range(runs):
        started = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="the shortest counts (default: %(default)s)")
    parser.add_argument("--latency", type=float, default=0.02, help="seconds before each answer (default: %(default)s)")
    parser.add_argument("--peers", default=",".join(PEERS), help="(default: %(default)s)")
    options = parser.parse_args()
    console, data = Console(width=130), table()
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "indexed.parquet"
    write_with_pyarrow(data, path)
    with serving(FOLDER, options.latency) as server:
        for job, (where, columns) in jobs(data).items():
            truth = truth_of(data, where, columns)
            for name in options.peers.split(","):
                for place in (str(path), f"{server.url}/{path.name}"):
                    where_from = "http" if place.startswith("http") else "local"
                    read, line = PEERS[name], f"{job:18}{name:12}{where_from:6}"
                    server.reset()
                    try:
                        got = read(place, where, columns)
                    except Exception as error:
                        console.print(f"{line} failed: {str(error).splitlines()[0][:90]}", markup=False, highlight=False)
                        continue
                    counts = f"{server.requests:4} requests {server.bytes_sent:10} bytes" if where_from == "http" else ""
                    if not got.cast(truth.schema).sort_by("key").equals(truth.combine_chunks()):
                        console.print(f"{line} differs", highlight=False)
                        continue
                    seconds = shortest(partial(read, place, where, columns), options.runs)
                    console.print(f"{line} {seconds:7.4f} s {counts}", highlight=False)


if __name__ == "__main__":
    main()
