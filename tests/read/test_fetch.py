"""Fetching of stored bytes: parts of a remote file, each chunk by its slot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.io.origin import StoredBytes
from fastpq.io.source_opening import open_source
from fastpq.metadata.footer import read_finished
from fastpq.options import ReaderProperties
from fastpq.read.fetch import Fetching, fetching
from fastpq.read.plan import plan_read

PLACES = {"remote": "memory://fetched/x.parquet", "local": "x.parquet"}


def taken(buffers: Fetching, slot: int) -> bytes:
    stored = buffers.take(slot)
    return (stored.read() if isinstance(stored, StoredBytes) else stored).tobytes()


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_a_chunk_is_taken_again(place: str, streaming: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    where: Any = PLACES[place]
    fastpq.write_table({"a": np.arange(3000), "b": np.arange(3000) / 7}, where, row_group_size=1000)
    properties = ReaderProperties(coalesce_size=1)
    with open_source(where) as source:
        metadata = read_finished(source, properties, None)
        chunks = plan_read(metadata, metadata.schema.columns, None, source.size).chunks
        whole = source.read(0, source.size).tobytes()
        with fetching(source, chunks, properties, streaming) as buffers:
            for _ in range(2):
                for slot, chunk in enumerate(chunks):
                    assert taken(buffers, slot) == whole[chunk.start : chunk.start + chunk.length]
