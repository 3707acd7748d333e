"""Folders of partitions: texts in paths become the values of Spark's own source, and Spark reads the folders of fastpq."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fastpq.spark
from fastpq.errors import SchemaError, UnsupportedError

# Each text is the value of a partition column of its own, in one path.
SINGLE = [
    "5", "-0", "+5", "00501", "-00501", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808",
    "12345678901234567890", "1" * 38, "1" * 39, "1.5", "1.0", "5.", ".5", "1e5", "1E5", "1.5e1", "1.55e1", "1e-5", "NaN", "nan",
    "Infinity", "-Infinity", "1.5f", "1d", " 5", "5 ", "1_000", "2020-01-01", "2020-1-1", "2020-01", "10000-01-01", "2020-02-30",
    "2020-01-01 00:00:00", "2020-01-01 00:00:00.5", "2020-01-01T00:00:00", "2020-01-01 00:00", "2020-01-01 00:00:00Z", "true",
    "abc", "1e400", "1e39", "-1e5", "0e0", "2020-01-01 ", "\u00f6", "\u0663",
]
PAIRS = [
    ("5", "1.5"), ("5", "9223372036854775807"), ("9223372036854775807", "1.5"), ("5", "12345678901234567890"),
    ("12345678901234567890", "1" * 30), ("12345678901234567890", "1.5"), ("2020-01-01", "2020-01-01 00:00:00"),
    ("5", "2020-01-01"), ("5", "abc"), ("1.5", "2020-01-01"), ("5", "__HIVE_DEFAULT_PARTITION__"), ("00501", "501"),
    ("1e5", "1.5"), ("1e5", "7"), ("NaN", "7"), ("12345678901234567890", "12345678901234567891"),
]


def tree(source: Any, folder: Path, rows: list[list[str]]) -> str:
    """A dataset of one file for each row, whose texts are values of the partition columns p0, p1, ..."""
    source.range(1).coalesce(1).write.parquet(str(folder / "one"))
    [file] = (folder / "one").glob("*.parquet")
    for texts in rows:
        target = folder / "tree" / "/".join(f"p{number}={text.replace(':', '%3A')}" for number, text in enumerate(texts))
        target.mkdir(parents=True)
        shutil.copy(file, target / "part-0.parquet")
    return str(folder / "tree")


@pytest.fixture
def in_new_york(source: Any) -> Iterator[Any]:
    """The session in another time zone than the machine's."""
    before = source.conf.get("spark.sql.session.timeZone")
    source.conf.set("spark.sql.session.timeZone", "America/New_York")
    fastpq.spark.register(source)
    yield source
    source.conf.set("spark.sql.session.timeZone", before)
    fastpq.spark.register(source)


@pytest.mark.parametrize("rows", [[SINGLE], [list(texts) for texts in zip(*PAIRS, strict=True)]], ids=["single", "pairs"])
def test_texts_become_the_values_of_spark(in_new_york: Any, tmp_path: Path, rows: list[list[str]]) -> None:
    path = tree(in_new_york, tmp_path, rows)
    native = in_new_york.read.parquet(path)
    texts = [f"cast({name} as string)" for name in native.columns]
    wanted = sorted(map(str, native.selectExpr(*texts).collect()))
    for frame in (in_new_york.read.format("fastpq").load(path), fastpq.spark.read(in_new_york, path)):
        assert [(part.name, part.dataType) for part in frame.schema] == [(part.name, part.dataType) for part in native.schema]
        assert sorted(map(str, frame.selectExpr(*texts).collect())) == wanted


VALUES = """
select * from values
  (1, 'K\u00f6ln', 12345678901234567890, 1.5d, 1.5f, date'2020-01-01', timestamp'2020-01-01 00:00:00.123456', true),
  (2, '{a}[b]^"#%\\'*/:=?\\\\ .', 1, 1e16d, 0.1f, date'0001-01-01', timestamp'2020-07-01 12:00:00', false),
  (3, '00501', null, double('NaN'), float('Infinity'), null, null, null)
  as t(id, s, n, d, f, day, moment, flag)
"""


def test_folders_as_spark_writes_them(in_new_york: Any, tmp_path: Path) -> None:
    """Spark reads what fastpq wrote with the schema of the rows, and fastpq reads what Spark wrote."""
    frame = in_new_york.sql(VALUES)
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    partitions = [name for name in frame.columns if name != "id"]
    frame.write.format("fastpq").option("partitionBy", ",".join(partitions)).mode("append").save(ours)
    frame.write.partitionBy(*partitions).parquet(theirs)
    wanted = sorted(map(str, frame.collect()))
    assert sorted(map(str, in_new_york.read.schema(frame.schema).parquet(ours).collect())) == wanted
    for path in (ours, theirs):
        assert sorted(map(str, in_new_york.read.format("fastpq").schema(frame.schema).load(path).collect())) == wanted
    inferred = fastpq.spark.read(in_new_york, ours).schema
    for name in ("d", "day", "moment"):
        assert inferred[name].dataType == frame.schema[name].dataType
    # Spark writes 1e16 as 1.0E16, and takes the text for a decimal
    assert fastpq.spark.read(in_new_york, theirs).schema["moment"].dataType == frame.schema["moment"].dataType


def test_mode_of_overwriting(source: Any, tmp_path: Path) -> None:
    """Overwriting one partition of two: the session's setting counts, and no partition is lost in silence."""
    path = str(tmp_path / "t")

    def write(value: str, **options: str) -> None:
        frame = source.createDataFrame([(1, value)], "id int, k string")
        frame.write.format("fastpq").mode("overwrite").options(partitionBy="k", **options).save(path)

    write("a")
    with pytest.raises(Exception, match="partitionOverwriteMode is static") as raised:
        write("b")
    assert "SchemaError" in str(raised.value)
    write("b", partitionOverwriteMode="dynamic")
    assert sorted(row.k for row in source.read.format("fastpq").load(path).collect()) == ["a", "b"]
    source.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        fastpq.spark.register(source)
        write("c")
    finally:
        source.conf.unset("spark.sql.sources.partitionOverwriteMode")
        fastpq.spark.register(source)
    assert sorted(row.k for row in source.read.format("fastpq").load(path).collect()) == ["a", "b", "c"]
    write("d", partitionOverwriteMode="static")
    assert [row.k for row in source.read.format("fastpq").load(path).collect()] == ["d"]


def test_refused(source: Any, tmp_path: Path) -> None:
    from fastpq.spark.options import write_options
    from fastpq.spark.write.write_checks import check_schema

    frame = source.sql("select 1 as a, binary('x') as b, interval '1' day as i")
    for name in ("b", "i"):
        with pytest.raises(UnsupportedError, match="folders for values"):
            check_schema(frame.schema, write_options({"path": str(tmp_path), "partitionBy": name}))
    with pytest.raises(SchemaError, match="time zone"):
        from fastpq.spark.tables.listing import time_zone

        time_zone("Nowhere/Town")
