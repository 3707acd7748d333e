"""Filters on text and bytes in dictionaries: evaluated on the entries, then on the codes; the rows are as by values."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrays.flat_column import DictionaryValues
from fastpq.arrays.table import AnyColumn
from fastpq.read.filtered import filtered_scan
from fastpq.read.flat import VERDICTS
from fastpq.read.scan import Scan

ROWS = 4000
WORDS = ["", "a", "ab", "over twelve bytes", "ä, not ASCII", *(f"word {n}" for n in range(20))]
Test = Callable[[str], bool]
CONDITIONS: list[tuple[str, Any, Test]] = [
    ("==", "word 3", lambda word: word == "word 3"),
    ("!=", "a", lambda word: word != "a"),
    ("<", "over", lambda word: word.encode() < b"over"),
    (">=", "word 1", lambda word: word.encode() >= b"word 1"),
    ("in", ["ab", "word 7", "not there"], lambda word: word in ("ab", "word 7")),
    ("in", ["ab", None], lambda word: word == "ab"),
    ("in", [], lambda word: False),
    ("not in", ["ab", "word 7"], lambda word: word not in ("ab", "word 7")),
    ("not in", ["ab", None], lambda word: False),
    ("not in", [], lambda word: True),
    ("starts with", "word 1", lambda word: word.startswith("word 1")),
]


@pytest.fixture
def coded(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each column read for a predicate, whether its values are codes or verdicts; small files are read for predicates first,
    too."""
    seen: list[bool] = []
    columns = Scan.columns

    def noted(self: Scan, *arguments: Any, **options: Any) -> Any:
        read = columns(self, *arguments, **options)
        if options.get("codes"):
            seen.extend(is_coded(column) for column in read)
        return read

    monkeypatch.setattr(Scan, "columns", noted)
    monkeypatch.setattr(filtered_scan, "MOST_TOGETHER", 0)
    return seen


def is_coded(column: AnyColumn) -> bool:
    return not column.is_nested and (isinstance(column.values, DictionaryValues) or column.type is VERDICTS)


def file_of(nulls: bool, octets: bool = False, **options: Any) -> tuple[io.BytesIO, list[str | None]]:
    """A file of pyarrow whose row groups have different dictionaries, and its words; the words of one row group are all null."""
    random = np.random.default_rng(3)
    picked = [WORDS[(int(n) + row // 700 * 3) % len(WORDS)] for row, n in enumerate(random.integers(0, 12, ROWS))]
    missing = [nulls and (row % 5 == 2 or 1400 <= row < 2100) for row in range(ROWS)]
    words = [None if gone else word for word, gone in zip(picked, missing, strict=True)]
    stored: Any = [None if word is None else word.encode() for word in words] if octets else words
    field = pa.field("word", pa.binary() if octets else pa.string(), nullable=nulls)
    schema = pa.schema([field, pa.field("row", pa.int64(), nullable=False)])
    target = io.BytesIO()
    chosen = {"row_group_size": 700, "data_page_size": 300, "write_statistics": False} | options
    pq.write_table(pa.table({"word": stored, "row": range(ROWS)}, schema), target, **chosen)
    return target, words


def check(target: io.BytesIO, words: list[str | None], octets: bool = False) -> None:
    with fastpq.ParquetFile(target) as file:
        for op, value, holds in CONDITIONS:
            given = value if not octets else encoded(value)
            expected = [row for row, word in enumerate(words) if word is not None and holds(word)]
            kept = [encoded(words[row]) if octets else words[row] for row in expected]
            got = file.read(filters=[("word", op, given)])
            assert got["row"].to_pylist() == expected, (op, value)
            assert got["word"].to_pylist() == kept
            assert file.count([("word", op, given)]) == len(expected)
            either = [[("word", op, given)], [("word", "is null")], [("row", "==", 5)]]
            expected = [row for row, word in enumerate(words) if word is None or holds(word) or row == 5]
            assert file.read(["row"], filters=either)["row"].to_pylist() == expected


def encoded(value: Any) -> Any:
    return [encoded(one) for one in value] if isinstance(value, list) else None if value is None else value.encode()


@pytest.mark.parametrize("octets", [False, True])
@pytest.mark.parametrize("nulls", [False, True])
def test_the_rows_of_predicates(nulls: bool, octets: bool, coded: list[bool]) -> None:
    check(*file_of(nulls, octets), octets)
    assert any(coded)


@pytest.mark.parametrize("nulls", [False, True])
def test_candidates_of_a_page_index(nulls: bool, coded: list[bool]) -> None:
    """Only some pages, and some rows of a page, are read for the predicate."""
    target, words = file_of(nulls, write_statistics=True, write_page_index=True)
    with fastpq.ParquetFile(target) as file:
        got = file.read(["row"], filters=[("row", ">=", 1000), ("row", "<", 3333), ("word", "in", ["word 3", "word 7"])])
    assert got["row"].to_pylist() == [row for row in range(1000, 3333) if words[row] in ("word 3", "word 7")]
    assert any(coded)


@pytest.mark.parametrize("nulls", [False, True])
def test_chunks_that_leave_their_dictionary(nulls: bool, coded: list[bool]) -> None:
    """The dictionary page is full after a few values, and later pages are PLAIN: values are compared."""
    target, words = file_of(nulls, dictionary_pagesize_limit=60, write_batch_size=50)
    group = pq.ParquetFile(target).metadata.row_group(0).column(0)
    assert "PLAIN" in group.encodings
    check(target, words)
    assert not all(coded)
    assert any(coded) == nulls      # the row group of nulls alone


def test_results_keep_the_layout_asked_for(coded: list[bool]) -> None:
    target, words = file_of(True)
    expected = [word for word in words if word == "word 3"]
    for strings in ("views", "offsets", "dictionary"):
        got = fastpq.read_table(target, strings=strings, filters=[("word", "==", "word 3")])
        assert got["word"].to_pylist() == expected
        assert isinstance(got.flat("word").values, DictionaryValues) == (strings == "dictionary")
    assert any(coded)
