"""use_content_defined_chunking: versions of a table share their pages, as much as pyarrow's do, with every encoding."""

from __future__ import annotations

import hashlib
import io
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.narrowing import present

ROWS = 60_000
SIZES = {"min_chunk_size": 8 << 10, "max_chunk_size": 32 << 10}
KEY = b"0" * 16


def rows() -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table(
        {
            "id": np.arange(ROWS) * 7,
            "x": random.random(ROWS),
            "kind": [f"kind {number}" for number in random.integers(0, 50, ROWS)],
            "text": [f"text number {number}" for number in random.integers(0, 1 << 40, ROWS)],
            "maybe": [None if row % 5 == 0 else number for row, number in enumerate(random.integers(0, 1 << 50, ROWS).tolist())],
            "list": [[number] * (number % 3) if number % 11 else None for number in random.integers(0, 1 << 50, ROWS).tolist()],
            "flag": random.random(ROWS) > 0.5,
        }
    )


def versions(table: pa.Table) -> dict[str, pa.Table]:
    return {
        "insert": pa.concat_tables([table.slice(0, 20_000), table.slice(0, 20), table.slice(20_000)]),
        "delete": pa.concat_tables([table.slice(0, 10_000), table.slice(10_050)]),
        "append": pa.concat_tables([table, table.slice(5, 500)]),
    }


def pages(data: bytes) -> dict[bytes, int]:
    """The stored bytes of each page, by hash."""
    sizes: dict[bytes, int] = {}
    with fastpq.ParquetFile(data) as file:
        for group in range(file.num_row_groups):
            for number in range(file.metadata.num_columns):
                index = present(file.offset_index(group, number))
                start = file.metadata.row_group(group).column(number).byte_range[0]
                bounds = [(start, int(index.offsets[0]) - start), *zip(index.offsets.tolist(), index.sizes.tolist(), strict=True)]
                for place, size in bounds:
                    sizes[hashlib.sha256(data[place : place + size]).digest()] = size
    return sizes


def shares(write: Any) -> dict[str, float]:
    """How much of each version is in the first one."""
    old = pages(write(rows()))
    parts = {name: (write(table), name) for name, table in versions(rows()).items()}
    return {name: sum(size for key, size in pages(data).items() if key in old) / len(data) for data, name in parts.values()}


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    fastpq.write_table(table, out, use_content_defined_chunking=SIZES, **options)
    return out.getvalue()


def of_pyarrow(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, use_content_defined_chunking=SIZES, write_page_index=True, **options)
    return out.getvalue()


@pytest.mark.parametrize("options", [{}, {"compression": "zstd"}, {"use_dictionary": False}, {"data_page_version": "2.0"}])
def test_versions_share_what_those_of_pyarrow_share(options: dict[str, Any]) -> None:
    ours = shares(lambda table: written(table, **options))
    theirs = shares(lambda table: of_pyarrow(table, **options))
    assert all(ours[name] >= theirs[name] - 0.02 for name in ours), (ours, theirs)
    assert min(ours.values()) > 0.7


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize(
    "encodings",
    [
        {"id": "DELTA_BINARY_PACKED", "x": "BYTE_STREAM_SPLIT", "text": "DELTA_BYTE_ARRAY", "flag": "RLE"},
        {"id": "BYTE_STREAM_SPLIT", "text": "DELTA_LENGTH_BYTE_ARRAY", "kind": "PLAIN", "maybe": "RLE_DICTIONARY"},
        {},
    ],
)
def test_strangers_read(tmp_path: Any, encodings: dict[str, str], version: Any) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(written(rows(), column_encoding=encodings, data_page_version=version, row_group_size=25_000))
    expected = rows()
    assert pa.table(fastpq.read_table(path)).to_pylist() == expected.to_pylist()
    assert pq.read_table(path).to_pylist() == expected.to_pylist()
    assert pl.read_parquet(path).to_arrow().to_pylist() == expected.to_pylist()
    assert present(duckdb.sql(f"select sum(id), count(maybe) from '{path}'")).fetchall() == [
        (7 * ROWS * (ROWS - 1) // 2, ROWS - expected["maybe"].null_count)
    ]
    assert fastpq.verify_file(path).is_sound
    with fastpq.ParquetFile(path) as file:
        sizes = present(file.offset_index(1, "x")).row_counts[:-1] * 8
        assert len(sizes) > 5
        assert len(set(sizes.tolist())) > 3     # pages end where the values say so
        assert sizes.max() <= SIZES["max_chunk_size"] + 8
    assert fastpq.read_table(path, filters=[("id", "==", 70_007)]).num_rows == 1


def test_nulls_elsewhere_move_no_page_of_a_struct() -> None:
    """The levels of a row are part of the hash, whether other rows are null or not."""
    table = rows()
    structs = pa.StructArray.from_arrays([table["x"].combine_chunks()], names=["x"])
    sound = pa.table({"structs": structs})
    row_counts = []
    for each in (sound, pa.concat_tables([sound, pa.table({"structs": pa.array([None], structs.type)})])):
        with fastpq.ParquetFile(written(each, use_dictionary=False)) as file:
            row_counts.append(present(file.offset_index(0, 0)).row_counts.tolist())
    without_null, with_null = row_counts
    assert len(without_null) > 5
    assert with_null[:len(without_null) - 1] == without_null[:-1]


def test_wrong_options() -> None:
    table = {"a": np.arange(10)}
    for wrong in ({"min_chunk_size": 0}, {"min_chunk_size": 1 << 20}, {"nope": 1}, {"norm_level": 30}):
        with pytest.raises(ValueError, match=r"chunk|norm_level|pages"):
            fastpq.write_table(table, io.BytesIO(), use_content_defined_chunking=wrong)
    with pytest.raises(TypeError):
        fastpq.write_table(table, io.BytesIO(), use_content_defined_chunking=5)     # type: ignore[arg-type]
    fastpq.write_table(table, io.BytesIO(), use_content_defined_chunking=False)
    fastpq.write_table({"a": np.arange(0)}, io.BytesIO(), use_content_defined_chunking=True)
    keys = fastpq.FileEncryptionProperties(KEY)
    with pytest.raises(fastpq.SchemaError, match="nonce"):
        fastpq.write_table(table, io.BytesIO(), use_content_defined_chunking=True, encryption_properties=keys)
