"""What fastpq's earlier jar or its Python source has begun: streams go on with the Python source, and the jar refuses them.

Checkpoints and folders of 9e8298a were tried by hand. The Python source has written the same offsets and records since.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from tests.spark.test_jvm_read import FORMAT

SCHEMA = "id bigint"


def run(source: Any, folder: Path, checkpoint: str, formats: tuple[str, str], target: str) -> None:
    stream = source.readStream.format(formats[0]).schema(SCHEMA).load(str(folder / "in")).writeStream.format(formats[1])
    query = stream.option("checkpointLocation", str(folder / checkpoint)).trigger(availableNow=True).start(str(folder / target))
    query.awaitTermination()


def test_streams_that_began_through_python(source: Any, tmp_path: Path) -> None:
    source.range(10).write.format("fastpq").mode("append").save(str(tmp_path / "in"))
    run(source, tmp_path, "checkpoint", ("fastpq", "fastpq"), "out")
    source.range(10, 13).write.format(FORMAT).mode("append").save(str(tmp_path / "in"))

    with pytest.raises(Exception, match=r"of a stream that read through Python.*Go on with the format fastpq_python"):
        run(source, tmp_path, "checkpoint", (FORMAT, "parquet"), "elsewhere")
    with pytest.raises(StreamingQueryException, match=r"log of Spark's own file stream would hide its files"):
        run(source, tmp_path, "new", (FORMAT, FORMAT), "out")
    assert not (tmp_path / "out/_spark_metadata").exists()      # which would hide all files
    assert source.read.parquet(str(tmp_path / "out")).count() == 10

    run(source, tmp_path, "checkpoint", ("fastpq", "fastpq"), "out")
    assert sorted(row.id for row in source.read.parquet(str(tmp_path / "out")).collect()) == list(range(13))


def test_new_streams_of_the_jar(source: Any, tmp_path: Path) -> None:
    """They may read a folder that a stream of the Python source reads too, and one stream may have a source of each kind."""
    source.range(10).write.format("fastpq").mode("append").save(str(tmp_path / "in"))
    for _ in range(2):
        run(source, tmp_path, "python", ("fastpq", "parquet"), "first")
        run(source, tmp_path, "jar", (FORMAT, FORMAT), "second")
        run(source, tmp_path, "mixed", ("fastpq", FORMAT), "third")
        source.range(10, 13).write.format(FORMAT).mode("append").save(str(tmp_path / "in"))
    assert {name: source.read.parquet(str(tmp_path / name)).count() for name in ("first", "second", "third")} == {
        "first": 13, "second": 13, "third": 13,
    }
