"""Column chunks whose metadata do not hold the column's path, as arrow-rs can write them."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest

import fastpq
from fastpq.encryption import FileDecryptionProperties, FileEncryptionProperties
from tests.requirements import needs, peer

KEY, COLUMN_KEY = bytes(16), bytes(range(16))
TABLE = pa.table({"a": range(100), "s": [{"x": [row] * (row % 3), "y": str(row)} for row in range(100)]})
PROPERTIES: list[Any] = [
    None,
    FileEncryptionProperties(KEY),
    FileEncryptionProperties(KEY, column_keys={"a": COLUMN_KEY}),
    FileEncryptionProperties(KEY, column_keys={"s.y": COLUMN_KEY}, plaintext_footer=True, unlisted="plaintext"),
]


def written(properties: FileEncryptionProperties | None = None, **options: Any) -> bytes:
    sink = io.BytesIO()
    fastpq.write_table(
        TABLE, sink, write_path_in_schema=False, row_group_size=40, encryption_properties=properties, **options
    )
    return sink.getvalue()


@pytest.mark.parametrize("properties", PROPERTIES, ids=["plain", "footer key", "column key", "plaintext footer"])
def test_every_way_of_reading(properties: FileEncryptionProperties | None) -> None:
    data = written(properties)
    keys = None if properties is None else FileDecryptionProperties(
        KEY, column_keys={"a": COLUMN_KEY, "s.y": COLUMN_KEY}, allow_weaker_columns=True
    )
    with fastpq.ParquetFile(data, decryption_properties=keys) as file:
        assert file.read().to_pylist() == TABLE.to_pylist()
        assert file.read(["s.y"], filters=[("a", ">", 95)]).to_pylist() == [{"s": {"y": str(row)}} for row in range(96, 100)]
        assert file.min_max("a") == (0, 99)
        for group in file.metadata.row_groups:
            assert [group.column(column.index).path_in_schema for column in file.schema.columns] == file.schema.paths
            assert all(group.column(column.index).metadata.path_in_schema is None for column in file.schema.columns)
    copy = io.BytesIO()
    fastpq.merge_files([data, data], copy, decryption_properties=keys)
    assert fastpq.read_table(copy.getvalue()).to_pylist() == 2 * TABLE.to_pylist()


def test_the_footer_is_smaller() -> None:
    sink = io.BytesIO()
    fastpq.write_table(TABLE, sink, row_group_size=40)
    assert len(written()) <= len(sink.getvalue()) - 3 * len(b"asxlistelementsy")


def test_strangers_read_it() -> None:
    """arro3 is built on arrow-rs."""
    needs(peer("arro3.io"))
    needs(peer("polars"))
    import arro3.io
    import polars

    assert pa.table(arro3.io.read_parquet(io.BytesIO(written())).read_all()).to_pylist() == TABLE.to_pylist()
    assert polars.read_parquet(io.BytesIO(written())).to_dicts() == TABLE.to_pylist()
