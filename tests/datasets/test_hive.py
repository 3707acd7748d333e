"""Partition paths, held against what pyarrow parses and formats."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal as Number
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpq.datasets.hive import (
    DATE_TYPE,
    DOUBLE_TYPE,
    INT32_TYPE,
    INT64_TYPE,
    NULL_PARTITION,
    STRING_TYPE,
    TIMESTAMP_TYPE,
    format_partitions,
    infer_partition_type,
    parse_partitions,
    partition_value,
)
from fastpq.errors import SchemaError
from fastpq.schema.types import ColumnType, Decimal, Type

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text != NULL_PARTITION)


@given(st.dictionaries(texts, st.none() | texts, max_size=4))
def test_text_survives(values: dict[str, str | None]) -> None:
    folders = format_partitions(values)
    assert parse_partitions(f"{folders}/part-0.parquet") == values
    assert not {".", ".."} & set(folders.split("/"))


def test_paths_of_others() -> None:
    """Spark encodes ':' and '/' and leaves blanks; pyarrow encodes blanks."""
    path = f"root/a=x%3Ay%2Fz/b={NULL_PARTITION}/c=two words/d=two%20words/e=1=2/plain/f=9.parquet"
    assert parse_partitions(path) == {"a": "x:y/z", "b": None, "c": "two words", "d": "two words", "e": "1=2"}
    with pytest.raises(SchemaError, match="twice"):
        parse_partitions("a=1/a=2/x")
    with pytest.raises(SchemaError, match="UTF-8"):
        parse_partitions("a=%ff/x")


def decimal_type(digits: int) -> ColumnType:
    return ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, Decimal(digits, 0))


@pytest.mark.parametrize(
    ("texts", "type_"),
    [
        (["1", None, "-20", "+5", "-0", "00501"], INT32_TYPE),
        (["2147483647", "-2147483648"], INT32_TYPE),
        (["2147483648", "1"], INT64_TYPE),
        (["9223372036854775808"], decimal_type(19)),
        (["12345678901234567890", "1"], decimal_type(20)),
        (["12345678901234567890", "9223372036854775807"], decimal_type(20)),
        (["9" * 38], decimal_type(38)),
        (["9" * 39], DOUBLE_TYPE),
        (["9" * 10_000], DOUBLE_TYPE),
        (["1e5"], decimal_type(6)),
        (["1.5", "1", "NaN", "-Infinity", " 5", "1e-5", ".5", "1f"], DOUBLE_TYPE),
        (["1.5", "2147483648"], STRING_TYPE),
        (["1.5", "12345678901234567890"], STRING_TYPE),
        (["nan"], STRING_TYPE),
        (["1_000"], STRING_TYPE),
        (["2024-02-29", None], DATE_TYPE),
        (["2024-02-29", "2024-02-29 01:02:03.5"], TIMESTAMP_TYPE),
        (["2024-02-29 24:00:00"], STRING_TYPE),
        (["2023-02-29"], STRING_TYPE),
        (["2024-02-29", "1"], STRING_TYPE),
        (["true"], STRING_TYPE),
        ([None], STRING_TYPE),
    ],
)
def test_inference(texts: list[str | None], type_: ColumnType) -> None:
    """Spark's rules; tests/spark/test_partitions.py holds the rules against Spark."""
    assert infer_partition_type(texts) == type_
    assert infer_partition_type(reversed(texts)) == type_
    for text in texts:
        partition_value(text, type_, "x")


VALUES: dict[str, tuple[Any, str]] = {
    "i": (-3, "-3"),
    "b": (True, "true"),
    "d": (dt.date(2024, 1, 2), "2024-01-02"),
    "t": (dt.datetime(2024, 1, 2, 3, 4, 5), "2024-01-02 03%3A04%3A05"),
    "u": (dt.datetime(2024, 1, 2, 3, 4, 5, 120), "2024-01-02 03%3A04%3A05.00012"),
    "f": (1.5, "1.5"),
    "g": (1e16, "10000000000000000.0"),
    "h": (np.float32(0.1), "0.1"),
    "x": (math.nan, "NaN"),
    "y": (-math.inf, "-Infinity"),
    "m": (Number("0E-3"), "0.000"),
    "n": (None, NULL_PARTITION),
    "s": ("..", "%2E%2E"),
    "k": ("K\u00f6ln {a}[b]^\"#%'*/:=?\\", "K\u00f6ln %7Ba}%5Bb%5D%5E%22%23%25%27%2A%2F%3A%3D%3F%5C"),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    value, text = VALUES[name]
    assert format_partitions({name: value}) == f"{name}={text}"
    if isinstance(value, bool):
        return      # booleans are read as text
    found = parse_partitions(f"{name}={text}/file")[name]
    again = partition_value(found, infer_partition_type([found]), name)
    assert again == value or (again != again and value != value) or Number(str(again)) == Number(str(value))


def test_refused() -> None:
    assert partition_value(None, DATE_TYPE, "d") is None
    for type_ in (INT32_TYPE, DATE_TYPE, TIMESTAMP_TYPE, DOUBLE_TYPE, decimal_type(5)):
        with pytest.raises(SchemaError, match="the partition value 'x' does not fit a column of"):
            partition_value("x", type_, "i")
    for value in ("", NULL_PARTITION, b"x", "\ud800", dt.datetime(2024, 1, 2, tzinfo=dt.UTC)):
        with pytest.raises(SchemaError):
            format_partitions({"x": value})


def test_folders_of_earlier_versions() -> None:
    """Percent-encoded UTF-8, as earlier versions and pyarrow write."""
    assert parse_partitions("city=K%C3%B6ln/part-0.parquet") == {"city": "K\u00f6ln"}
