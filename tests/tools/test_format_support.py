"""docs/pages/format-support.md is what the code says, and what it says of other libraries is what the installed ones do."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.encodings.encoding_table import WRITABLE
from fastpq.schema.types import ColumnType, Type
from tests.requirements import needs, peer
from tools import format_support, peer_support
from tools.peer_support import BY_TYPE, NO, PEERS, WRITES_TOO, YES

arro3 = peer("arro3.io", "arro3-io")
duckdb = peer("duckdb")
needs(arro3)
needs(duckdb)

ROWS = np.arange(300)
TABLE = pa.table({"x": ROWS})
COLUMNS: dict[Type, tuple[ColumnType, Any]] = {
    Type.BOOLEAN: (ColumnType(Type.BOOLEAN), ROWS % 3 == 0),
    Type.INT32: (ColumnType(Type.INT32), (ROWS % 50).astype(np.int32)),
    Type.INT64: (ColumnType(Type.INT64), ROWS % 50),
    Type.INT96: (ColumnType(Type.INT96), np.datetime64("2020-01-01", "ns") + 1000 * ROWS),
    Type.FLOAT: (ColumnType(Type.FLOAT), (ROWS / 4).astype(np.float32)),
    Type.DOUBLE: (ColumnType(Type.DOUBLE), ROWS / 4),
    Type.BYTE_ARRAY: (ColumnType(Type.BYTE_ARRAY), [b"value %d" % (row % 50) for row in ROWS.tolist()]),
    Type.FIXED_LEN_BYTE_ARRAY: (
        ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 8),
        np.array([b"row %04d" % (row % 50) for row in ROWS.tolist()]).view("V8"),
    ),
}
READERS: dict[str, Callable[[Path], pa.Table]] = {
    "pyarrow": pq.read_table,
    "parquet-rs": lambda path: pa.table(arro3.read_parquet(path)),
    "DuckDB": lambda path: duckdb.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow_table(),
    "Polars": lambda path: pl.read_parquet(path).to_arrow(),
}


WRITERS: dict[str, Callable[[Path], object]] = {
    "pyarrow": lambda path: pq.write_table(TABLE, path),
    "parquet-rs": lambda path: arro3.write_parquet(TABLE, str(path)),
    "DuckDB": lambda path: duckdb.from_arrow(TABLE).write_parquet(str(path)),
    "Polars": lambda path: pl.DataFrame({"x": ROWS}).write_parquet(path),
}


def test_the_page_is_up_to_date() -> None:
    assert format_support.PAGE.read_text() == format_support.markdown(), "run python -m tools.format_support"


def test_sources_are_of_known_features_and_libraries() -> None:
    features = {feature.name for _, _, features in format_support.SECTIONS for feature in features()}
    for feature, library in [*peer_support.FOUND, *peer_support.CITED]:
        assert feature in features
        assert library in PEERS
    assert not set(peer_support.STATUS) - features
    assert all(len(cells.split()) == len(PEERS) for cells in peer_support.STATUS.values())


def says_that_it_reads(feature: str, peer: str) -> bool:
    known, _ = peer_support.cell(feature, peer)
    assert known in ("RW", "R", NO), f"what {peer} does of {feature} is tested here, and can be known"
    return known != NO


def reads(peer: str, path: Path, expected: fastpq.Table) -> bool:
    """Whether a library reads a file; AssertionError where it reads other values."""
    try:
        found = READERS[peer](path)
    except BaseException as error:      # arro3 and Polars panic, which is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return False
    truth = pa.table(expected)
    found = found.cast(pa.schema([(field.name, truth.schema.field(field.name).type) for field in found.schema]))
    assert found.to_pydict() == truth.to_pydict()
    return True


def encodings() -> list[Any]:
    """(feature, encoding, physical type)."""
    found = []
    for encoding, physical in WRITABLE.items():
        parts = BY_TYPE.get(encoding.name, {encoding.name: tuple(type_.name for type_ in physical)})
        found += [
            pytest.param(part, encoding.name, type_, id=f"{encoding.name}-{type_.name}")
            for part, names in parts.items()
            for type_ in sorted(physical)
            if type_.name in names
        ]
    return found


@pytest.mark.parametrize("peer", READERS)
@pytest.mark.parametrize(("feature", "encoding", "physical"), encodings())
def test_encodings(tmp_path: Path, feature: str, encoding: str, physical: Type, peer: str) -> None:
    type_, values = COLUMNS[physical]
    path = tmp_path / "file.parquet"
    fastpq.write_table({"x": values}, path, schema={"x": type_}, column_encoding={"x": encoding})
    assert reads(peer, path, fastpq.read_table(path)) == says_that_it_reads(feature, peer)


@pytest.mark.parametrize("peer", READERS)
@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4_raw", "lz4_hadoop"])
def test_codecs(tmp_path: Path, codec: str, peer: str) -> None:
    path = tmp_path / "file.parquet"
    fastpq.write_table({"x": ROWS}, path, compression=codec)
    feature = {"lz4_hadoop": "LZ4"}.get(codec, codec.upper())
    assert reads(peer, path, fastpq.read_table(path)) == says_that_it_reads(feature, peer)


@pytest.mark.parametrize("peer", READERS)
@pytest.mark.parametrize(("version", "feature"), [("1.0", "data page V1"), ("2.0", "data page V2")])
def test_pages(tmp_path: Path, version: Any, feature: str, peer: str) -> None:
    path = tmp_path / "file.parquet"
    values = np.ma.masked_array(ROWS, mask=ROWS % 7 == 0)
    fastpq.write_table({"x": values}, path, data_page_version=version)
    assert reads(peer, path, fastpq.read_table(path)) == says_that_it_reads(feature, peer)


@pytest.mark.parametrize("peer", WRITERS)
def test_written_pages(tmp_path: Path, peer: str) -> None:
    path = tmp_path / "file.parquet"
    WRITERS[peer](path)
    chunk = fastpq.read_metadata(path).row_group(0).column(0)
    header, _ = fmt.decode(fmt.PageHeader, path.read_bytes(), chunk.data_page_offset)
    assert header.type == fmt.PageType.DATA_PAGE
    assert peer_support.cell("data page V1", peer)[0] == WRITES_TOO


def encrypted_files() -> dict[str, tuple[bytes, dict[str, Any]]]:
    """Files by feature, and the explicit keys to read them with."""
    found = {}
    key = bytes(range(16))
    for feature, (encrypt, _) in format_support.modes().items():
        bits = int(feature.split()[2]) if feature.startswith("keys of 1") or feature.startswith("keys of 2") else 128
        keys: dict[str, Any] = {"footer_key": bytes(range(bits // 8))}
        if feature in ("keys of single columns", "signed plaintext footer"):
            keys["column_keys"] = {"id": bytes(range(16, 32))}
        if feature == "AAD prefix":
            keys["aad_prefix"] = b"a"
        found[feature] = format_support.written({"id": ROWS}, encryption_properties=encrypt), keys
    values = np.ma.masked_array(ROWS, mask=ROWS % 7 == 0)
    for layout in ("arrow", "parquet-java"):
        encrypt = fastpq.FileEncryptionProperties(key, v2_layout=layout)
        file = format_support.written({"id": values}, data_page_version="2.0", encryption_properties=encrypt)
        found[f"pages V2, layout of {layout}"] = file, {"footer_key": key}
    return found


ENCRYPTED = encrypted_files()


@pytest.mark.parametrize("feature", ENCRYPTED)
def test_polars_reads_encrypted_files(feature: str) -> None:
    file, keys = ENCRYPTED[feature]
    with warnings.catch_warnings(action="ignore"):      # Polars calls its encryption unstable
        try:
            rows = len(pl.read_parquet(io.BytesIO(file), decryption=pl.ParquetDecryptionProperties(**keys)))
        except pl.exceptions.ComputeError:
            rows = 0
    assert (rows == len(ROWS)) == says_that_it_reads(feature, "Polars")


@pytest.mark.parametrize("feature", [feature for feature in ENCRYPTED if "column_keys" not in ENCRYPTED[feature][1]])
def test_pyarrow_reads_encrypted_files(feature: str) -> None:
    """With a footer key; files with column keys need a key service, and are in tests/encryption."""
    file, keys = ENCRYPTED[feature]
    properties = pe.create_decryption_properties(keys["footer_key"], aad_prefix=keys.get("aad_prefix"))
    try:
        rows = pq.read_table(io.BytesIO(file), decryption_properties=properties).num_rows
    except OSError:
        rows = 0
    assert (rows == len(ROWS)) == says_that_it_reads(feature, "pyarrow")


WRITTEN_BY_POLARS = ("one key for footer and columns", "keys of single columns", "signed plaintext footer", "AAD prefix")


@pytest.mark.parametrize("feature", WRITTEN_BY_POLARS)
def test_polars_writes_encrypted_files(feature: str) -> None:
    keys, out = dict(ENCRYPTED[feature][1]), io.BytesIO()
    if feature == "signed plaintext footer":
        keys["plaintext_footer"] = True
    with warnings.catch_warnings(action="ignore"):
        pl.DataFrame({"id": ROWS}).write_parquet(out, encryption=pl.ParquetEncryptionProperties(**keys))
    keys.pop("plaintext_footer", None)
    table = fastpq.read_table(out.getvalue(), decryption_properties=fastpq.FileDecryptionProperties(**keys))
    assert np.array_equal(table["id"].to_numpy(nulls="nan"), ROWS)
    assert peer_support.cell(feature, "Polars")[0] == WRITES_TOO


def test_pyarrow_leaves_out_row_groups(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ROWS}), tmp_path / "file.parquet", row_group_size=100)
    (fragment,) = ds.dataset(tmp_path / "file.parquet").get_fragments()
    assert len(fragment.split_by_row_group(ds.field("id") < 5)) == 1
    assert peer_support.cell("row groups left out by statistics", "pyarrow")[0] == YES
