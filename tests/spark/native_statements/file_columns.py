"""What Spark tells of files: ``_metadata``, ``input_file_name()`` and its like, ``inputFiles()``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.spark.native_statements.scene import Place, Scene, refused, under


def _files(spark: Any, folder: str) -> None:
    """Two files of several row groups in each of two partitions, in a folder whose name a URL escapes."""
    for part in (1, 2):
        for number in (0, 1):
            rows = range(number * 10, number * 10 + 10)
            place = Path(folder, "a b%20ä", f"part={part}")
            place.mkdir(parents=True, exist_ok=True)
            table = pa.table({"id": list(rows), "text": [str(row) for row in rows]})
            pq.write_table(table, place / f"{number} rows.parquet", row_group_size=4)
            os.utime(place / f"{number} rows.parquet", (1_600_000_000, 1_600_000_000 + number))
    pq.write_table(pa.table({"_metadata": [1, 2], "id": [3, 4]}), Path(folder, "named.parquet"))
    pq.write_table(pa.table({"row_index": [5, 6], "_tmp_metadata_row_index": [7, 8]}), Path(folder, "index.parquet"))


def _select(*columns: str, where: str = "true") -> Callable[[Place], Any]:
    return lambda at: at.load("a b%20ä").where(where).selectExpr(*columns)


def _tables(at: Place) -> None:
    at.sql(
        "create table files (id long, text string, part int) using {source} partitioned by (part) location '{files}/a b%20ä'; msck repair table files"
    )


FIELDS = ("file_path", "file_name", "file_size", "file_block_start", "file_block_length", "file_modification_time", "row_index")
FILE_COLUMNS = Scene(
    "columns of files",
    files=_files,
    before=_tables,
    statements={
        **{f"_metadata.{name}": _select("id", "part", f"_metadata.{name}") for name in FIELDS},
        "_metadata whole": _select("id", "part", "_metadata"),
        "_metadata alone": _select("_metadata"),
        "_metadata, hidden": lambda at: at.load("a b%20ä").columns,
        "_metadata, hidden by a star": _select("*"),
        "_metadata, by its name in another case": _select("_METADATA.FILE_NAME"),
        "_metadata, an unknown field": refused(_select("_metadata.unknown")),
        "_metadata, all fields": _select("_metadata.*"),
        "_metadata, renamed": _select("_metadata as about"),
        "_metadata, distinct": lambda at: _select("_metadata.file_name")(at).distinct(),
        "_metadata, grouped": lambda at: at.load("a b%20ä").groupBy("_metadata.file_name").count(),
        "_metadata, counted": lambda at: at.load("a b%20ä").selectExpr("count(_metadata.file_path)", "max(_metadata.row_index)"),
        "_metadata, ordered": lambda at: (
            at.load("a b%20ä").orderBy("part", "_metadata.file_path", "_metadata.row_index").select("id").collect()
        ),
        "_metadata, with columns alone": _select("text", "_metadata.row_index", where="id > 17"),
        "_metadata, filter on a name": _select("id", where="_metadata.file_name like '1%'"),
        "_metadata, filter on a path": _select("id", where="_metadata.file_path like '%part=2/0%'"),
        "_metadata, filter on a size": _select("id", where="_metadata.file_size > 0"),
        "_metadata, filter on a time": _select("id", where="_metadata.file_modification_time > timestamp'2020-09-13 05:26:40'"),
        "_metadata, filter on a row": _select("id", "_metadata.row_index", where="_metadata.row_index in (0, 9)"),
        "_metadata, filter on a row and a column": _select(
            "id", "_metadata.row_index", where="_metadata.row_index > 3 and id < 16"
        ),
        "_metadata, filter on a column": _select("id", "_metadata.row_index", where="id = 15"),
        "_metadata, filter on a block": _select("id", where="_metadata.file_block_start = 0 and _metadata.file_block_length > 0"),
        "_metadata, filter on a partition": _select("id", "_metadata.file_name", where="part = 2"),
        "_metadata, joined": lambda at: _select("id", "_metadata.file_name as a")(at).join(
            _select("id", "_metadata.row_index as b")(at), "id"
        ),
        "_metadata, in a union": lambda at: _select("_metadata.file_name")(at).union(_select("text")(at)),
        "_metadata, after another column": lambda at: (
            at.load("a b%20ä").selectExpr("*", "1 as more").select("more", "_metadata.file_name")
        ),
        "_metadata, after a projection": refused(
            lambda at: at.load("a b%20ä").selectExpr("id as key").groupBy("key").count().select("_metadata")
        ),
        "_metadata, by the method": lambda at: (
            lambda frame: frame.select(frame.metadataColumn("_metadata").getField("file_name"))
        )(at.load("a b%20ä")),
        "_metadata, in a subquery": "select id from files where _metadata.file_name = (select max(_metadata.file_name) from files) and part = 1",
        "_metadata, of a table": "select part, _metadata.file_name, _metadata.row_index, id from files",
        "_metadata, of an alias": "select f._metadata.file_name, f.id from files f",
        "_metadata, of a path in SQL": "select _metadata.file_name, id from {source}.`{files}/a b%20ä`",
        "_metadata, of a view": "create temporary view seen as select *, _metadata.row_index as place from files; select * from seen where place = 1",
        "_metadata, of a user": lambda at: at.load("named.parquet").select("_metadata"),
        "_metadata, beside a column of the name": lambda at: (
            lambda frame: frame.select("id", frame.metadataColumn("_metadata").getField("file_name"))
        )(at.load("named.parquet")),
        "_metadata, beside a column of row numbers": refused(
            lambda at: at.load("index.parquet").select("*", "_metadata.row_index")
        ),
        "_metadata, of rows in memory": refused(lambda at: at.rows().select("_metadata")),
        "_metadata, cached": lambda at: at.load("a b%20ä").select("id", "_metadata.file_name").cache().where("id = 3"),
        "_metadata, written": lambda at: at.save(_select("id", "_metadata")(at), "with_metadata").select(
            "id", "_metadata.file_name"
        ),
        "_metadata, with a schema": lambda at: (
            at.read.schema("id long").load(f"{at.files}/a b%20ä").select("id", "_metadata.row_index")
        ),
        "_metadata, of splits": under(
            lambda at: sorted(_select("id", "part", "_metadata.row_index", "_metadata.file_block_start")(at).collect()),
            spark_sql_files_maxPartitionBytes="500",
        ),
        "input_file_name()": _select("id", "input_file_name()"),
        "input_file_block_start()": _select("id", "input_file_block_start()"),
        "input_file_block_length()": _select("id", "input_file_block_length()"),
        "input_file_name(), filtered": _select("id", where="input_file_name() like '%1%20rows%'"),
        "input_file_name(), grouped": lambda at: (
            at.load("a b%20ä").selectExpr("input_file_name() as name").groupBy("name").count()
        ),
        "input_file_name(), alone": _select("input_file_name()"),
        "input_file_name(), of one row": _select("input_file_name()", where="id = 7"),
        "input_file_name(), of a table": "select input_file_name(), id from files where part = 1",
        "input_file_name(), of few rows": lambda at: (
            at.load("a b%20ä").where("id = 3 and part = 1").selectExpr("input_file_name()")
        ),
        "inputFiles()": lambda at: sorted(at.load("a b%20ä").inputFiles()),
        "inputFiles(), filtered": lambda at: sorted(at.load("a b%20ä").where("part = 1").inputFiles()),
        "inputFiles(), of a projection": lambda at: sorted(_select("id + 1 as more")(at).inputFiles()),
        "inputFiles(), of a join": lambda at: sorted(at.load("a b%20ä").join(at.load("named.parquet"), "id").inputFiles()),
        "inputFiles(), of a table": lambda at: sorted(at.spark.table("files").inputFiles()),
        "inputFiles(), of one file": lambda at: at.load("named.parquet").inputFiles(),
    },
)
SCENES = [FILE_COLUMNS]
