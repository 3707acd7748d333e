"""``python -m benchmarks.selective``: a few rows of a file with page indexes and bloom filters, beside peers.

The file is read locally, and from an HTTP server with latency before each answer. Each result is compared with NumPy's before
timing; a peer with an error or a different result is reported and not timed. The peers take turns. Bytes over HTTP are counted by
the server. Bytes of a local file are counted by system calls, or for fastpq, with a mapped file, by the reader itself.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastpq
from benchmarks.data import FOLDER
from benchmarks.latency import Served, served

ROWS, GROUP, PAGE = 400_000, 100_000, 5_000
OTHERS = 14
SEED = 1
EAGER = 16 << 20
DEFAULT_LATENCY = 0.02
DEFAULT_RUNS = 20
PLACES = ("local", "http")
Condition = list[tuple[str, str, Any]]


@dataclass(frozen=True)
class Lookup:
    """One measurement.

    Attributes:
        job, place, peer: names.
        seconds: time of the shortest run.
        bytes_read: bytes read in one run.
        requests: data requests in one run; 0 for a local file.
    """

    job: str
    place: str
    peer: str
    seconds: float
    bytes_read: int
    requests: int


def table() -> pa.Table:
    """A sorted key, a token of unique values in random order, and OTHERS columns of numbers: about 50 MB."""
    random = np.random.default_rng(SEED)
    columns = {"key": np.arange(ROWS) * 3, "token": random.permutation(ROWS) * 7}
    return pa.table(columns | {f"other_{i}": random.random(ROWS) for i in range(OTHERS)})


def write_with_pyarrow(data: pa.Table, path: Path) -> None:
    pq.write_table(
        data, path, row_group_size=GROUP, max_rows_per_page=PAGE, write_page_index=True, use_dictionary=False,
        compression="none", bloom_filter_options={"token": {"ndv": GROUP, "fpp": 0.01}},
    )


def jobs(data: pa.Table) -> dict[str, tuple[Condition, list[str]]]:
    """Conditions and output columns of each job."""
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
    """Rows matching a condition, found by NumPy."""
    compare: dict[str, Callable[[Any, Any], Any]] = {"==": np.equal, ">=": np.greater_equal, "<": np.less}
    mask = np.logical_and.reduce([compare[op](data[name].to_numpy(), value) for name, op, value in where])
    return data.filter(pa.array(mask)).select(columns)


def sql(where: Condition) -> str:
    return " AND ".join(f"{name} {'=' if op == '==' else op} {value}" for name, op, value in where)


def by_fastpq(place: str, where: Condition, columns: list[str]) -> pa.Table:
    return pa.table(fastpq.read_table(place, columns, filters=where))


def by_fastpq_eagerly(place: str, where: Condition, columns: list[str]) -> pa.Table:
    """fastpq with a high round_trip_bytes: more bytes than needed are read to save round trips, an option for remote files."""
    properties = fastpq.ReaderProperties(round_trip_bytes=EAGER)
    return pa.table(fastpq.read_table(place, columns, filters=where, properties=properties))


def by_pyarrow(place: str, where: Condition, columns: list[str]) -> pa.Table:
    import fsspec

    filesystem = fsspec.filesystem("http") if place.startswith("http") else None
    return pq.read_table(place, columns=columns, filters=where, filesystem=filesystem)


def by_polars(place: str, where: Condition, columns: list[str]) -> pa.Table:
    import polars as pl

    return pl.scan_parquet(place).filter(pl.sql_expr(sql(where))).select(columns).collect().to_arrow()


@cache
def dated_http() -> Any:
    """HTTP filesystem for DuckDB: its own is a separate download, and fsspec's lacks the time of change needed by DuckDB."""
    from fsspec.implementations.http import HTTPFileSystem

    class Dated(HTTPFileSystem):     # type: ignore[misc]
        def modified(self, path: str) -> datetime:
            return datetime.fromtimestamp(0, UTC)

    return Dated(skip_instance_cache=True)


def by_duckdb(place: str, where: Condition, columns: list[str]) -> pa.Table:
    import duckdb

    with duckdb.connect() as connection:
        if place.startswith("http"):
            connection.register_filesystem(dated_http())
        query = f"SELECT {', '.join(columns)} FROM read_parquet('{place}') WHERE {sql(where)}"
        return connection.sql(query).to_arrow_table()


