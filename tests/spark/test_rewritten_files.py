"""What each verb of rewriting writes is the same to Spark, pyarrow, DuckDB and Polars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.advice.recipe_steps import replay
from fastpq.format.enums import Encoding, PageType
from tests.narrowing import present
from tests.rewriting.verbs import KEYS, ROWS, VERBS, rows, write_source
from tests.verify.late_indexes import file_with_late_indexes


def append(source: Path, target: Path) -> None:
    target.write_bytes(source.read_bytes())
    fastpq.append_table(rows()[:100], target)


def split(source: Path, target: Path) -> None:
    fastpq.split_file(source, f"{target}-{{number}}", rows=5000)
    Path(f"{target}-1").rename(target)


ALL_VERBS: dict[str, Any] = VERBS | {"append_table": append, "split_file": split}
ENCRYPTING = "encrypt_file"
CHANGED_ROWS = {"merge_files": 2 * ROWS, "append_table": ROWS + 100, "split_file": 5000, "delete_rows": ROWS - 3}


@pytest.mark.parametrize("name", ALL_VERBS)
def test_every_reader_reads_the_same(spark: Any, tmp_path: Path, name: str) -> None:
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    write_source(source, is_encrypted=name == "decrypt_file")
    ALL_VERBS[name](source, target)
    if name == ENCRYPTING:      # the readers have no keys
        with pytest.raises(OSError, match="encrypted"):
            pq.read_table(target)
        fastpq.decrypt_file(target, target, KEYS)
    expected = pq.read_table(target).to_pylist()
    assert len(expected) == CHANGED_ROWS.get(name, ROWS)
    assert pa.table(fastpq.read_table(target)).to_pylist() == expected
    assert pl.read_parquet(target).to_dicts() == expected
    assert present(duckdb.sql(f"from '{target}'")).to_arrow_table().to_pylist() == expected
    answers = spark.read.parquet(str(target)).selectExpr("*", "_metadata.row_index as place").collect()
    assert [row.asDict(recursive=True) for row in sorted(answers, key=lambda row: row.place)] == [
        {**row, "place": place} for place, row in enumerate(expected)]


def test_spark_misreads_late_indexes(spark: Any, tmp_path: Path) -> None:
    """The reason for the warning of verify_file. Advice mends the file."""
    path, new = tmp_path / "a.parquet", tmp_path / "b.parquet"
    path.write_bytes(file_with_late_indexes())
    expected = pq.read_table(path)["text"].to_pylist()
    assert spark.read.parquet(str(path)).toArrow()["text"].to_pylist() != expected
    replay(path, new, fastpq.advise(path).recipe)
    assert spark.read.parquet(str(new)).toArrow()["text"].to_pylist() == expected


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_rows_deleted_from_pages_with_a_dictionary(spark: Any, tmp_path: Path, version: Any) -> None:
    """Spark reads other values, without an error, where a PLAIN page comes before a page with dictionary indexes."""
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    texts = [f"text {row % 300}" for row in range(6000)]
    table = pa.table({
        "text": texts, "null": [None if row % 5 == 0 else text for row, text in enumerate(texts)],
        "number": np.arange(6000) % 300,
        "struct": [{"text": text} for text in texts], "list": [[text] * (row % 3) for row, text in enumerate(texts)],
        "some": [[f"one {row}"] * (row % 3) for row in range(6000)],
    })
    fastpq.write_table(table, source, data_page_rows=500, data_page_version=version, compression="zstd")
    for deleted in ([50], [1600], [50, 1600, 5600], [4700], [*range(500)], [*range(1000, 2100)]):
        fastpq.delete_rows(source, target, rows=deleted)
        for name in ("text", "number", "null", "struct", "list", "some"):
            expected = np.delete(np.array([*table[name].to_pylist(), None], object), deleted).tolist()[:-1]
            assert pq.read_table(target)[name].to_pylist() == expected
            assert spark.read.parquet(str(target)).select(name).toArrow()[name].to_pylist() == expected, (name, deleted[:3])
        chunk = fastpq.read_metadata(target).row_group(0).column(0)
        assert {stats.encoding for stats in chunk.encoding_stats if stats.page_type != PageType.DICTIONARY_PAGE} == {
            Encoding.RLE_DICTIONARY}
