"""Footers whose column chunks are in other files: ``_metadata`` as pyarrow and Dask write it, and ``_common_metadata``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from tests.interop.comparison import assert_same

PARTS = ["part-0.parquet", "year=2026/part 1.parquet"]


def table_of(part: int) -> pa.Table:
    rows = np.arange(part * 1000, part * 1000 + 1000)
    return pa.table({"id": rows, "text": [f"t{row}" for row in rows], "list": [[row] * (row % 3) for row in rows]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    metadata = []
    for number, name in enumerate(PARTS):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(table_of(number), tmp_path / name, row_group_size=400, write_page_index=True)
        found = pq.read_metadata(tmp_path / name)
        found.set_file_path(name)
        metadata.append(found)
    pq.write_metadata(table_of(0).schema, tmp_path / "_metadata", metadata)
    pq.write_metadata(table_of(0).schema, tmp_path / "_common_metadata")
    return tmp_path


TRUTH = pa.concat_tables([table_of(0), table_of(1)])


@pytest.mark.parametrize("memory_map", [True, False])
def test_chunks_in_other_files(folder: Path, memory_map: bool) -> None:
    with fastpq.ParquetFile(folder / "_metadata", memory_map=memory_map) as file:
        assert file.metadata.num_row_groups == 6
        assert file.metadata.row_group(5).column(0).file_path == PARTS[1]
        before = file.io.bytes_read
        assert_same(pa.table(file.read()), TRUTH)
        assert file.io.bytes_read > before + 1000
        assert_same(pa.concat_tables([pa.table(batch) for batch in file.iter_batches(333)]), TRUTH)
        found = file.read(["text", "list"], filters=[("id", ">=", 1995)])
        assert_same(pa.table(found), TRUTH.slice(1995).select(["text", "list"]))
        assert file.count([("id", "<", 1001)]) == 1001
        assert file.take([1999, 3], ["text"])["text"].to_pylist() == ["t1999", "t3"]
        assert file.offset_index(0, "id") is None
        assert file.bloom_filter(0, "id") is None
    assert fastpq.read_schema(folder / "_common_metadata").names == ("id", "text", "list")
    assert fastpq.read_table(folder / "_common_metadata").num_rows == 0


def test_a_bloom_filter_is_not_taken_from_another_file(tmp_path: Path) -> None:
    """Both files are alike but for their values, so that there is a filter of other values in the footer's own file."""
    parts = [np.arange(first, 10_000, 2) for first in (0, 1)]
    footers = []
    for name, values in zip(("own", "other"), parts, strict=True):
        options: dict[str, Any] = {"compression": "none", "use_dictionary": False}
        fastpq.write_table({"id": values}, tmp_path / name, bloom_filter={"id": True}, **options)
        data = (tmp_path / name).read_bytes()
        footers.append(fmt.decode(fmt.FileMetaData, data[-8 - int.from_bytes(data[-8:-4], "little") : -8])[0])
    whole, other = footers
    other.row_groups[0].columns[0].file_path = "other"
    whole.row_groups.append(other.row_groups[0])
    whole.num_rows *= 2
    stored = fmt.encode(whole)
    with (tmp_path / "own").open("ab") as file:
        file.write(stored + len(stored).to_bytes(4, "little") + b"PAR1")
    for value in (4242, 4243):
        assert fastpq.read_table(tmp_path / "own", filters=[("id", "==", value)])["id"].to_pylist() == [value]


def test_by_url(folder: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(folder), "/metadata_files", recursive=True)
    try:
        assert_same(pa.table(fastpq.read_table("memory://metadata_files/_metadata")), TRUTH)
        memory.rm("/metadata_files/part-0.parquet")
        with pytest.raises(fastpq.FormatError, match="does not exist"):
            fastpq.read_table("memory://metadata_files/_metadata")
    finally:
        memory.rm("/metadata_files", recursive=True)


def test_a_buffer_has_no_files_beside_it(folder: Path) -> None:
    with pytest.raises(fastpq.UnsupportedError, match="path"):
        fastpq.read_table((folder / "_metadata").read_bytes())


def test_a_missing_or_shortened_file(folder: Path) -> None:
    path = folder / PARTS[1]
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(fastpq.FormatError, match="outside the file"):
        fastpq.read_table(folder / "_metadata")
    table, report = fastpq.recover_table(folder / "_metadata", on_error="skip")
    assert_same(pa.table(table), TRUTH.slice(0, 1000))
    assert {loss.row_group for loss in report.losses} == {3, 4, 5}
    path.unlink()
    with pytest.raises(fastpq.FormatError, match="does not exist"):
        fastpq.read_table(folder / "_metadata")
    table, report = fastpq.recover_table(folder / "_metadata", on_error="skip")
    assert_same(pa.table(table), TRUTH.slice(0, 1000))
    assert all("does not exist" in str(loss) for loss in report.losses)


@pytest.mark.parametrize("path", ["../outside.parquet", "{parent}/outside.parquet", "sub/../../outside.parquet", "link.parquet"])
def test_paths_do_not_lead_out(tmp_path: Path, path: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "sub").mkdir()
    pq.write_table(table_of(0), tmp_path / "outside.parquet")
    os.symlink(tmp_path / "outside.parquet", inside / "link.parquet")
    metadata = pq.read_metadata(tmp_path / "outside.parquet")
    metadata.set_file_path(path.format(parent=tmp_path))
    pq.write_metadata(table_of(0).schema, inside / "_metadata", [metadata])
    with pytest.raises(fastpq.FormatError, match="allow_outside_files"):
        fastpq.read_table(inside / "_metadata")
    allowed = fastpq.ReaderProperties(allow_outside_files=True)
    assert_same(pa.table(fastpq.read_table(inside / "_metadata", properties=allowed)), table_of(0))
    if path.startswith(".."):
        memory = fsspec.filesystem("memory")
        memory.put(str(inside / "_metadata"), "/inside/_metadata")
        with pytest.raises(fastpq.FormatError, match="allow_outside_files"):
            fastpq.read_table("memory://inside/_metadata")
        memory.rm("/inside", recursive=True)
