"""Streams that read and write each file and batch once, and jobs over all files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
import fastpq.spark
from fastpq.spark import journal
from fastpq.spark.options import WriteOptions
from fastpq.spark.stream import StreamWriter
from fastpq.spark.writer import Written
from tests.spark.conftest import CLIENT

SERVICE = {"kms.client": CLIENT}


def test_stream(source: Any, tmp_path: Path) -> None:
    """A query that restarts reads what is new alone, and the file whose time is old all the same."""
    (tmp_path / "in").mkdir()
    fastpq.write_table({"id": np.arange(5)}, tmp_path / "in" / "b.parquet")
    for expected in (5, 8, 8):
        stream = source.readStream.format("fastpq").schema("id bigint").load(str(tmp_path / "in"))
        started = stream.writeStream.format("fastpq").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = started.trigger(availableNow=True).start(str(tmp_path / "out"))
        assert query.awaitTermination(120)
        assert source.read.format("fastpq").load(str(tmp_path / "out")).count() == expected
        if expected == 5:
            fastpq.write_table({"id": np.arange(3)}, tmp_path / "in" / "a.parquet")
    assert not (tmp_path / "out" / journal.TEMPORARY).exists()


def test_a_batch_that_is_tried_again(source: Any, tmp_path: Path) -> None:
    schema = source.range(0).schema
    for batch, expected in ((0, 1), (0, 1), (1, 2), (0, 2), (1, 2)):
        writer = StreamWriter(schema, WriteOptions(str(tmp_path), stream_id="s"), False)
        place = tmp_path / journal.TEMPORARY / writer.job / "task" / "x.parquet"
        place.parent.mkdir(parents=True)
        fastpq.write_table({"id": [batch]}, place)
        writer.commit([Written(writer.job, {str(place.relative_to(tmp_path)): f"{writer.job}.parquet"}), None], batch)
        assert len(list(tmp_path.rglob("*.parquet"))) == expected
    with pytest.raises(fastpq.SchemaError, match="checkpointLocation"):
        StreamWriter(schema, WriteOptions(str(tmp_path)), False)


def test_jobs(source: Any, tmp_path: Path) -> None:
    options = {
        "parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:price",
        "parquet.encryption.key.material.store.internally": "false",
    }  # fmt: skip
    frame = source.range(1000, numPartitions=2).selectExpr("id", "id / 4 as price")
    frame.write.format("fastpq").mode("append").options(**options, **SERVICE).save(str(tmp_path))
    before = {path: path.read_bytes() for path in tmp_path.glob("_KEY_MATERIAL_FOR_*")}
    assert len(before) == 2
    rotated = fastpq.spark.rotate_keys(source, str(tmp_path), **SERVICE)
    assert [row.status for row in rotated.collect()] == ["ok", "ok"]
    assert all(path.read_bytes() != content for path, content in before.items())
    damaged = min(tmp_path.glob("part-*"))
    with fastpq.spark.batches.open_file(str(damaged), fastpq.spark.options.service_of(SERVICE)) as file:
        start, size = file.metadata.row_group(0).column(1).byte_range
    data = bytearray(damaged.read_bytes())
    data[start + size - 1] ^= 1
    damaged.write_bytes(data)
    report = sorted(fastpq.spark.verify_dataset(source, str(tmp_path), **SERVICE).collect(), key=lambda row: row.path)
    assert [(row.status, row.rows) for row in report] == [("error", None), ("ok", 500)]
    assert "column price" in report[0].error
    with pytest.raises(fastpq.SchemaError, match=r"kms\.client"):
        fastpq.spark.rotate_keys(source, str(tmp_path))
