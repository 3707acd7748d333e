"""Encodings beside peers: a file of one column for each encoding and type, ``python -m benchmarks.encodings``.

All libraries take turns in one process with one thread. The least processor time of each counts, to lessen disturbance by other
programs on the machine. Files are uncompressed, without nulls, in memory, with pages cut by pyarrow. Values read are compared
before timing. Polars is measured in reading alone, since its writer has no choice of encoding.
"""

from __future__ import annotations

import os
from functools import partial

os.environ["POLARS_MAX_THREADS"] = "1"

import argparse
import gc
import io
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import fastpq

VALUES = 1_000_000
DISTINCT = 5000
SEED = 3
NULL_SHARE = 0.1

NUMBERS = ("int32", "int64", "float", "double")
GRID = (
    *(("PLAIN", kind) for kind in (*NUMBERS, "boolean", "string", "fixed16")),
    *(("PLAIN", f"decimal of {digits} digits") for digits in (9, 15, 18, 25, 38)),
    *(("RLE_DICTIONARY", kind) for kind in (*NUMBERS, "string", "fixed16")),
    *(("DELTA_BINARY_PACKED", kind) for kind in ("int32", "int64", "int32 of 20 bits", "int64 of 40 bits")),
    *(("BYTE_STREAM_SPLIT", kind) for kind in (*NUMBERS, "float16", "fixed16")),
    ("DELTA_LENGTH_BYTE_ARRAY", "string"),
    ("DELTA_BYTE_ARRAY", "string"),
    ("DELTA_BYTE_ARRAY", "fixed16"),
    ("RLE", "boolean"),
    *(("PLAIN", f"{kind}, a tenth null") for kind in ("int32", "int64", "double", "boolean", "string")),
)


def values(encoding: str, kind: str) -> pa.Array:
    """Values suited to an encoding."""
    random = np.random.default_rng(SEED)
    if kind.endswith("null"):
        array = values(encoding, kind.partition(",")[0])
        return pa.array(array.to_numpy(zero_copy_only=False), array.type, mask=random.random(VALUES) < NULL_SHARE)
    if kind == "boolean":
        return pa.array(random.random(VALUES) < NULL_SHARE)
    steps = {"int32 of 20 bits": 20, "int64 of 40 bits": 40}.get(kind, 6)
    name = kind.partition(" ")[0]
    if encoding == "DELTA_BINARY_PACKED":
        numbers = np.cumsum(random.integers(0, 1 << steps, VALUES))
    elif encoding == "RLE_DICTIONARY":
        numbers = random.integers(0, DISTINCT, VALUES)
    else:
        numbers = random.integers(-(1 << 30), 1 << 30, VALUES)
    if name == "string":
        words = np.char.mod("word %d", np.arange(DISTINCT))
        return pa.array(words[np.sort(random.integers(0, DISTINCT, VALUES))])
    if name == "fixed16":
        return pa.array(np.repeat(numbers, 2).view("V16").tolist(), pa.binary(16))
    if name == "decimal":       # FIXED_LEN_BYTE_ARRAY of 4 to 16 bytes
        whole = pa.array(numbers % 1_000_000_000).cast(pa.decimal128(38))
        return whole.cast(pa.decimal128(int(kind.split()[2])))
    if name == "float16":
        return pa.array(random.random(VALUES, np.float32).astype(np.float16))
    dtype = {"float": "float32", "double": "float64"}.get(name, name)
    return pa.array((numbers / 8).astype(dtype) if dtype.startswith("float") else numbers.astype(dtype))


def options(encoding: str) -> dict[str, Any]:
    """Writer options of an encoding, the same for pyarrow and fastpq."""
    chosen: dict[str, Any] = {"compression": "none", "use_dictionary": encoding == "RLE_DICTIONARY"}
    return chosen if encoding == "RLE_DICTIONARY" else chosen | {"column_encoding": {"x": encoding}}


