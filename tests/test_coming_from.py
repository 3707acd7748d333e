"""The tables "their call, ours" of the documentation: both sides run, and have the same results."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.format import Encoding
from tests.requirements import needs, peer
from tests.test_docs import PAGES, blocks, run

needs(peer("fastparquet"))

ROW = re.compile(r"^\| `(?P<theirs>.+)` \| `(?P<ours>.+)` \|$", re.MULTILINE)
FROM = ("from-pyarrow.md", "from-fastparquet.md")
WRITTEN = "out"     # the calls that write, write this


def rows() -> list[Any]:
    """(page, their call, our call)."""
    return [
        pytest.param(page, *calls, id=f"{page}-{calls[0]}") for page in FROM for calls in ROW.findall((PAGES / page).read_text())
    ]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[dict[str, Any], Path]]:
    """By page, the names that its examples make, and the folder with its files."""
    found: dict[str, tuple[dict[str, Any], Path]] = {}
    for page in FROM:
        namespace: dict[str, Any] = {}
        folder = tmp_path_factory.mktemp("coming")
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            for block in blocks(PAGES / page):
                run(PAGES / page, block, namespace)
        found[page] = namespace, folder
    return found


# fastparquet leaves files to the garbage collector
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("page", "theirs", "ours"), rows())
def test_same_results(
    settings: dict[str, tuple[dict[str, Any], Path]], page: str, theirs: str, ours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace, folder = settings[page]
    monkeypatch.chdir(folder)
    expected, found = done(theirs, namespace), done(ours, namespace)
    assert same(expected, found), f"{str(expected)[-300:]} is not {str(found)[-300:]}"


def test_there_are_rows() -> None:
    assert all(len(ROW.findall((PAGES / page).read_text())) >= 10 for page in FROM)


def done(call: str, namespace: dict[str, Any]) -> Any:
    """What a call returns; of one that writes, what stands in the file."""
    result = eval(call, dict(namespace))
    for path in map(Path, (f"{WRITTEN}.parquet", WRITTEN)):
        if path.exists():
            result = content(path, call, namespace)
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return result


def content(path: Path, call: str, namespace: dict[str, Any]) -> Any:
    """The rows of what was written; and, as far as the call says so, how."""
    if path.is_dir():
        frame = ds.dataset(path, partitioning="hive").to_table().to_pandas()
        return sorted(map(tuple, frame[["id", "price", "kind"]].astype({"kind": str}).to_numpy().tolist()))
    encrypted = path.read_bytes()[:4] == b"PARE"
    keys = fastpq.FileDecryptionProperties(namespace["key"]) if encrypted else None
    metadata = fastpq.read_metadata(path, decryption_properties=keys)
    group = metadata.row_group(0)
    chunks = [group.column(index) for index in range(3)]
    facts = {
        "compression": [chunk.codec for chunk in chunks],
        "row_group": metadata.num_row_groups,
        "sorting_columns": group.sorting_columns,
        "stat": [chunk.statistics is not None and chunk.statistics.has_min_max for chunk in chunks],
        "use_dictionary=[": [chunk.dictionary_page_offset is not None for chunk in chunks],
        "encoding": Encoding.DELTA_BINARY_PACKED in chunks[0].encodings,
        "encryption": encrypted,
    }
    table = fastpq.read_table(path, decryption_properties=keys).select(["id", "price", "kind"])
    return table.to_pylist(), {option: fact for option, fact in facts.items() if option in call}


def same(theirs: Any, ours: Any) -> bool:
    """Whether two results hold the same values."""
    if isinstance(theirs, np.ndarray):
        return np.array_equal(theirs, ours)
    if isinstance(theirs, list) and theirs and isinstance(theirs[0], pa.RecordBatch):
        return same(pa.Table.from_batches(theirs), fastpq.Table.concat(ours))
    if isinstance(theirs, pa.Table):
        return bool(theirs.to_pylist() == pa.table(ours).to_pylist())
    if isinstance(theirs, pd.DataFrame):
        pd.testing.assert_frame_equal(theirs, ours, check_dtype=False, check_index_type=False)
        return True
    return bool(theirs == ours)


def test_the_schema_is_kept_as_they_keep_it(tmp_path: Path) -> None:
    """``arrow_schema=True`` is ``store_schema=True``."""
    table = pa.table({"at": pa.array([0], pa.timestamp("ms", "Europe/Berlin"))})
    fastpq.write_table(table, tmp_path / "ours.parquet", arrow_schema=True)
    assert pq.read_table(tmp_path / "ours.parquet").schema.field("at").type == table.schema.field("at").type
