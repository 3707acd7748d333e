"""Types of values: written and read back, read as other types, and in files of other writers."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.spark.native_statements.scene import Place, Refused, Scene, refused

# expressions over a column id with the numbers below 6; each is null for one of them
VALUES = {
    "boolean": "id % 2 = 0",
    "byte": "tinyint(id * 50 - 128)",
    "short": "smallint(id * 13000 - 32768)",
    "int": "int(id * 800000000 - 2147483648)",
    "long": "if(id = 5, 9223372036854775807, id * 3000000000000000 - 9223372036854775807 - 1)",
    "float": "float(id) / 3",
    "double": "double(id) / 3",
    "special floats": "float(element_at(array('NaN', 'Infinity', '-Infinity', '-0.0', '1.4E-45', '3.4028235E38'), int(id) + 1))",
    "special doubles": "double(element_at(array('NaN', 'Infinity', '-Infinity', '-0.0', '4.9E-324', '1.7E308'), int(id) + 1))",
    "decimal(5,2)": "cast(id * 111.11 - 300 as decimal(5, 2))",
    "decimal(18,4)": "cast(id * 11111111111111.1111 - 30000000000000 as decimal(18, 4))",
    "decimal(38,10)": "cast(id * 1111111111111111111111111111.1111111111 as decimal(38, 10))",
    "decimal(38,38)": "cast(id / 7 / 10 as decimal(38, 38))",
    "decimal(10,-2)": "cast(id * 100 as decimal(10, 0))",
    "string": "element_at(array('', 'a', 'ä€😀', 'a\\u0000b', ' padded ', repeat('long', 100)), int(id) + 1)",
    "binary": "element_at(array(X'', X'00', X'ff00', cast('text' as binary), X'80', X'0102'), int(id) + 1)",
    "date": "element_at(array(date'0001-01-01', date'1582-10-04', date'1582-10-15', date'1970-01-01', date'2024-02-29', "
    "date'9999-12-31'), int(id) + 1)",
    "timestamp": "element_at(array(timestamp'0001-01-03 00:00:00Z', timestamp'1582-10-04 12:00:00', timestamp'1969-12-31 23:59:59.999999', "
    "timestamp'2024-03-10 02:30:00', timestamp'2024-11-03 01:30:00', timestamp'9999-12-31 23:59:59.999999Z'), int(id) + 1)",
    "timestamp without a zone": "element_at(array(timestamp_ntz'0001-01-01', timestamp_ntz'1582-10-10 12:00:00', "
    "timestamp_ntz'1969-12-31 23:59:59.999999', timestamp_ntz'2024-03-10 02:30:00'), int(id) % 4 + 1)",
    "time": "element_at(array(time'00:00:00', time'12:34:56.123456', time'23:59:59.999999'), int(id) % 3 + 1)",
    "interval of months": "make_ym_interval(int(id) - 3, int(id))",
    "interval of days": "make_dt_interval(int(id) - 3, 1, 2, 3.456789)",
    "interval year": "cast(make_ym_interval(int(id)) as interval year)",
    "interval hour to minute": "cast(make_dt_interval(0, int(id)) as interval hour to minute)",
    "array": "array(id, null, id + 1)",
    "array that is empty": "if(id < 3, array(), array(string(id)))",
    "array of arrays": "array(array(id), null, array())",
    "array of structs": "array(named_struct('a', id, 'b', string(id)), null)",
    "array of nulls": "array(null, null)",
    "map": "map(string(id), id, 'fixed', null)",
    "map that is empty": "if(id < 3, map(), map(id, 'value'))",
    "map with struct keys": "map(named_struct('a', id), array(id))",
    "map of void": "map(id, null)",
    "struct": "named_struct('a', id, 'b', named_struct('c', string(id), 'd', cast(null as int)))",
    "struct of nulls": "if(id < 3, null, named_struct('a', if(id < 4, null, id)))",
    "void": "null",
    "void in a struct": "named_struct('a', id, 'b', null)",
    "collated string": "string(id) collate UTF8_LCASE",
    "variant": 'parse_json(concat(\'{"a": \', id, \', "b": [1, "x", null, 1.5]}\'))',
    "variant in an array": "array(parse_json(string(id)))",
}
REFUSED_VALUES = {
    "interval of the calendar": "make_interval(0, int(id), 0, 1)",
    "struct without fields": "struct()",
}


def _round_trip(expression: str) -> Callable[[Place], Any]:
    """Return a function that writes values, and reads them by the source and by Spark's own source."""

    def action(at: Place) -> Any:
        frame = at.spark.range(0, 6, 1, 1).selectExpr("id", f"{expression} as every", f"if(id = 2, null, {expression}) as value")
        path = f"{at.folder}/{abs(hash(expression))}"
        at.write(frame).save(path)
        # PySpark does not collect intervals of months
        columns = [f"string({name})" if "_ym_" in expression else name for name in ("id", "every", "value")]
        frames = {"by the source": at.read.load(path), "by Spark's own": at.spark.read.parquet(path)}
        return {name: [frame.schema.json(), frame.selectExpr(*columns)] for name, frame in frames.items()}

    return action


