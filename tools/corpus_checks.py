"""Checks of one Parquet file: read whole beside other readers, then filtered, in part, encrypted, merged and written.

``python -m tools.corpus_checks`` is the child process of tools/corpus.py. Each line of standard input is a request in JSON; the
answers are lines in JSON: a stage before each check, and a result at the end.
"""

from __future__ import annotations

import faulthandler
import io
import json
import operator
import random
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import fastpq
from tests.corrupt.worker import limit_memory
from tests.interop.comparison import difference, plain

KEY = bytes(range(16))
INT96_UNITS: tuple[Literal["ns", "us", "ms"], ...] = ("ns", "us", "ms")
OUTSIDE_THE_UNIT = "INT96 timestamp outside"
TOO_DEEP = "Recursion level in ArrowSchema"      # pyarrow's words
FILTERED_COLUMNS = 5
MOST_VALUES = 300_000       # of a table with all filters; larger tables have fewer filtered columns
CONDITIONS = 3      # of a column of a larger table
BATCHES = 7     # least number of batches of a file
COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}


@dataclass
class Result:
    """Outcomes of the checks of a file.

    Attributes:
        rows: number of rows; None where the file is refused.
        checks: for each check ``"right"``, ``"refused: ..."``, ``"wrong: ..."`` or ``"untyped: ..."``.
        peers: for each other reader ``"same"``, ``"differs: ..."`` or ``"refuses: ..."``.
    """

    rows: int | None = None
    checks: dict[str, str] = field(default_factory=dict)
    peers: dict[str, str] = field(default_factory=dict)


def tell(**message: Any) -> None:
    print(json.dumps(message), flush=True)


def first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:300]}"


def table_difference(got: pa.Table, truth: pa.Table) -> str | None:
    """A description of the first difference between two tables, with columns in order; None for equal tables."""
    if got.num_rows != truth.num_rows:
        return f"{got.num_rows} rows, not {truth.num_rows}"
    if got.num_columns != truth.num_columns:
        return f"{got.num_columns} columns, not {truth.num_columns}"
    for name, one, other in zip(truth.column_names, got.columns, truth.columns, strict=True):
        if what := difference(one, other):
            return f"column {name!r}: {what}"[:400]
    return None


# ---- other readers


def read_pyarrow(where: Any, unit: str = "ns") -> pa.Table:
    with pq.ParquetFile(where, coerce_int96_timestamp_unit=unit) as file:
        return file.read()


def read_duckdb(path: Path, unit: str = "ns") -> pa.Table:
    with duckdb.connect() as connection:
        escaped = str(path).replace("'", "''")
        return connection.sql(f"SELECT * FROM read_parquet('{escaped}', hive_partitioning=false)").to_arrow_table()


def read_polars(path: Path, unit: str = "ns") -> pa.Table:
    return pl.read_parquet(path, hive_partitioning=False, glob=False).to_arrow()


PEERS: dict[str, Callable[[Path, str], pa.Table]] = {"pyarrow": read_pyarrow, "duckdb": read_duckdb, "polars": read_polars}


def ask_peers(path: Path, truth: pa.Table | None, unit: str, skipped: dict[str, str]) -> dict[str, str]:
    """The outcomes of other readers, until one reads the same table; of all of them without a table."""
    found = dict(skipped)
    for name, read in PEERS.items():
        if name in skipped:
            continue
        tell(stage=f"peer {name}")
        try:
            table = read(path, unit)
            what = table_difference(truth, table) if truth is not None else None
        except BaseException as error:      # a panic of Rust is no Exception
            found[name] = f"refuses: {first_line(error)}"
            continue
        found[name] = "reads" if truth is None else "same" if what is None else f"differs: {what}"
        if found[name] == "same":
            break
    return found


# ---- fastpq


