"""Errors of usual mistakes say what to do instead, and show no values of arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastpq


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fastpq.write_table({"amount": [1.5, 2.0, 7777.0], "year": [1, 2, 3]}, tmp_path / "file")
    return tmp_path / "file"


def test_a_mask_is_no_filter_and_its_values_are_not_shown(path: Path) -> None:
    frame = pd.DataFrame({"amount": [7777.0] * 30})
    for mask in (frame.amount, frame.amount > 3, np.arange(7777, 7780)):
        with pytest.raises(fastpq.SchemaError, match="is not a filter: a tuple") as caught:
            fastpq.read_table(path, filters=mask)
        assert "7777" not in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("expression", [pc.field("yaer") > 1, pl.col("yaer") > 1])
def test_a_wrong_name_in_an_expression(path: Path, expression: Any) -> None:
    with pytest.raises(fastpq.SchemaError, match="no column 'yaer'; did you mean 'year'"):
        fastpq.read_table(path, filters=expression)


@pytest.mark.parametrize("name", ["map<string,int64>", "decimal128(9, 2)", "date32", "list<int64>"])
def test_a_name_of_no_type(tmp_path: Path, name: str) -> None:
    with pytest.raises(fastpq.SchemaError, match=r"is no type: .*Arrow type .*maps.*decimal\(9, 2\)") as caught:
        fastpq.write_table({"m": [1]}, tmp_path / "file", schema={"m": name})
    assert caught.value.context["column"] == "m"


def test_a_list_of_tables(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1]})
    for tables in ([frame, frame], pa.table({"x": [1]}).to_batches()):
        with pytest.raises(fastpq.SchemaError, match=r"iter\(\[\.\.\.\]\)"):
            fastpq.write_table(tables, tmp_path / "file")
        fastpq.write_table(iter(tables), tmp_path / "file")
        assert fastpq.read_table(tmp_path / "file")["x"].to_pylist() == [1] * len(tables)


def test_keys_of_another_library(path: Path) -> None:
    class FileDecryptionProperties:     # as pyarrow names its own
        pass

    keys: Any = FileDecryptionProperties()
    with pytest.raises(TypeError, match=r"are fastpq\.FileDecryptionProperties, not <class .*test_advice"):
        fastpq.read_table(path, decryption_properties=keys)
    with pytest.raises(TypeError, match=r"are fastpq\.FileEncryptionProperties, not <class .*test_advice"):
        fastpq.write_table({"x": [1]}, path, encryption_properties=keys)


def test_near_names(path: Path) -> None:
    with pytest.raises(fastpq.SchemaError, match="did you mean zstd"):
        fastpq.write_table({"x": [1]}, path, compression="zst")
    with pytest.raises(fastpq.SchemaError, match=r"known are .*\blz4\b"):
        fastpq.write_table({"x": [1]}, path, compression="7z")
    options: dict[str, Any] = {"preserve_index": False}
    with pytest.raises(TypeError, match="index=False leaves the index"):
        fastpq.write_table(pd.DataFrame({"x": [1]}), path, **options)


def test_the_repr_of_a_dataset(tmp_path: Path) -> None:
    fastpq.write_dataset({"x": [1, 2], "part": ["a", "b"]}, tmp_path / "root", partition_by=["part"])
    assert repr(fastpq.ParquetDataset(tmp_path / "root")) == "<ParquetDataset of 2 files: x, part>"
