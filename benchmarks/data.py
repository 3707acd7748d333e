"""Input files of the jobs, made once for each scale factor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from benchmarks import keys
from benchmarks.columns import make_encodings, make_nested
from benchmarks.jobs import NUMERIC, Job
from benchmarks.lineitem import lineitem

FOLDER = Path(__file__).parent / "data"
NULL_SHARE = 0.1
WIDE_COLUMNS = 10_000
WIDE_ROW_GROUPS = 20
SEED = 1


def path_of(data: str, scale: float) -> Path:
    """Path of a file by its name in a Job; a missing file is made."""
    if data == "lineitem":
        return lineitem(scale, FOLDER)
    target = FOLDER / (f"{data}.parquet" if data.startswith("wide") else f"{data}-{scale:g}.parquet")
    if not target.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        being_made = target.with_suffix(".part")
        MAKERS[data](being_made, scale)
        being_made.replace(target)
    return target


def write(table: pa.Table, path: Path, **options: Any) -> None:
    """Write with pyarrow's defaults, except for decimals as integers, as in lineitem."""
    pq.write_table(table, path, store_decimal_as_integer=True, **options)


def source(scale: float, columns: tuple[str, ...] | None = None) -> pa.Table:
    """lineitem with plain strings, in place of the string views named in the file's Arrow schema."""
    table = pq.read_table(path_of("lineitem", scale), columns=columns and list(columns))
    fields = [field.with_type(pa.string()) if field.type == pa.string_view() else field for field in table.schema]
    return table.cast(pa.schema(fields))


def make_zstd(path: Path, scale: float) -> None:
    write(source(scale), path, compression="zstd")


def make_plain(path: Path, scale: float) -> None:
    write(source(scale, NUMERIC), path, compression="none", use_dictionary=False)


def make_nulls(path: Path, scale: float) -> None:
    """Write lineitem with a random tenth of the values of every column set to null."""
    table = source(scale)
    random = np.random.default_rng(SEED)
    columns = {}
    for name in table.column_names:
        null = pa.array(random.random(table.num_rows) < NULL_SHARE)
        columns[name] = pa.compute.if_else(null, pa.scalar(None, table[name].type), table[name])
    write(pa.table(columns), path, compression="snappy")


def make_snappy(path: Path, scale: float) -> None:
    """Write the values of the encrypted files in plaintext."""
    write(source(scale), path, compression="snappy")


def make_encrypted(path: Path, scale: float) -> None:
    job = Job("make", "write", encrypted="uniform")
    write(source(scale), path, compression="snappy", encryption_properties=keys.for_pyarrow_to_write(job))


def make_encrypted_ctr(path: Path, scale: float) -> None:
    job = Job("make", "write", encrypted="uniform", algorithm="AES_GCM_CTR_V1")
    write(source(scale), path, compression="snappy", encryption_properties=keys.for_pyarrow_to_write(job))


def make_encrypted_columns(path: Path, scale: float) -> None:
    """Written by fastpq: explicit column keys with key metadata in the file, readable by every library."""
    import fastpq

    properties = keys.for_fastpq_to_write(Job("make", "write", encrypted="columns"))
    fastpq.write_table(source(scale), path, encryption_properties=properties, row_group_size=1 << 20)


def make_encrypted_one_page(path: Path, scale: float) -> None:
    """Written with one page a chunk, the form of encrypted files readable by DuckDB."""
    import fastpq

    properties = keys.for_fastpq_to_write(Job("make", "write", encrypted="uniform"))
    rows, size = 100_000, 1 << 30
    fastpq.write_table(source(scale), path, encryption_properties=properties, row_group_size=rows, data_page_rows=rows,
                       data_page_size=size, dictionary_page_size=size)


def make_wide(path: Path, scale: float) -> None:
    """Write many columns and row groups with hardly any values: reading is the footer alone."""
    write_wide(path, WIDE_ROW_GROUPS)


def make_wide_100000(path: Path, scale: float) -> None:
    """Write a wide file of 100,000 column chunks."""
    write_wide(path, 100_000 // WIDE_COLUMNS)


def write_wide(path: Path, row_groups: int) -> None:
    values = pa.array(np.arange(row_groups, dtype=np.int32))
    pq.write_table(pa.table({f"column_{i:05}": values for i in range(WIDE_COLUMNS)}), path, row_group_size=1)


MAKERS: dict[str, Callable[[Path, float], None]] = {
    "zstd": make_zstd,
    "plain": make_plain,
    "nulls": make_nulls,
    "snappy": make_snappy,
    "encrypted": make_encrypted,
    "encrypted-ctr": make_encrypted_ctr,
    "encrypted-columns": make_encrypted_columns,
    "encrypted-one-page": make_encrypted_one_page,
    "wide": make_wide,
    "wide-100000": make_wide_100000,
    "encodings": make_encodings,
    "nested": make_nested,
}
