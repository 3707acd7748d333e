"""Schemas that change: each rule of the table in docs/pages/datasets.md, for reading and for appending."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import fastpq
from fastpq import SchemaError
from tests.test_docs import PAGES


def arrow_schema(*fields: tuple[str, Any, int | None]) -> pa.Schema:
    return pa.schema([
        pa.field(name, type_, metadata=None if number is None else {"PARQUET:field_id": str(number)})
        for name, type_, number in fields
    ])


class Rule(NamedTuple):
    """Two files, one after the other, and what reading and appending make of them. A text is a part of an error's message."""

    first: Mapping[str, Any]
    second: Mapping[str, Any]
    union: list[dict[str, Any]] | str
    schema: Any
    by_schema: list[dict[str, Any]] | str
    append: list[dict[str, Any]] | str
    ids: tuple[Mapping[str, int], Mapping[str, int]] = ({}, {})


SMALL, LARGE = np.array([1], np.int32), np.array([2], np.int64)
RULES = {
    "a new column": Rule(
        {"a": [1]}, {"a": [2], "b": [3]}, [{"a": 1, "b": None}, {"a": 2, "b": 3}],
        {"a": "int64"}, [{"a": 1}, {"a": 2}], "no column of this name"),
    "a missing column": Rule(
        {"a": [1], "b": [3]}, {"a": [2]}, [{"a": 1, "b": 3}, {"a": 2, "b": None}],
        {"b": "int64"}, [{"b": 3}, {"b": None}], "lack a column"),
    "a wider number": Rule(
        {"a": SMALL}, {"a": LARGE}, [{"a": 1}, {"a": 2}], {"a": "int32"}, [{"a": 1}, {"a": 2}], "INT64 is not the INT32"),
    "a narrower number": Rule(
        {"a": LARGE}, {"a": SMALL}, [{"a": 2}, {"a": 1}], {"a": "int64"}, [{"a": 2}, {"a": 1}], [{"a": 2}, {"a": 1}]),
    "another type": Rule(
        {"a": ["x"]}, {"a": [1]}, "column a", {"a": "string"}, "column a", "is not the"),
    "another name, same field id": Rule(
        {"a": [1]}, {"b": [2]}, [{"a": 1, "b": None}, {"a": None, "b": 2}],
        arrow_schema(("b", pa.int64(), 1)), [{"b": 1}, {"b": 2}], "lack a column", ({"a": 1}, {"b": 1})),
    "same name, another field id": Rule(
        {"a": [1]}, {"a": [2]}, [{"a": 1}, {"a": 2}],
        arrow_schema(("a", pa.int64(), 2)), [{"a": None}, {"a": 2}], [{"a": 1}, {"a": 2}], ({"a": 1}, {"a": 2})),
    "another order": Rule(
        {"a": [1], "b": [2]}, {"b": [4], "a": [3]}, [{"a": 1, "b": 2}, {"a": 3, "b": 4}],
        {"b": "int64", "a": "int64"}, [{"b": 2, "a": 1}, {"b": 4, "a": 3}], [{"a": 1, "b": 2}, {"a": 3, "b": 4}]),
}


def check(expected: list[dict[str, Any]] | str, read: Any) -> None:
    if isinstance(expected, str):
        with pytest.raises(SchemaError, match=expected):
            read()
    else:
        rows = read().to_rows()
        assert rows == expected
        assert [list(row) for row in rows] == [list(row) for row in expected]


@pytest.mark.parametrize("name", RULES)
def test_rules(tmp_path: Path, name: str) -> None:
    rule = RULES[name]
    for folder in ("d", "e"):
        (tmp_path / folder).mkdir()
    for number, data in enumerate((rule.first, rule.second)):
        fastpq.write_table(data, tmp_path / "d" / f"{number}.parquet", field_ids=rule.ids[number])
    check(rule.union, lambda: fastpq.read_dataset(tmp_path / "d"))
    check(rule.by_schema, lambda: fastpq.read_dataset(tmp_path / "d", schema=rule.schema))
    fastpq.write_table(rule.first, tmp_path / "e" / "0.parquet", field_ids=rule.ids[0])

    def append() -> fastpq.Table:
        fastpq.write_dataset(rule.second, tmp_path / "e", field_ids=rule.ids[1])
        return fastpq.read_dataset(tmp_path / "e", schema="first")

    check(rule.append, append)
    if isinstance(rule.append, str):
        fastpq.write_dataset(rule.second, tmp_path / "e", field_ids=rule.ids[1], check_schema=False)


