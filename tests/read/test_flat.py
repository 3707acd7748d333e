"""Readings of flat columns: how often a chunk is opened."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.read.opener import ChunkOpener

KEY = b"0123456789012345"


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("values", [np.arange(5000), np.ma.masked_equal(np.arange(5000), 7)], ids=["required", "nullable"])
def test_a_chunk_is_opened_once(values: Any, encrypted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An uncompressed chunk may be a view of the file; if not, the reader that found out reads on."""
    target = io.BytesIO()
    keys = fastpq.FileEncryptionProperties(KEY) if encrypted else None
    fastpq.write_table(
        {"a": values}, target, compression=None, use_dictionary=False, data_page_rows=1000, encryption_properties=keys
    )
    opened = 0
    flat = ChunkOpener.flat

    def counted(self: ChunkOpener, *arguments: Any) -> Any:
        nonlocal opened
        opened += 1
        return flat(self, *arguments)

    monkeypatch.setattr(ChunkOpener, "flat", counted)
    read = fastpq.read_table(target, decryption_properties=fastpq.FileDecryptionProperties(KEY) if encrypted else None)
    assert opened == 1
    assert read["a"].to_pylist() == values.tolist()