def by_datafusion(place: str, where: Condition, columns: list[str]) -> pa.Table:
    """HTTP is read as S3 without credentials, since DataFusion's HTTP accepts only TLS."""
    import datafusion
    from datafusion.object_store import AmazonS3

    options = {"datafusion.execution.parquet.pushdown_filters": "true"}
    context = datafusion.SessionContext(datafusion.SessionConfig(options))
    if place.startswith("http"):
        server, bucket, name = place.rsplit("/", 2)
        keys = {"region": "us-east-1", "access_key_id": "none", "secret_access_key": "none"}
        context.register_object_store("s3://", AmazonS3(bucket_name=bucket, endpoint=server, allow_http=True, **keys), bucket)
        place = f"s3://{bucket}/{name}"
    context.register_parquet("data", place)
    return context.sql(f"SELECT {', '.join(columns)} FROM data WHERE {sql(where)}").to_arrow_table()


PEERS = {
    "fastpq": by_fastpq,
    "fastpq-eager": by_fastpq_eagerly,
    "pyarrow": by_pyarrow,
    "polars": by_polars,
    "duckdb": by_duckdb,
    "datafusion": by_datafusion,
}


def read_by_calls() -> int:
    """Bytes read so far by system calls of this process."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def cost(peer: str, place: str, where: Condition, columns: list[str], server: Served) -> tuple[int, int]:
    """Bytes and requests of one run."""
    if place.startswith("http"):
        server.traffic()
        PEERS[peer](place, where, columns)
        traffic = server.traffic()
        return traffic.bytes_sent, traffic.requests
    if peer == "fastpq":
        with fastpq.ParquetFile(place) as file:
            file.read(columns, filters=where)
            return file.io.bytes_read, 0
    before = read_by_calls()
    PEERS[peer](place, where, columns)
    return read_by_calls() - before, 0


def measure(runs: int, latency: float, peers: list[str], say: Callable[[str], None]) -> list[Lookup]:
    """Measure every job at every place, by every peer with the right rows."""
    data = table()
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "indexed.parquet"
    write_with_pyarrow(data, path)
    found: list[Lookup] = []
    with served(FOLDER.parent, latency) as server:
        for job, (where, columns) in jobs(data).items():
            truth = truth_of(data, where, columns).combine_chunks()
            for where_from, place in zip(PLACES, (str(path), f"{server.url}/{FOLDER.name}/{path.name}"), strict=True):
                asked = [name for name in peers if name != "fastpq-eager" or where_from != "local"]
                right = [name for name in asked if is_right(name, place, where, columns, truth, say)]
                costs = {name: cost(name, place, where, columns, server) for name in right}
                seconds = dict.fromkeys(right, float("inf"))
                for _ in range(runs):
                    for name in right:
                        started = time.perf_counter()
                        PEERS[name](place, where, columns)
                        seconds[name] = min(seconds[name], time.perf_counter() - started)
                found += [Lookup(job, where_from, name, seconds[name], *costs[name]) for name in right]
                say(f"{job}, {where_from}: " + ", ".join(f"{name} {seconds[name] * 1000:.1f} ms" for name in right))
    return found


def is_right(
    peer: str, place: str, where: Condition, columns: list[str], truth: pa.Table, say: Callable[[str], None]
) -> bool:
    """Whether a peer finds the right rows; prints the reason if not."""
    try:
        got = PEERS[peer](place, where, columns)
    except Exception as error:
        say(f"{peer}, {place}: {str(error).splitlines()[0][:90]}")
        return False
    same = bool(got.cast(truth.schema).sort_by("key").combine_chunks().equals(truth))
    if not same:
        say(f"{peer}, {place}: differs")
    return same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=DEFAULT_RUNS, help="the shortest counts (default: %(default)s)")
    parser.add_argument(
        "--latency", type=float, default=DEFAULT_LATENCY, help="seconds before each answer (default: %(default)s)"
    )
    parser.add_argument("--peers", default=",".join(PEERS), help="(default: %(default)s)")
    options = parser.parse_args()
    found = measure(options.runs, options.latency, options.peers.split(","), lambda line: print(line, file=sys.stderr))
    print(json.dumps([asdict(lookup) for lookup in found]))


if __name__ == "__main__":
    main()
