"""FAULTS: files with one planted fault each, and the advice that finds it."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastpq

ROWS = 60_000


class PlantedFault(NamedTuple):
    """A file with a fault.

    Attributes:
        name: what is wrong.
        make: returns the file.
        use: the use that the fault harms.
        topic: topic of the advice.
        columns: columns of the advice. Empty if any columns are right.
        key: the column of lookups, or None.
    """

    name: str
    make: Callable[[], bytes]
    use: Any
    topic: str
    columns: tuple[str, ...] = ()
    key: str | None = None


@functools.cache
def columns() -> dict[str, Any]:
    """Return columns of several kinds."""
    random = np.random.default_rng(3)
    words = np.array(["north", "south west", "east of the river", "centre"])
    return {
        "id": np.arange(ROWS),
        "user": random.integers(0, 1 << 50, ROWS),
        "place": words[random.integers(0, 4, ROWS)],
        "price": np.round(random.random(ROWS) * 20, 2),
        "noise": random.random(ROWS),
        "path": np.array([f"/var/log/service/2024/{number:08d}.txt" for number in range(ROWS)]),
        "note": np.array([f"note {number % 1000} " * 3 for number in range(ROWS)]),
    }


def written(*names: str, rows: int = ROWS, pieces: int = 1, **options: Any) -> Callable[[], bytes]:
    """Return a function that writes some of the columns, or all, with fastpq."""

    def make() -> bytes:
        table = {name: values[:rows] for name, values in columns().items() if not names or name in names}
        target = io.BytesIO()
        with fastpq.ParquetWriter(target, **options) as writer:
            for piece in range(pieces):
                part = slice(piece * rows // pieces, (piece + 1) * rows // pieces)
                writer.write_table({name: values[part] for name, values in table.items()})
        return target.getvalue()

    return make


def written_by_pyarrow(*names: str, **options: Any) -> Callable[[], bytes]:
    """Return a function that writes some of the columns with pyarrow."""

    def make() -> bytes:
        target = io.BytesIO()
        pq.write_table(pa.table({name: columns()[name].tolist() for name in names}), target, **options)
        return target.getvalue()

    return make


def long_texts() -> bytes:
    """Return a file whose bounds are as long as its values."""
    texts = [f"{number:06d}" + "abcdefghij" * 200 for number in range(2000)]
    target = io.BytesIO()
    fastpq.write_table({"text": texts}, target, statistics_truncation=10_000, data_page_rows=20)
    return target.getvalue()


def shuffled(**options: Any) -> Callable[[], bytes]:
    """Return a function that writes the columns in random order of the id."""

    def make() -> bytes:
        order = np.random.default_rng(5).permutation(ROWS)
        target = io.BytesIO()
        fastpq.write_table({name: values[order] for name, values in columns().items()}, target, **options)
        return target.getvalue()

    return make


FAULTS = [
    PlantedFault("nothing is compressed", written(compression=None), "scan", "compression"),
    PlantedFault(
        "one column is not compressed", written(compression={"id": "snappy", "place": "snappy", "path": None}), "scan",
        "compression", ("path",)),
    PlantedFault("gzip", written("id", "user", "path", compression="gzip"), "scan", "compression"),
    PlantedFault("brotli", written("id", "path", "noise", compression="brotli"), "scan", "compression"),
    PlantedFault("LZ4 with the frames of Hadoop", written("path", "note", compression="lz4_hadoop"), "scan", "compression"),
    PlantedFault("no dictionary", written(use_dictionary=False), "scan", "encoding"),
    PlantedFault("no dictionary in one column", written(use_dictionary=["price", "note"]), "scan", "encoding", ("place",)),
    PlantedFault("a dictionary that was given up", written("note", "price", dictionary_page_size=300), "scan", "encoding"),
    PlantedFault(
        "a dictionary of unique values", written("user", "id", column_encoding={"user": "RLE_DICTIONARY"}), "scan", "encoding",
        ("user",)),
    PlantedFault(
        "lengths in the place of a dictionary", written(column_encoding={"place": "DELTA_LENGTH_BYTE_ARRAY"}), "scan", "encoding",
        ("place",)),
    PlantedFault(
        "split bytes in the place of a dictionary", written("price", "id", column_encoding={"price": "BYTE_STREAM_SPLIT"}),
        "scan", "encoding", ("price",)),
    PlantedFault("small row groups", written("id", "price", "user", row_group_size=500), "scan", "row groups"),
    PlantedFault("a row group for each call", written("place", "user", pieces=200), "scan", "row groups"),
    PlantedFault("pages of few rows", written("id", "user", data_page_rows=50), "scan", "pages"),
    PlantedFault("pages of few bytes", written("user", "noise", data_page_size=500), "scan", "pages"),
    PlantedFault("V2 pages of few rows", written("user", "place", data_page_rows=40, data_page_version="2.0"), "scan", "pages"),
    PlantedFault("bounds as long as the values", long_texts, "scan", "pages"),
    PlantedFault(
        "pyarrow without compression", written_by_pyarrow("path", "note", compression="none"), "scan", "compression"),
    PlantedFault(
        "pyarrow with small row groups", written_by_pyarrow("id", "user", "place", row_group_size=300), "scan", "row groups"),
    PlantedFault("pyarrow without dictionary", written_by_pyarrow("place", "price", use_dictionary=False), "scan", "encoding"),
    PlantedFault("plain sorted numbers", written("id"), "archive", "encoding", ("id",)),
    PlantedFault("plain floats", written("noise"), "archive", "encoding", ("noise",)),
    PlantedFault("texts with a common beginning", written("path"), "archive", "encoding", ("path",)),
    PlantedFault("bloom filters", written("user", bloom_filter={"user": True}), "archive", "bloom filter", ("user",)),
    PlantedFault("a fast codec for an archive", written("note", "place", "price"), "archive", "compression"),
    PlantedFault("a fast codec for a network", written("path", "user"), "web", "compression"),
    PlantedFault("no codec for a network", written("path", "noise", compression=None), "web", "compression"),
    PlantedFault("small row groups over a network", written("id", "note", row_group_size=1000), "web", "row groups"),
    PlantedFault("no statistics", written(write_statistics=False, data_page_rows=4096), "lookup", "statistics", key="id"),
    PlantedFault("no page index", written(write_page_index=False), "lookup", "page index", key="id"),
    PlantedFault("large pages", written(data_page_rows=1 << 30, data_page_size=1 << 30), "lookup", "pages", key="path"),
    PlantedFault("rows without order", shuffled(), "lookup", "sorting", ("id",), key="id"),
    PlantedFault(
        "row groups without order", shuffled(row_group_size=5000, sort_by=["price"]), "lookup", "bloom filter", ("user",),
        key="user"),
    PlantedFault("brotli for a GPU", written("path", "id", compression="brotli"), "gpu", "compression"),
    PlantedFault("values that depend on each other", written("path", column_encoding={"path": "DELTA_BYTE_ARRAY"}), "gpu",
        "encoding", ("path",)),
    PlantedFault("small pages for a GPU", written("user", "noise", data_page_rows=100), "gpu", "pages"),
]
