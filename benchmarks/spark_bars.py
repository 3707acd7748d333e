"""``tools/bench --jobs spark``: fastpq's jar beside Spark's native source, each job with the bar that it must not exceed.

A bar is the largest share of native's time. The sources take turns. Results are compared before timing.

For TPC-H's queries, the share of native's processor time is shown that is not spent in its scans of files: joins, aggregates and
exchanges, which no reader of files can save.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from math import exp, log
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table as Grid

from benchmarks.data import FOLDER, path_of
from benchmarks.spark import NATIVE, OURS, SparkBench, discard
from benchmarks.spark_session import session
from benchmarks.spark_tpch import QUERIES

SMALL_FILES, SMALL_ROWS = 2000, 100
WIDE_COLUMNS, WIDE_ROWS, WIDE_FILES = 500, 200_000, 4
NESTED_ROWS = 1_000_000
MEAN_BAR = 0.7      # for the geometric mean of TPC-H's queries
FORMATS = {OURS: "fastpq", NATIVE: "parquet"}


def small_files(folder: Path) -> None:
    """Write many files of a few rows."""
    for number in range(SMALL_FILES):
        ids = np.arange(SMALL_ROWS) + number * SMALL_ROWS
        columns = {"id": ids, "price": ids / 7, "text": [f"text {value}" for value in ids.tolist()]}
        pq.write_table(pa.table(columns), folder / f"{number:04}.parquet")


def wide_files(folder: Path) -> None:
    """Write files of many columns."""
    random = np.random.default_rng(1)
    for number in range(WIDE_FILES):
        columns = {f"c{column}": random.integers(0, 1 << 40, WIDE_ROWS // WIDE_FILES) for column in range(WIDE_COLUMNS)}
        pq.write_table(pa.table(columns), folder / f"{number}.parquet")


def nested_files(folder: Path) -> None:
    """Write lists and structs."""
    random = np.random.default_rng(1)
    for number in range(2):
        rows = NESTED_ROWS // 2
        offsets = np.concatenate([[0], np.cumsum(random.integers(0, 5, rows))]).astype(np.int32)
        lists = pa.ListArray.from_arrays(offsets, random.integers(0, 1000, offsets[-1]))
        pair = pa.StructArray.from_arrays([random.integers(0, 50, rows), pa.array(random.random(rows))], ["key", "value"])
        pq.write_table(pa.table({"numbers": lists, "pair": pair}), folder / f"{number}.parquet")


SHAPES: dict[str, tuple[Callable[[Path], None], dict[str, str]]] = {
    "small": (small_files, {
        f"{SMALL_FILES:,} small files, aggregate": "select sum(id), max(text), avg(price) from {}",
        f"{SMALL_FILES:,} small files, filter": "select count(text) from {} where id % 1000 = 3",
        f"{SMALL_FILES:,} small files, count(*)": "select count(*) from {}",
    }),
    "wide": (wide_files, {f"3 of {WIDE_COLUMNS} columns": "select sum(c7), sum(c222), sum(c498) from {}"}),
    "nested": (nested_files, {
        "nested, group by a field": "select pair.key, sum(pair.value) > 0, count(*) from {} group by pair.key order by 1",
        "nested, aggregate of lists": "select sum(size(numbers)), sum(aggregate(numbers, 0L, (a, b) -> a + b)) from {}",
        "nested, exploded group": "select n % 10, count(*) from (select explode(numbers) n from {}) group by 1 order by 1",
    }),
}


class SparkBars:
    """Measurements with their bars, on one session."""

    def __init__(self, bench: SparkBench) -> None:
        self.bench, self.spark = bench, bench.spark
        bench.settling = 0
        self.bars: dict[str, float] = {}
        self.without_scans: dict[str, float] = {}       # share of native's processor time

    def compare(self, name: str, bar: float, ours: Callable[[], Any], native: Callable[[], Any]) -> None:
        self.bars[name] = bar
        self.bench.compare(name, ours, native)

    def shapes(self) -> None:
        """Compare files of unusual shapes, and rows that are counted."""
        for kind, (make, statements) in SHAPES.items():
            folder = self.bench.scratch / kind
            folder.mkdir(parents=True)
            make(folder)
            for name, statement in statements.items():
                self.compare(name, 1.0, *(partial(self.rows_of, statement, source, folder) for source in FORMATS))
            shutil.rmtree(folder)

    def lineitem(self) -> None:
        """Compare counts, full reads and writes of lineitem."""
        raw = path_of("lineitem", self.bench.scale)
        statements = {
            "count(*)": "select count(*) from {}",
            "min and max": "select min(l_shipdate), max(l_orderkey) from {}",
            "limit": "select * from {} limit 100",
            "first rows": "select * from {} order by l_shipdate desc, l_orderkey, l_linenumber limit 10",
        }
        where = self.bench.scratch / "plain"
        shutil.rmtree(where, ignore_errors=True)
        self.spark.read.parquet(str(raw)).write.parquet(str(where))
        for name, statement in statements.items():
            action = self.rows_of if name != "limit" else self.row_count
            self.compare(name, 1.0, *(partial(action, statement, source, where) for source in FORMATS))
        frames = [self.spark.read.format(format_).load(str(where)) for format_ in FORMATS.values()]
        self.compare("all columns, to noop", 0.6, *(partial(discard, frame) for frame in frames))
        self.compare("write", 0.6, *(partial(self.write, frames[1], format_) for format_ in FORMATS.values()))

    def write(self, rows: Any, format_: str) -> None:
        rows.write.format(format_).mode("overwrite").save(str(self.bench.scratch / "written"))

    def rows_of(self, statement: str, source: str, where: Path) -> Any:
        self.spark.read.format(FORMATS[source]).load(str(where)).createOrReplaceTempView("measured")
        return self.spark.sql(statement.format("measured")).collect()

    def row_count(self, statement: str, source: str, where: Path) -> int:
        return len(self.rows_of(statement, source, where))

    def queries(self) -> None:
        """Compare TPC-H."""
        self.bench.make_tables()
        for number, text in QUERIES.items():
            self.compare(f"TPC-H {number}", 1.0, *(partial(self.bench.rows, source, text) for source in FORMATS))
        self.measure_scans()

    def measure_scans(self) -> None:
        """Measure how much of TPC-H's time native spends outside its scans."""
        self.spark.sql(f"use spark_catalog.{NATIVE}")
        for number, text in QUERIES.items():
            shares = []
            for _ in range(self.bench.runs):
                before = self.bench.processor_time()
                rows = self.spark.sql(text)
                rows.collect()
                spent = self.bench.processor_time() - before
                shares.append(1 - scan_seconds(rows._jdf.queryExecution().executedPlan()) / spent)
            name = f"TPC-H {number}"
            self.without_scans[name] = median(shares[len(shares) // 2 :])
            self.bench.console.print(f"{name}: {self.without_scans[name]:.2f} of native's processor time is not spent in scans")

    def grid(self) -> tuple[Grid, bool]:
        """The table of ratios, and whether each is within its bar."""
        grid = Grid("job", "wall time", "processor time", "without scans", "bar", "")
        ratios = dict(self.bench.ratios)
        tpch = [ratios[name] for name in ratios if name.startswith("TPC-H")]
        if tpch:
            wall, processor = (exp(mean(log(ratio[place]) for ratio in tpch)) for place in range(2))
            ratios["TPC-H, geometric mean"] = wall, processor
            self.without_scans["TPC-H, geometric mean"] = exp(mean(map(log, self.without_scans.values())))
        bars = {**self.bars, "TPC-H, geometric mean": MEAN_BAR}
        missed = [name for name, (wall, _) in ratios.items() if wall > bars[name]]
        for name, (wall, processor) in ratios.items():
            floor = f"{self.without_scans[name]:.2f}" if name in self.without_scans else ""
            grid.add_row(name, f"{wall:.2f}", f"{processor:.2f}", floor, f"{bars[name]:.1f}", "missed" if name in missed else "")
        return grid, not missed


def scan_seconds(plan: Any) -> float:
    """Return how long the scans of files took in a query that has run. Tasks count one after another.

    Args:
        plan: the physical plan, an object in the JVM.
    """
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        return scan_seconds(plan.executedPlan())
    if kind.endswith("QueryStageExec"):
        return scan_seconds(plan.plan())
    if kind == "ReusedExchangeExec":
        return 0
    scan_time = plan.metrics().get("scanTime")      # milliseconds
    seconds: float = scan_time.get().value() / 1000 if scan_time.isDefined() else 0
    for inner in (plan.children(), plan.subqueries()):
        seconds += sum(scan_seconds(inner.apply(number)) for number in range(inner.size()))
    return seconds


def main(scale: float, runs: int, scratch: Path, console: Console) -> int:
    """Run all measurements, and print them with their bars. Return 1 if a bar is missed."""
    folder = scratch / "fastpq-spark-bars"
    shutil.rmtree(folder, ignore_errors=True)
    with session(FOLDER.parent.parent / "build" / "spark-bench", ("lineitem",), memory="6g") as spark:
        bars = SparkBars(SparkBench(spark, scale, runs, folder, console))
        try:
            bars.shapes()
            bars.lineitem()
            bars.queries()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    grid, is_within = bars.grid()
    console.print(bars.bench.grid)
    console.print(grid)
    return 0 if is_within else 1