def test_the_page_has_each_rule() -> None:
    page = (PAGES / "datasets.md").read_text()
    section = page.partition("### Schemas that change")[2].partition("```")[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in section.splitlines() if line.startswith("| ")]
    assert rows[2:] == list(RULES)


def test_columns_by_id(tmp_path: Path) -> None:
    """Filters, statistics, durations and dictionaries work under the new names. Names may change places."""
    spans, kinds = np.arange(2).astype("m8[s]"), pa.array(["x", "y"]).dictionary_encode()
    fastpq.write_table(
        pa.table({"a": [1, 2], "b": ["p", "q"], "d": spans, "k": kinds}), tmp_path / "1.parquet",
        field_ids={"a": 1, "b": 2, "d": 3, "k": 4})
    fastpq.write_table(
        pa.table({"b": [3, 4], "a": ["r", "s"], "e": spans, "l": kinds}), tmp_path / "2.parquet",
        field_ids={"b": 1, "a": 2, "e": 3, "l": 4})
    schema = arrow_schema(("b", pa.int64(), 1), ("a", pa.string(), 2), ("e", pa.duration("s"), 3), ("l", pa.string(), 4))
    dataset = fastpq.ParquetDataset(tmp_path, schema=schema)
    assert dataset.read(["b", "a", "l"]).to_rows() == [
        {"b": 1, "a": "p", "l": "x"}, {"b": 2, "a": "q", "l": "y"}, {"b": 3, "a": "r", "l": "x"}, {"b": 4, "a": "s", "l": "y"}]
    assert dataset.read(["e"])["e"].to_pylist() == [*spans.tolist()] * 2
    assert dataset.read(["a"], filters=[("b", ">", 1), ("a", "!=", "s")])["a"].to_pylist() == ["q", "r"]
    assert dataset.min_max("b") == (1, 4)
    assert dataset.count([("a", "==", "p")]) == 1
    assert dataset.null_count("a") == 0
    assert [batch["b"].to_pylist() for batch in dataset.iter_batches(3, ["b"])] == [[1, 2, 3], [4]]
    assert pickle.loads(pickle.dumps(dataset)).read(["b"])["b"].to_pylist() == [1, 2, 3, 4]
    assert fastpq.read_dataset(tmp_path, ["b"], schema=schema, on_error="null")["b"].to_pylist() == [1, 2, 3, 4]


def test_encrypted_files_are_refused(tmp_path: Path) -> None:
    key = b"0123456789012345"
    fastpq.write_table({"a": [1]}, tmp_path / "1.parquet", field_ids={"a": 1},
                       encryption_properties=fastpq.FileEncryptionProperties(key))
    keys = fastpq.FileDecryptionProperties(key)
    same = arrow_schema(("a", pa.int64(), 1))
    assert fastpq.read_dataset(tmp_path, schema=same, decryption_properties=keys).to_rows() == [{"a": 1}]
    with pytest.raises(fastpq.UnsupportedError, match="field ids"):
        fastpq.read_dataset(tmp_path, schema=arrow_schema(("b", pa.int64(), 1)), decryption_properties=keys)


def test_rows_as_dicts() -> None:
    rows: list[dict[str, Any]] = [{"a": 1, "t": {"u": 1}}, {"b": "x", "a": None}, {}]
    table = fastpq.Table.from_rows(rows)
    assert table.to_rows() == [
        {"a": 1, "t": {"u": 1}, "b": None}, {"a": None, "t": None, "b": "x"}, {"a": None, "t": None, "b": None}]
    assert table.to_rows() == pa.Table.from_pylist(rows, schema=table.to_arrow().schema).to_pylist()
    assert fastpq.Table.from_rows([]).shape == (0, 0)
    assert fastpq.Table.from_rows([{}, {}]).num_rows == 2
    with pytest.raises(TypeError, match="row 1"):
        fastpq.Table.from_rows([{}, 1])      # type: ignore[list-item]
