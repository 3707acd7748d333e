"""Options of file sources, and settings of files and of Parquet."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.spark.native_statements.scene import Place, Scene, refused


def _files(spark: Any, folder: str) -> None:
    """Files with known times of modification, in nested folders, beside files of another ending."""
    spark.range(0, 4, 1, 1).write.parquet(f"{folder}/.seed")
    content = next(Path(folder, ".seed").glob("part-*")).read_bytes()
    names = (
        "first.parquet",
        "second.parquet",
        "third.pq",
        "inner/fourth.parquet",
        "inner/deeper/fifth.parquet",
        "p=1/sixth.parquet",
    )
    for number, name in enumerate(names):
        path = Path(folder, "tree" if "/" in name else "flat", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (1_600_000_000 + number * 86_400,) * 2)  # from 2020-09-13T12:26:40Z on
    for number in range(5):
        spark.range(0, 1000 * (number + 1), 1, 1).write.mode("append").parquet(f"{folder}/sizes")


def _names(path: str, **options: object) -> Callable[[Place], Any]:
    return lambda at: sorted(
        os.path.basename(name) for name in at.read.schema("id long").options(**options).load(f"{at.files}/{path}").inputFiles()
    )


def _partitions(**settings: str) -> Callable[[Place], Any]:
    """Return the number of tasks of a scan under settings, and its rows."""

    def action(at: Place) -> Any:
        with at.settings(**{f"spark_sql_files_{name}": value for name, value in settings.items()}):
            frame = at.load("sizes")
            return [frame.rdd.getNumPartitions(), frame.count()]

    return action


OPTIONS = Scene(
    "options",
    files=_files,
    statements={
        "pathGlobFilter": _names("flat", pathGlobFilter="*.pq"),
        "pathGlobFilter of alternatives": _names("flat", pathGlobFilter="{first,third}*"),
        "pathGlobFilter that leaves nothing": refused(lambda at: at.load("flat", pathGlobFilter="*.csv")),
        "pathGlobFilter that is no pattern": refused(_names("flat", pathGlobFilter="[")),
        "PATHGLOBFILTER": _names("flat", PATHGLOBFILTER="*.pq"),
        "recursiveFileLookup": _names("tree", recursiveFileLookup=True),
        "recursiveFileLookup off": refused(lambda at: at.load("tree")),
        "recursiveFileLookup, columns": lambda at: at.load("tree", recursiveFileLookup=True).columns,
        "recursiveFileLookup, with a pattern": _names("tree", recursiveFileLookup=True, pathGlobFilter="f*"),
        "recursiveFileLookup that is no truth value": refused(_names("tree", recursiveFileLookup="perhaps")),
        "modifiedAfter": _names("flat", modifiedAfter="2020-09-14T00:00:00"),
        "modifiedBefore": _names("flat", modifiedBefore="2020-09-14T00:00:00"),
        "modifiedAfter and modifiedBefore": _names(
            "flat", modifiedAfter="2020-09-14T00:00:00", modifiedBefore="2020-09-15T00:00:00"
        ),
        "modifiedAfter, with a zone": _names("flat", modifiedAfter="2020-09-14T12:26:39", timeZone="UTC"),
        "modifiedAfter, in the session's zone": _names("flat", modifiedAfter="2020-09-14T05:26:41"),
        "modifiedAfter that is no time": refused(_names("flat", modifiedAfter="yesterday")),
        "modifiedAfter that leaves nothing": refused(lambda at: at.load("flat", modifiedAfter="2030-01-01T00:00:00")),
        "modifiedBefore, an order of one instant": _names("flat", modifiedBefore="2020-09-13T05:26:40"),
        "ignoreMissingFiles, a missing path": refused(lambda at: at.load("missing", ignoreMissingFiles=True)),
        "ignoreCorruptFiles that is no truth value": refused(lambda at: at.load("flat", ignoreCorruptFiles="perhaps").collect()),
        "basePath": lambda at: at.load("tree/p=1", basePath=f"{at.files}/tree"),
        "mergeSchema": lambda at: at.load("flat", mergeSchema=True).count(),
        "options of a table": "create table o using {source} options (pathGlobFilter '*.pq') location '{files}/flat'; select count(*) from o",
        "options of a table, described": lambda at: at.sql("show create table o").first()[0],
        "options of a table, recursive": "create table r (id long) using {source} options (recursiveFileLookup 'true') location '{files}/tree'; select count(*) from r",
        "options in SQL": "select count(*) from {source}.`{files}/flat` with (pathGlobFilter = '*.pq')",
        "options of a table in SQL": "select count(*) from o with (mergeSchema = 'true')",
        "an unknown option": lambda at: at.load("flat", somethingElse="x").count(),
        "an option of another format": lambda at: at.load("flat", header="true", inferSchema="true", sep=",").count(),
        "an empty codec": refused(lambda at: at.load("flat", compression="").count()),
        "datetimeRebaseMode": lambda at: at.load("flat", datetimeRebaseMode="CORRECTED", int96RebaseMode="LEGACY").count(),
        "datetimeRebaseMode unknown": lambda at: at.load("flat", datetimeRebaseMode="bogus"),
        "int96RebaseMode unknown": lambda at: at.load("flat", int96RebaseMode="bogus"),
        "numbers as options": lambda at: at.read.options(a=1, b=2.5, c=None, d=True).load(f"{at.files}/flat").count(),
        "maxPartitionBytes": _partitions(maxPartitionBytes="4000"),
        "maxPartitionBytes and openCostInBytes": _partitions(maxPartitionBytes="10000", openCostInBytes="0"),
        "openCostInBytes": _partitions(openCostInBytes="100000000"),
        "minPartitionNum": _partitions(minPartitionNum="7", openCostInBytes="0"),
        "minPartitionNum of one": _partitions(minPartitionNum="1"),
        "maxPartitionNum": _partitions(maxPartitionBytes="2000", openCostInBytes="0", maxPartitionNum="3"),
        "maxPartitionBytes of zero": refused(_partitions(maxPartitionBytes="0")),
    },
)


def _ignored_files(spark: Any, folder: str) -> None:
    spark.range(0, 4, 1, 1).write.parquet(f"{folder}/broken")
    Path(folder, "broken", "part-99999.parquet").write_bytes(b"text" * 100)


def _vanished(at: Place) -> Any:
    path = Path(at.folder, "vanished")
    at.spark.range(0, 10, 1, 2).write.parquet(str(path))
    frame = at.read.load(str(path))
    min(path.glob("part-*")).unlink()
    return frame


IGNORING = Scene(
    "files ignored by settings",
    files=_ignored_files,
    settings={"spark.sql.files.ignoreCorruptFiles": "true", "spark.sql.files.ignoreMissingFiles": "true"},
    statements={
        "corrupt": lambda at: at.read.schema("id long").load(f"{at.files}/broken"),
        "corrupt, inferred": lambda at: at.load("broken"),
        "corrupt, the option overrides": refused(
            lambda at: at.read.option("ignoreCorruptFiles", "false").schema("id long").load(f"{at.files}/broken").collect()
        ),
        "missing": _vanished,
    },
)


def _old_files(spark: Any, folder: str) -> None:
    """Dates and times of both calendars, as Spark 2 and as Spark 3 write them."""
    rows = spark.range(0, 4, 1, 1).selectExpr(
        "element_at(array(date'0900-01-01', date'1500-03-01', date'1600-01-01', date'2020-01-01'), int(id) + 1) as day",
        "element_at(array(timestamp'0900-01-01 12:00:00', timestamp'1500-03-01 01:02:03', timestamp'1850-01-01 00:00:00', timestamp'2020-01-01'), int(id) + 1) as instant",
    )
    for mode in ("LEGACY", "CORRECTED"):
        for name in ("datetimeRebaseModeInWrite", "int96RebaseModeInWrite"):
            spark.conf.set(f"spark.sql.parquet.{name}", mode)
        for type_ in ("TIMESTAMP_MICROS", "INT96", "TIMESTAMP_MILLIS"):
            spark.conf.set("spark.sql.parquet.outputTimestampType", type_)
            rows.write.parquet(f"{folder}/{mode}_{type_}")
    for name in ("datetimeRebaseModeInWrite", "int96RebaseModeInWrite", "outputTimestampType"):
        spark.conf.unset(f"spark.sql.parquet.{name}")
    for file in Path(folder).glob("*/*.parquet"):
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def _old_rows(at: Place) -> Any:
    return at.spark.range(1).selectExpr("date'1000-01-01' as day", "timestamp'1000-01-01 00:00:00' as instant")


def _rebased(mode: str) -> Callable[[Place], Any]:
    """Write old dates in a mode, and read them by both sources."""

    def action(at: Place) -> Any:
        with at.settings(spark_sql_parquet_datetimeRebaseModeInWrite=mode):
            at.save(_old_rows(at), f"rebased_{mode}")
        path = f"{at.folder}/rebased_{mode}"
        return [
            reader.load(path).selectExpr("string(day)", "string(instant)")
            for reader in (at.read, at.spark.read.format("parquet"))
        ]

    return action


TEXTS = ("string(day)", "string(instant)")


def _texts(path: str) -> Callable[[Place], Any]:
    return lambda at: at.load(path).selectExpr(*TEXTS)


CALENDARS = Scene(
    "calendars",
    files=_old_files,
    settings={"spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED"},
    statements={
        **{
            f"{mode} {type_}": _texts(f"{mode}_{type_}")
            for mode in ("LEGACY", "CORRECTED")
            for type_ in ("TIMESTAMP_MICROS", "INT96", "TIMESTAMP_MILLIS")
        },
        "LEGACY, filtered": lambda at: at.load("LEGACY_TIMESTAMP_MICROS").where("day < date'1550-01-01'").selectExpr(*TEXTS),
        "LEGACY, filtered by an instant": lambda at: (
            at.load("LEGACY_TIMESTAMP_MICROS").where("instant = timestamp'1500-03-01 01:02:03'").selectExpr(*TEXTS)
        ),
        "LEGACY, new days alone": lambda at: (
            at.load("LEGACY_TIMESTAMP_MICROS").where("day > date'2000-01-01'").selectExpr(*TEXTS)
        ),
        "written CORRECTED": _rebased("CORRECTED"),
        "written LEGACY": _rebased("LEGACY"),
        "written EXCEPTION": refused(_rebased("EXCEPTION")),
    },
)
SCENES = [OPTIONS, IGNORING, CALENDARS]
