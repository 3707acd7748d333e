"""Encrypted files exchanged with pyarrow, Polars and parquet-java, both ways, with explicit keys."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
from tests.interop.parquet_java import ParquetJava, explicit_keys

ROWS = 5_000
PRICE_KEY = b"the price's  key"
NAME_KEY = b"the name's key, which has 32 byte"[:32]


def columns() -> dict[str, Any]:
    index = np.arange(ROWS)
    return {
        "id": index,
        "price": np.ma.masked_array(index / 4, mask=index % 3 == 0),
        "name": np.array([None if i % 5 == 0 else f"name {i % 7}" for i in range(ROWS)], dtype=object),
    }


def expected() -> pa.Table:
    index = np.arange(ROWS)
    return pa.table(
        {
            "id": pa.array(index),
            "price": pa.array(index / 4, mask=index % 3 == 0),
            "name": pa.array(columns()["name"].tolist(), pa.string()),
        }
    )


def assert_expected(table: Any) -> None:
    assert pa.table(table).select(["id", "price", "name"]).cast(expected().schema).equals(expected())


def lines() -> str:
    table = expected().to_pydict()
    rows = zip(table["id"], table["price"], table["name"], strict=True)
    return "".join("\t".join("null" if value is None else str(value) for value in row) + "\n" for row in rows)


FOOTER_KEYS = {128: b"0123456789012345", 192: b"012345678901234567890123", 256: b"01234567890123456789012345678901"}
SELECTIONS = {
    "uniform": {},
    "by column": {"price": PRICE_KEY, "name": NAME_KEY},
}


POLARS_BITS = (128, 256)      # Polars has no keys of 192 bits


@pytest.fixture(params=SELECTIONS, scope="module")
def column_keys(request: pytest.FixtureRequest) -> dict[str, bytes]:
    return SELECTIONS[request.param]


@pytest.fixture(params=FOOTER_KEYS, scope="module")
def footer_key(request: pytest.FixtureRequest) -> bytes:
    return FOOTER_KEYS[request.param]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, footer_key: bytes, column_keys: dict[str, bytes]) -> Path:
    """Written by fastpq: several row groups and pages, dictionaries among them."""
    path = tmp_path_factory.mktemp("exchange") / "fastpq.parquet"
    write(path, footer_key, column_keys)
    return path


def write(path: Path, footer_key: bytes, column_keys: dict[str, bytes]) -> None:
    fastpq.write_table(
        columns(),
        path,
        row_group_size=2_000,
        data_page_rows=300,
        encryption_properties=fastpq.FileEncryptionProperties(footer_key, column_keys),
    )


def test_parquet_java_reads(file: Path, footer_key: bytes, column_keys: dict[str, bytes], parquet_java: ParquetJava) -> None:
    assert explicit_keys(parquet_java, "read", file, footer_key, column_keys) == lines()


@pytest.mark.parametrize("bits", POLARS_BITS)
def test_polars_reads(tmp_path: Path, bits: int, column_keys: dict[str, bytes]) -> None:
    path, footer_key = tmp_path / "fastpq.parquet", FOOTER_KEYS[bits]
    write(path, footer_key, column_keys)
    with warnings.catch_warnings(action="ignore"):      # Polars calls its encryption unstable
        keys = pl.ParquetDecryptionProperties(footer_key=footer_key, column_keys=column_keys)
        assert_expected(pl.read_parquet(path, decryption=keys).to_arrow())


def test_pyarrow_reads(file: Path, footer_key: bytes, column_keys: dict[str, bytes]) -> None:
    keys = pe.create_decryption_properties(footer_key)
    names = ["id"] if column_keys else ["id", "price", "name"]     # pyarrow takes no explicit column keys
    table = pq.read_table(file, columns=names, decryption_properties=keys)
    assert table.cast(expected().select(names).schema).equals(expected().select(names))


def test_reads_parquet_java(tmp_path: Path, footer_key: bytes, column_keys: dict[str, bytes], parquet_java: ParquetJava) -> None:
    path = tmp_path / "java.parquet"
    explicit_keys(parquet_java, "write", path, footer_key, column_keys, str(ROWS))
    assert_expected(fastpq.read_table(path, decryption_properties=fastpq.FileDecryptionProperties(footer_key, column_keys)))


@pytest.mark.parametrize("bits", POLARS_BITS)
def test_reads_polars(tmp_path: Path, bits: int, column_keys: dict[str, bytes]) -> None:
    path, footer_key = tmp_path / "polars.parquet", FOOTER_KEYS[bits]
    with warnings.catch_warnings(action="ignore"):
        keys = pl.ParquetEncryptionProperties(footer_key=footer_key, column_keys=column_keys)
        pl.DataFrame(pl.from_arrow(expected())).write_parquet(path, encryption=keys)
    assert_expected(fastpq.read_table(path, decryption_properties=fastpq.FileDecryptionProperties(footer_key, column_keys)))


@pytest.mark.parametrize("data_page_version", ["1.0", "2.0"])
def test_reads_pyarrow(tmp_path: Path, footer_key: bytes, data_page_version: Any) -> None:
    path = tmp_path / "pyarrow.parquet"
    keys = pe.create_encryption_properties(footer_key)
    pq.write_table(expected(), path, encryption_properties=keys, data_page_version=data_page_version, row_group_size=2_000)
    assert_expected(fastpq.read_table(path, decryption_properties=fastpq.FileDecryptionProperties(footer_key)))


def test_without_a_column_key_the_rest_is_there(tmp_path: Path) -> None:
    path = tmp_path / "partial.parquet"
    footer_key = FOOTER_KEYS[128]
    keys = fastpq.FileEncryptionProperties(footer_key, SELECTIONS["by column"])
    fastpq.write_table(columns(), path, encryption_properties=keys)
    with fastpq.ParquetFile(path, decryption_properties=fastpq.FileDecryptionProperties(footer_key)) as partial:
        assert [column.name for column in partial.schema.columns] == ["id", "price", "name"]
        assert partial.metadata.num_rows == ROWS
        assert (partial.read(["id"])["id"].to_numpy() == np.arange(ROWS)).all()
        with pytest.raises(fastpq.KeyAccessError, match="price"):
            partial.read(["price"])
        with pytest.raises(fastpq.KeyAccessError, match="name"):
            _ = partial.metadata.row_group(0).column(2).num_values
        assert repr(partial.metadata.row_group(0).column(2)) == "<ColumnChunkMetaData name: encrypted>"
        assert partial.metadata.row_group(0).column(0).num_values == ROWS
    with pytest.raises(fastpq.KeyAccessError, match="encrypted"):
        fastpq.read_table(path)
    with pytest.raises(fastpq.TagVerificationError):
        fastpq.read_table(path, decryption_properties=fastpq.FileDecryptionProperties(b"x" * 16))


def test_nothing_in_a_page_or_a_name_s_statistics_is_in_the_clear(tmp_path: Path) -> None:
    path = tmp_path / "secret.parquet"
    secret = b"a very secret value"
    values = {"plain": np.arange(10), "secret": np.array([secret.decode()] * 10, dtype=object)}
    keys = fastpq.FileEncryptionProperties(FOOTER_KEYS[128], {"secret": NAME_KEY})
    fastpq.write_table(values, path, compression="none", encryption_properties=keys)
    stored = path.read_bytes()
    assert secret not in stored
    assert stored[:4] == stored[-4:] == b"PARE"


@pytest.mark.parametrize("position", range(0, 100, 3))
def test_a_flipped_bit_is_refused(tmp_path: Path, position: int) -> None:
    path = tmp_path / "tampered.parquet"
    keys = FOOTER_KEYS[128]
    fastpq.write_table({"a": np.arange(100)}, path, encryption_properties=fastpq.FileEncryptionProperties(keys))
    stored = bytearray(path.read_bytes())
    stored[8 + position * (len(stored) - 16) // 100] ^= 0x10
    decryption = fastpq.FileDecryptionProperties(keys)
    with (
        pytest.raises(fastpq.ParquetError) as raised,
        fastpq.ParquetFile(
            bytes(stored), decryption_properties=decryption, properties=fastpq.ReaderProperties(verify_checksums=False)
        ) as file,
    ):
        file.read()
        file.column_index(0, "a")
    assert keys.decode() not in str(raised.value)
    assert keys.hex() not in str(raised.value)
