"""Streams that read and write files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.spark.native_statements.scene import Place, Scene, last, refused

SCHEMA = "id long, text string"


def _files(spark: Any, folder: str) -> None:
    for number in range(3):
        spark.range(number * 10, number * 10 + 5, 1, 1).selectExpr("id", "string(id) as text").write.mode("append").parquet(
            f"{folder}/rows"
        )
    spark.range(0, 6, 1, 1).selectExpr("id", "string(id) as text", "id % 2 as p").write.partitionBy("p").parquet(
        f"{folder}/parts"
    )
    spark.range(0, 6, 1, 1).selectExpr("id", "string(id) as text").write.parquet(f"{folder}/glob/one")
    spark.range(6, 9, 1, 1).selectExpr("id", "string(id) as text").write.parquet(f"{folder}/glob/two")


def _stream(at: Place, path: str = "rows", schema: str = SCHEMA, **options: object) -> Any:
    return at.spark.readStream.format(at.source).schema(schema).options(**options).load(f"{at.files}/{path}")


def _run(query: Any) -> int:
    """Run a query to its end. Return the number of batches that had rows."""
    try:
        query.awaitTermination()
        return sum(progress["numInputRows"] > 0 for progress in query.recentProgress)
    finally:
        query.stop()


def _read(frame: Any, at: Place, name: str, mode: str = "append") -> Any:
    """Return the number of batches and the rows of a stream."""
    batches = _run(frame.writeStream.format("memory").queryName(name).outputMode(mode).trigger(availableNow=True).start())
    return [batches, at.spark.table(name)]


def _write(at: Place, frame: Any, path: str, *partitions: str, checkpoint: str = "", **options: object) -> Any:
    writer = (
        frame.writeStream.format(at.source)
        .option("checkpointLocation", f"{at.folder}/checkpoint_{checkpoint or path}")
        .options(**options)
    )
    query = (
        writer.partitionBy(*partitions).trigger(availableNow=True).start(f"{at.folder}/{path}")
        if partitions
        else writer.trigger(availableNow=True).start(f"{at.folder}/{path}")
    )
    return _run(query)


def _sink(at: Place) -> Any:
    _write(at, _stream(at), "sink")
    path = Path(at.folder, "sink")
    return {
        "rows": at.read.load(str(path)),
        "by Spark's own": at.spark.read.parquet(str(path)),
        "log": (path / "_spark_metadata").is_dir(),
    }


def _sink_again(at: Place) -> Any:
    """A query that starts again writes nothing twice, and takes new files."""
    source = Path(at.folder, "growing")
    shutil.copytree(Path(at.files, "rows"), source)
    counts = []
    for _ in range(2):
        frame = at.spark.readStream.format(at.source).schema(SCHEMA).load(str(source))
        _write(at, frame, "again")
        counts.append(at.read.load(f"{at.folder}/again").count())
    at.rows("string(id) as text", count=2).write.mode("append").parquet(str(source))
    _write(at, at.spark.readStream.format(at.source).schema(SCHEMA).load(str(source)), "again")
    return [*counts, at.read.load(f"{at.folder}/again").count()]


def _sink_with_strangers(at: Place) -> Any:
    """A reader of a sink takes the files of its log alone."""
    _write(at, _stream(at), "strangers")
    at.rows("string(id) as text", count=2).write.mode("append").parquet(f"{at.folder}/strangers/")
    return at.read.load(f"{at.folder}/strangers").count()


def _cleaned(clean: str, **options: object) -> Callable[[Place], Any]:
    def action(at: Place) -> Any:
        source = Path(at.folder, f"clean_{clean}")
        shutil.copytree(Path(at.files, "rows"), source)
        frame = (
            at.spark.readStream.format(at.source)
            .schema(SCHEMA)
            .option("cleanSource", clean)
            .options(**{name: str(value).replace("FOLDER", at.folder) for name, value in options.items()})
            .load(str(source))
        )
        _write(at, frame, f"cleaned_{clean}")
        return at.read.load(f"{at.folder}/cleaned_{clean}").count()

    return action


def _in_batches(at: Place) -> Any:
    rows: list[int] = []
    query = (
        _stream(at, maxFilesPerTrigger=2)
        .writeStream.foreachBatch(lambda frame, number: rows.append(frame.count()))
        .trigger(availableNow=True)
    )
    _run(query.start())
    return rows


def _to_table(at: Place, name: str, **options: object) -> Any:
    writer = (
        _stream(at)
        .writeStream.format(at.source)
        .option("checkpointLocation", f"{at.folder}/checkpoint_{name}")
        .options(**options)
    )
    _run(writer.trigger(availableNow=True).toTable(name))
    return at.spark.table(name)


def _inferred(at: Place) -> Any:
    with at.settings(spark_sql_streaming_schemaInference="true"):
        return _read(at.spark.readStream.format(at.source).load(f"{at.files}/rows"), at, "inferred")


STREAMS = Scene(
    "streams",
    files=_files,
    settings={"spark.sql.streaming.stopTimeout": "30s"},
    statements={
        "all files": lambda at: _read(_stream(at), at, "all_files"),
        "one file a batch": lambda at: _read(_stream(at, maxFilesPerTrigger=1), at, "one_file"),
        "most bytes a batch": lambda at: _read(_stream(at, maxBytesPerTrigger="1"), at, "most_bytes"),
        "files and bytes a batch": refused(
            lambda at: _read(_stream(at, maxBytesPerTrigger="1", maxFilesPerTrigger=1), at, "both")
        ),
        "no file a batch": refused(lambda at: _read(_stream(at, maxFilesPerTrigger=0), at, "no_file")),
        "latest first": lambda at: _read(_stream(at, latestFirst=True, maxFilesPerTrigger=1), at, "latest"),
        "without a schema": refused(lambda at: at.spark.readStream.format(at.source).load(f"{at.files}/rows")),
        "schema inferred": _inferred,
        "a missing path": refused(lambda at: _stream(at, "missing")),
        "no path": refused(lambda at: at.spark.readStream.format(at.source).schema(SCHEMA).load()),
        "a glob": lambda at: _read(_stream(at, "glob/*"), at, "by_glob"),
        "pathGlobFilter": lambda at: _read(_stream(at, pathGlobFilter="*.unknown"), at, "by_filter"),
        "partitions": lambda at: _read(_stream(at, "parts", "id long, text string, p int"), at, "partitions"),
        "filtered": lambda at: _read(_stream(at).where("id > 12").select("text"), at, "filtered"),
        "aggregated": lambda at: _read(_stream(at).groupBy("id").count(), at, "aggregated", "complete"),
        "aggregated, appended": refused(lambda at: _read(_stream(at).groupBy("id").count(), at, "appended")),
        "joined with rows": lambda at: _read(_stream(at).join(at.rows("'x' as mark", count=3), "id"), at, "joined"),
        "deduplicated": lambda at: _read(_stream(at).dropDuplicates(["id"]), at, "deduplicated"),
        "_metadata": lambda at: _read(
            _stream(at).select("id", "_metadata.file_name", "_metadata.row_index"), at, "with_metadata"
        ),
        "input_file_name()": lambda at: _read(_stream(at).selectExpr("id", "input_file_name() <> '' as known"), at, "with_names"),
        "foreachBatch": _in_batches,
        "collected": refused(lambda at: _stream(at).collect()),
        "is streaming": lambda at: [_stream(at).isStreaming, _stream(at).schema.json()],
        "a table as a stream": lambda at: last(
            at.sql("create table s using {source} location '{files}/rows'"),
            _read(at.spark.readStream.table("s"), at, "from_table"),
        ),
        "a sink": _sink,
        "a sink, started again": _sink_again,
        "a sink, with files of others": _sink_with_strangers,
        "a sink with partitions": lambda at: last(
            _write(at, _stream(at, "parts", "id long, text string, p int"), "sink_parts", "p"),
            at.read.load(f"{at.folder}/sink_parts"),
        ),
        "a sink read as a stream": lambda at: _read(
            at.spark.readStream.format(at.source).schema(SCHEMA).load(f"{at.folder}/sink"), at, "sink_read"
        ),
        "a sink with a codec": lambda at: last(
            _write(at, _stream(at), "sink_codec", compression="gzip"),
            {file.suffixes[-2] for file in Path(at.folder, "sink_codec").glob("part-*")} == {".gz"},
        ),
        "a sink, complete": refused(
            lambda at: _run(
                _stream(at)
                .groupBy("id")
                .count()
                .writeStream.format(at.source)
                .outputMode("complete")
                .option("checkpointLocation", f"{at.folder}/c1")
                .start(f"{at.folder}/complete")
            )
        ),
        "a sink without a checkpoint": refused(
            lambda at: (
                at.spark.conf.set("spark.sql.streaming.checkpointLocation", ""),
                _run(_stream(at).writeStream.format(at.source).start(f"{at.folder}/none")),
            )
        ),
        "a sink without a path": refused(
            lambda at: _run(_stream(at).writeStream.format(at.source).option("checkpointLocation", f"{at.folder}/c2").start())
        ),
        "a sink that is a table": lambda at: _to_table(at, "streamed"),
        "a sink that is a table, with a path": lambda at: _to_table(at, "streamed_path", path=f"{at.folder}/streamed_path"),
        "cleanSource: delete": _cleaned("delete"),
        "cleanSource: archive": _cleaned("archive", sourceArchiveDir="FOLDER/archive"),
        "cleanSource: archive, no place": refused(_cleaned("archive")),
        "cleanSource: unknown": refused(_cleaned("unknown")),
        "a batch append to a sink": lambda at: last(
            at.write(at.rows("string(id) as text", count=1), "append").save(f"{at.folder}/sink"),
            at.read.load(f"{at.folder}/sink").count(),
        ),
    },
)
SCENES = [STREAMS]
