"""Filtered reads of encrypted files: encrypted indexes and bloom filters prune, and whoever alters them is noticed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from tests.interop.parquet_java import ParquetJava, explicit_keys
from tests.narrowing import present
from tests.requirements import DATA, needs_data

FOOTER_KEY, ID_KEY = b"0123456789012345", b"1234567890123450"
ROWS, PAGE_ROWS = 12_345, 1000


def keys(*columns: str) -> fastpq.FileDecryptionProperties:
    return fastpq.FileDecryptionProperties(footer_key=FOOTER_KEY, column_keys=dict.fromkeys(columns, ID_KEY))


@pytest.fixture(scope="module")
def written_by_parquet_java(parquet_java: ParquetJava, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Columns id, price and name, id and name under a key of their own, with page indexes and pages of 1000 rows."""
    path = tmp_path_factory.mktemp("java") / "data.parquet"
    explicit_keys(parquet_java, "write", path, FOOTER_KEY, {"id": ID_KEY, "name": ID_KEY}, str(ROWS))
    return path


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([("id", "==", 7777)], [7777]),
        ([("id", ">=", 11_990), ("id", "<", 12_010)], list(range(11_990, 12_010))),
        ([[("id", "==", 3)], [("id", "==", 12_344)]], [3, 12_344]),
        ([("id", "<", 30), ("name", "is null")], list(range(0, 30, 5))),
        ([("id", ">", 20_000)], []),
    ],
)
def test_pages_are_skipped(written_by_parquet_java: Path, filters: Any, expected: list[int]) -> None:
    with fastpq.ParquetFile(written_by_parquet_java, decryption_properties=keys("id", "name")) as file:
        table = file.read(filters=filters)
        assert table["id"].to_numpy().tolist() == expected
        prices = [None if row % 3 == 0 else row / 4 for row in expected]
        assert table["price"].to_pylist() == prices
        assert table["name"].to_pylist() == [None if row % 5 == 0 else f"name {row % 7}" for row in expected]
        explanation = file.explain(filters)
        pages = [present(column.pages) for group in explanation.row_groups for column in group.columns]
        assert max(pages, default=0) <= 2
        assert file.count(filters) == len(expected)


def test_a_column_without_its_key_is_not_used(written_by_parquet_java: Path) -> None:
    with fastpq.ParquetFile(written_by_parquet_java, decryption_properties=keys()) as file:
        table = file.read(["price"], filters=[("price", "==", 250.0)])
        assert table["price"].to_pylist() == [250.0]
        with pytest.raises(fastpq.KeyAccessError, match="id"):
            file.read(["price"], filters=[("id", "==", 1)])
        with pytest.raises(fastpq.KeyAccessError, match="id"):
            file.column_index(0, "id")


def test_an_altered_page_is_noticed_only_where_it_is_read(written_by_parquet_java: Path) -> None:
    decryption = keys("id", "name")
    with fastpq.ParquetFile(written_by_parquet_java, decryption_properties=decryption) as file:
        offset_index = file.offset_index(0, "id")
        assert offset_index is not None
        location = offset_index.page_locations[5]
    data = bytearray(written_by_parquet_java.read_bytes())
    data[location.offset + location.compressed_page_size - 1] ^= 1
    with fastpq.ParquetFile(bytes(data), decryption_properties=decryption) as file:     # parquet-java wrote a CRC-32 as well
        assert file.read(["id"], filters=[("id", "==", 17)])["id"].to_pylist() == [17]
        with pytest.raises(fastpq.TagVerificationError):
            file.read(["id"], filters=[("id", "==", location.first_row_index)])


@pytest.mark.parametrize("part", ["offset_index", "column_index"])
def test_an_altered_index_is_noticed(written_by_parquet_java: Path, part: str) -> None:
    decryption = keys("id", "name")
    with fastpq.ParquetFile(written_by_parquet_java, decryption_properties=decryption) as file:
        chunk = file.metadata.row_group(0).column(0).chunk
        data = bytearray(written_by_parquet_java.read_bytes())
        data[getattr(chunk, f"{part}_offset") + 20] ^= 1
    with fastpq.ParquetFile(bytes(data), decryption_properties=decryption) as file:
        assert file.read(["id"]).num_rows == ROWS
        with pytest.raises(fastpq.TagVerificationError):
            file.read(["id"], filters=[("id", "==", 17)])


@needs_data
def test_an_encrypted_bloom_filter() -> None:
    """parquet-testing: written by parquet-java, with filters on the encrypted columns."""
    properties = fastpq.FileDecryptionProperties(
        footer_key=b"0123456789012345",
        column_keys={"double_field": b"1234567890123450", "float_field": b"1234567890123451"},
    )
    path = DATA / "parquet-testing/data/encrypt_columns_and_footer_bloom_filter.parquet.encrypted"
    with fastpq.ParquetFile(path, decryption_properties=properties) as file:
        found = 0
        for column in file.schema.columns:
            bloom_filter = file.bloom_filter(0, column.index)
            if bloom_filter is None:
                continue
            values = file.read([column.index])[column.name].to_numpy()
            plain = np.asarray(values, column.type.dtype)
            assert bloom_filter.probe(plain.view(np.uint8), plain.itemsize).all()
            assert bloom_filter.probe((plain + 100_003).view(np.uint8), plain.itemsize).mean() < 0.1
            found += 1
        assert found
