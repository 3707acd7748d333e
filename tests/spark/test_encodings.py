"""Every encoding that encoding="auto" may choose is read by Spark's vectorized reader."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any
from urllib.parse import unquote

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


def _plain(value: Any) -> Any:
    match value:
        case dt.datetime():
            return value.replace(tzinfo=None)
        case bytearray():
            return bytes(value)
    return value
