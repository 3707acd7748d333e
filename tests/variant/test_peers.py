"""Spark's JVM variants and DuckDB: the same values from our bytes, and ours from theirs."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from fastpq.schema.types import ColumnType, String, Type
from fastpq.variant import Kind, Primitive, Variant, VariantColumn, infer_schema
from fastpq.variant.shredding_schema import ShreddingSchema
from tests.interop.parquet_java import ParquetJava
from tests.requirements import peer
from tests.variant.arrow_tree import read_variants, write_variants

duckdb = peer("duckdb")

UTC = datetime.UTC
VALUES: list[Any] = [
    None, True, False, 1, -300, 1 << 30, -(1 << 62), 1 << 70, 1.0, 1e300, 0.1, -0.0, float("nan"), float("-inf"),
    decimal.Decimal("12.34"), decimal.Decimal("1e-20"), decimal.Decimal("-99999999999999999999999999999999999999"),
    decimal.Decimal("0.5"), Primitive(Kind.FLOAT, 0.5), Primitive(Kind.INT64, 1), datetime.date(2020, 2, 29),
    Primitive(Kind.DATE, -719_528), datetime.datetime(2020, 1, 1, 1, 2, 3, 456000), datetime.datetime(1957, 1, 1, tzinfo=UTC),
    b"abc", b"", 'x"\\/\n\x01é🐢', "x" * 64, uuid.UUID(int=7), [], {}, [1, [2, None], {}], {"b": 1, "a": {"é": []}},
    {f"k{i}": i for i in range(300)}, ["x" * 300] * 300,
]


def spark(java: ParquetJava, folder: Path, command: str, lines: list[str]) -> list[str]:
    source, target = folder / "in.txt", folder / "out.txt"
    source.write_text("".join(f"{line}\n" for line in lines))
    java.run("Variants", command, source, target)
    return target.read_text().split("\n")[:-1]


def test_spark_reads_our_variants(parquet_java: ParquetJava, tmp_path: Path) -> None:
    variants = [Variant.from_python(value, sort=sort) for value in VALUES for sort in (True, False)]
    lines = spark(parquet_java, tmp_path, "to_json", [f"{variant.metadata.hex()} {variant.value.hex()}" for variant in variants])
    assert len(lines) == len(variants)
    for variant, line in zip(variants, lines, strict=True):
        ours, theirs = (json.loads(text, parse_float=decimal.Decimal) for text in (variant.to_json(), line))
        assert ours == theirs
        if not ours or isinstance(ours, str | list | dict):
            assert variant.to_json() == line


def test_spark_and_we_read_json_alike(parquet_java: ParquetJava, tmp_path: Path) -> None:
    documents = [
        "1", "-0", "127", "128", "-32769", "2147483648", "9223372036854775807", "9223372036854775808", "1" + "0" * 38,
        "1.5", "1.50", "-0.0", "1e3", "0.00000000001", "12345678901234567890.12", "1" + "0" * 38 + ".5", "0.1E-7",
        "true", "null", '"x"', '"' + "y" * 64 + '"', "[]", "{}", '[1,"a",{"k":[null]}]', '{"b":1,"a":{"z":1,"y":2}}',
        '"\\u00e9\\ud83d\\udc22"',
    ]
    for document, line in zip(documents, spark(parquet_java, tmp_path, "from_json", documents), strict=True):
        theirs = Variant(*map(bytes.fromhex, line.split()))
        theirs.check()
        ours = Variant.from_json(document)
        assert ours.to_python(typed=True) == theirs.to_python(typed=True)
        if "{" not in document:  # whose names have the order in which they come, and ours their own
            assert ours == theirs


ROWS: list[Any] = [
    {"id": 1, "name": "one", "tags": ["a", "b"], "more": {"x": 1.5, "y": None}},
    {"id": 2, "tags": [], "more": {"x": "no number"}, "extra": True},
    {"id": "three", "tags": [1, None]},
    "no object",
    [1, 2],
    7,
    {},
]
STRING = ColumnType(Type.BYTE_ARRAY, logical=String())
SCHEMAS: list[ShreddingSchema] = [
    None,
    STRING,
    {"id": ColumnType(Type.INT64), "name": STRING},
    {"tags": [STRING], "more": {"x": ColumnType(Type.DOUBLE)}, "id": None},
    [ColumnType(Type.INT32)],
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_duckdb_reads_what_we_shred(tmp_path: Path, schema: ShreddingSchema) -> None:
    path = tmp_path / "v.parquet"
    write_variants(path, VariantColumn.from_pylist(ROWS), schema)
    assert read_variants(path, "v").to_pylist() == ROWS
    with duckdb.connect() as connection:
        found = connection.sql(f"SELECT v FROM read_parquet('{path}')").fetchall()
    assert [row for (row,) in found] == ROWS


def test_duckdb_reads_what_we_infer(tmp_path: Path) -> None:
    path = tmp_path / "v.parquet"
    rows = [{"id": i, "name": f"n{i}", "at": datetime.datetime(2020, 1, 1, 0, 0, i), "list": [i, i]} for i in range(50)]
    column = VariantColumn.from_pylist(rows)
    schema = infer_schema(column)
    assert isinstance(schema, dict)
    assert set(schema) == {"id", "name", "at", "list"}
    write_variants(path, column, schema)
    assert all(raw is None for raw in (column.shred(schema).value or column.value).to_pylist())
    with duckdb.connect() as connection:
        found = connection.sql(f"SELECT v FROM read_parquet('{path}')").fetchall()
    assert [row for (row,) in found] == rows


@pytest.mark.parametrize("shredding", ["", "(shredding {v: 'struct(id bigint, tags varchar[])'})"])
def test_we_read_what_duckdb_shreds(tmp_path: Path, shredding: str) -> None:
    path = tmp_path / "v.parquet"
    with duckdb.connect() as connection:
        connection.sql(
            "COPY (SELECT {'id': i, 'tags': ['t' || i, NULL], "
            "'zeta': {'b': i / 2, 'a': DATE '2020-01-01' + i::INTEGER}}::VARIANT AS v "
            f"FROM range(20) t(i)) TO '{path}' {shredding}"
        )
    expected = [
        {"id": i, "tags": [f"t{i}", None], "zeta": {"b": i / 2, "a": datetime.date(2020, 1, 1) + datetime.timedelta(days=i)}}
        for i in range(20)
    ]
    assert read_variants(path, "v").to_pylist() == expected
