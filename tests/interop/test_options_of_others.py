"""Options of pyarrow, pandas and fastparquet: taken, or refused with their counterpart in fastpq."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.requirements import needs, peer

needs(peer("fastparquet"))

import fastparquet  # noqa: E402

DATA = {"a": [1, 2, 3]}
# Arguments for the data and the place, and of the classes themselves.
PLACES = {
    "self", "kwargs", "kw", "args", "data", "table", "where", "path", "root_path", "base_dir", "filename", "source", "fn",
    "path_or_paths", "options",
}
# pyarrow keeps the order of rows on request; a dataset of fastpq has none.
WITHOUT_COUNTERPART = {"preserve_order"}


def options(functions: Iterable[Callable[..., Any]]) -> list[str]:
    names = {name for function in functions for name in inspect.signature(function).parameters}
    return sorted(names - PLACES - WITHOUT_COUNTERPART)


WRITING = options(
    [
        pq.write_table, pq.ParquetWriter.__init__, pq.write_to_dataset, ds.write_dataset, fastparquet.write,
        pd.DataFrame.to_parquet,
    ]
)
READING = options(
    [
        pq.read_table, pq.ParquetFile.__init__, pq.ParquetFile.read, pq.ParquetDataset.__init__, fastparquet.ParquetFile.__init__,
        fastparquet.ParquetFile.to_pandas, pd.read_parquet,
    ]
)


def check(function: Callable[..., Any], name: str) -> None:
    found = ""
    try:
        function(**{name: None})
    except TypeError as error:
        found = str(error)
    except (fastpq.ParquetError, ValueError):
        pass        # the option is known, and None is no value for it
    assert found != f"unknown options: {name}"


@pytest.mark.parametrize("name", WRITING)
def test_writing(tmp_path: Path, name: str) -> None:
    check(lambda **given: fastpq.write_table(DATA, tmp_path / "file", **given), name)
    check(lambda **given: fastpq.write_dataset(DATA, tmp_path / "dataset", **given), name)


@pytest.mark.parametrize("name", READING)
def test_reading(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table(DATA), tmp_path / "file")
    check(lambda **given: fastpq.read_table(tmp_path / "file", **given), name)
    check(lambda **given: fastpq.read_dataset(tmp_path / "file", **given), name)
    check(lambda **given: fastpq.read_pandas(tmp_path / "file", **given), name)
    check(lambda **given: fastpq.ParquetFile(tmp_path / "file", **given).close(), name)
