"""Partition paths, held against what pyarrow parses and formats."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpq.datasets.hive import (
    DATE_TYPE,
    INT32_TYPE,
    INT64_TYPE,
    NULL_PARTITION,
    STRING_TYPE,
    format_partitions,
    infer_partition_type,
    parse_partitions,
    partition_value,
)
from fastpq.errors import SchemaError

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


@pytest.mark.parametrize(
    ("texts", "type_"),
    [
        (["1", None, "-20"], INT32_TYPE),
        (["2147483647"], INT32_TYPE),
        (["2147483648"], INT64_TYPE),
        (["9223372036854775808"], STRING_TYPE),
        (["9" * 10_000], STRING_TYPE),
        (["01"], STRING_TYPE),
        (["-0"], STRING_TYPE),
        (["\u0661"], STRING_TYPE),
        (["2024-02-29", None], DATE_TYPE),
        (["2023-02-29"], STRING_TYPE),
        (["2024-02-29", "1"], STRING_TYPE),
        ([None], STRING_TYPE),
    ],
)
def test_inference(texts: list[str | None], type_: object) -> None:
    assert infer_partition_type(texts) == type_


def test_values() -> None:
    assert format_partitions({"i": -3, "b": True, "d": dt.date(2024, 1, 2), "n": None, "s": ".."}) == (
        f"i=-3/b=true/d=2024-01-02/n={NULL_PARTITION}/s=%2E%2E"
    )
    assert partition_value("-3", INT64_TYPE, "i") == -3
    assert partition_value("2024-01-02", DATE_TYPE, "d") == dt.date(2024, 1, 2)
    assert partition_value(None, DATE_TYPE, "d") is None
    with pytest.raises(SchemaError, match="no "):
        partition_value("x", INT32_TYPE, "i")
    for value in ("", NULL_PARTITION, 1.5, dt.datetime(2024, 1, 2)):
        with pytest.raises(SchemaError):
            format_partitions({"x": value})