ROUND_TRIPS = Scene(
    "types",
    settings={"spark.sql.timeType.enabled": "true"},
    statements={
        **{name: _round_trip(expression) for name, expression in VALUES.items()},
        **{name: refused(_round_trip(expression)) for name, expression in REFUSED_VALUES.items()},
        "not null": lambda at: at.save(at.spark.createDataFrame([(1,)], "a int not null"), "not_null"),
        "metadata of a column": lambda at: at.save(at.rows().withMetadata("id", {"comment": "key", "more": 1}), "metadata"),
        "user-defined type": lambda at: at.save(_points(at), "points").schema["v"].dataType.typeName(),
    },
)


def _points(at: Place) -> Any:
    from pyspark.ml.linalg import DenseVector, VectorUDT
    from pyspark.sql.types import StructField, StructType

    return at.spark.createDataFrame([(DenseVector([1.0, 2.0]),)], StructType([StructField("v", VectorUDT())]))


COLUMNS = {
    "byte": "tinyint(id)",
    "short": "smallint(id)",
    "int": "int(id)",
    "long": "id",
    "float": "float(id) / 3",
    "double": "double(id) / 3",
    "small": "cast(id as decimal(5, 2))",
    "middle": "cast(id as decimal(15, 4))",
    "large": "cast(id as decimal(30, 6))",
    "text": "string(id)",
    "bytes": "cast(string(id) as binary)",
    "date": "date_add(date'2020-01-01', int(id))",
    "instant": "timestamp'2020-01-01 12:00:00' + make_dt_interval(int(id))",
    "local": "timestamp_ntz'2020-01-01 12:00:00.123456'",
    "ints": "array(int(id))",
    "pairs": "map(string(id), int(id))",
    "pair": "named_struct('a', int(id), 'b', string(id))",
    "truth": "id = 1",
    "list": "array(named_struct('a', int(id), 'b', string(id)))",
}


def _columns_files(spark: Any, folder: str) -> None:
    spark.range(0, 3, 1, 1).selectExpr(*(f"{value} as {name}" for name, value in COLUMNS.items())).write.parquet(f"{folder}/rows")


def _as(schema: str) -> Callable[[Place], Any]:
    def action(at: Place) -> Any:
        rows = at.read.schema(schema).load(f"{at.files}/rows")
        rows.collect()
        return rows

    return action


