"""DataFusion and DuckDB read datasets through fastpq, and hand columns and filters down."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import fastpq
from fastpq.adapters import arrow_dataset
from tests.adapters.counted import FILES, KEY_FUNCTION, ROWS, CountedDataset, has_no_key
from tests.requirements import needs, peer

datafusion, duckdb = peer("datafusion"), peer("duckdb")

QUERIES = [
    "SELECT count(*) AS n FROM rows",
    "SELECT sum(id) AS s, count(value) AS n FROM rows",
    "SELECT text, id FROM rows WHERE id > 299990 ORDER BY id",
    "SELECT value FROM rows WHERE text = 'row 7' AND id < 5000 ORDER BY id",
    "SELECT count(*) AS n FROM rows WHERE id % 1000 = 5 AND id > 90000",
    "SELECT count(*) AS n FROM rows WHERE sqrt(noise) > 0.99",
    "SELECT id FROM rows WHERE value IS NULL AND id < 100 ORDER BY id",
    "SELECT id FROM rows WHERE id IN (5, 70000, 250000) OR text = 'row 999' AND id > 299000 ORDER BY id",
    "SELECT id FROM rows WHERE NOT (id < 299990 OR text = 'row 991') ORDER BY id",
    "SELECT value, count(*) AS n FROM rows GROUP BY value ORDER BY value",
    "SELECT text FROM rows WHERE text LIKE 'row 99%' AND id < 1000 ORDER BY id",
    "SELECT id FROM rows WHERE id < 0",
]


def by_datafusion(query: str, rows: Any) -> list[tuple[Any, ...]]:
    """Return what DataFusion answers for a table or a dataset."""
    context = datafusion.SessionContext()
    context.register_dataset("rows", ds.dataset(rows) if isinstance(rows, pa.Table) else rows)
    return [tuple(row.values()) for batch in context.sql(query).collect() for row in batch.to_pylist()]


def by_duckdb(query: str, rows: Any) -> list[tuple[Any, ...]]:
    """Return what DuckDB answers for a table or a dataset."""
    connection = duckdb.connect()
    connection.register("rows", rows)
    answer: list[tuple[Any, ...]] = connection.sql(query).fetchall()
    return answer


ENGINES = pytest.mark.parametrize(("engine", "package"), [(by_datafusion, datafusion), (by_duckdb, duckdb)])


@ENGINES
def test_queries(engine: Callable[[str, Any], Any], package: Any, counted: CountedDataset) -> None:
    """They give what they give for a table in memory."""
    needs(package)
    table, rows = counted.table().to_arrow(), arrow_dataset(counted.folder, **counted.options())
    for query in QUERIES:
        assert engine(query, rows) == engine(query, table), query


@ENGINES
def test_bytes(engine: Callable[[str, Any], Any], package: Any, counted: CountedDataset) -> None:
    needs(package)
    rows = arrow_dataset(str(counted.folder), **counted.options())
    assert counted.share(lambda: engine("SELECT * FROM rows", rows)) > 1.0
    assert counted.share(lambda: engine("SELECT sum(value) FROM rows", rows)) < 0.15
    assert counted.share(lambda: engine("SELECT text FROM rows WHERE id = 5", rows)) < 0.2
    assert counted.share(lambda: engine("SELECT text FROM rows WHERE id = 5 AND sqrt(noise) > 0.1", rows)) < 0.25


def test_each_file_is_a_partition(counted: CountedDataset) -> None:
    rows = arrow_dataset(counted.folder, **counted.options())
    assert len(rows.files) == len(rows.get_fragments()) == FILES
    assert [fragment.scanner(columns=["id"]).to_table()["id"][0].as_py() for fragment in rows.get_fragments()] == [
        0, ROWS, 2 * ROWS
    ]


def test_methods_of_a_dataset_of_pyarrow(counted: CountedDataset) -> None:
    table, rows = counted.table().to_arrow(), arrow_dataset(counted.folder, **counted.options())
    assert rows.count_rows() == table.num_rows
    assert rows.head(3, columns=["id"]).equals(table.select(["id"]).slice(0, 3))
    assert rows.take(pa.array([5, 250_000])).num_rows == 2
    condition = (pc.field("id") > 5) & (pc.field("value") == 1)
    assert rows.to_table(filter=condition).equals(table.filter(condition).cast(rows.schema))
    doubled = rows.to_table(columns={"double": pc.multiply(pc.field("id"), 2)}, filter=pc.field("text") == "row 7")
    assert doubled["double"].to_pylist() == [2 * number for number in range(7, table.num_rows, 1000)]
    with pytest.raises((KeyError, pa.ArrowInvalid)):
        rows.to_table(columns=["none"])


def test_pyarrow_does_not_read_it_by_itself(encrypted: CountedDataset) -> None:
    """What passes over the methods fails. It gives no rows, no other rows, and does not crash."""
    rows = arrow_dataset(encrypted.folder, **encrypted.options())
    for read in (
        lambda: ds.Scanner.from_dataset(rows).to_table(),
        lambda: ds.dataset([rows]).to_table(),
        lambda: rows.join(rows, "id"),
        lambda: rows.filter(pc.field("id") > 5),
        lambda: rows.replace_schema(rows.schema),
    ):
        with pytest.raises((OSError, fastpq.UnsupportedError), match=r"by its methods alone|dataset of fastpq"):
            read()


def test_floats_are_compared_as_pyarrow_does(tmp_path: Any) -> None:
    fastpq.write_table({"x": np.array([1.0, np.nan, 9.0, -0.0, 0.0])}, tmp_path / "x.parquet")
    table, rows = fastpq.read_table(tmp_path / "x.parquet").to_arrow(), arrow_dataset(tmp_path / "x.parquet")
    x = pc.field("x")
    for condition in (x > 5, x < 5, x != 5.0, ~(x > 5), x == 0.0, x >= 0.0, x < 0.0, x.isin([1.0]), ~x.isin([1.0]), x.is_nan()):
        assert rows.to_table(filter=condition)["x"].to_pylist().__repr__() == repr(table.filter(condition)["x"].to_pylist())


def test_no_key_in_a_plan(encrypted: CountedDataset) -> None:
    needs(datafusion)
    rows = arrow_dataset(encrypted.folder, **encrypted.options())
    context = datafusion.SessionContext()
    context.register_dataset("rows", rows)
    frame = context.sql("SELECT text FROM rows WHERE id > 5")
    texts = [str(frame.logical_plan()), str(frame.optimized_logical_plan()), str(frame.execution_plan()), repr(rows), str(rows)]
    plans = context.sql("EXPLAIN VERBOSE SELECT text FROM rows WHERE id > 5").to_pydict()
    assert all(has_no_key(text) for text in [*texts, str(plans), repr(rows.get_fragments())])
    assert "number_of_fragments=3" in str(plans)
    with pytest.raises(fastpq.UnsupportedError, match="keys never enter a task"):
        pickle.dumps(rows)
    content = pickle.dumps(arrow_dataset(encrypted.folder, decryption_properties=KEY_FUNCTION))
    assert has_no_key(content)
    assert pickle.loads(content).count_rows() == FILES * ROWS
