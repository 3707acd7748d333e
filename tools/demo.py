"""fastpq on real data: TPC-H lineitem to NumPy, to an encrypted file, and back, checked by Polars and pyarrow."""

from __future__ import annotations

import secrets
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

import fastpq
from benchmarks.lineitem import lineitem
from fastpq.schema.types import Decimal
from tools import command_lines
from tools.command_lines import DEMO_SCALE as SCALE

FOLDER = Path(__file__).resolve().parent.parent / "build" / "demo"
SECRET_COLUMNS = ("l_extendedprice", "l_comment")
PROJECTION = ["l_shipdate", "l_discount", "l_extendedprice"]


class Demo:
    """Steps of the demo; each adds a line to the table of sizes and times, and any unexpected result ends the program."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.grid = Grid("step", "seconds", "size", "result", title=f"lineitem, scale factor {SCALE}")
        for column in self.grid.columns[1:3]:
            column.justify = "right"
        self.footer_key = secrets.token_bytes(16)
        self.column_keys = {name: secrets.token_bytes(16) for name in SECRET_COLUMNS}
        self.all_keys = fastpq.FileDecryptionProperties(self.footer_key, self.column_keys)
        self.footer_key_alone = fastpq.FileDecryptionProperties(self.footer_key)
        self.plain = FOLDER / "plain.parquet"
        self.encrypted = FOLDER / "encrypted.parquet"

    def timed(self, step: str, action: Callable[[], Any], result: str, size: Callable[[Any], int] | None = None) -> Any:
        """Run a step and add a line to the table."""
        self.console.print(f"[bold]{step}[/bold] ...")
        started = time.perf_counter()
        value = action()
        seconds = time.perf_counter() - started
        shown = f"{size(value) / 1e6:.1f} MB" if size else ""
        self.grid.add_row(step, f"{seconds:.3f}", shown, result)
        return value

    def run(self) -> None:
        self.source = self.timed(
            "make lineitem (tpchgen-cli)", lambda: lineitem(SCALE, FOLDER), "Parquet by parquet-rs", file_size
        )
        self.read_into_numpy()
        self.write()
        self.read_a_projection()
        self.read_without_column_keys()
        self.tamper()
        self.ask_the_others()

    def read_into_numpy(self) -> None:
        self.table = self.timed("read", lambda: fastpq.read_table(self.source), "a Table", lambda table: table.nbytes)
        self.arrays = self.timed(
            "NumPy arrays of it",
            lambda: {name: array_of(column) for name, column in self.table.items()},
            f"{len(self.table.columns)} arrays",
        )
        keys = self.arrays["l_orderkey"]
        self.console.print(f"  l_orderkey: {keys.dtype}, shape {keys.shape}; first values {keys[:5]}")

    def write(self) -> None:
        """Write the NumPy arrays, in plaintext and encrypted; decimals as columns with unscaled integers, in hundredths."""
        rows = {
            name: column if is_decimal(column) else self.arrays[name] for name, column in self.table.items()
        }
        self.timed(
            "write",
            lambda: fastpq.write_table(rows, self.plain),
            "Snappy, plaintext",
            lambda _: file_size(self.plain),
        )
        keys = fastpq.FileEncryptionProperties(self.footer_key, self.column_keys)
        self.timed(
            "write encrypted",
            lambda: fastpq.write_table(rows, self.encrypted, encryption_properties=keys),
            f"footer key, keys for {' and '.join(SECRET_COLUMNS)}",
            lambda _: file_size(self.encrypted),
        )

    def read_a_projection(self) -> None:
        part = self.timed(
            "read 3 of 16 columns",
            lambda: fastpq.read_table(self.encrypted, PROJECTION, decryption_properties=self.all_keys),
            "with every key",
            lambda table: table.nbytes,
        )
        for name in PROJECTION:
            same = np.array_equal(array_of(part[name]), self.arrays[name])
            require(same, f"{name} came back as it was written")
        self.console.print(f"  {', '.join(PROJECTION)}: equal to what was written")

    def read_without_column_keys(self) -> None:
        with fastpq.ParquetFile(self.encrypted, decryption_properties=self.footer_key_alone) as file:
            names = [column.name for column in file.schema.columns]
            open_columns = [name for name in names if name not in SECRET_COLUMNS]
            self.console.print(f"  with the footer key alone: {file.metadata.num_rows} rows and all {len(names)} names")
            visible = self.timed(
                f"read {len(open_columns)} columns", lambda: file.read(open_columns), "with the footer key alone"
            )
            require(np.array_equal(visible["l_orderkey"].to_numpy(), self.arrays["l_orderkey"]), "l_orderkey is right")
            for name in SECRET_COLUMNS:
                self.refused(f"read {name}", fastpq.KeyAccessError, partial(file.read, [name]))
        self.refused("read without any key", fastpq.KeyAccessError, lambda: fastpq.read_table(self.encrypted))

    def tamper(self) -> None:
        """Flip one bit in the middle of the ciphertext of l_comment."""
        with fastpq.ParquetFile(self.encrypted, decryption_properties=self.all_keys) as file:
            index = [column.name for column in file.schema.columns].index("l_comment")
            start, length = file.metadata.row_group(0).column(index).byte_range
        altered = bytearray(self.encrypted.read_bytes())
        altered[start + length // 2] ^= 1
        self.refused(
            "read after one flipped bit",
            fastpq.TagVerificationError,
            lambda: fastpq.read_table(bytes(altered), ["l_comment"], decryption_properties=self.all_keys),
        )

    def ask_the_others(self) -> None:
        truth = pq.read_table(self.source)
        plain = self.timed("pyarrow reads the plaintext file", lambda: pq.read_table(self.plain), "equal to its source")
        require(same_values(plain, truth), "pyarrow reads the same values from both plaintext files")
        with warnings.catch_warnings(action="ignore"):      # Polars calls its own encryption unstable
            keys = pl.ParquetDecryptionProperties(footer_key=self.footer_key, column_keys=self.column_keys)
            frame = self.timed(
                "Polars reads the encrypted file",
                lambda: pl.read_parquet(self.encrypted, decryption=keys),
                "16 columns, equal",
            )
        require(same_values(frame.to_arrow(), truth), "Polars decrypts the same values")
        names = [name for name in truth.column_names if name not in SECRET_COLUMNS]     # pyarrow accepts only a footer key
        decrypted = self.timed(
            "pyarrow reads the encrypted file",
            lambda: pq.read_table(
                self.encrypted, columns=names, decryption_properties=pe.create_decryption_properties(self.footer_key)
            ),
            f"{len(names)} columns without a key of their own, equal",
        )
        require(same_values(decrypted, truth.select(names)), "pyarrow decrypts the same values")

    def refused(self, step: str, kind: type[Exception], action: Callable[[], Any]) -> None:
        """Require an action to fail with an error of a kind, and show the error."""
        try:
            action()
        except kind as error:
            self.console.print(f"  {step}: [red]{kind.__name__}[/red]: {escape(str(error))}", highlight=False)
            self.grid.add_row(step, "", "", f"refused: {kind.__name__}")
            return
        raise SystemExit(f"demo: {step} should have been refused with {kind.__name__}")


def is_decimal(column: fastpq.Column) -> bool:
    return isinstance(column.type.logical, Decimal)


def array_of(column: fastpq.Column) -> np.ndarray:
    """A column as an array; decimals as integers in hundredths, since to_numpy would make a Python object of each value."""
    if not is_decimal(column):
        return column.to_numpy()
    assert isinstance(column.values, np.ndarray)
    return column.values


def same_values(got: pa.Table, truth: pa.Table) -> bool:
    """Whether two Arrow tables hold the same values; layouts and field flags may differ."""
    schema = pa.schema([pa.field(field.name, field.type) for field in truth.schema])
    return bool(got.cast(schema).equals(truth.cast(schema)))


def require(condition: bool, what: str) -> None:
    if not condition:
        raise SystemExit(f"demo: it is not true that {what}")


def file_size(path: Path) -> int:
    return path.stat().st_size


def main() -> int:
    options = command_lines.demo().parse_args()
    console = Console(width=None if sys.stdout.isatty() else 110)
    if options.spark:
        from tools.spark_demo import SparkDemo

        console.print(SparkDemo(console, options.scale).run())
        return 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    demo = Demo(console)
    demo.run()
    console.print(demo.grid)
    console.print(f"The files are in {FOLDER}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
