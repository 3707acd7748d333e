"""``--where``: the conditions that it takes, and what it refuses."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from fastpq import And, Or
from fastpq.cli.failures import CommandFailure
from fastpq.cli.where_parser import parse_where
from tests.cli.running import Runner, items


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("a < 1", ("a", "<", 1)),
        ("a=1", ("a", "==", 1)),
        ("a <> -1.5e3", ("a", "!=", -1500.0)),
        ("a == 'it''s'", ("a", "==", "it's")),
        ("`odd name` >= 1_000", ("odd name", ">=", 1000)),
        ('"odd name" >= 1', ("odd name", ">=", 1)),
        ("a.b.c is null", ("a.b.c", "is null")),
        ("a IS NOT NULL", ("a", "is not null")),
        ("a in (1, 2)", ("a", "in", [1, 2])),
        ("a not in ('x')", ("a", "not in", ["x"])),
        ("a == true", ("a", "==", True)),
        ("a > date '2024-02-29'", ("a", ">", datetime.date(2024, 2, 29))),
        ("a > timestamp '2024-02-29 12:00:00'", ("a", ">", datetime.datetime(2024, 2, 29, 12))),
        ("a > decimal '1.10'", ("a", ">", Decimal("1.10"))),
        ("a starts with 'x'", ("a", "starts with", "x")),
        ("a like 'x%'", ("a", "starts with", "x")),
        ("a < 1 and b > 2 or c == 3", Or(And(("a", "<", 1), ("b", ">", 2)), ("c", "==", 3))),
        ("a < 1 and (b > 2 or c == 3)", And(("a", "<", 1), Or(("b", ">", 2), ("c", "==", 3)))),
        ("a between 1 and 2 and b == 3", And(And(("a", ">=", 1), ("a", "<=", 2)), ("b", "==", 3))),
        ("not a < 1", ("a", ">=", 1)),
        ("not (a < 1 or b in (2))", And(("a", ">=", 1), ("b", "not in", [2]))),
        ("not not a is null", ("a", "is null")),
        ("not a between 1 and 2", Or(("a", "<", 1), ("a", ">", 2))),
    ],
)
def test_conditions(text: str, filters: Any) -> None:
    assert parse_where(text) == filters


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a <",
        "a < b",
        "a < 1 and",
        "a < 1 b > 2",
        "(a < 1",
        "a in ()",
        "a in 1",
        "a == 'open",
        "a ~ 1",
        "a like '%x'",
        "a like 'x_%'",
        "not a starts with 'x'",
        "a > date '2024-02-30'",
        "__import__('os')",
        "a < 1; b",
        "a == [1]",
        "(" * 200 + "a < 1",
        "1 < a",
        "a is 1",
        "not",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(CommandFailure, match=r"--where|like|not cannot"):
        parse_where(text)


def test_a_long_condition_is_refused() -> None:
    with pytest.raises(CommandFailure, match="characters"):
        parse_where("a < 1 or " * 20_000)


def test_the_command_counts_what_the_condition_says(command: Runner, in_examples: Path) -> None:
    table = items()
    where = "price < 2.5 and name in ('a', 'bb') and day between date '2024-01-01' and date '2024-02-01'"
    expected = (
        (table["price"] < 2.5) & ((table["name"] == "a") | (table["name"] == "bb")) & (table["day"] <= table["day"][0] + 31)
    )
    assert command("count", "items.parquet", "--where", where).out == f"{expected.sum()}\n"
