"""Streams that read and write each file and batch once."""

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
