"""Modes, files, options and failures of writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.spark.native_statements.scene import Place, Scene, last, refused, under


def _files_of(at: Place, path: str) -> list[str]:
    """Return the visible names below a folder, with numbers in place of what is unique."""
    return [re.sub(r"-c\d+", "", re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UNIQUE", name)) for name in at.paths(path)]


def _twice(mode: str) -> Callable[[Place], Any]:
    def action(at: Place) -> Any:
        at.save(at.rows(count=3), f"twice_{mode}")
        return at.save(at.rows(count=2), f"twice_{mode}", mode)

    return action


def _first(mode: str) -> Callable[[Place], Any]:
    return lambda at: at.save(at.rows(count=2), f"first_{mode}", mode)


def _codec(codec: str, label: str = "", **options: str) -> Callable[[Place], Any]:
    """Write with a codec. Return the ending of the file name and the codec in the footer."""

    def action(at: Place) -> Any:
        chosen: dict[str, Any] = {**options, **({"compression": codec} if codec else {})}
        path = f"codec_{codec}{label}_{'_'.join(options)}"
        at.save(at.rows("repeat('text', 100) as text"), path, "error", **chosen)
        file = next(Path(at.folder, path).glob("part-*"))
        return ["." + file.name.split(".", 1)[1], pq.ParquetFile(file).metadata.row_group(0).column(0).compression]

    return action


def _numbers(at: Place, path: str, **options: Any) -> list[int]:
    """Write rows and return the numbers of rows of the files, in order."""
    at.save(at.rows(count=10), path, **options)
    return sorted(pq.ParquetFile(file).metadata.num_rows for file in Path(at.folder, path).glob("part-*"))


def _overwritten(mode: str, *, option: bool) -> Callable[[Place], Any]:
    def action(at: Place) -> Any:
        path = f"{at.folder}/overwritten_{mode}_{option}"
        at.write(at.rows("id % 3 as p")).partitionBy("p").save(path)
        writer = at.write(at.rows("1 as p", count=2), "overwrite").partitionBy("p")
        if option:
            writer.option("partitionOverwriteMode", mode).save(path)
        else:
            with at.settings(spark_sql_sources_partitionOverwriteMode=mode):
                writer.save(path)
        return at.read.load(path)

    return action


def _failed(mode: str) -> Callable[[Place], Any]:
    """A write whose last row fails. Return what is there afterwards."""

    def action(at: Place) -> Any:
        path = f"failed_{mode}"
        at.save(at.rows(count=2), path)
        failure = ""
        try:
            at.save(at.spark.range(0, 10, 1, 2).selectExpr("1 / (id - 9) as value", "id"), path, mode)
        except Exception as error:
            failure = type(error).__name__
        return [failure, [name for name in at.paths(path) if name.startswith("part")] != [], at.paths(path, "_temporary*")]

    return action


def _from_itself(at: Place) -> Any:
    at.save(at.rows(), "itself")
    return at.save(at.read.load(f"{at.folder}/itself"), "itself", "overwrite")


def _appended_to_itself(at: Place) -> Any:
    at.save(at.rows(), "appended")
    return at.save(at.read.load(f"{at.folder}/appended"), "appended", "append")


def _appended(*columns: str) -> Callable[[Place], Any]:
    """Append rows of another schema, and read with the schemas merged."""

    def action(at: Place) -> Any:
        path = f"appended{len(columns)}_{abs(hash(columns))}"
        at.save(at.rows("string(id) as text", count=2), path)
        at.write(at.spark.range(2).selectExpr(*columns), "append").save(f"{at.folder}/{path}")
        rows = at.read.option("mergeSchema", "true").load(f"{at.folder}/{path}")
        return rows.select(*sorted(rows.columns))  # the order depends on the names of files

    return action


def _stored(expression: str, **settings: str) -> Callable[[Place], Any]:
    """Return the types in the footer of a written column."""

    def action(at: Place) -> Any:
        path = f"{at.folder}/stored{abs(hash((expression, *settings)))}"
        with at.settings(**settings):
            at.write(at.rows(f"{expression} as value", count=2)).save(path)
        schema = pq.ParquetFile(next(Path(path).glob("part-*"))).schema
        return [
            [str(schema.column(number).path), schema.column(number).physical_type, str(schema.column(number).logical_type)]
            for number in range(len(schema))
        ]

    return action


STORED = {
    "boolean": "id = 1",
    "byte": "tinyint(id)",
    "short": "smallint(id)",
    "int": "int(id)",
    "long": "id",
    "float": "float(id)",
    "double": "double(id)",
    "string": "string(id)",
    "binary": "cast(string(id) as binary)",
    "decimal of 9 digits": "cast(id as decimal(9, 2))",
    "decimal of 18 digits": "cast(id as decimal(18, 2))",
    "decimal of 20 digits": "cast(id as decimal(20, 2))",
    "date": "date'2020-01-01'",
    "timestamp": "timestamp'2020-01-01'",
    "timestamp without a zone": "timestamp_ntz'2020-01-01'",
    "array": "array(id)",
    "map": "map(id, string(id))",
    "struct": "named_struct('a', id)",
    "interval of days": "make_dt_interval(1)",
    "interval of months": "make_ym_interval(1)",
}
LEGACY = {"spark_sql_parquet_writeLegacyFormat": "true"}
INT96 = {"spark_sql_parquet_outputTimestampType": "INT96"}
MILLIS = {"spark_sql_parquet_outputTimestampType": "TIMESTAMP_MILLIS"}


def _metadata_keys(at: Place) -> Any:
    at.save(at.rows(), "keys")
    metadata = pq.ParquetFile(next(Path(at.folder, "keys").glob("part-*"))).metadata.metadata
    return sorted(key.decode() for key in metadata if key.startswith(b"org.apache.spark"))


WRITING = Scene(
    "writing",
    statements={
        **{
            f"mode {mode}, nothing there": _first(mode)
            for mode in ("append", "overwrite", "ignore", "error", "errorifexists", "default")
        },
        **{f"mode {mode}, something there": _twice(mode) for mode in ("append", "overwrite", "ignore")},
        **{f"mode {mode}, something there": refused(_twice(mode)) for mode in ("error", "errorifexists")},
        "an unknown mode": refused(_first("unknown")),
        "no path": refused(lambda at: at.write(at.rows()).save()),
        "a path that is a file": refused(
            lambda at: last(Path(at.folder, "file").write_text("text"), at.save(at.rows(), "file", "append"))
        ),
        "names of files": lambda at: last(at.save(at.spark.range(0, 4, 1, 2), "names"), _files_of(at, "names")),
        "names of files in folders": lambda at: last(
            at.write(at.rows("id % 2 as p")).partitionBy("p").save(f"{at.folder}/parts"),
            _files_of(at, "parts"),
        ),
        "no rows": lambda at: [at.save(at.rows().where("id < 0"), "none"), len(list(Path(at.folder, "none").glob("part-*")))],
        "no rows, with partitions": lambda at: last(
            at.write(at.rows("1 as p").where("id < 0")).partitionBy("p").save(f"{at.folder}/none_p"),
            at.paths("none_p"),
        ),
        "no rows in some tasks": lambda at: [
            at.save(at.spark.range(0, 10, 1, 2).where("id < 2"), "some"),
            len(list(Path(at.folder, "some").glob("part-*"))),
        ],
        "no columns": refused(lambda at: at.save(at.rows().select(), "no_columns")),
        "two columns of one name": refused(lambda at: at.save(at.rows("2 as id"), "same")),
        "two columns that differ in case": refused(lambda at: at.save(at.rows("2 as ID"), "same_case")),
        "two fields that differ in case": refused(
            lambda at: at.save(at.rows("named_struct('a', 1, 'A', 2) as s"), "same_fields")
        ),
        "names with special characters": lambda at: at.save(
            at.rows("1 as `a b`", "2 as `a,b;{}()=`", "3 as `ä`", "4 as `a.b`"), "special"
        ),
        "a path with special characters": lambda at: at.save(at.rows(count=2), "a b%20ä+c"),
        "a marker of success": lambda at: last(at.save(at.rows(), "marked"), at.paths("marked", "_SUCCESS")),
        "sizes: option maxRecordsPerFile": lambda at: _numbers(at, "sized", maxRecordsPerFile=4),
        "sizes: option maxRecordsPerFile of zero": lambda at: _numbers(at, "sized_0", maxRecordsPerFile=0),
        "sizes: setting maxRecordsPerFile": under(lambda at: _numbers(at, "sized_set"), spark_sql_files_maxRecordsPerFile="3"),
        "sizes: in partitions": lambda at: last(
            at.write(at.rows("id % 2 as p")).partitionBy("p").option("maxRecordsPerFile", 3).save(f"{at.folder}/sized_p"),
            len(at.paths("sized_p", "part-*")),
        ),
        **{
            f"codec {codec}": _codec(codec)
            for codec in ("snappy", "gzip", "zstd", "lz4", "lz4_raw", "none", "uncompressed", "ZSTD")
        },
        "codec by default": _codec(""),
        "codec unknown": refused(_codec("bogus")),
        "codec of parquet-java's option": _codec("", **{"parquet.compression": "gzip"}),
        "codec of both options": _codec("zstd", **{"parquet.compression": "gzip"}),
        "codec by the setting": under(_codec("", "set"), spark_sql_parquet_compression_codec="gzip"),
        "overwrite static, option": _overwritten("static", option=True),
        "overwrite dynamic, option": _overwritten("dynamic", option=True),
        "overwrite static, setting": _overwritten("static", option=False),
        "overwrite dynamic, setting": _overwritten("dynamic", option=False),
        "overwrite by an unknown way": refused(_overwritten("bogus", option=True)),
        "overwrite of what is read": refused(_from_itself),
        "append to what is read": _appended_to_itself,
        "append another column": _appended("id", "'more' as more"),
        "append other types": refused(lambda at: _appended("string(id) as id", "'b' as text")(at).collect()),
        "append other order": _appended("'b' as text", "id"),
        **{f"failed task, {mode}": _failed(mode) for mode in ("append", "overwrite")},
        "sorted without buckets": refused(lambda at: at.write(at.rows()).sortBy("id").save(f"{at.folder}/sorted")),
        "buckets without a table": refused(lambda at: at.write(at.rows()).bucketBy(2, "id").save(f"{at.folder}/buckets")),
        "inserted into a path": refused(lambda at: at.write(at.rows()).insertInto("missing_table")),
        "clustered": refused(lambda at: at.write(at.rows()).clusterBy("id").partitionBy("id").save(f"{at.folder}/clustered")),
        "keys of Spark in the footer": _metadata_keys,
        "options of parquet-java": lambda at: at.save(
            at.rows("string(id) as text"),
            "java_options",
            **{
                "parquet.enable.dictionary": "false",
                "parquet.block.size": "1048576",
                "parquet.page.size": "65536",
                "parquet.bloom.filter.enabled#text": "true",
            },
        ),
        "an option that nothing knows": lambda at: at.save(at.rows(count=2), "unknown", anything="goes"),
        "many rows": lambda at: at.save(
            at.spark.range(0, 200_000, 1, 2).selectExpr("id", "string(id) as text"), "many"
        ).selectExpr("sum(id)", "sum(length(text))", "count(*)"),
        "insert overwrite directory": "insert overwrite directory '{folder}/directory' using {source} select id, 'a' as a from range(3); select * from {source}.`{folder}/directory`",
        "insert overwrite directory, with options": "insert overwrite directory using {source} options (path '{folder}/directory', compression 'gzip') select id from range(2); select * from {source}.`{folder}/directory`",
        "insert into a path": refused("insert into {source}.`{folder}/directory` values (1)"),
        "write to": refused(lambda at: at.rows().writeTo(f"{at.database}.unknown").append()),
        "writeTo creates": lambda at: last(
            at.rows(count=2).writeTo("written_to").using(at.source).create(),
            at.spark.table("written_to"),
        ),
    },
)
STORED_TYPES = Scene(
    "stored types",
    settings={"spark.sql.timeType.enabled": "true"},
    statements={
        **{name: _stored(expression) for name, expression in STORED.items()},
        "INT96": _stored("timestamp'2020-01-01 12:00:00'", **INT96),
        "milliseconds": _stored("timestamp'2020-01-01 12:00:00.123456'", **MILLIS),
        **{
            f"old form: {name}": _stored(STORED[name], **LEGACY)
            for name in ("decimal of 9 digits", "decimal of 18 digits", "array", "map", "timestamp")
        },
        "identifiers of fields": lambda at: _field_ids(at, "true"),
        "identifiers of fields, not written": lambda at: _field_ids(at, "false"),
    },
)


def _field_ids(at: Place, value: str) -> Any:
    with at.settings(spark_sql_parquet_fieldId_write_enabled=value):
        at.save(at.rows("string(id) as text", count=2).withMetadata("text", {"parquet.field.id": 7}), f"ids_{value}")
    arrow = pq.read_schema(next(Path(at.folder, f"ids_{value}").glob("part-*")))
    return [(field.name, (field.metadata or {}).get(b"PARQUET:field_id")) for field in arrow]


SCENES = [WRITING, STORED_TYPES]
