"""Every encoding that encoding="auto" may choose is read by Spark's vectorized reader."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

import fastpq
from tests.interop.automatic_encodings import files


def test_spark_reads_every_automatic_encoding(spark: Any, tmp_path: Path) -> None:
    """The files of one type by one query."""
    assert spark.conf.get("spark.sql.parquet.enableVectorizedReader") == "true"
    written: dict[str, dict[str, tuple[str, list[Any]]]] = {}
    for name, path, values in files(tmp_path, ["1.0"]):
        written.setdefault(str(fastpq.read_schema(path)), {})[path.name] = name, values
    assert sum(map(len, written.values())) >= 70
    for typed in written.values():
        paths = [str(tmp_path / file) for file in typed]
        rows = spark.read.parquet(*paths).selectExpr("_metadata.file_name as file", "_metadata.row_index as number", "x")
        found: dict[str, list[Any]] = {file: [] for file in typed}
        for row in sorted(rows.collect(), key=lambda row: row.number):
            found[unquote(row.file)].append(_plain(row.x))
        for file, (name, values) in typed.items():
            assert found[file] == values, name


def test_spark_reads_pages_of_several_zstd_blocks(spark: Any, tmp_path: Path) -> None:
    """ZSTD ends a block with each stream of a page (tests/write/test_streams.py)."""
    random = np.random.default_rng(3)
    rows = 30_000
    columns: dict[str, Any] = {
        "number": np.arange(rows), "float": random.normal(0, 1, rows).astype("f4"), "double": random.normal(0, 1, rows),
        "int": random.integers(0, 1 << 24, rows).astype("i4"), "long": random.integers(0, 1 << 45, rows),
        "lengths": [f"{value:x}" * (value % 5) for value in random.integers(0, 1 << 50, rows).tolist()],
        "prefixes": sorted(f"{value:x}" for value in random.integers(0, 1 << 50, rows).tolist()),
    }
    encodings = dict.fromkeys(("float", "double", "int", "long"), "BYTE_STREAM_SPLIT")
    encodings |= {"lengths": "DELTA_LENGTH_BYTE_ARRAY", "prefixes": "DELTA_BYTE_ARRAY"}
    for version in ("1.0", "2.0"):
        path = tmp_path / f"{version}.parquet"
        fastpq.write_table(columns, path, compression="zstd", column_encoding=encodings, data_page_version=version)
        found = sorted(spark.read.parquet(str(path)).collect(), key=lambda row: row.number)
        for name, values in columns.items():
            assert [row[name] for row in found] == (values if isinstance(values, list) else values.tolist()), name


def _plain(value: Any) -> Any:
    match value:
        case dt.datetime():
            return value.replace(tzinfo=None)
        case bytearray():
            return bytes(value)
    return value
