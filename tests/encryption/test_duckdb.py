"""DuckDB reads files of the documentation's recipe, others rightly or not at all; files of DuckDB are read as encrypted ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.io.origin import StoredBytes
from fastpq.io.source_opening import open_source
from fastpq.read.fetch import fetch_chunks
from fastpq.read.plan import plan_read
from tests.requirements import peer

duckdb = peer("duckdb")

ROWS = 250_000
RECIPE: dict[str, Any] = {
    "row_group_size": 100_000,
    "data_page_rows": 100_000,
    "data_page_size": 1 << 30,
    "dictionary_page_size": 1 << 30,
}


def columns() -> dict[str, Any]:
    rows = np.arange(ROWS)
    return {
        "id": rows,
        "price": np.ma.masked_array(rows / 4, mask=rows % 3 == 0),
        "name": np.array([f"name {row % 50_000}" for row in rows], dtype=object),
        "day": (rows % 1000).astype("datetime64[D]"),
    }


def duckdb_reads(path: Path, key: bytes) -> Any:
    blob = "".join(f"\\x{byte:02X}" for byte in key)
    source = f"read_parquet('{path}', encryption_config={{footer_key_value: '{blob}'::BLOB}})"
    return duckdb.sql(f"SELECT * FROM {source}").to_arrow_table()


@pytest.mark.parametrize("use_dictionary", [True, False])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("size", [16, 24, 32])
def test_the_recipe(tmp_path: Path, size: int, compression: str, use_dictionary: bool) -> None:
    path, key = tmp_path / "file.parquet", os.urandom(size)
    keys = fastpq.FileEncryptionProperties(key)
    options = RECIPE | {"compression": compression, "use_dictionary": use_dictionary}
    fastpq.write_table(columns(), path, encryption_properties=keys, **options)
    assert_columns(duckdb_reads(path, key))


def assert_columns(table: Any) -> None:
    expected = columns()
    assert table["id"].to_numpy().tolist() == expected["id"].tolist()
    assert table["price"].to_pylist() == expected["price"].tolist()
    assert table["name"].to_pylist() == expected["name"].tolist()
    assert (table["day"].to_numpy().astype("datetime64[D]") == expected["day"]).all()


@pytest.mark.parametrize("options", [{"data_page_rows": 50_000}, {"data_page_version": "2.0"}], ids=str)
def test_without_the_recipe(tmp_path: Path, options: dict[str, Any]) -> None:
    path, key = tmp_path / "file.parquet", os.urandom(16)
    fastpq.write_table(columns(), path, encryption_properties=fastpq.FileEncryptionProperties(key), **(RECIPE | options))
    try:
        table = duckdb_reads(path, key)
    except duckdb.Error:                        # version 2.0.1 reads data pages of version 2.0, 2.0.0 does not
        return
    assert_columns(table)


def test_chunks_of_duckdb_are_in_no_memory_of_others(tmp_path: Path) -> None:
    """DuckDB's chunks are encrypted without crypto metadata: their bytes are copied from a map before they are authenticated."""
    path, key = tmp_path / "file.parquet", os.urandom(8).hex().encode()      # 16 characters are a key of 16 bytes
    with duckdb.connect() as connection:
        connection.execute("SET force_mbedtls_unsafe = 'true'")
        connection.execute(f"PRAGMA add_parquet_key('key', '{key.decode()}')")
        config = "ENCRYPTION_CONFIG {footer_key: 'key'}, COMPRESSION uncompressed"
        connection.execute(f"COPY (SELECT range AS id, NULL::INT AS none FROM range(1000)) TO '{path}' ({config})")
    keys = fastpq.FileDecryptionProperties(key, allow_duckdb_dialect=True)
    with fastpq.ParquetFile(path, memory_map="keep", decryption_properties=keys) as file:
        chunks = [file.metadata.row_group(0).column(index) for index in range(2)]
        assert [chunk.is_encrypted for chunk in chunks] == [True, True]
        assert [chunk.chunk.crypto_metadata for chunk in chunks] == [None, None]
        plans = plan_read(file.metadata, file.schema.columns, None, path.stat().st_size).chunks
        with open_source(path, memory_map="keep") as source:
            assert source.gives_views
            assert all(isinstance(stored, StoredBytes) for stored in fetch_chunks(source, plans))
        assert file.read()["id"].to_numpy().tolist() == list(range(1000))
