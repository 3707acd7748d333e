"""Chunks of a local file outside of the page cache are read ahead of the pages at hand."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from pathlib import Path

import numpy as np
import pytest

import fastpq


def resident(path: Path) -> float:
    """Share of a file's pages in the page cache."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ, flags=mmap.MAP_SHARED) as mapped:
        data = np.frombuffer(mapped, np.uint8)
        pages = np.zeros(-(-len(data) // mmap.PAGESIZE), np.uint8)
        libc = ctypes.CDLL(None, use_errno=True)
        found = libc.mincore(ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(len(data)), pages.ctypes.data_as(ctypes.c_void_p))
        assert found == 0, os.strerror(ctypes.get_errno())
        del data
    return float((pages & 1).mean())


@pytest.mark.linux
def test_bytes_behind_a_piece_are_read_ahead_where_none_is_cached(tmp_path: Path) -> None:
    path = tmp_path / "file"
    values = np.random.default_rng(3).integers(0, 1 << 62, 1 << 20)
    fastpq.write_table({"values": values}, path, compression="none", use_dictionary=False, data_page_size=16 << 10)
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    batches = fastpq.ParquetFile(path, threads=1).iter_batches(batch_size=100)
    read = [next(batches)["values"].to_numpy()]
    until = time.monotonic() + 20
    while resident(path) < 0.9 and time.monotonic() < until:
        time.sleep(0.01)
    assert resident(path) > 0.9
    read += [batch["values"].to_numpy() for batch in batches]
    assert np.array_equal(np.concatenate(read), values)
