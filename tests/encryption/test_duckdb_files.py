"""Files that fastpq writes in DuckDB's dialect of encryption (``for_reader="duckdb"``): DuckDB reads them, with filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from tests.requirements import peer

duckdb = peer("duckdb")

KEY = b"0123456789abcdef"
ROWS = 250_000
ONE_PAGE: dict[str, Any] = {
    "row_group_size": 100_000, "data_page_rows": 100_000, "data_page_size": 1 << 30, "dictionary_page_size": 1 << 30,
}
READING = fastpq.FileDecryptionProperties(KEY, allow_duckdb_dialect=True)


def properties(**options: Any) -> fastpq.FileEncryptionProperties:
    return fastpq.FileEncryptionProperties(KEY, for_reader="duckdb", **options)


def rows(count: int = ROWS) -> dict[str, Any]:
    return {
        "id": np.arange(count),
        "name": np.array([f"m{row}" if row % 5 else None for row in range(count)], object),
        "few": np.arange(count) % 10,
        "list": [[1, 2], []] * (count // 2),
    }


def by_duckdb(path: Path, condition: str) -> Any:
    blob = "".join(f"\\x{byte:02X}" for byte in KEY)
    config = f"{{footer_key_value: '{blob}'::BLOB}}"
    return answer(f"read_parquet('{path}', encryption_config={config})", condition)


def answer(source: str, condition: str) -> Any:
    return duckdb.sql(f"SELECT sum(id), count(name), sum(few), sum(list[2]) FROM {source} WHERE {condition}").fetchall()[0]


@pytest.mark.parametrize("options", [{}, {"compression": "zstd"}, {"use_dictionary": False}], ids=str)
def test_duckdb_reads_with_filters(tmp_path: Path, options: Any) -> None:
    path = tmp_path / "x.parquet"
    fastpq.write_table(rows(), path, encryption_properties=properties(), **ONE_PAGE, **options)
    plain = tmp_path / "plain.parquet"
    fastpq.write_table(rows(), plain)
    for condition in ("true", "id > 200000", "id = 5", "name = 'm17'", "few = 3 AND id % 2 = 1", "name IS NULL", "id < 0"):
        assert by_duckdb(path, condition) == answer(f"'{plain}'", condition), condition


@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0"}, {"bloom_filter": {"name": True}}, ONE_PAGE], ids=str)
def test_fastpq_reads_them_if_it_is_told(tmp_path: Path, options: Any) -> None:
    path = tmp_path / "x.parquet"
    fastpq.write_table(rows(10_000), path, encryption_properties=properties(), **options)
    table = fastpq.read_table(path, decryption_properties=READING)
    assert table.to_pylist() == fastpq.read_table(path, decryption_properties=READING, memory_map=True).to_pylist()
    assert table["id"].to_pylist() == list(range(10_000))
    with fastpq.ParquetFile(path, decryption_properties=READING) as file:
        assert file.read(["id"], filters=[("name", "==", "m17")])["id"].to_pylist() == [17]
    assert fastpq.verify_file(path, decryption_properties=READING).is_sound
    with pytest.raises(fastpq.UnsupportedError, match="allow_duckdb_dialect"):
        fastpq.read_table(path, decryption_properties=fastpq.FileDecryptionProperties(KEY))
    with pytest.raises(fastpq.CryptoError):
        fastpq.read_table(path, decryption_properties=fastpq.FileDecryptionProperties(b"f" * 16, allow_duckdb_dialect=True))


def test_files_are_rewritten_into_the_dialect(tmp_path: Path) -> None:
    plain, path, back = (tmp_path / name for name in ("plain.parquet", "x.parquet", "back.parquet"))
    fastpq.write_table(rows(), plain, **ONE_PAGE)
    fastpq.encrypt_file(plain, path, encryption_properties=properties())
    assert by_duckdb(path, "id > 200000") == answer(f"'{plain}'", "id > 200000")
    fastpq.decrypt_file(path, back, decryption_properties=READING)
    assert fastpq.read_table(back).to_pylist() == fastpq.read_table(plain).to_pylist()


@pytest.mark.parametrize(
    "options",
    [
        {"column_keys": {"id": b"f" * 16}}, {"plaintext_footer": True}, {"algorithm": "AES_GCM_CTR_V1"}, {"aad_prefix": b"x"},
        {"unlisted": "plaintext"}, {"footer_key_metadata": b"x"}, {"plaintext_columns": ["id"]},
    ],
    ids=str,
)
def test_what_the_dialect_does_not_have(options: Any) -> None:
    with pytest.raises(ValueError, match="takes a footer key alone") as raised:
        properties(**options)
    assert "ffff" not in str(raised.value)
    with pytest.raises(ValueError, match="for_reader must be one of"):
        fastpq.FileEncryptionProperties(KEY, for_reader="spark")        # type: ignore[arg-type]
