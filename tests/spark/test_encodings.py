"""Every encoding that encoding="auto" may choose is read by Spark's vectorized reader."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

from tests.interop.automatic_encodings import files


def test_spark_reads_every_automatic_encoding(spark: Any, tmp_path: Path) -> None:
    assert spark.conf.get("spark.sql.parquet.enableVectorizedReader") == "true"
    for name, path, values in files(tmp_path, ["1.0"]):
        got = [row[0] for row in spark.read.parquet(str(path)).collect()]
        read = [bytes(value) if isinstance(value, bytearray) else value for value in got]
        assert [None if value is None else _plain(value) for value in read] == values, name


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value