READ_AS = {
    "byte as short": "byte short",
    "byte as int": "byte int",
    "short as long": "short long",
    "int as long": "int long",
    "int as double": "int double",
    "int as byte": "int byte",
    "int as short": "int short",
    "int as date": "int date",
    "int as decimal": "int decimal(10, 0)",
    "int as wide decimal": "int decimal(20, 5)",
    "long as wide decimal": "long decimal(20, 0)",
    "float as double": "float double",
    "date as timestamp without a zone": "date timestamp_ntz",
    "decimal of more digits": "small decimal(9, 4)",
    "decimal of more digits, same scale": "middle decimal(18, 4)",
    "decimal of many more digits": "small decimal(30, 10)",
    "large decimal of more digits": "large decimal(38, 6)",
    "text as bytes": "text binary",
    "bytes as text": "bytes string",
    "struct of fewer fields": "pair struct<b: string>",
    "struct of other order": "pair struct<b: string, a: int>",
    "struct of more fields": "pair struct<a: int, c: long>",
    "struct of other fields": "pair struct<c: long>",
    "struct of other case": "pair struct<A: int>",
    "struct of wider fields": "pair struct<a: long>",
    "array of wider elements": "ints array<long>",
    "map of wider values": "pairs map<string, long>",
    "array of fewer fields": "list array<struct<b: string>>",
    "local as timestamp": "local timestamp",
    "decimal as int": "small int",
    "decimal as double": "small double",
    "date as int": "date long",
    "instant as local": "instant timestamp_ntz",
}
NOT_READ_AS = {
    "int as float": "int float",
    "int as text": "int string",
    "int as boolean": "int boolean",
    "int as narrow decimal": "int decimal(5, 0)",
    "long as int": "long int",
    "long as double": "long double",
    "long as timestamp": "long timestamp",
    "long as date": "long date",
    "float as int": "float int",
    "double as float": "double float",
    "double as decimal": "double decimal(10, 2)",
    "decimal of fewer digits": "middle decimal(9, 2)",
    "decimal of smaller scale": "middle decimal(15, 2)",
    "text as int": "text int",
    "text as date": "text date",
    "bytes as decimal": "bytes decimal(5, 2)",
    "date as timestamp": "date timestamp",
    "instant as date": "instant date",
    "instant as long": "instant string",
    "truth as int": "truth int",
    "array as value": "ints int",
    "value as array": "int array<int>",
    "struct as map": "pair map<string, int>",
    "map as array": "pairs array<int>",
    "struct with a field of another type": "pair struct<a: string>",
    "array of text": "ints array<string>",
}
CONVERSIONS = Scene(
    "types read as others",
    files=_columns_files,
    statements={
        **{name: _as(schema) for name, schema in READ_AS.items()},
        **{name: refused(_as(schema)) for name, schema in NOT_READ_AS.items()},
        "filter on a wider int": lambda at: _as("int long")(at).where("int > 1"),
        "filter beyond the stored type": lambda at: _as("int long")(at).where("int < 3000000000"),
        "filter on a wider decimal": lambda at: _as("small decimal(9, 4)")(at).where("small = 1.0000"),
        "filter on a wider float": lambda at: _as("float double")(at).where("float > 0.3"),
    },
)
CONVERSIONS_IN_ROWS = Scene(
    "types read as others, in rows",
    files=_columns_files,
    statements={
        "int as long": _as("int long"),
        "float as double": _as("float double"),
        "struct of fewer fields": _as("pair struct<b: string>"),
    },
    settings={"spark.sql.parquet.enableVectorizedReader": "false"},
)