class FileChecks:
    """One file with its whole table as truth.

    Args:
        path: the file.
        result: takes the outcomes.
    """

    def __init__(self, path: Path, result: Result) -> None:
        self.path = path
        self.result = result
        self.chance = random.Random(path.name)
        self.unit: Literal["ns", "us", "ms"] = "ns"
        self.skipped: dict[str, str] = {}       # peers that crash
        self.whole: fastpq.Table
        self.truth: pa.Table

    def attempt(self, name: str, check: Callable[[], str | None]) -> bool:
        """Enter the outcome of a check; whether the check succeeded."""
        tell(stage=name)
        try:
            what = check()
        except fastpq.ParquetError as error:
            outcome = f"refused: {first_line(error)}"
        except Exception as error:      # the finding
            place = "; ".join(line.strip() for line in traceback.format_tb(error.__traceback__)[-1].splitlines())
            outcome = f"untyped: {first_line(error)} in {place}"
        else:
            outcome = "right" if what is None else f"wrong: {what}"
        if self.result.checks.get(name, "right") == "right":
            self.result.checks[name] = outcome
        return outcome == "right"

    def read_whole(self) -> str | None:
        """Read the whole table, with INT96 timestamps in the finest unit with room for all of them."""
        for unit in INT96_UNITS:
            self.unit = unit
            try:
                self.whole = fastpq.read_table(self.path, coerce_int96_timestamp_unit=unit)
                break
            except fastpq.UnsupportedError as error:
                if OUTSIDE_THE_UNIT not in str(error) or unit == INT96_UNITS[-1]:
                    raise
        self.result.rows = self.whole.num_rows
        return None

    def export(self) -> str | None:
        """Export the table to Arrow, and validate the table in full."""
        try:
            self.truth = pa.table(self.whole)
        except pa.ArrowInvalid as error:
            if TOO_DEEP not in str(error):
                raise
            raise fastpq.UnsupportedError("a column nested deeper than pyarrow takes") from error
        self.truth.validate(full=True)
        return None

    def run(self, skipped: dict[str, str]) -> None:
        """Run all checks. Peers in ``skipped`` are not asked; the values are their outcomes."""
        self.skipped = skipped
        if not self.attempt("read", self.read_whole) or not self.attempt("export", self.export):
            self.result.peers = ask_peers(self.path, None, self.unit, skipped)
            return
        self.result.peers = ask_peers(self.path, self.truth, self.unit, skipped)
        if not self.attempt("offsets", self.without_views):
            return
        for name, check in {
            "default unit": self.in_default_unit,
            "layouts": self.layouts,
            "batches": self.batches,
            "row ranges": self.row_ranges,
            "take": self.take,
            "encrypt": self.encrypted,
            "merge": self.merged,
            "write": self.written,
            "write again": self.written_otherwise,
            "write for others": self.written_for_others,
        }.items():
            self.attempt(name, check)
        self.attempt("bounds", self.check_bounds)
        self.check_filters()

    def without_views(self) -> str | None:
        """The truth of all other checks has no views, of which pyarrow takes no rows."""
        views, self.truth = self.truth, self.read_offsets(self.path)
        return table_difference(self.truth, views)

    def opened(self, **options: Any) -> fastpq.ParquetFile:
        return fastpq.ParquetFile(self.path, **{"coerce_int96_timestamp_unit": self.unit, "strings": "offsets"} | options)

    def read_offsets(self, where: Any) -> pa.Table:
        return pa.table(fastpq.read_table(where, coerce_int96_timestamp_unit=self.unit, strings="offsets"))

    def in_default_unit(self) -> str | None:
        """Read without a unit for INT96 timestamps; columns may come in finer units than the truth."""
        got = pa.table(fastpq.read_table(self.path, strings="offsets"))
        schema = [one if one.type.equals(other.type) else other for one, other in zip(got.schema, self.truth.schema, strict=True)]
        return table_difference(got.cast(pa.schema(schema), safe=False), self.truth)

    def layouts(self) -> str | None:
        for strings in ("views", "dictionary"):
            with self.opened(strings=strings, threads=2) as file:
                if what := table_difference(pa.table(file.read()), self.truth):
                    return f"strings={strings!r}: {what}"
        return None

    def batches(self) -> str | None:
        size, row = max(1, self.truth.num_rows // BATCHES + 1), 0
        with self.opened() as file:
            for batch in file.iter_batches(size):
                if what := table_difference(pa.table(batch), self.truth.slice(row, batch.num_rows)):
                    return f"batch at row {row}: {what}"
                row += batch.num_rows
            if file.count() != self.truth.num_rows:
                return f"count() is {file.count()}"
        return None if row == self.truth.num_rows else f"{row} rows in batches, not {self.truth.num_rows}"

    def row_ranges(self) -> str | None:
        rows = self.truth.num_rows
        edges = sorted(self.chance.randrange(rows + 1) for _ in range(6))
        ranges = list(zip(edges[::2], edges[1::2], strict=True))
        with self.opened() as file:
            got = pa.table(file.read(row_ranges=ranges))
        slices = [self.truth.slice(start, stop - start) for start, stop in ranges]
        what = table_difference(got, pa.concat_tables(slices))
        return what and f"{ranges}: {what}"

    def take(self) -> str | None:
        if not self.truth.num_rows:
            return None
        rows = [self.chance.randrange(self.truth.num_rows) for _ in range(9)]
        with self.opened() as file:
            got = pa.table(file.take(rows))
        what = table_difference(got, pa.concat_tables([self.truth.slice(row, 1) for row in rows]))
        return what and f"{rows}: {what}"

    def encrypted(self) -> str | None:
        """Encrypt, read with the key, filter by row ranges, and decrypt."""
        sealed, opened = io.BytesIO(), io.BytesIO()
        fastpq.encrypt_file(self.path, sealed, fastpq.FileEncryptionProperties(KEY))
        keys = fastpq.FileDecryptionProperties(KEY)
        options: dict[str, Any] = {"coerce_int96_timestamp_unit": self.unit, "strings": "offsets", "decryption_properties": keys}
        half = self.truth.num_rows // 2
        with fastpq.ParquetFile(sealed.getvalue(), **options) as file:
            what = table_difference(pa.table(file.read()), self.truth)
            row = self.truth.slice(half, 1)
            what = what or table_difference(pa.table(file.read(row_ranges=[(half, half + row.num_rows)])), row)
        if what:
            return f"encrypted: {what}"
        fastpq.decrypt_file(sealed.getvalue(), opened, keys)
        what = table_difference(self.read_offsets(opened.getvalue()), self.truth)
        return what and f"decrypted: {what}"

    def merged(self) -> str | None:
        target = io.BytesIO()
        fastpq.merge_files([self.path, self.path], target)
        got = self.read_offsets(target.getvalue())
        twice = pa.concat_tables([self.truth, self.truth])
        return table_difference(got, twice) or self.foreign(target, twice)

    def written(self) -> str | None:
        target = io.BytesIO()
        fastpq.write_table(self.whole, target)
        got = self.read_offsets(target.getvalue())
        return table_difference(got, self.truth) or self.foreign(target, self.truth)

    def written_otherwise(self) -> str | None:
        """From Arrow, with other options."""
        target = io.BytesIO()
        group = self.truth.num_rows // 3 + 1
        fastpq.write_table(
            self.truth,
            target,
            encoding="auto",
            data_page_version="2.0",
            compression="zstd",
            row_group_size=group,
            data_page_rows=50,
        )
        got = self.read_offsets(target.getvalue())
        return table_difference(got, self.truth) or self.foreign(target, self.truth)

    def written_for_others(self) -> str | None:
        """DuckDB and Polars read the same from the file of the corpus and from the written file."""
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "written.parquet"
            fastpq.write_table(self.whole, target)
            for name in ("duckdb", "polars"):
                if name in self.skipped:
                    continue
                tell(stage=f"peer {name}")
                try:
                    truth = PEERS[name](self.path, self.unit)
                except BaseException:       # the file is none for this peer; a panic of Rust is no Exception
                    continue
                try:
                    what = table_difference(PEERS[name](target, self.unit), truth)
                except BaseException as error:      # see above
                    what = f"refused: {first_line(error)}"
                if what:
                    return f"read by {name}: {what}"
        return None

    def foreign(self, target: io.BytesIO, truth: pa.Table) -> str | None:
        """The difference between pyarrow's table of a written file and the truth, where pyarrow reads the file of the corpus."""
        if self.result.peers.get("pyarrow") != "same":
            return None
        try:
            got = read_pyarrow(pa.BufferReader(target.getvalue()), self.unit)
        except Exception as error:      # pyarrow raises errors of many types
            return f"pyarrow refuses the written file: {first_line(error)}"
        what = table_difference(truth, got)     # pyarrow has null where a column of an unknown type holds nulls alone
        return what and f"read by pyarrow: {what}"

    # ---- filters

    @cached_property
    def plain_table(self) -> pa.Table:
        """The table without ARROW:schema and views, in layouts of which pyarrow takes rows."""
        with self.opened(arrow_schema=False) as file:
            return pa.table(file.read())

    def flat_columns(self) -> Iterator[tuple[int, str, pa.ChunkedArray]]:
        """Number, path and values of each flat column; of leaves in structs too."""
        with self.opened() as file:
            columns = file.schema.columns
        tops = self.plain_table.column_names
        for column in columns:
            if column.max_repetition_level:
                continue
            top, *rest = column.path
            if tops.count(top) != 1:
                continue
            values = self.plain_table.column(tops.index(top))
            try:
                values = pc.struct_field(values, rest) if rest else values
            except pa.ArrowInvalid:     # a variant
                continue
            if not pa.types.is_nested(values.type):
                yield column.index, column.name, values

    def check_bounds(self) -> str | None:
        """Compare min_max and null_count of flat columns with the values."""
        with self.opened(arrow_schema=False) as file:
            for index, name, values in self.flat_columns():
                try:
                    nulls, bounds = file.null_count(index), file.min_max(index)
                except (fastpq.SchemaError, fastpq.UnsupportedError):       # no order, or a leaf of a struct
                    continue
                if nulls != values.null_count:
                    return f"{name}: null_count {nulls}, not {values.null_count}"
                if what := bounds_difference(bounds, comparable(values)):
                    return f"{name}: {what}"
        return None

    def check_filters(self) -> None:
        if not self.attempt("filters", lambda: None if self.plain_table.num_rows == self.truth.num_rows else "other rows"):
            return
        columns: list[tuple[int, str, pa.ChunkedArray]] = []
        self.attempt("filters", lambda: columns.extend(self.flat_columns()))
        values = max(1, self.truth.num_rows * len(self.truth.columns))
        most = max(1, min(FILTERED_COLUMNS, FILTERED_COLUMNS * MOST_VALUES // values))
        for index, name, column in self.chance.sample(columns, min(most, len(columns))):
            found = list(conditions(self.chance, column))
            if values > MOST_VALUES:
                found = self.chance.sample(found, min(CONDITIONS, len(found)))
            for op, literal, mask in found:
                self.attempt("filters", lambda: self.filtered((index, op, literal), name, mask))    # noqa: B023 (called at once)

    def filtered(self, condition: tuple[Any, ...], name: str, mask: np.ndarray) -> str | None:
        rows = np.flatnonzero(mask)
        wanted = self.plain_table.take(pa.array(rows))
        with self.opened(arrow_schema=False) as file:
            filters = condition if condition[2] is not None else condition[:2]
            count = file.count(filters)
            what = None if count == len(rows) else f"count {count}, not {len(rows)}"
            what = what or table_difference(pa.table(file.read(filters=filters)), wanted)
            tables = [pa.table(batch) for batch in file.iter_batches(1 + len(rows) // 3, filters=filters)]
            if tables:
                what = what or table_difference(pa.concat_tables(tables), wanted)
        return what and f"{name} {condition[1]} {condition[2]!r}: {what}"[:400]


def comparable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values in a type of which pyarrow compares values."""
    values = plain(values)
    return values.cast(pa.float32()) if pa.types.is_float16(values.type) else values


def bounds_difference(bounds: tuple[Any, Any], values: pa.ChunkedArray) -> str | None:
    """The difference between bounds and the values' own ones, where pyarrow has Python's types for them."""
    present = values.drop_null()
    if pa.types.is_floating(values.type):
        present = present.filter(pc.invert(pc.is_nan(present)))
    if (bounds[0] is None) != (len(present) == 0):
        return f"bounds {bounds} of {len(present)} values"
    if not len(present) or not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        return None
    extremes = pc.min_max(present).as_py()
    numbers = isinstance(bounds[0], int | float)
    return None if not numbers or bounds == (extremes["min"], extremes["max"]) else f"bounds {bounds}, not {extremes}"


def literal_of(value: pa.Scalar, original: pa.Scalar) -> Any:
    """A value as callers of fastpq spell it, with moments in full precision."""
    kind = value.type
    if pa.types.is_timestamp(kind):
        return np.datetime64(value.value, kind.unit)
    if pa.types.is_time(kind):
        return np.timedelta64(value.value, kind.unit)
    if pa.types.is_date(kind):
        return np.datetime64(value.value, "D")
    return original.as_py()


def conditions(chance: random.Random, column: pa.ChunkedArray) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Conditions on a column with literals of its values, each with the mask of its rows."""
    values = comparable(column)
    is_null = pc.is_null(values)
    yield "is null", None, mask_of(is_null)
    yield "is not null", None, mask_of(pc.invert(is_null))
    present = np.flatnonzero(mask_of(pc.invert(is_null)))
    is_nan = pc.is_nan(values) if pa.types.is_floating(values.type) else None
    if is_nan is not None:
        present = present[~mask_of(is_nan)[present]]
    if not len(present) or pa.types.is_null(values.type):
        return
    scalars = []
    literals = []
    for _ in range(3):
        row = int(present[chance.randrange(len(present))])
        scalars.append(values[row])
        literals.append(literal_of(values[row], column[row]))
    if any(isinstance(literal, np.datetime64 | np.timedelta64) and np.isnat(literal) for literal in literals):
        return
    for op, compare in COMPARED.items():
        number = chance.randrange(3)
        mask = compare(values, scalars[number])
        if is_nan is not None and op in (">", ">="):        # NaN is above all numbers
            mask = pc.or_(mask, is_nan)
        yield op, literals[number], mask_of(mask)
    inside = reduce(operator.or_, (mask_of(pc.equal(values, scalar)) for scalar in scalars))
    yield "in", literals, inside
    yield "not in", literals, ~inside & ~mask_of(is_null)


def mask_of(mask: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(pc.fill_null(mask, False).to_numpy(), bool)


def main() -> None:
    faulthandler.enable()
    limit_memory(int(sys.argv[1]))
    tell(stage="ready")
    for line in sys.stdin:
        request = json.loads(line)
        result = Result()
        FileChecks(Path(request["path"]), result).run(request["skipped"])
        tell(rows=result.rows, checks=result.checks, peers=result.peers)


if __name__ == "__main__":
    main()
