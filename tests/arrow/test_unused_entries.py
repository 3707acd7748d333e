"""Entries of Arrow dictionaries that no row uses: kept within the limits that docs/pages/dataframes.md names."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastpq

MIB = 1 << 20


@pytest.mark.parametrize(("entries", "length", "rows", "is_ordered", "options", "is_kept"), [
    (1000, 20, 10, False, {}, True),
    (3000, 20, 500, False, {}, False),                          # more entries than rows
    (3000, 20, 500, True, {}, True),
    (3000, 20, 5000, False, {}, True),
    (3000, 20, 5000, False, {"row_group_size": 1000}, False),
    (10_000, 100, 50_000, False, {}, True),                     # 1 MB
    (20_000, 100, 50_000, False, {}, False),
    (20_000, 100, 50_000, True, {}, False),
    (20_000, 100, 50_000, True, {"dictionary_page_size": 4 * MIB}, True),
    (20_000, 100, 50_000, False, {"dictionary_page_size": 4 * MIB}, False),
])
def test_unused_entries(
    entries: int, length: int, rows: int, is_ordered: bool, options: dict[str, Any], is_kept: bool
) -> None:
    random = np.random.default_rng(0)
    texts = [random.bytes(length // 2).hex() for _ in range(entries)]
    codes = np.arange(rows, dtype=np.int32) % 50
    column = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(texts), ordered=is_ordered)
    target = io.BytesIO()
    fastpq.write_table(pa.table({"c": column}), target, **options)
    read = pa.table(fastpq.read_table(target.getvalue()))["c"].combine_chunks()
    assert read.dictionary.to_pylist() == (texts if is_kept else texts[:50])
    assert read.to_pylist() == column.to_pylist()
