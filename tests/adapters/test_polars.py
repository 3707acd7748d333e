"""Polars reads datasets through fastpq, and hands columns, filters and limits down."""

from __future__ import annotations

import io
import pickle
from typing import Any

import polars as pl
import pytest

import fastpq
from fastpq.adapters import scan_polars
from tests.adapters.counted import FILES, KEY_FUNCTION, ROWS, CountedDataset, has_no_key

ID, TEXT, NOISE, VALUE = pl.col("id"), pl.col("text"), pl.col("noise"), pl.col("value")
QUERIES: list[tuple[str, Any]] = [
    ("all", lambda frame: frame),
    ("columns in another order", lambda frame: frame.select("text", "id")),
    ("count", lambda frame: frame.select(pl.len())),
    ("filter", lambda frame: frame.filter(ID > 100_000)),
    ("filter of another column", lambda frame: frame.filter(TEXT == "row 7").select("value")),
    ("filter of which a part is translated", lambda frame: frame.filter((ID > 90_000) & (ID % 1000 == 5)).select("text")),
    ("filter of which nothing is translated", lambda frame: frame.filter(NOISE.sqrt() > 0.99).select("id")),
    ("nulls", lambda frame: frame.filter(VALUE.is_null() & (ID < 1000)).select("id", "value")),
    ("count with a filter", lambda frame: frame.filter(TEXT == "row 7").select(pl.len())),
    ("count with a filter of Polars", lambda frame: frame.filter(ID % 1000 == 5).select(pl.len())),
    ("no row", lambda frame: frame.filter(ID < 0)),
    ("groups", lambda frame: frame.group_by("value").agg(ID.sum()).sort("value")),
    ("limit", lambda frame: frame.filter(ID >= 5).head(10)),
    ("limit with a filter of Polars", lambda frame: frame.filter(ID % 3 == 0).head(10)),
]


@pytest.mark.parametrize("query", [query for _, query in QUERIES], ids=[name for name, _ in QUERIES])
def test_queries(counted: CountedDataset, query: Any) -> None:
    """They give what they give for a frame in memory."""
    expected = query(counted.table().to_polars().lazy()).collect()
    assert query(scan_polars(counted.folder, **counted.options())).collect().equals(expected, null_equal=True)


def test_bytes(counted: CountedDataset) -> None:
    frame = scan_polars(str(counted.folder), **counted.options())
    everything = counted.share(frame.collect)
    one_column = counted.share(frame.select("value").collect)
    assert everything > 1.0
    assert one_column < 0.1
    assert counted.share(frame.filter(ID == 5).collect) < 0.15
    assert counted.share(frame.filter((ID == 5) & (NOISE.sqrt() > 0.5)).collect) < 0.15
    assert counted.share(frame.filter(ID < 0).collect) < 0.1
    assert counted.share(frame.head(10).collect) < 0.4        # of one file


def test_batches_of_another_size(counted: CountedDataset) -> None:
    frame = scan_polars(counted.folder, **counted.options(counted=False))
    sizes = [batch.height for batch in frame.collect_batches(chunk_size=1000, maintain_order=True)]
    assert sum(sizes) == FILES * ROWS


def test_no_key_in_a_plan(encrypted: CountedDataset) -> None:
    query = scan_polars(encrypted.folder, **encrypted.options()).filter(ID > 5).select("text")
    texts = [query.explain(), query.explain(optimized=False), repr(query), str(query), query.show_graph(raw_output=True)]
    assert all(has_no_key(str(text)) for text in texts)
    for serialize in (query.serialize, lambda: pickle.dumps(query)):
        with pytest.raises(pl.exceptions.ComputeError, match="keys never enter a task"):
            serialize()


def test_a_plan_is_serialized_with_the_name_of_a_function(encrypted: CountedDataset) -> None:
    query = scan_polars(encrypted.folder, decryption_properties=KEY_FUNCTION).filter(ID > 299_000).select("text")
    content = query.serialize()
    assert has_no_key(content)
    assert KEY_FUNCTION.encode() in content
    assert pl.LazyFrame.deserialize(io.BytesIO(content)).collect().equals(query.collect())


def test_a_wrong_key(encrypted: CountedDataset) -> None:
    with pytest.raises(fastpq.CryptoError):
        scan_polars(encrypted.folder, decryption_properties=fastpq.FileDecryptionProperties(b"another key of 1"))
    with pytest.raises(fastpq.KeyAccessError):
        scan_polars(encrypted.folder)
