"""Files that Spark's own writer makes have no violation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastpq

OPTIONS: dict[str, dict[str, str]] = {
    "defaults": {},
    "V2 pages": {"parquet.writer.version": "v2", "compression": "zstd"},
    "small pages": {"parquet.page.size": "2000", "parquet.page.row.count.limit": "100", "parquet.block.size": "20000"},
    "bloom filter": {"parquet.bloom.filter.enabled#text": "true", "parquet.bloom.filter.enabled#id": "true"},
    "no dictionary": {"parquet.enable.dictionary": "false", "compression": "none"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_file_of_spark(spark: Any, options: dict[str, str], tmp_path: Path) -> None:
    frame = spark.range(3000).selectExpr(
        "id", "cast(id as int) as number", "if(id % 3 = 0, null, concat('text ', id % 50)) as text", "id / 7 as ratio",
        "cast(id as decimal(9, 2)) as money", "cast(id * 1000000 as decimal(30, 5)) as large",
        "timestamp_seconds(id * 1000) as moment", "date_add(date'2000-01-01', cast(id as int)) as day",
        "if(id % 5 = 0, null, sequence(0, id % 4)) as list", "named_struct('a', id, 'b', if(id % 2 = 0, null, id)) as struct",
        "map('k', id) as map", "id % 2 = 0 as flag", "cast(concat('b', id) as binary) as bytes")
    frame.coalesce(1).write.options(**options).parquet(str(tmp_path / "data"))
    (path,) = (tmp_path / "data").glob("*.parquet")
    for quick in (False, True):
        report = fastpq.verify_file(path, quick=quick)
        assert report.is_sound, str(report)
        assert report.is_complete
