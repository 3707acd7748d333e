"""Pages whose encoding writes several streams: ZSTD ends a block with each stream, and every reader takes such pages."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import fastpq
from fastpq.codecs.catalogue import is_compiled
from tests.interop.page_walk import pages

ROWS = 30_000
KEY = b"0123456789abcdef"

_RANDOM = np.random.default_rng(9)
_NOISE = _RANDOM.normal(0, 1, ROWS)
_TEXTS = [f"{'abcdefgh'[number % 8] * (number % 13)}/{number:x}" for number in _RANDOM.integers(0, 1 << 60, ROWS).tolist()]
COLUMNS: dict[str, tuple[str, Any]] = {
    "float": ("BYTE_STREAM_SPLIT", pa.array(_NOISE.astype("f4"))),
    "double": ("BYTE_STREAM_SPLIT", pa.array(_NOISE)),
    "int64": ("BYTE_STREAM_SPLIT", pa.array(_RANDOM.integers(0, 10**12, ROWS))),
    "nullable": ("BYTE_STREAM_SPLIT", pa.array(_NOISE, mask=_RANDOM.random(ROWS) < 0.2)),
    "lists": ("BYTE_STREAM_SPLIT", pa.array(_NOISE.reshape(-1, 6).tolist())),
    "lengths": ("DELTA_LENGTH_BYTE_ARRAY", pa.array(_TEXTS)),
    "prefixes": ("DELTA_BYTE_ARRAY", pa.array(sorted(_TEXTS))),
}


def written(name: str, **options: Any) -> bytes:
    encoding, values = COLUMNS[name]
    fastpq.write_table(
        pa.table({"x": values}), sink := io.BytesIO(), compression="zstd", column_encoding={"x": encoding}, **options
    )
    return sink.getvalue()


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("name", COLUMNS)
def test_every_reader_takes_divided_pages(name: str, version: Literal["1.0", "2.0"], tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(written(name, data_page_version=version, compression_level=3))
    values = COLUMNS[name][1].to_pylist()
    assert fastpq.read_table(path)["x"].to_pylist() == values
    assert pq.read_table(path)["x"].to_pylist() == values
    assert pl.read_parquet(path)["x"].to_list() == values
    assert [row[0] for row in duckdb.read_parquet(str(path)).fetchall()] == values
    assert fastpq.verify_file(path).is_sound


@pytest.mark.skipif(not is_compiled("zstd"), reason="the package compresses pages whole")
@pytest.mark.parametrize("name", ["float", "double", "lengths"])
def test_divided_pages_are_smaller_and_one_frame(name: str, tmp_path: Path) -> None:
    """Each page is one frame with its content size, smaller than the same page without division."""
    path = tmp_path / "file.parquet"
    path.write_bytes(written(name))
    for page in pages(path):
        assert zstandard.get_frame_parameters(page.body).content_size == page.plain_size
        plain = zstandard.ZstdDecompressor().decompress(page.body, allow_extra_data=False)
        whole = zstandard.ZstdCompressor(level=1).compress(plain)
        assert len(page.body) < len(whole) * (0.96 if name == "float" else 1)


@pytest.mark.parametrize("rows", [1, 7, 1023, 1024, 1025])
def test_small_pages_are_not_divided(rows: int) -> None:
    for values in (np.arange(rows) / 7, np.arange(rows).astype("f4")):
        fastpq.write_table({"x": values}, sink := io.BytesIO(), compression="zstd", column_encoding={"x": "BYTE_STREAM_SPLIT"})
        assert pq.read_table(sink)["x"].to_pylist() == values.tolist()


@pytest.mark.parametrize("width", [3, 62, 63, 64, 65, 200])
def test_values_of_any_width(width: int) -> None:
    values = pa.array([_RANDOM.bytes(width) for _ in range(2000)], pa.binary(width))
    sink = io.BytesIO()
    fastpq.write_table(pa.table({"x": values}), sink, compression="zstd", column_encoding={"x": "BYTE_STREAM_SPLIT"})
    assert pq.read_table(sink)["x"].to_pylist() == values.to_pylist()


def test_encrypted_pages() -> None:
    keys = fastpq.FileEncryptionProperties(KEY)
    data = written("double", encryption_properties=keys)
    table = fastpq.read_table(data, decryption_properties=fastpq.FileDecryptionProperties(KEY))
    assert table["x"].to_pylist() == _NOISE.tolist()
