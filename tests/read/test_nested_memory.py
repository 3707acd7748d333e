"""Memory of nested columns: no blocks are left behind while the output grows."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
import fastpq.memory

ROWS = 1 << 20


@pytest.mark.parametrize("longest", [1, 4, 200])
def test_offsets_of_lists_leave_no_blocks_behind(longest: int) -> None:
    rows = ROWS // longest
    lengths = np.random.default_rng(1).integers(longest // 2, longest + 1, rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(offsets, np.random.default_rng(2).integers(0, 1 << 62, offsets[-1]))
    file = io.BytesIO()
    pq.write_table(pa.table({"lists": lists}), file, row_group_size=rows // 4)
    fastpq.memory.release()
    table = fastpq.read_table(io.BytesIO(file.getvalue()), threads=1)
    flags = 2 * (rows + int(offsets[-1]))       # a byte for each slot, of blocks up to a quarter larger
    pages = 8 << 20
    assert fastpq.memory.idle_bytes() < flags + pages
    assert pa.table(table)["lists"].combine_chunks().cast(lists.type).equals(lists)
