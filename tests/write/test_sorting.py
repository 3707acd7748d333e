"""Sorted row groups, against DuckDB's ORDER BY and as pyarrow reads what the footer says of them."""

from __future__ import annotations

import decimal
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import SortingColumn
from tests.requirements import peer

duckdb = peer("duckdb")

ROWS = 1000
COLUMNS = {
    "int": (pa.int64(), lambda r: r.randrange(-5, 5)),
    "unsigned": (pa.uint32(), lambda r: r.choice([0, 1, 2**31, 2**32 - 1])),
    "double": (pa.float64(), lambda r: r.choice([float("nan"), float("inf"), -1.5, 0.0, 3.25])),
    "text": (pa.string(), lambda r: r.choice(["", "a", "ab", "é", "z" * 20, "\U0010ffff"])),
    "decimal": (pa.decimal128(30, 2), lambda r: decimal.Decimal(r.randrange(-(10**20), 10**20)).scaleb(-2)),
    "boolean": (pa.bool_(), lambda r: r.random() < 0.5),
}


def table(seed: int) -> pa.Table:
    chance = random.Random(seed)
    columns = {
        name: pa.array([None if chance.randrange(6) == 0 else value(chance) for _ in range(ROWS)], kind)
        for name, (kind, value) in COLUMNS.items()
    }
    columns["row"] = pa.array(range(ROWS))
    columns["list"] = pa.array([[row] * (row % 3) for row in range(ROWS)])
    columns["struct"] = pa.array([None if row % 5 == 0 else {"key": row % 7} for row in range(ROWS)])
    return pa.table(columns)


def order_by(by: SortingColumn) -> str:
    return f'{by.path} {"DESC" if by.descending else "ASC"} NULLS {"FIRST" if by.nulls_first else "LAST"}'


@pytest.mark.parametrize("seed", range(8))
def test_rows_are_sorted_as_duckdb_sorts_them(seed: int, tmp_path: Path) -> None:
    path, chance, data = tmp_path / "sorted.parquet", random.Random(seed), table(seed)
    names = chance.sample([*COLUMNS, "struct.key"], chance.randrange(1, 4))
    sort_by = [SortingColumn(name, chance.random() < 0.5, chance.random() < 0.5) for name in names]
    fastpq.write_table(data, path, sort_by=sort_by, row_group_size=ROWS // 3, data_page_rows=50)
    stored = pq.ParquetFile(path)
    with duckdb.connect() as connection:
        for group in range(stored.num_row_groups):
            part = data.slice(group * (ROWS // 3), ROWS // 3)       # noqa: F841 - DuckDB finds it by its name
            keys = ", ".join(map(order_by, sort_by))
            truth = connection.sql(f"SELECT * FROM part ORDER BY {keys}, row").to_arrow_table()
            got = stored.read_row_group(group).select(["row", "list", "struct"])
            assert got.equals(truth.select(got.column_names).cast(got.schema))
            recorded = stored.metadata.row_group(group).sorting_columns
            paths = [stored.schema.column(each.column_index).path for each in recorded]
            flags = [(each.descending, each.nulls_first) for each in recorded]
            assert [SortingColumn(name, *each) for name, each in zip(paths, flags, strict=True)] == sort_by
    again = tmp_path / "again.parquet"
    fastpq.write_table(stored.read(), again, sorting_columns=sort_by, row_group_size=ROWS // 3)
    assert pq.read_metadata(again).row_group(0).sorting_columns == stored.metadata.row_group(0).sorting_columns


def test_what_is_not_sorted_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sorted.parquet"
    with pytest.raises(fastpq.SchemaError, match="row 3 belongs before"):
        fastpq.write_table({"id": np.array([1, 2, 2, 1])}, path, sorting_columns=["id"])
    assert not path.exists()
    fastpq.write_table({"id": np.array([1, 2, 2, 1])}, path, sorting_columns=["id"], row_group_size=3)
    with pytest.raises(fastpq.SchemaError, match="row 1 belongs before"):
        fastpq.write_table({"id": np.array([1, 2])}, path, sorting_columns=[SortingColumn("id", descending=True)])
    masked = np.ma.masked_array(np.arange(3), mask=[True, False, False])
    with pytest.raises(fastpq.SchemaError, match="row 1 belongs before"):
        fastpq.write_table({"id": masked}, path, sorting_columns=["id"])
    fastpq.write_table({"id": masked}, path, sorting_columns=[SortingColumn("id", nulls_first=True)])
    fastpq.write_table({"id": np.array([1.0, np.nan, np.nan])}, path, sorting_columns=["id"])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"sort_by": ["nothing"]}, fastpq.SchemaError),
        ({"sort_by": ["id", "id"]}, fastpq.SchemaError),
        ({"sort_by": ["list.list.element"]}, fastpq.SchemaError),
        ({"sort_by": ["null"]}, fastpq.UnsupportedError),
        ({"sort_by": ["id"], "sorting_columns": ["id"]}, ValueError),
        ({"sort_by": "id"}, TypeError),
        ({"bloom_filter": {"nothing": True}}, fastpq.SchemaError),
        ({"bloom_filter": {"flag": True}}, fastpq.SchemaError),
        ({"bloom_filter": {"id": {"fpp": 1.0}}}, ValueError),
        ({"bloom_filter": {"id": {"ndv": -1}}}, ValueError),
        ({"bloom_filter": {"id": {"size": 1}}}, ValueError),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], error: type[Exception], tmp_path: Path) -> None:
    data = pa.table({"id": [1], "flag": [True], "list": [[1]], "null": pa.nulls(1)})
    with pytest.raises(error):
        fastpq.write_table(data, tmp_path / "no.parquet", **options)
    assert not (tmp_path / "no.parquet").exists()


def test_nothing_to_sort(tmp_path: Path) -> None:
    fastpq.write_table({"id": np.array([], np.int64)}, tmp_path / "none.parquet", sort_by=["id"], bloom_filter={"id": True})
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0
