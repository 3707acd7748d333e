"""Indexes that fastpq writes, plaintext and encrypted, spare their readers pages: every page that is not needed is destroyed."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import fastpq
from tests.interop.parquet_java import ParquetJava, explicit_keys
from tests.requirements import peer

ROWS, PAGE_ROWS, GROUP_ROWS = 4000, 200, 2000
FOOTER_KEY, ID_KEY = b"0123456789012345", b"1234567890123450"
WANTED, ABSENT = 3 * 1234, 3 * 1234 + 1

PROTECTION: dict[str, fastpq.FileEncryptionProperties | None] = {
    "plaintext": None,
    "uniform": fastpq.FileEncryptionProperties(FOOTER_KEY),
    "by column": fastpq.FileEncryptionProperties(FOOTER_KEY, column_keys={"id": ID_KEY, "name": ID_KEY}),
    "plaintext footer": fastpq.FileEncryptionProperties(
        FOOTER_KEY, column_keys={"id": ID_KEY}, plaintext_footer=True, unlisted="plaintext"
    ),
    "counter mode": fastpq.FileEncryptionProperties(FOOTER_KEY, algorithm="AES_GCM_CTR_V1"),
}
COLUMN_KEYS = {"by column": {"id": ID_KEY, "name": ID_KEY}, "plaintext footer": {"id": ID_KEY}}
DECRYPTION = fastpq.FileDecryptionProperties(
    footer_key=FOOTER_KEY,
    column_keys={"id": ID_KEY, "name": ID_KEY},
    allow_plaintext_files=True,
    allowed_algorithms=("AES_GCM_V1", "AES_GCM_CTR_V1"),
    allow_weaker_columns=True,      # one set of keys for files of every protection
)


def write(path: Path, protection: str, version: Literal["1.0", "2.0"], use_dictionary: bool) -> None:
    rows = np.arange(ROWS)
    fastpq.write_table(
        {"id": rows * 3, "price": rows / 4, "name": np.char.mod("name %d", rows // 10)},
        path,
        row_group_size=GROUP_ROWS,
        data_page_rows=PAGE_ROWS,
        data_page_version=version,
        column_encoding={"id": "RLE_DICTIONARY"} if use_dictionary else {},
        use_dictionary=use_dictionary,
        bloom_filter={"id": True},
        encryption_properties=PROTECTION[protection],
    )


def destroy(path: Path, kept: int | None) -> None:
    """Overwrite every data page but those that hold row kept."""
    data = bytearray(path.read_bytes())
    with fastpq.ParquetFile(path, decryption_properties=DECRYPTION) as file:
        for group in range(file.num_row_groups):
            for column in file.schema.columns:
                index = file.offset_index(group, column.index)
                assert index is not None
                assert index.num_pages == GROUP_ROWS // PAGE_ROWS
                for page, location in enumerate(index.page_locations):
                    if kept is None or (group, page) != (kept // GROUP_ROWS, kept % GROUP_ROWS // PAGE_ROWS):
                        end = location.offset + location.compressed_page_size
                        data[location.offset : end] = b"\xff" * location.compressed_page_size
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("protection", "version", "use_dictionary"),
    [*((protection, "1.0", False) for protection in PROTECTION), ("plaintext", "2.0", False), ("by column", "1.0", True)],
)
def test_we_and_parquet_java_skip_pages(
    protection: str, version: Literal["1.0", "2.0"], use_dictionary: bool, tmp_path: Path, parquet_java: ParquetJava
) -> None:
    path = tmp_path / "data.parquet"
    write(path, protection, version, use_dictionary)
    destroy(path, WANTED // 3)
    with fastpq.ParquetFile(path, decryption_properties=DECRYPTION) as file:
        assert file.read(filters=[("id", "==", WANTED)]).to_pylist() == [{"id": WANTED, "price": 308.5, "name": "name 123"}]
        with pytest.raises(fastpq.ParquetError):
            file.read()
    keys = {} if protection in ("plaintext", "uniform", "counter mode") else COLUMN_KEYS[protection]
    footer_key = None if protection == "plaintext" else FOOTER_KEY
    found = explicit_keys(parquet_java, "find", path, footer_key, keys, str(WANTED))
    assert found == f"{WANTED}\t308.5\tname 123\n"
    # neither statistics nor the column index tell that this one is not there: the bloom filter or the dictionary does
    destroy(path, None)
    assert explicit_keys(parquet_java, "find", path, footer_key, keys, str(ABSENT)) == ""


def test_datafusion_skips_pages(tmp_path: Path) -> None:
    datafusion = peer("datafusion")
    path = tmp_path / "data.parquet"
    write(path, "plaintext", "1.0", False)
    destroy(path, WANTED // 3)
    context = datafusion.SessionContext()
    context.register_parquet("data", str(path))
    found = context.sql(f"SELECT price, name FROM data WHERE id = {WANTED}").to_pydict()
    assert found == {"price": [308.5], "name": ["name 123"]}
    with pytest.raises(Exception, match=r"(?i)parquet|arrow"):
        context.sql("SELECT sum(price) FROM data").to_pydict()
