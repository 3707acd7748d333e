"""pandas DataFrames beside pyarrow's: ``python -m benchmarks.frames``.

A column of each dtype is written and read by both libraries. What each library writes is read by the other one, and compared,
before any time counts. Printed is the processor time of this process, the median of rounds in turns, and the ratio to pyarrow's.
Text of objects comes back as objects from fastpq. pyarrow is asked for objects too, by the option ``future.infer_string``; the
second line of such a column has pyarrow's read as pandas' own dtype of text, which makes no objects.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import tempfile
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fastpq
from benchmarks.small import seconds

ROWS = 1_000_000
DISTINCT = 1000         # values of columns with few different ones
OBJECTS = 200_000       # most rows of columns of Python objects other than text


def columns(rows: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Name and maker of the column of each dtype."""
    draw = np.random.default_rng(1)
    numbers = draw.integers(0, 1 << 40, rows)
    few = draw.integers(0, DISTINCT, rows)
    missing = few % 10 == 0
    moments = pd.Series(numbers * 1000).astype("datetime64[ns]")
    texts = np.array([f"value {number}" for number in range(DISTINCT)], object)
    long_texts = pd.Series([f"row number {number}" for number in numbers], dtype=object)
    objects = min(rows, OBJECTS)
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=number) for number in range(DISTINCT)]
    categories = pd.Categorical.from_codes(few, list(texts))

    def masked(dtype: str) -> Any:
        return pd.Series(few).astype(dtype).mask(missing)

    yield "int64", lambda: numbers
    yield "float64", lambda: numbers / 7
    yield "bool", lambda: few % 2 == 0
    yield "Int64, nulls", lambda: masked("Int64")
    yield "Float64, nulls", lambda: masked("Float64")
    yield "boolean, nulls", lambda: pd.Series(few % 2 == 0).astype("boolean").mask(missing)
    yield "str", lambda: long_texts.astype("str")
    yield "text, objects", lambda: long_texts
    yield "text, objects, nulls", lambda: long_texts.mask(missing, None)
    yield "text, objects, few", lambda: pd.Series(texts[few], dtype=object)
    yield "string[python]", lambda: long_texts.astype("string[python]")
    yield "string[pyarrow]", lambda: long_texts.astype("string[pyarrow]")
    yield "bytes, objects", lambda: pd.Series([text.encode() for text in long_texts], dtype=object)
    yield "category", lambda: pd.Series(categories)
    yield "ordered category", lambda: pd.Series(categories.as_ordered())
    yield "datetime64[ns]", lambda: moments
    yield "datetime64[us]", lambda: moments.astype("datetime64[us]")
    yield "datetime64[ns, UTC]", lambda: moments.dt.tz_localize("UTC")
    yield "timedelta64[ns]", lambda: pd.Series(numbers).astype("timedelta64[ns]")
    yield "period[D]", lambda: pd.Series(pd.PeriodIndex.from_ordinals(few, freq="D"))
    yield "interval", lambda: pd.Series(pd.arrays.IntervalArray.from_arrays(few, few + 1))
    yield "dates, objects", lambda: pd.Series([days[number] for number in few[:objects]], dtype=object)
    yield "times, objects", lambda: pd.Series(
        [datetime.time(number % 24, number % 60) for number in few[:objects].tolist()], dtype=object
    )
    yield "decimals, objects", lambda: pd.Series([Decimal(number).scaleb(-2) for number in few[:objects].tolist()], dtype=object)
    yield "lists, objects", lambda: pd.Series(np.split(few[: objects * 3], objects), dtype=object)


def check(frame: pd.DataFrame, ours: Path, theirs: Path) -> None:
    """Raise AssertionError where values differ; pandas reads text of objects as its own dtype of text, fastpq as it was."""
    pd.testing.assert_frame_equal(fastpq.read_pandas(theirs), frame, check_dtype=False)
    pd.testing.assert_frame_equal(pd.read_parquet(ours, engine="pyarrow"), pd.read_parquet(theirs, engine="pyarrow"))


def read_objects(path: Path) -> pd.DataFrame:
    """pyarrow's DataFrame of a file, with text as objects."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)     # of the option, without which there are no objects
        with pd.option_context("future.infer_string", False):
            return pd.read_parquet(path, engine="pyarrow")


def turn(frame: pd.DataFrame, ours: Path, theirs: Path, with_objects: bool) -> tuple[float, ...]:
    """Processor seconds of writing and reading, each by fastpq and by pyarrow, and of pyarrow's read without objects."""
    return (
        seconds(lambda: fastpq.write_table(frame, ours)),
        seconds(lambda: frame.to_parquet(theirs, engine="pyarrow")),
        seconds(lambda: fastpq.read_pandas(theirs)),
        seconds(lambda: read_objects(theirs)) if with_objects else np.nan,
        seconds(lambda: pd.read_parquet(theirs, engine="pyarrow")),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frames", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="of a column (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each job (default: %(default)s)")
    parser.add_argument("--only", default="", help="dtypes whose name holds this text")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        ours, theirs = Path(scratch) / "ours.parquet", Path(scratch) / "theirs.parquet"
        print(f"{'dtype':22} {'write: fastpq':>13} {'pyarrow':>8} {'ratio':>6} {'read: fastpq':>13} {'pyarrow':>8} {'ratio':>6}")
        for name, make in columns(options.rows):
            if options.only not in name:
                continue
            frame = pd.DataFrame({"x": make()})
            fastpq.write_table(frame, ours)
            frame.to_parquet(theirs, engine="pyarrow")
            check(frame, ours, theirs)
            with_objects = name.startswith("text")
            if with_objects:
                pd.testing.assert_series_equal(read_objects(theirs)["x"], frame["x"])
            times = [turn(frame, ours, theirs, with_objects) for _ in range(options.rounds)]
            write, write_peer, read, objects, plain = (statistics.median(found) for found in zip(*times, strict=True))
            cells = f"{write:12.3f}s {write_peer:7.3f}s {write / write_peer:6.2f}"
            peers = [objects, plain] if with_objects else [plain]
            for peer in peers:
                print(f"{name:22} {cells} {read:12.3f}s {peer:7.3f}s {read / peer:6.2f}", flush=True)
                name, cells = "  pyarrow: no objects", " " * len(cells)


if __name__ == "__main__":
    main()
