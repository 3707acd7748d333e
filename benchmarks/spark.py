"""``tools/bench --spark``: fastpq's data source beside Spark's native reader and writer, on one session, with one key service.

Both sources read the same files of lineitem, written by the native source. Every result is compared before timing. The two
sources take turns, short jobs many times. Of wall times the shortest counts. Of processor times, of the JVM and all Python
workers together, the median of the second half of the turns counts, of short jobs the mean; other programs disturb them less.

A profile measures parts of a job alone: fastpq in this process, without Spark, on one core; and a query over batches already in
memory, leaving only the way to the JVM.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table as Grid

from benchmarks.data import FOLDER, path_of
from benchmarks.lineitem import lineitem
from benchmarks.spark_session import CLIENT, session
from benchmarks.spark_tpch import QUERIES, TABLES

SERVICE = {"kms.client": CLIENT}
UNIFORM = {"parquet.encryption.uniform.key": "lineitem"}
KINDS: dict[str, dict[str, str]] = {"plaintext": {}, "encrypted": UNIFORM}
TWO_COLUMNS = ["l_extendedprice", "l_discount"]
AGGREGATE = "sum(l_extendedprice * l_discount)"
POINT = "l_orderkey"
OURS, NATIVE = "fastpq", "native"
FEW_TICKS = 0.2     # processor seconds; Linux counts them in ticks of 0.01
SETTLING = 20.0     # least seconds of repeated runs of a job: the JVM compiles frequent code during the first runs

Action = Callable[[], Any]


class SparkBench:
    """Measurements on one session."""

    def __init__(self, spark: Any, scale: float, runs: int, scratch: Path, console: Console) -> None:
        self.spark, self.scale, self.runs, self.scratch, self.console = spark, scale, runs, scratch, console
        self.jvm = int(spark._jvm.ProcessHandle.current().pid())
        self.settling = SETTLING
        self.ticks: dict[tuple[int, str], int] = {}     # of processes by their number and start, the ended ones too
        self.ratios: dict[str, tuple[float, float]] = {}        # fastpq's wall and processor time by native's
        self.native_processor: dict[str, float] = {}            # native's processor time
        title = f"seconds on Spark, lineitem at scale factor {scale:g}"
        self.grid = Grid("job", OURS, NATIVE, "ratio", f"{OURS}, CPU", f"{NATIVE}, CPU", "ratio", title=title)
        self.profile = Grid("job", "part", "seconds", title="where the time goes")
        for column in (*self.grid.columns[1:], *self.profile.columns[2:]):
            column.justify = "right"

    def run(self) -> None:
        raw = str(path_of("lineitem", self.scale))
        for kind, options in KINDS.items():
            where = self.scratch / kind
            shutil.rmtree(where, ignore_errors=True)
            self.spark.read.parquet(raw).write.options(**options).parquet(str(where))
            service = SERVICE if options else {}
            self.scan(kind, where, service)
            self.point(kind, where, service)
            self.full(kind, where, service)
            self.columns(kind, where, service)
            self.write(kind, raw, options, service)
        self.queries()

    def ours(self, where: Path, service: dict[str, Any], columns: list[str] | None = None, filters: Any = None) -> Any:
        import fastpq.spark

        return fastpq.spark.read(self.spark, str(where), columns, filters, **service)

    def native(self, where: Path) -> Any:
        return self.spark.read.parquet(str(where))

    def scan(self, kind: str, where: Path, service: dict[str, str]) -> None:
        name = f"{kind}: 2 columns, aggregate"
        self.compare(name, lambda: aggregate(self.ours(where, service, TWO_COLUMNS)), lambda: aggregate(self.native(where)))
        self.parts(name, where, service, TWO_COLUMNS, aggregate)

    def point(self, kind: str, where: Path, service: dict[str, str]) -> None:
        key = self.native(where).agg({POINT: "max"}).first()[0] // 2 // 32 * 32 + 1
        self.compare(
            f"{kind}: point lookup",
            lambda: sorted(map(str, self.ours(where, service, filters=[(POINT, "==", key)]).collect())),
            lambda: sorted(map(str, self.native(where).where(f"{POINT} = {key}").collect())),
        )

    def full(self, kind: str, where: Path, service: dict[str, str]) -> None:
        name = f"{kind}: all columns, to noop"
        self.compare(name, lambda: discard(self.ours(where, service)), lambda: discard(self.native(where)))
        self.parts(name, where, service, None, discard)

    def columns(self, kind: str, where: Path, service: dict[str, str]) -> None:
        """Compare reading by fastpq's jar, with columns and filters from Spark's plans."""
        ours = self.spark.read.format("fastpq").options(**service).load(str(where))
        native = self.native(where)
        key = f"{POINT} = {native.agg({POINT: 'max'}).first()[0] // 2 // 32 * 32 + 1}"
        self.compare(f"jar, {kind}: all columns, to noop", lambda: discard(ours), lambda: discard(native))
        self.compare(f"jar, {kind}: 2 columns, aggregate", lambda: aggregate(ours), lambda: aggregate(native))
        self.compare(f"jar, {kind}: point lookup", lambda: looked_up(ours, key), lambda: looked_up(native, key))

    def queries(self) -> None:
        """Compare queries of TPC-H, each source with its own tables."""
        self.make_tables()
        for number, text in QUERIES.items():
            self.compare(f"jar, TPC-H {number}", partial(self.rows, OURS, text), partial(self.rows, NATIVE, text))

    def make_tables(self) -> None:
        """Make TPC-H's tables in a database for each source. Both have the same files."""
        for name in TABLES:
            where = str(self.scratch / "tables" / name)
            self.spark.read.parquet(str(lineitem(self.scale, FOLDER, name))).write.mode("overwrite").parquet(where)
            for source, format_ in ((OURS, "fastpq"), (NATIVE, "parquet")):
                self.spark.sql(f"create database if not exists spark_catalog.{source}")     # fastpq is a catalog, too
                self.spark.sql(f"drop table if exists spark_catalog.{source}.{name}")
                self.spark.sql(f"create table spark_catalog.{source}.{name} using {format_} options (path '{where}')")

    def rows(self, source: str, text: str) -> Any:
        self.spark.sql(f"use spark_catalog.{source}")
        return self.spark.sql(text).collect()

    def write(self, kind: str, raw: str, options: dict[str, str], service: dict[str, str]) -> None:
        """Compare writing; both writers take rows from the native reader of the raw file."""
        target = self.scratch / "written"

        def ours() -> None:
            shutil.rmtree(target, ignore_errors=True)
            self.native(Path(raw)).write.format("fastpq").mode("append").options(**options, **service).save(str(target))

        def native() -> None:
            shutil.rmtree(target, ignore_errors=True)
            self.native(Path(raw)).write.options(**options).parquet(str(target))

        name = f"{kind}: write"
        self.compare(name, ours, native)
        shutil.rmtree(target, ignore_errors=True)
        self.write_parts(name, raw, target, options | service)

    def write_parts(self, name: str, raw: str, target: Path, options: dict[str, str]) -> None:
        """Profile of writing: Spark without writing, Spark with rows handed to Python, and writing without Spark."""
        from fastpq.spark.options import write_options
        from fastpq.spark.tables import journal
        from fastpq.spark.write.write_task import WriteTask, write_task

        rows = self.native(Path(raw))
        read = shortest(lambda: discard(rows), self.runs)
        self.profile.add_row(name, "native read of the source alone", f"{read:.2f}")
        handed = rows.mapInArrow(drop, "dropped boolean")
        hop = shortest(lambda: discard(handed), self.runs)
        self.profile.add_row(name, "the same, and its rows handed to Python", f"{hop:.2f}")
        parsed, schema, batches = write_options({"path": str(target), **options}), rows.schema, pq.read_table(raw).to_batches()

        def write() -> None:
            os.makedirs(journal.job_folder(str(target), "bench"))
            write_task(iter(batches), WriteTask(schema, parsed, str(target), "bench", 0, 0))
            shutil.rmtree(target)

        alone = shortest(write, self.runs, time.process_time)
        self.profile.add_row(name, "encode, compress and encrypt, one core, no Spark (CPU)", f"{alone:.2f}")

    def compare(self, name: str, ours: Action, native: Action) -> None:
        """Check both sources for equal results, and time the sources in turns."""
        first = ours(), native()
        if first[0] != first[1]:
            raise SystemExit(f"bench: {name}: {first[0]!r} by fastpq, {first[1]!r} by Spark")
        clock: tuple[list[float], list[float]] = ([], [])
        processor: tuple[list[float], list[float]] = ([], [])
        rounds, until = 0, time.perf_counter() + self.settling
        while rounds < self.runs or time.perf_counter() < until:
            rounds += 1
            for place, action in enumerate((ours, native)):
                before = self.processor_time()
                seconds = timed(action)
                spent = self.processor_time() - before
                clock[place].append(seconds)
                processor[place].append(spent)
        typical = mean if median(processor[1]) < FEW_TICKS else median
        best = tuple(map(min, clock)), tuple(typical(times[len(times) // 2 :]) for times in processor)
        self.ratios[name] = best[0][0] / best[0][1], best[1][0] / best[1][1]
        self.native_processor[name] = best[1][1]
        cells = [text for mine, theirs in best for text in (f"{mine:.2f}", f"{theirs:.2f}", f"{mine / theirs:.2f}")]
        self.grid.add_row(name, *cells)
        self.console.print(f"{name}: fastpq {cells[0]} s, native {cells[1]} s; CPU {cells[3]} s and {cells[4]} s")

    def processor_time(self) -> float:
        """Processor seconds of the JVM and its descendants, also of those that have ended since the first call (Linux)."""
        children: dict[int, list[int]] = {}
        found: dict[int, tuple[str, int]] = {}
        for entry in Path("/proc").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                if entry.name.isdigit():
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                    children.setdefault(int(fields[1]), []).append(int(entry.name))
                    found[int(entry.name)] = fields[19], int(fields[11]) + int(fields[12])      # start, utime + stime
        waiting = [self.jvm]
        while waiting:
            process = waiting.pop()
            if process in found:
                start, ticks = found[process]
                self.ticks[process, start] = ticks
            waiting += children.get(process, [])
        return sum(self.ticks.values()) / os.sysconf("SC_CLK_TCK")

    def parts(
        self, name: str, where: Path, service: dict[str, Any], columns: list[str] | None, use: Callable[[Any], Any]
    ) -> None:
        """Profile of reading: reading on one core without Spark, and the query over batches in memory."""
        from fastpq.spark.options import options_as_text, read_options
        from fastpq.spark.scan.dataset_footers import Footers
        from fastpq.spark.scan.frames import project
        from fastpq.spark.scan.reader import plan_scan, schema_of_files
        from fastpq.spark.tables.listing import list_files

        options = read_options({"path": str(where), **options_as_text(service)})
        files, footers = list_files(options.paths), Footers(options.service)
        schema = project(schema_of_files(files, options, footers), columns)
        partitions = plan_scan(files, schema, options, footers)

        def read() -> int:
            return sum(batch.num_rows for partition in partitions for batch in partition.batches())

        rows = read()
        alone = shortest(read, self.runs, time.process_time)
        self.profile.add_row(name, "decrypt and decode, one core, no Spark (CPU)", f"{alone:.2f}")
        batch = next(partitions[0].batches())
        cores = self.spark.sparkContext.defaultParallelism
        count = rows // batch.num_rows // cores

        def hand_over(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                for _ in range(count):
                    yield batch

        hop = self.spark.range(0, cores, 1, cores).mapInArrow(hand_over, schema)
        part = f"the same of {hop.count():,} rows that are in memory, {cores} tasks"
        self.profile.add_row(name, part, f"{shortest(lambda: use(hop), self.runs):.2f}")


def drop(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Consume all batches; yields none."""
    for _ in batches:
        pass
    return iter(())


def aggregate(frame: Any) -> Any:
    return frame.selectExpr(AGGREGATE).first()[0]


def looked_up(frame: Any, condition: str) -> Any:
    return sorted(map(str, frame.where(condition).collect()))


def discard(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def timed(action: Action, clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    action()
    return clock() - started


def shortest(action: Action, runs: int, clock: Callable[[], float] = time.perf_counter) -> float:
    return min(timed(action, clock) for _ in range(runs))


def main(scale: float, runs: int, scratch: Path, console: Console) -> int:
    """Run all measurements, and print the tables."""
    folder = scratch / "fastpq-spark"
    with session(FOLDER.parent.parent / "build" / "spark-bench", ("lineitem",)) as spark:
        bench = SparkBench(spark, scale, runs, folder, console)
        try:
            bench.run()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    console.print(bench.grid)
    console.print(bench.profile)
    console.print("ratio: fastpq's time over that of Spark's native source; smaller is faster")
    return 0
