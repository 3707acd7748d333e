"""Filters that other engines push down: what is translated of them, and what is left to the engine."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import polars as pl
import pyarrow.compute as pc
import pytest

import fastpq
from fastpq import ParquetSchema
from fastpq.filters.combinations import And, Or
from fastpq.filters.pushed_filters import columns_of_expression, pushed_filter_of


def schema() -> ParquetSchema:
    """Return the columns of a file."""
    target = io.BytesIO()
    fastpq.write_table({"id": np.arange(2), "x": np.arange(2.0), "text": np.array(["a", "b"], object)}, target)
    return fastpq.read_schema(target.getvalue())


SCHEMA = schema()
ID, X, TEXT = pc.field("id"), pc.field("x"), pc.field("text")


@pytest.mark.parametrize(
    ("expression", "filters", "is_exact"),
    [
        (None, None, True),
        (ID > 5, And((("id",), ">", 5)), True),
        ((ID > 5) & (pc.multiply(ID, 2) < 9), And((("id",), ">", 5)), False),
        ((ID > 5) & (pc.sqrt(X) < 9) & (TEXT == "a"), And((("id",), ">", 5), (("text",), "==", "a")), False),
        ((ID > 5) | (pc.sqrt(X) < 9), None, False),
        (~((ID > 5) & (pc.sqrt(X) < 9)), None, False),
        ((ID > 5) | (TEXT == "a"), And(Or((("id",), ">", 5), (("text",), "==", "a"))), True),
        (TEXT == 5, None, False),
        (pc.field("none") == 5, None, False),
        ((pc.field("none") == 5) & (ID == 5), And((("id",), "==", 5)), False),
        (pl.col("id") > 5, And((("id",), ">", 5)), True),
        ((pl.col("id") > 5) & (pl.col("x").sqrt() < 9) & (pl.col("id") < 7), And((("id",), ">", 5), (("id",), "<", 7)), False),
        ((pl.col("id") > 5) | (pl.col("x").sqrt() < 9), None, False),
        (~(pl.col("id").is_in([1]) & (pl.col("x").sqrt() < 9)), None, False),
    ],
    ids=str,
)
def test_pushed_filters(expression: Any, filters: Any, is_exact: bool) -> None:
    assert pushed_filter_of(expression, SCHEMA) == (filters, is_exact)


def test_columns() -> None:
    assert columns_of_expression((pc.sqrt(X) < 9) & (ID == ID) | TEXT.isin(["a"])) == ["x", "id", "id", "text"]
    assert columns_of_expression(pc.field("a", "b") > 5) == ["a"]
    assert columns_of_expression(pc.scalar(True)) == []
