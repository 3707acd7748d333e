"""Writes row groups with checkpoints and is killed before it finishes; run by test_unfinished."""

from __future__ import annotations

import os
import signal
import sys

import fastpq
from tests.recovery.tables import FOOTER_KEY, GROUP, ROWS, SECRET_KEY, written


def main(path: str, encrypted: bool) -> None:
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, column_keys={"text": SECRET_KEY}) if encrypted else None
    writer = fastpq.ParquetWriter(
        path,
        row_group_size=GROUP,
        data_page_rows=GROUP // 4,
        checkpoint_every=2,
        bloom_filter={"number": True},
        key_value_metadata={"who": "killed"},
        encryption_properties=keys,
    )
    table = written()
    for start in range(0, ROWS, GROUP):
        writer.write_table(table.slice(start, GROUP))
    os.kill(os.getpid(), signal.SIGKILL)


main(sys.argv[1], sys.argv[2] == "encrypted")
