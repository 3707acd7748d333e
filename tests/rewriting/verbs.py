"""All verbs that make one file from one file, with arguments with which each of them can be called on the same files."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastpq
from tests.requirements import DATA

ROWS = 12_000
KEY = bytes(range(16))
KEYS = fastpq.FileDecryptionProperties(KEY)
# keyword: the decryption properties, for a source that is encrypted with KEY
Verb = Callable[..., Any]

VERBS: dict[str, Verb] = {
    "encrypt_file": lambda source, target, **options: fastpq.encrypt_file(
        source, target, fastpq.FileEncryptionProperties(KEY), **options
    ),
    "decrypt_file": lambda source, target, decryption_properties=KEYS: fastpq.decrypt_file(source, target, decryption_properties),
    "merge_files": lambda source, target, **options: fastpq.merge_files([source, source], target, **options),
    "project_file": lambda source, target, **options: fastpq.project_file(source, target, ["list", "id"], **options),
    "recompress_file": lambda source, target, **options: fastpq.recompress_file(source, target, "zstd", **options),
    "strip_file": lambda source, target, **options: fastpq.strip_file(source, target, **options),
    "evolve_file": lambda source, target, **options: fastpq.evolve_file(source, target, names={"id": "number"}, **options),
    "add_indexes": lambda source, target, **options: fastpq.add_indexes(source, target, bloom_filter={"id": True}, **options),
    "sort_file": lambda source, target, **options: fastpq.sort_file(source, target, ["name", "id"], run_bytes=50_000, **options),
    "rechunk_file": lambda source, target, **options: fastpq.rechunk_file(source, target, row_group_size=3000, **options),
    "redact_file": lambda source, target, **options: fastpq.redact_file(source, target, ["name"], **options),
    "delete_rows": lambda source, target, **options: fastpq.delete_rows(source, target, rows=range(50, ROWS, 4000), **options),
}


def rows() -> pa.Table:
    """Flat, nested and dictionary-encoded columns, with nulls."""
    random = np.random.default_rng(1)
    return pa.table(
        {
            "id": random.integers(0, 1 << 60, ROWS),
            "name": [None if row % 5 == 0 else f"name {row % 50}" for row in range(ROWS)],
            "list": [[{"a": row % 7, "b": str(row)}] * (row % 3) for row in range(ROWS)],
        }
    )


def write_source(path: Any, *, is_encrypted: bool = False) -> None:
    """Write the file that the verbs get."""
    fastpq.write_table(
        rows(),
        path,
        row_group_size=4000,
        data_page_rows=500,
        compression="none",
        bloom_filter={"name": True},
        encryption_properties=fastpq.FileEncryptionProperties(KEY) if is_encrypted else None,
    )


def plaintext_of(path: Path) -> bytes:
    """The bytes of a file. Those of an encrypted file are compared as the bytes of its decrypted pages, without nonces."""
    data = path.read_bytes()
    if data[-4:] != b"PARE":
        return data
    out = io.BytesIO()
    fastpq.decrypt_file(data, out, KEYS)
    return out.getvalue()


def real_files(most_rows: int = 50_000) -> Iterator[tuple[Path, pa.Table]]:
    """Files of other writers that pyarrow and fastpq read, each with its table. The largest page counts take too long."""
    for path in sorted((DATA / "parquet-testing/data").glob("*.parquet")):
        if path.name == "overflow_i16_page_cnt.parquet":
            continue
        try:
            table = pq.read_table(path)
            fastpq.read_table(path)
        except (OSError, NotImplementedError, pa.ArrowInvalid, fastpq.ParquetError):
            continue
        if len(table) <= most_rows:
            yield path, table


def assert_rows(path: Path, expected: pa.Table) -> None:
    """pyarrow reads these rows from a file."""
    for one, other in zip(pq.read_table(path).columns, expected.columns, strict=True):
        assert str(one.combine_chunks()) == str(other.combine_chunks()), path.name
