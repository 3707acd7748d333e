"""Files with one kind of column each: an encoding and a type, or a nested type; at scale 1 with ten million leaf values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.jobs import ENCODED

LEAVES = 10_000_000
SEED = 2
NULL_SHARE = 0.1
LONGEST_LIST = 8
DISTINCT = 5000

# Encodings by the first part of a column's name.
ENCODINGS = {"plain": "PLAIN", "delta": "DELTA_BINARY_PACKED", "split": "BYTE_STREAM_SPLIT", "dictionary": None}
ENCODINGS |= {"lengths": "DELTA_LENGTH_BYTE_ARRAY", "prefixes": "DELTA_BYTE_ARRAY", "rle": "RLE"}


def make_encodings(path: Path, scale: float) -> None:
    """Write required, uncompressed columns: reading is decoding alone."""
    count, random = int(LEAVES * scale), np.random.default_rng(SEED)
    rising = np.cumsum(random.integers(0, 64, count))
    few = random.integers(0, DISTINCT, count)
    kinds: dict[str, Any] = {
        "int32": rising.astype(np.int32),
        "int64": rising,
        "float": random.random(count, np.float32),
        "double": random.random(count),
        "boolean": random.random(count) < NULL_SHARE,
        "string": pa.DictionaryArray.from_arrays(pa.array(np.sort(few).astype(np.int32)), words()).cast(pa.string()),
    }
    columns = {name: pa.array(kinds[name.partition("_")[2]]) for name in ENCODED}
    columns["dictionary_int64"] = pa.array(few)
    schema = pa.schema([pa.field(name, column.type, nullable=False) for name, column in columns.items()])
    chosen = {name: ENCODINGS[name.partition("_")[0]] for name in ENCODED}
    pq.write_table(
        pa.table(columns, schema=schema),
        path,
        compression="none",
        use_dictionary=[name for name, encoding in chosen.items() if encoding is None],
        column_encoding={name: encoding for name, encoding in chosen.items() if encoding is not None},
    )


def words() -> pa.Array:
    return pa.array([f"word {i}" for i in range(DISTINCT)])


def make_nested(path: Path, scale: float) -> None:
    """Write nested columns with pyarrow's defaults; maps and structs have two leaves, and a tenth of the structs is null."""
    leaves, random = int(LEAVES * scale), np.random.default_rng(SEED)
    integers = pa.array(random.integers(0, 1 << 40, leaves))
    codes = pa.array(random.integers(0, DISTINCT, leaves).astype(np.int32))
    strings = pa.DictionaryArray.from_arrays(codes, words()).cast(pa.string())
    half = leaves // 2
    missing = pa.array(random.random(half) < NULL_SHARE)
    fields = [integers.slice(0, half), pa.array(random.random(half))]
    columns = {
        "list_int64": pa.ListArray.from_arrays(offsets(random, half, leaves), integers),
        "list_string": pa.ListArray.from_arrays(offsets(random, half, leaves), strings),
        "map": pa.MapArray.from_arrays(offsets(random, half, half), strings.slice(0, half), integers.slice(0, half)),
        "struct": pa.StructArray.from_arrays(fields, ["a", "b"], mask=missing),
    }
    pq.write_table(pa.table(columns), path)


def offsets(random: np.random.Generator, rows: int, total: int) -> np.ndarray[Any, Any]:
    """Offsets of lists with a total number of elements; one list in nine is empty or nearly so."""
    ends = np.cumsum(random.integers(0, LONGEST_LIST + 1, rows))
    return np.concatenate([[0], np.rint(ends * (total / ends[-1]))]).astype(np.int32)
