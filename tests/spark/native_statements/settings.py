"""Settings of Parquet that other areas do not set: identifiers of fields, types of old files, pushed filters, variants."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.spark.native_statements.scene import Place, Scene, refused, under


def _files(spark: Any, folder: str) -> None:
    pq.write_table(pa.table({"value": [b"a", b"b", None]}), Path(folder, "bytes.parquet"))
    moment = pa.array([datetime.datetime(2020, 1, 1), None], pa.timestamp("ns"))
    pq.write_table(pa.table({"value": moment}), Path(folder, "int96.parquet"), use_deprecated_int96_timestamps=True)
    pq.write_table(pa.table({"value": pa.nulls(2), "id": [1, 2]}), Path(folder, "nulls.parquet"))
    fields = [
        pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)}) for number, name in ((1, "first"), (2, "second"))
    ]
    pq.write_table(pa.table([[1, 2], [3, 4]], schema=pa.schema(fields)), Path(folder, "ids.parquet"))
    spark.range(0, 20, 1, 1).selectExpr(
        "id",
        "string(id) as text",
        "date_add(date'2020-01-01', int(id)) as day",
        "cast(id as decimal(9, 2)) as price",
        "timestamp'2020-01-01' + make_dt_interval(int(id)) as instant",
        "parse_json(string(id)) as doc",
    ).write.parquet(f"{folder}/rows")


def _by_ids(at: Place, path: str = "ids.parquet", **ids: int) -> Any:
    """Rows by a schema whose columns have identifiers."""
    from pyspark.sql.types import LongType, StructField, StructType

    fields = [StructField(name, LongType(), True, {"parquet.field.id": number}) for name, number in ids.items()]
    rows = at.read.schema(StructType(fields)).load(f"{at.files}/{path}")
    return sorted(tuple(row) for row in rows.collect())


def _counted(predicate: str, **settings: str) -> Any:
    return under(
        lambda at: at.load("rows").where(predicate).count(),
        **{f"spark_sql_parquet_{name}": value for name, value in settings.items()},
    )


PARQUET_SETTINGS = Scene(
    "settings of Parquet",
    files=_files,
    statements={
        "binaryAsString": under(lambda at: at.load("bytes.parquet"), spark_sql_parquet_binaryAsString="true"),
        "binaryAsString off": lambda at: at.load("bytes.parquet"),
        "binaryAsString, a filter": under(
            lambda at: at.load("bytes.parquet").where("value = 'a'"), spark_sql_parquet_binaryAsString="true"
        ),
        "int96AsTimestamp off": refused(under(lambda at: at.load("int96.parquet"), spark_sql_parquet_int96AsTimestamp="false")),
        "fieldId.read": under(lambda at: _by_ids(at, renamed=2, other=1), spark_sql_parquet_fieldId_read_enabled="true"),
        "fieldId.read, of names": under(lambda at: at.load("ids.parquet"), spark_sql_parquet_fieldId_read_enabled="true"),
        "fieldId.read, a missing one": under(
            lambda at: _by_ids(at, renamed=2, other=7), spark_sql_parquet_fieldId_read_enabled="true"
        ),
        "fieldId.read off": lambda at: _by_ids(at, renamed=2, first=2),
        "fieldId.read, a file without": refused(
            under(lambda at: _by_ids(at, "rows", id=2), spark_sql_parquet_fieldId_read_enabled="true")
        ),
        "fieldId.read.ignoreMissing": under(
            lambda at: _by_ids(at, "rows", id=2),
            spark_sql_parquet_fieldId_read_enabled="true",
            spark_sql_parquet_fieldId_read_ignoreMissing="true",
        ),
        "respectUnknownTypeAnnotation": under(
            lambda at: at.load("nulls.parquet").dtypes, spark_sql_parquet_reader_respectUnknownTypeAnnotation_enabled="true"
        ),
        "respectUnknownTypeAnnotation off": lambda at: at.load("nulls.parquet").dtypes,
        "columnarReaderBatchSize": _counted("id > 3", columnarReaderBatchSize="2"),
        "filterPushdown.date off": _counted("day > '2020-01-10'", filterPushdown_date="false"),
        "filterPushdown.decimal off": _counted("price > 7", filterPushdown_decimal="false"),
        "filterPushdown.timestamp off": _counted("instant > '2020-01-10'", filterPushdown_timestamp="false"),
        "filterPushdown.stringPredicate off": _counted("text like '1%'", filterPushdown_stringPredicate="false"),
        "pushdown.inFilterThreshold": _counted("id in (1, 2, 3)", pushdown_inFilterThreshold="1"),
        "aggregatePushdown": under(
            lambda at: at.load("rows").selectExpr("count(*)", "max(id)"), spark_sql_parquet_aggregatePushdown="true"
        ),
        "recordLevelFilter": _counted("id = 7", recordLevelFilter_enabled="true", enableVectorizedReader="false"),
        "ignoreVariantAnnotation": under(
            lambda at: at.load("rows").selectExpr("to_json(doc)"), spark_sql_parquet_ignoreVariantAnnotation="false"
        ),
    },
)
SCENES = [PARQUET_SETTINGS]
