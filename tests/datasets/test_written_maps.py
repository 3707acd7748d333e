"""Maps from dicts and lists of pairs in write_dataset; pyarrow reads the files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest

import fastpq

MAPS = pa.map_(pa.string(), pa.int32())
ROWS = {"id": [1, 2, 3], "p": ["x", "y", "x"], "m": [{"a": 1}, None, [("b", 2), ("c", None)]]}
EXPECTED = {1: [("a", 1)], 2: None, 3: [("b", 2), ("c", None)]}

FORMS: list[Callable[[dict[str, Any]], Any]] = [
    dict,
    lambda rows: pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in rows.items()}),
    lambda rows: iter([{name: values[:2] for name, values in rows.items()}, {name: values[2:] for name, values in rows.items()}]),
]


def values_by_id(root: Path) -> dict[Any, Any]:
    """The maps that pyarrow reads, the same as fastpq's."""
    table = pyarrow.dataset.dataset(root, partitioning="hive").to_table()
    table.validate(full=True)
    assert table.schema.field("m").type == MAPS
    found = dict(zip(table["id"].to_pylist(), table["m"].to_pylist(), strict=True))
    own = fastpq.read_table(root)
    assert dict(zip(own["id"].to_pylist(), own["m"].to_pylist(), strict=True)) == found
    return found


@pytest.mark.parametrize("partition_by", [[], ["p"]])
@pytest.mark.parametrize("form", FORMS)
def test_dicts_and_pairs(tmp_path: Path, form: Callable[[dict[str, Any]], Any], partition_by: list[str]) -> None:
    schema = pa.schema({"id": pa.int64(), "p": pa.string(), "m": MAPS})
    fastpq.write_dataset(form(ROWS), tmp_path, schema=schema, partition_by=partition_by, max_rows_per_file=1)
    assert values_by_id(tmp_path) == EXPECTED


@pytest.mark.parametrize("partition_by", [[], ["p"]])
@pytest.mark.parametrize("form", FORMS)
def test_the_schema_of_the_dataset(tmp_path: Path, form: Callable[[dict[str, Any]], Any], partition_by: list[str]) -> None:
    fastpq.write_dataset(pa.table({"id": [0], "p": ["x"], "m": pa.array([[]], MAPS)}), tmp_path, partition_by=partition_by)
    schema = fastpq.ParquetDataset(tmp_path).schema
    fastpq.write_dataset(form(ROWS), tmp_path, schema=schema, partition_by=partition_by)
    assert values_by_id(tmp_path) == {0: [], **EXPECTED}


def test_maps_inside(tmp_path: Path) -> None:
    type_ = pa.list_(pa.struct({"m": pa.map_(pa.string(), MAPS)}))
    fastpq.write_dataset({"id": [1, 2], "v": [[{"m": {"a": {"b": 1}}}], None]}, tmp_path, schema={"v": type_})
    table = pyarrow.dataset.dataset(tmp_path).to_table()
    assert table.schema.field("v").type == type_
    assert table["v"].to_pylist() == [[{"m": [("a", [("b", 1)])]}], None]


def test_no_map_is_refused_before_a_file_is_written(tmp_path: Path) -> None:
    with pytest.raises(fastpq.SchemaError, match="value 1 is not a map"):
        fastpq.write_dataset({"m": [{}, 5]}, tmp_path, schema={"m": MAPS})
    assert not list(tmp_path.rglob("*.parquet"))
