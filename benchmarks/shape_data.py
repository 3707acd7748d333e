"""Tables and datasets of the shapes that people have: embeddings, nested, wide, deep, with large values, in small files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 11
NULL_SHARE = 0.1


def random() -> np.random.Generator:
    return np.random.default_rng(SEED)


def nullable(values: np.ndarray, type_: pa.DataType | None = None) -> pa.Array:
    """An array with a tenth of nulls."""
    return pa.array(values, type_, mask=random().random(len(values)) < NULL_SHARE)


def lists(elements: Callable[[int], pa.Array], rows: int) -> pa.ListArray:
    """Lists of 0 to 7 elements."""
    offsets = np.concatenate([[0], np.cumsum(random().integers(0, 8, rows))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), elements(int(offsets[-1])))


def integers(count: int) -> pa.Array:
    return pa.array(random().integers(0, 1 << 40, count))


def words(count: int) -> pa.Array:
    codes = pa.array(random().integers(0, 5000, count).astype(np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array([f"word {number}" for number in range(5000)])).cast(pa.string())


def structs(count: int) -> pa.StructArray:
    return pa.StructArray.from_arrays([integers(count), pa.array(random().random(count))], ["id", "price"])


def embeddings(rows: int, width: int, dtype: type) -> pa.Array:
    values: np.ndarray = random().random(rows * width, np.float32).astype(dtype)
    return pa.FixedSizeListArray.from_arrays(pa.array(values), width)


def texts(count: int, size: int) -> pa.Array:
    """Texts of random letters."""
    letters = random().integers(97, 123, count * size, np.uint8)
    offsets = np.arange(0, (count + 1) * size, size, dtype=np.int64)
    return pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters))


def wide(columns: int, rows: int) -> pa.Table:
    values = np.arange(rows)
    return pa.table({f"column_{number:05}": values + number for number in range(columns)})


def decimals(count: int) -> pa.Array:
    halves = random().integers(0, 1 << 40, 2 * count)
    halves[1::2] >>= 4
    return pa.Array.from_buffers(pa.decimal128(38, 4), count, [None, pa.py_buffer(halves)])


def uuids(count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(16), count, [None, pa.py_buffer(random().bytes(16 * count))])


def in_chunks(table: pa.Table, count: int) -> pa.Table:
    """The same rows in chunks of equal size."""
    size = -(-table.num_rows // count)
    return pa.concat_tables([table.slice(start, size) for start in range(0, table.num_rows, size)])


def one(array: pa.Array) -> pa.Table:
    return pa.table({"x": array})


# Tables by name. The second item has writer options that every library knows.
TABLES: dict[str, tuple[Callable[[], pa.Table], dict[str, int]]] = {
    "embeddings-float32-128": (lambda: one(embeddings(100_000, 128, np.float32)), {}),
    "embeddings-float32-1536": (lambda: one(embeddings(8_000, 1536, np.float32)), {}),
    "embeddings-float16-128": (lambda: one(embeddings(100_000, 128, np.float16)), {}),
    "list-int64": (lambda: one(lists(integers, 1_000_000)), {}),
    "list-string": (lambda: one(lists(words, 500_000)), {}),
    "list-struct": (lambda: one(lists(structs, 500_000)), {}),
    "list-list-float": (lambda: one(lists(lambda count: lists(lambda n: pa.array(random().random(n)), count), 100_000)), {}),
    "map": (lambda: one(map_of(300_000)), {}),
    "struct-in-struct": (lambda: one(pa.StructArray.from_arrays([structs(1_000_000), integers(1_000_000)], ["a", "b"])), {}),
    "struct-of-3000": (lambda: one(struct_of(3000)), {}),
    "tiny": (lambda: wide(3, 10), {}),
    "columns-1": (lambda: wide(1, 1000), {}),
    "columns-100": (lambda: wide(100, 1000), {}),
    "columns-5000-rows-1": (lambda: wide(5000, 1), {}),
    "columns-5000-rows-1000": (lambda: wide(5000, 1000), {}),
    "columns-50000-rows-1": (lambda: wide(50_000, 1), {}),
    "values-1-kB": (lambda: one(texts(100_000, 1000)), {}),
    "values-1-MB": (lambda: one(texts(200, 1 << 20)), {}),
    "values-100-MB": (lambda: one(texts(2, 100 << 20)), {}),
    "text-3-GB": (lambda: one(texts(300_000, 10_000)), {}),
    "null": (lambda: one(pa.nulls(5_000_000, pa.int64())), {}),
    "constant": (lambda: one(pa.array(np.full(5_000_000, 7))), {}),
    "row-groups-1000": (lambda: wide(3, 100_000), {"row_group_size": 100}),
    "row-groups-30000": (lambda: wide(1, 30_000), {"row_group_size": 1}),
    "uuid": (lambda: one(uuids(1_000_000)), {}),
    "decimal-38": (lambda: one(decimals(1_000_000)), {}),
    "timestamp-zone": (lambda: one(nullable(random().integers(0, 1 << 50, 2_000_000), pa.timestamp("us", "Europe/Zurich"))), {}),
    "category": (lambda: one(words(2_000_000).dictionary_encode()), {}),
    "boolean": (lambda: one(nullable(random().random(5_000_000) < NULL_SHARE)), {}),
    "chunks-48": (lambda: in_chunks(pa.table({"i": integers(3_000_000), "w": words(3_000_000)}), 48), {}),
    "numbers": (lambda: pa.table({"i": integers(2_000_000), "f": pa.array(random().random(2_000_000))}), {}),
}
# Not run unless named: they take minutes.
LARGE = frozenset({"text-3-GB"})


def map_of(rows: int) -> pa.MapArray:
    keys = lists(words, rows)
    return pa.MapArray.from_arrays(keys.offsets, keys.values, integers(len(keys.values)))


def struct_of(fields: int) -> pa.StructArray:
    return pa.StructArray.from_arrays([pa.array([number]) for number in range(fields)], [f"f{n:04}" for n in range(fields)])


def small_files(folder: Path) -> None:
    write_files(folder, wide(10, 20), 1000)


def wide_files(folder: Path) -> None:
    write_files(folder, wide(5000, 1), 60)


def day_files(folder: Path) -> None:
    table = wide(60, 20)
    for number in range(3000):
        place = folder / f"day={number % 30:02}"
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, place / f"part-{number:04}.parquet")


def partitions(folder: Path) -> None:
    for number in range(500):
        place = folder / f"day={number:03}"
        place.mkdir(parents=True)
        pq.write_table(wide(5, 100), place / "part.parquet")


def write_files(folder: Path, table: pa.Table, count: int) -> None:
    folder.mkdir(parents=True)
    for number in range(count):
        pq.write_table(table, folder / f"part-{number:04}.parquet")


# Folders by name, to be read whole.
DATASETS: dict[str, Callable[[Path], None]] = {
    "dataset-1000-files": small_files,
    "dataset-60-files-5000-columns": wide_files,
    "dataset-3000-files-60-columns": day_files,
    "dataset-500-partitions": partitions,
}


def file_options(name: str) -> dict[str, Any]:
    """Options of pyarrow's writer for the file that everyone reads."""
    return TABLES[name][1]