def _foreign_files(spark: Any, folder: str) -> None:
    """Files of Arrow with types that Spark does not write, one column a file."""
    epoch = datetime.datetime(2020, 1, 1, 12, 30, 0, 123456)
    columns = {
        "uint8": pa.array([0, 255, None], pa.uint8()),
        "uint16": pa.array([0, 65535, None], pa.uint16()),
        "uint32": pa.array([0, 4294967295, None], pa.uint32()),
        "uint64": pa.array([0, 18446744073709551615, None], pa.uint64()),
        "float16": pa.array([np.float16(1.5), None], pa.float16()),
        "millis": pa.array([epoch, None], pa.timestamp("ms", "UTC")),
        "micros": pa.array([epoch, None], pa.timestamp("us", "UTC")),
        "local_millis": pa.array([epoch, None], pa.timestamp("ms")),
        "local_micros": pa.array([epoch, None], pa.timestamp("us")),
        "time_millis": pa.array([datetime.time(1, 2, 3), None], pa.time32("ms")),
        "time_micros": pa.array([datetime.time(1, 2, 3, 4), None], pa.time64("us")),
        "fixed": pa.array([b"abc", None], pa.binary(3)),
        "decimal": pa.array([Decimal("1.23"), None], pa.decimal128(9, 2)),
        "dictionary": pa.array(["a", "b", None, "a"]).dictionary_encode(),
        "large_text": pa.array(["a", None], pa.large_string()),
        "nulls": pa.array([None, None], pa.null()),
        "empty_struct_list": pa.array([[], None], pa.list_(pa.struct({"a": pa.int32()}))),
        "duration": pa.array([1, None], pa.duration("us")),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(range(16)), None], pa.binary(16))),
        "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', None])),
    }
    for name, column in columns.items():
        table = pa.table({"value": column})
        pq.write_table(table, Path(folder, f"{name}.parquet"), version="2.6")
    nanos = pa.table({"value": pa.array([1577881800123456789, None], pa.timestamp("ns", "UTC"))})
    pq.write_table(nanos, Path(folder, "nanos.parquet"))
    pq.write_table(
        pa.table({"value": pa.array([epoch, None], pa.timestamp("ns"))}),
        Path(folder, "int96.parquet"),
        use_deprecated_int96_timestamps=True,
    )
    lists = pa.table({"value": pa.array([[1, None], [], None], pa.list_(pa.int32()))})
    pq.write_table(lists, Path(folder, "short_lists.parquet"), use_compliant_nested_type=False)
    for codec in ("NONE", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4"):
        pq.write_table(pa.table({"value": list(range(100))}), Path(folder, f"codec_{codec}.parquet"), compression=codec)
    for version in ("1.0", "2.0"):
        pq.write_table(
            pa.table({"value": list(range(100))}),
            Path(folder, f"pages_{version}.parquet"),
            data_page_version=version,
            data_page_size=100,
        )
    for encoding in ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", "PLAIN"):
        table = pa.table({"value": pa.array(range(100), pa.int32())})
        pq.write_table(
            table, Path(folder, f"encoding_{encoding}.parquet"), use_dictionary=False, column_encoding={"value": encoding}
        )
    for encoding in ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"):
        pq.write_table(
            pa.table({"value": ["a", "ab", "b", None]}),
            Path(folder, f"encoding_{encoding}.parquet"),
            use_dictionary=False,
            column_encoding={"value": encoding},
        )


FOREIGN = (
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "millis",
    "micros",
    "local_millis",
    "local_micros",
    "time_micros",
    "fixed",
    "decimal",
    "dictionary",
    "large_text",
    "nulls",
    "empty_struct_list",
    "duration",
    "json",
    "int96",
    "short_lists",
    "codec_NONE",
    "codec_SNAPPY",
    "codec_GZIP",
    "codec_ZSTD",
    "codec_LZ4",
    "pages_1.0",
    "pages_2.0",
    "encoding_DELTA_BINARY_PACKED",
    "encoding_BYTE_STREAM_SPLIT",
    "encoding_PLAIN",
    "encoding_DELTA_BYTE_ARRAY",
    "encoding_DELTA_LENGTH_BYTE_ARRAY",
)
REFUSED_FOREIGN = ("float16", "time_millis", "uuid", "nanos", "codec_BROTLI")


def _file(name: str) -> Callable[[Place], Any]:
    return lambda at: at.load(f"{name}.parquet")


FOREIGN_FILES = Scene(
    "files of Arrow",
    files=_foreign_files,
    settings={"spark.sql.timeType.enabled": "true"},
    statements={
        **{name: _file(name) for name in FOREIGN},
        **{name: refused(_file(name)) for name in REFUSED_FOREIGN},
        "uint32 as int": refused(lambda at: at.read.schema("value int").load(f"{at.files}/uint32.parquet").collect()),
        "int96 filtered": lambda at: _file("int96")(at).where("value > timestamp'2020-01-01 00:00:00'"),
        "int96 as local": lambda at: at.read.schema("value timestamp_ntz").load(f"{at.files}/int96.parquet"),
        "time filtered": lambda at: _file("time_micros")(at).where("value > time'01:00:00'"),
    },
)
FOREIGN_BY_SETTING = Scene(
    "files of Arrow, by settings",
    files=_foreign_files,
    settings={
        "spark.sql.legacy.parquet.nanosAsLong": "true",
        "spark.sql.parquet.binaryAsString": "true",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
        "spark.sql.parquet.int96TimestampConversion": "true",
    },
    statements={
        "nanos": _file("nanos"),
        "fixed": _file("fixed"),
        "local_micros": _file("local_micros"),
        "int96": _file("int96"),
        "bytes as text": lambda at: at.read.load(f"{at.files}/large_text.parquet"),
    },
)
SCENES = [ROUND_TRIPS, CONVERSIONS, CONVERSIONS_IN_ROWS, FOREIGN_FILES, FOREIGN_BY_SETTING]
__all__ = ["SCENES", "Refused"]
