"""A pipeline on Spark: TPC-H files to an encrypted, partitioned dataset, aggregated, put under other keys, read natively."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Grid

import fastpq
from benchmarks.lineitem import lineitem
from benchmarks.spark_session import CLIENT, session

FOLDER = Path(__file__).resolve().parent.parent / "build" / "spark-demo"
SERVICE: dict[str, Any] = {"kms.client": CLIENT}
KEYS = {"parquet.encryption.footer.key": "footer", "parquet.encryption.column.keys": "prices:l_extendedprice,l_discount"}
NEW_KEYS: dict[str, Any] = {
    "parquet.encryption.footer.key": "footer-2", "parquet.encryption.column.keys": "prices-2:l_extendedprice,l_discount"
}
PARTITION = "l_shipmode"
AGGREGATE = ("sum(l_extendedprice * l_discount) as revenue", "count(*) as items")
FILTERS = [("l_shipmode", "in", ["AIR", "RAIL"]), ("l_discount", ">=", Decimal("0.05"))]
FILTERS_IN_SQL = "l_shipmode in ('AIR', 'RAIL') and l_discount >= 0.05"
COLUMNS = ["l_extendedprice", "l_discount", PARTITION]


class SparkDemo:
    """Steps of the demo; each adds a line to the table of times, and any unexpected result ends the program."""

    def __init__(self, console: Console, scale: float) -> None:
        self.console, self.scale = console, scale
        self.grid = Grid("step", "seconds", "result", title=f"Spark, lineitem at scale factor {scale:g}")
        self.grid.columns[1].justify = "right"
        self.dataset = FOLDER / "encrypted"

    def run(self) -> Grid:
        FOLDER.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.dataset, ignore_errors=True)
        raw = self.timed("make lineitem (tpchgen-cli)", lambda: lineitem(self.scale, FOLDER), lambda path: path.name)
        with session(FOLDER / "spark", ("footer", "prices", "footer-2", "prices-2")) as spark:
            self.pipeline(spark, raw)
        return self.grid

    def pipeline(self, spark: Any, raw: Path) -> None:
        import fastpq.spark as fs

        truth = self.aggregate(spark.read.parquet(str(raw)).where(FILTERS_IN_SQL))
        self.timed("executors write the dataset", lambda: self.write(fs.read(spark, str(raw))), lambda _: self.described())
        found = self.timed("fastpq: an aggregate with a filter", lambda: self.ours(spark), str)
        self.require(found == truth, "the encrypted dataset gives what the raw files give")
        self.refused(spark)
        report = self.timed("verify_dataset", lambda: fs.verify_dataset(spark, str(self.dataset), **SERVICE), self.summary)
        self.require_ok(report)
        report = self.timed(
            "rotate_keys: other master keys, new data keys",
            lambda: fs.rotate_keys(spark, str(self.dataset), **NEW_KEYS, **SERVICE),
            self.summary,
        )
        self.require_ok(report)
        native = spark.read.parquet(str(self.dataset)).where(FILTERS_IN_SQL)
        found = self.timed("Spark's native reader: the same aggregate", lambda: self.aggregate(native), str)
        self.require(found == truth, "Spark's native reader finds the same under the new keys")
        self.require(self.ours(spark) == truth, "and so does fastpq")

    def write(self, frame: Any) -> None:
        options = {**KEYS, **SERVICE, "partitionBy": PARTITION, "compression": "zstd"}
        frame.write.format("fastpq").mode("overwrite").options(**options).save(str(self.dataset))

    def ours(self, spark: Any) -> tuple[Any, ...]:
        import fastpq.spark as fs

        return self.aggregate(fs.read(spark, str(self.dataset), COLUMNS, FILTERS, **SERVICE))

    @staticmethod
    def aggregate(frame: Any) -> tuple[Any, ...]:
        return tuple(frame.selectExpr(*AGGREGATE).first())

    def refused(self, spark: Any) -> None:
        """Require the refusal of a key in an option: Spark would write the key into plans and logs."""
        import fastpq.spark as fs

        try:
            fs.read(spark, str(self.dataset), **SERVICE, footer_key="00" * 16)   # type: ignore[call-arg]
        except fastpq.SchemaError as error:
            self.console.print(f"  a key in an option: [red]SchemaError[/red]: {str(error)[:76]}...", highlight=False)
            return
        raise SystemExit("demo: a key in an option should have been refused")

    def described(self) -> str:
        files = list(self.dataset.rglob("*.parquet"))
        return f"{len(files)} encrypted files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB"

    @staticmethod
    def summary(report: Any) -> str:
        rows = report.collect()
        return f"{sum(row.status == 'ok' for row in rows)} of {len(rows)} files ok"

    def require_ok(self, report: Any) -> None:
        self.require({row.status for row in report.collect()} == {"ok"}, "every file is in order")

    def timed(self, step: str, action: Callable[[], Any], result: Callable[[Any], str]) -> Any:
        self.console.print(f"[bold]{step}[/bold] ...")
        started = time.perf_counter()
        value = action()
        self.grid.add_row(step, f"{time.perf_counter() - started:.2f}", result(value))
        return value

    @staticmethod
    def require(condition: bool, what: str) -> None:
        if not condition:
            raise SystemExit(f"demo: it is not true that {what}")
