"""Hugging Face datasets read through fastpq. test_pinned_engines.py runs this file in an environment with that library."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import datasets
import pytest

import fastpq
from fastpq.adapters import read_hugging_face
from tests.adapters.counted import FILES, KEY_FUNCTION, ROWS, CountedDataset, has_no_key

FILTERS = [("id", ">", 299_990), ("text", "!=", "row 995")]


def test_rows(counted: CountedDataset) -> None:
    rows = read_hugging_face(counted.folder, **counted.options())
    expected = counted.table()
    assert rows.num_shards == FILES
    assert rows.column_names == expected.names
    assert rows.features["text"] == datasets.Value("string")
    assert list(rows.take(3)) == expected.to_pylist()[:3]
    batches = list(rows.with_format("numpy").iter(batch_size=50_000))
    assert sum(int(batch["id"].sum()) for batch in batches) == FILES * ROWS * (FILES * ROWS - 1) // 2
    some = read_hugging_face(counted.folder, ["text", "id"], filters=FILTERS, **counted.options())
    assert list(some) == [{"text": f"row {row % 1000}", "id": row} for row in range(299_991, 300_000) if row != 299_995]
    assert [row["id"] for row in some.shuffle(seed=1, buffer_size=4)] != [row["id"] for row in some]
    assert sorted(row["id"] for row in some.map(lambda row: {"id": row["id"] + 1}))[0] == 299_992


def test_shards_of_workers(counted: CountedDataset) -> None:
    rows = read_hugging_face(counted.folder, ["id"], **counted.options())
    parts = [rows.shard(num_shards=FILES, index=number) for number in range(FILES)]
    assert [next(iter(part))["id"] for part in parts] == [0, ROWS, 2 * ROWS]


def test_a_read_goes_on_where_it_was(counted: CountedDataset) -> None:
    rows = read_hugging_face(counted.folder, ["id"], **counted.options())
    iterator = iter(rows)
    assert [next(iterator)["id"] for _ in range(5)] == [0, 1, 2, 3, 4]
    state = rows.state_dict()
    assert has_no_key(repr(state))
    again = read_hugging_face(counted.folder, ["id"], **counted.options())
    again.load_state_dict(state)
    assert next(iter(again))["id"] == 5


def test_bytes(counted: CountedDataset) -> None:
    def read(*columns: str, **more: Any) -> None:
        rows = read_hugging_face(str(counted.folder), columns or None, **more, **counted.options())
        list(rows.with_format("arrow").iter(50_000))

    assert counted.share(read) > 1.0
    assert counted.share(lambda: read("value")) < 0.15
    assert counted.share(lambda: read("text", filters=[("id", "==", 5)])) < 0.2


def test_no_key_in_a_pickle_and_no_row_in_the_cache(encrypted: CountedDataset) -> None:
    before = {path for path in Path(os.environ["HF_HOME"]).rglob("*") if path.is_file()}
    rows = read_hugging_face(encrypted.folder, **encrypted.options())
    assert sum(len(part) for part in rows.with_format("arrow").iter(50_000)) == FILES * ROWS
    assert {path for path in Path(os.environ["HF_HOME"]).rglob("*") if path.is_file()} == before
    assert has_no_key(repr(rows) + str(rows.info) + repr(vars(rows)))
    with pytest.raises(fastpq.UnsupportedError, match="keys never enter a task"):
        pickle.dumps(rows)
    content = pickle.dumps(read_hugging_face(encrypted.folder, decryption_properties=KEY_FUNCTION))
    assert has_no_key(content)
    assert next(iter(pickle.loads(content)))["text"] == "row 0"
