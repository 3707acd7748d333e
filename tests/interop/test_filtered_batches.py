"""iter_batches(filters=): memory is bounded by a batch and a page of each column, whatever the row group holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastpq

ROWS = 2_000_000

PEAK = """
import resource, sys
import fastpq
with fastpq.ParquetFile(sys.argv[1], threads=1) as file:
    next(file.iter_batches(1000, ["id", "wide"], filters=[("id", ">=", 0)]))       # what is paid once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = 0
    for batch in file.iter_batches(1000, ["id", "wide", "list"], filters=[("id", ">=", 10), ("even", "==", True)]):
        count += batch.num_rows
    print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_is_bounded(tmp_path: Path) -> None:
    """One row group of 16 MB a column when decoded, of next to nothing as stored, so that the file itself does not count."""
    ids = np.arange(ROWS)
    columns = {
        "id": ids,
        "even": ids % 2 == 0,
        "wide": ids // 1000,
        "list": pa.ListArray.from_arrays(np.arange(ROWS + 1, dtype=np.int32), pa.array(ids // 1000)),
    }
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=ROWS, compression="zstd", column_encoding={
        "id": "DELTA_BINARY_PACKED", "wide": "DELTA_BINARY_PACKED", "list.list.element": "DELTA_BINARY_PACKED",
    }, use_dictionary=False, data_page_size=1 << 16)
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(path)],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    count, grown = map(int, done.stdout.split())
    assert count == ROWS // 2 - 5
    whole = fastpq.read_table(path, ["id", "wide", "list"]).nbytes
    assert whole > 40 << 20
    assert grown << 10 < 12 << 20
