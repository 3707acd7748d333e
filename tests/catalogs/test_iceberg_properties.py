"""Parquet files of Iceberg tables: fastpq and pyarrow read each other's, and refuse what is not the file of the key metadata."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.catalogs.iceberg import StandardKeyMetadata, file_properties
from fastpq.encryption import AuditLog

KEYS = {16: b"0123456789abcdef", 24: b"0123456789abcdef01234567", 32: b"0123456789abcdef" * 2}
PREFIX = b"prefix of a file"
TABLE = pa.table({"id": pa.array(range(1000), pa.int64()), "name": [f"name {i % 7}" for i in range(1000)]})
FIELD_IDS = {"id": 1, "name": 2}


@pytest.mark.parametrize("prefix", [PREFIX, None, b""])
@pytest.mark.parametrize("size", KEYS)
def test_pyarrow_reads_what_fastpq_writes(size: int, prefix: bytes | None, tmp_path: Path) -> None:
    pe = pytest.importorskip("pyarrow.parquet.encryption")
    metadata = StandardKeyMetadata(KEYS[size], aad_prefix=prefix)
    path = tmp_path / "file.parquet"
    fastpq.write_table(TABLE, path, encryption_properties=file_properties(metadata).encryption, field_ids=FIELD_IDS)
    keys = pe.create_decryption_properties(KEYS[size], **({"aad_prefix": prefix} if prefix else {}))
    table = pq.read_table(path, decryption_properties=keys)
    assert table.equals(TABLE)
    assert [field.metadata[b"PARQUET:field_id"] for field in table.schema] == [b"1", b"2"]
    assert path.read_bytes()[-4:] == b"PARE"
    assert PREFIX not in path.read_bytes()


@pytest.mark.parametrize("prefix", [PREFIX, None])
@pytest.mark.parametrize("size", [16, 32])      # Polars knows no keys of 24 bytes
def test_polars_reads_what_fastpq_writes(size: int, prefix: bytes | None, tmp_path: Path) -> None:
    metadata = StandardKeyMetadata(KEYS[size], aad_prefix=prefix)
    path = tmp_path / "file.parquet"
    fastpq.write_table(TABLE, path, encryption_properties=file_properties(metadata).encryption, field_ids=FIELD_IDS)
    with warnings.catch_warnings(action="ignore"):      # Polars calls its encryption unstable
        keys = pl.ParquetDecryptionProperties(footer_key=KEYS[size], aad_prefix=prefix)
        assert pl.read_parquet(path, decryption=keys).to_arrow().cast(TABLE.schema).equals(TABLE)


@pytest.mark.parametrize("prefix", [PREFIX, None])
@pytest.mark.parametrize("size", KEYS)
def test_fastpq_reads_what_pyarrow_writes(size: int, prefix: bytes | None, tmp_path: Path) -> None:
    pe = pytest.importorskip("pyarrow.parquet.encryption")
    options = {"aad_prefix": prefix, "store_aad_prefix": False} if prefix else {}
    pq.write_table(TABLE, tmp_path / "file.parquet", encryption_properties=pe.create_encryption_properties(KEYS[size], **options))
    encoded = StandardKeyMetadata(KEYS[size], aad_prefix=prefix).to_bytes()
    keys = file_properties(encoded).decryption
    assert pa.table(fastpq.read_table(tmp_path / "file.parquet", decryption_properties=keys)).equals(TABLE)


def test_other_files_are_refused(tmp_path: Path) -> None:
    metadata = StandardKeyMetadata(KEYS[16], aad_prefix=PREFIX)
    keys = file_properties(metadata).decryption
    path = tmp_path / "file.parquet"
    other = file_properties(StandardKeyMetadata(KEYS[16], aad_prefix=b"another file....")).encryption
    fastpq.write_table(TABLE, path, encryption_properties=other)
    with pytest.raises(fastpq.TagVerificationError):
        fastpq.read_table(path, decryption_properties=keys)
    fastpq.write_table(TABLE, path)
    with pytest.raises(fastpq.CryptoError, match="plaintext"):
        fastpq.read_table(path, decryption_properties=keys)
    ctr = fastpq.FileEncryptionProperties(KEYS[16], aad_prefix=PREFIX, store_aad_prefix=False, algorithm="AES_GCM_CTR_V1")
    fastpq.write_table(TABLE, path, encryption_properties=ctr)
    with pytest.raises(fastpq.CryptoError, match="allowed_algorithms"):
        fastpq.read_table(path, decryption_properties=keys)


def test_properties_hide_the_key_and_reach_the_audit(tmp_path: Path) -> None:
    records: list[object] = []
    properties = file_properties(StandardKeyMetadata.generate(), audit=AuditLog(records.append))
    fastpq.write_table(TABLE, tmp_path / "file.parquet", encryption_properties=properties.encryption)
    fastpq.read_table(tmp_path / "file.parquet", decryption_properties=properties.decryption)
    assert len(records) >= 2
    properties = file_properties(StandardKeyMetadata(KEYS[16], aad_prefix=PREFIX))
    assert "123456789abcdef" not in repr(properties)
    with pytest.raises(TypeError, match="cannot be copied"):
        pickle.dumps(properties)
    with pytest.raises(TypeError, match="bytes or StandardKeyMetadata"):
        file_properties("0123456789abcdef")  # type: ignore[arg-type]
    with pytest.raises(fastpq.FormatError):
        file_properties(b"\x01")