def readers(data: bytes) -> dict[str, Callable[[], Any]]:
    return {
        "fastpq": lambda: fastpq.read_table(data, threads=1),
        "pyarrow": lambda: pq.ParquetFile(io.BytesIO(data)).read(use_threads=False),
        "polars": lambda: pl.read_parquet(io.BytesIO(data)),
    }


def writers(table: pa.Table, encoding: str) -> dict[str, Callable[[], Any]]:
    ours, chosen = fastpq.read_table(written(table, encoding)), options(encoding)
    bare: dict[str, Any] = {"threads": 1, "write_page_index": False, "write_page_checksum": False}     # off by default in pyarrow
    return {
        "fastpq": lambda: fastpq.write_table(ours, io.BytesIO(), **chosen, **bare),
        "pyarrow": lambda: pq.write_table(table, io.BytesIO(), **chosen),
    }


def written(table: pa.Table, encoding: str) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options(encoding))
    return sink.getvalue()


def least(actions: dict[str, Callable[[], Any]], runs: int) -> dict[str, float]:
    """Least processor seconds of each action; the actions take turns."""
    found: dict[str, float] = {}
    for name in [name for _ in range(runs + 1) for name in actions]:
        gc.collect()
        started = time.process_time()
        result = actions[name]()
        found[name] = min(found.get(name, float("inf")), time.process_time() - started)
        del result
    return found


def agreeing(data: bytes, table: pa.Table) -> dict[str, Callable[[], Any]]:
    """Readers able to read the file; raises for a reader with other values than the table."""
    kept = {}
    for name, read in readers(data).items():
        try:
            found = read()
        except (pl.exceptions.PolarsError, pa.ArrowException):
            continue
        column = pa.table(found.to_arrow() if isinstance(found, pl.DataFrame) else found)["x"]
        if not column.cast(table["x"].type).equals(table["x"]):
            raise AssertionError(f"{name} reads other values")
        kept[name] = read
    return kept


def measured(pattern: str, runs: int) -> Iterator[tuple[str, str, int, dict[str, float], dict[str, float]]]:
    """Encoding, type, bytes of values, and seconds by library of reading and of writing."""
    for encoding, kind in GRID:
        if pattern not in f"{encoding} {kind}":
            continue
        array = values(encoding, kind)
        table = pa.table([array], schema=pa.schema([pa.field("x", array.type, kind.endswith("null"))]))
        data = written(table, encoding)
        yield encoding, kind, table.nbytes, least(agreeing(data, table), runs), least(writers(table, encoding), runs)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encodings", description=__doc__)
    parser.add_argument("--only", default="", help="those whose encoding and type hold this text")
    parser.add_argument("--runs", type=int, default=9, help="the least counts (default: %(default)s)")
    chosen = parser.parse_args()
    pa.set_cpu_count(1)
    print(f"{VALUES:,} values, million a second of processor time")
    columns = ("fastpq", "pyarrow", "polars", "/ pyarrow", "/ memcpy", "fastpq", "pyarrow", "/ pyarrow")
    print(f"{'':42} {'read':>10}{'':40} {'write':>10}\n{'':42} " + " ".join(f"{name:>9}" for name in columns))
    for encoding, kind, size, read, write in measured(chosen.only, chosen.runs):
        source = np.zeros(size, np.uint8)
        target = np.empty_like(source)
        copy = least({"memcpy": partial(np.copyto, target, source)}, chosen.runs)["memcpy"]
        rates = [f"{VALUES / read[name] / 1e6:.0f}" if name in read else "-" for name in ("fastpq", "pyarrow", "polars")]
        rates += [f"{read['pyarrow'] / read['fastpq']:.2f}", f"{copy / read['fastpq']:.2f}"]
        rates += [f"{VALUES / write[name] / 1e6:.0f}" for name in ("fastpq", "pyarrow")]
        rates.append(f"{write['pyarrow'] / write['fastpq']:.2f}")
        print(f"{encoding + ' ' + kind:42} " + " ".join(f"{rate:>9}" for rate in rates), flush=True)


if __name__ == "__main__":
    main()
