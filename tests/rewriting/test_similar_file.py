"""Options of a new file that is like an existing one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import fastpq
from fastpq import FileEncryptionProperties
from fastpq.rewriting import SPARK_ROW_METADATA, entries_for_footer, options_like

LABELS = '{"type":"struct","fields":[{"name":"a","type":"double","nullable":true,"metadata":{"ml_attr":{"vals":["x"]}}}]}'


def test_a_file_written_anew_keeps_codecs_bloom_filters_and_metadata(tmp_path: Path) -> None:
    columns = {"a": np.arange(100.0), "b": np.arange(100)}
    options: dict[str, Any] = {
        "compression": {"a": "gzip", "b": "none"}, "bloom_filter": {"b": True}, "key_value_metadata": {"note": "n"},
    }
    fastpq.write_table(columns, tmp_path / "old.parquet", **options)
    metadata = fastpq.read_metadata(tmp_path / "old.parquet")
    fastpq.write_table(columns, tmp_path / "new.parquet", **options_like(metadata, None))
    group = pq.read_metadata(tmp_path / "new.parquet").row_group(0)
    assert [group.column(number).compression for number in range(2)] == ["GZIP", "UNCOMPRESSED"]
    assert pq.read_metadata(tmp_path / "new.parquet").metadata[b"note"] == b"n"
    with fastpq.ParquetFile(tmp_path / "new.parquet") as file:
        assert [file.bloom_filter(0, number) is None for number in range(2)] == [True, False]
    fastpq.write_table({name: column[:0] for name, column in columns.items()}, tmp_path / "empty.parquet", **options)
    assert options_like(fastpq.read_metadata(tmp_path / "empty.parquet"), None)["key_value_metadata"] == {"note": "n"}


def test_values_of_encrypted_columns_stay_out_of_the_footer(tmp_path: Path) -> None:
    fastpq.write_table({"a": np.arange(3.0)}, tmp_path / "old.parquet", key_value_metadata={SPARK_ROW_METADATA: LABELS})
    metadata = fastpq.read_metadata(tmp_path / "old.parquet")
    keys = FileEncryptionProperties(bytes(16), column_keys={"a": bytes(range(16))})
    assert options_like(metadata, None)["key_value_metadata"][SPARK_ROW_METADATA] == LABELS
    assert "ml_attr" not in options_like(metadata, keys)["key_value_metadata"][SPARK_ROW_METADATA]
    assert entries_for_footer({SPARK_ROW_METADATA: LABELS}, None, [("a",)]) == {SPARK_ROW_METADATA: LABELS}
    assert "ml_attr" not in entries_for_footer({SPARK_ROW_METADATA: LABELS}, keys, [("a",)])[SPARK_ROW_METADATA]
    assert entries_for_footer({"r": "labels", "note": "n"}, keys, [("a",)]) == {"note": "n"}
