"""What the documentation says of encrypted files, on files that the writer wrote and the reader reads."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.encryption import AesKey, ColumnEncryptionProperties
from fastpq.encryption.encryptor import VISIBLE_TO_ALL
from fastpq.encryption.properties import ALGORITHMS
from tests.encryption.module_walk import open_file
from tests.requirements import peer

duckdb = peer("duckdb")

FOOTER_KEY, KEY, OTHER_KEY = b"0123456789012345", b"012345678901234567890123", b"01234567890123456789012345678901"
ROWS = np.arange(1000)


def write(columns: Any, keys: fastpq.FileEncryptionProperties, **options: Any) -> bytes:
    out = io.BytesIO()
    fastpq.write_table(columns, out, encryption_properties=keys, **options)
    return out.getvalue()


def read(data: bytes, columns: Any = None, **keys: Any) -> fastpq.Table:
    return fastpq.read_table(data, columns, decryption_properties=fastpq.FileDecryptionProperties(FOOTER_KEY, **keys))


# ---- which columns a path means


def test_names_with_dots_and_commas() -> None:
    columns = {"a.b": ROWS, "c,d;e:f": ROWS + 1, "g": ROWS + 2}
    paths: dict[Any, bytes] = {("a.b",): KEY, ("c,d;e:f",): OTHER_KEY}
    data = write(columns, fastpq.FileEncryptionProperties(FOOTER_KEY, paths))
    table = read(data, column_keys=paths)
    assert all((table[name].to_numpy() == values).all() for name, values in columns.items())
    with pytest.raises(fastpq.KeyAccessError, match=r"a\.b"):
        read(data, column_keys={("c,d;e:f",): OTHER_KEY})
    with pytest.raises(fastpq.SchemaError, match=r"a\.b"):      # a tuple of two names is a leaf of a group
        write(columns, fastpq.FileEncryptionProperties(FOOTER_KEY, {("a", "b"): KEY}))


def test_a_group_s_path_covers_its_leaves() -> None:
    point = pa.array([{"x": row, "y": [row]} for row in range(100)])
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, {"point": KEY})
    data = write(pa.table({"point": point, "id": pa.array(range(100))}), keys)
    chunks = open_file(data, fastpq.FileDecryptionProperties(FOOTER_KEY)).metadata.row_groups[0].columns
    crypto = [chunk.crypto_metadata and chunk.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY for chunk in chunks]
    assert [key and key.path_in_schema for key in crypto] == [["point", "x"], ["point", "y", "list", "element"], None]
    assert pa.table(read(data, column_keys={"point": KEY}))["point"].to_pylist() == point.to_pylist()
    with pytest.raises(fastpq.KeyAccessError, match=r"point\.y"):
        read(data, column_keys={"point.x": KEY})
    assert read(data, ["point.x"], column_keys={"point.x": KEY}).num_rows == 100


def test_an_unknown_path_writes_nothing(tmp_path: Any) -> None:
    path = tmp_path / "file.parquet"
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, {"a": KEY, "b": KEY})
    with pytest.raises(fastpq.SchemaError, match="does not have: b"):
        fastpq.write_table({"a": ROWS}, path, encryption_properties=keys)
    assert not list(tmp_path.iterdir())


# ---- what the footer shows and proves


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_encrypted_footer_holds_its_algorithm(algorithm: Any) -> None:
    data = write({"a": ROWS}, fastpq.FileEncryptionProperties(FOOTER_KEY, algorithm=algorithm))
    inside = open_file(data, fastpq.FileDecryptionProperties(FOOTER_KEY, allowed_algorithms=[algorithm])).metadata
    assert inside.encryption_algorithm is not None
    assert getattr(inside.encryption_algorithm, algorithm) is not None


def with_algorithm(data: bytes, change: Callable[[fmt.AesGcmV1], fmt.EncryptionAlgorithm]) -> bytes:
    """The file with another algorithm in front of its encrypted footer, which is authenticated by nothing."""
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    outside, end = fmt.decode(fmt.FileCryptoMetaData, data, start)
    assert outside.encryption_algorithm.AES_GCM_V1 is not None
    outside.encryption_algorithm = change(outside.encryption_algorithm.AES_GCM_V1)
    footer = fmt.encode(outside) + data[start + end : -8]
    return data[:start] + footer + len(footer).to_bytes(4, "little") + b"PARE"


@pytest.mark.parametrize("allowed", [["AES_GCM_CTR_V1"], ALGORITHMS])
def test_a_downgrade_is_refused_though_both_algorithms_are_allowed(allowed: Any) -> None:
    def downgrade(parameters: fmt.AesGcmV1) -> fmt.EncryptionAlgorithm:
        unique, supply = parameters.aad_file_unique, parameters.supply_aad_prefix
        return fmt.EncryptionAlgorithm(AES_GCM_CTR_V1=fmt.AesGcmCtrV1(aad_file_unique=unique, supply_aad_prefix=supply))

    altered = with_algorithm(write({"a": ROWS}, fastpq.FileEncryptionProperties(FOOTER_KEY)), downgrade)
    with pytest.raises(fastpq.CryptoError, match="it was altered"):
        read(altered, allowed_algorithms=allowed)
    with pytest.raises(fastpq.CryptoError, match="allowed_algorithms"):
        read(altered)


@pytest.mark.parametrize("stored", [True, False])
def test_a_file_is_not_passed_off_under_a_shorter_prefix(stored: bool) -> None:
    """AADs have no boundary between prefix and file identifier: that of part10 is also one of part1 with a longer one."""

    def shorten(parameters: fmt.AesGcmV1) -> fmt.EncryptionAlgorithm:
        unique = b"0" + (parameters.aad_file_unique or b"")
        prefix = b"part1" if stored else None
        shifted = fmt.AesGcmV1(aad_prefix=prefix, aad_file_unique=unique, supply_aad_prefix=parameters.supply_aad_prefix)
        return fmt.EncryptionAlgorithm(AES_GCM_V1=shifted)

    ours, theirs = io.BytesIO(), io.BytesIO()
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, aad_prefix=b"part10", store_aad_prefix=stored)
    fastpq.write_table({"a": ROWS}, ours, encryption_properties=keys)
    arrow_keys = pe.create_encryption_properties(FOOTER_KEY, aad_prefix=b"part10", store_aad_prefix=stored)
    pq.write_table(pa.table({"a": ROWS}), theirs, encryption_properties=arrow_keys)
    with pytest.raises(fastpq.CryptoError, match="it was altered"):
        read(with_algorithm(ours.getvalue(), shorten), aad_prefix=b"part1")
    # what SECURITY.md says of other writers' files, which keep no copy of the algorithm inside the footer
    assert read(with_algorithm(theirs.getvalue(), shorten), aad_prefix=b"part1").num_rows == 1000


@pytest.mark.parametrize("column_keys", [{}, {"secret": KEY}], ids=["footer key", "column key"])
def test_what_a_plaintext_footer_shows(column_keys: dict[str, bytes]) -> None:
    columns = {"secret": np.array(["aaa hidden", "zzz hidden"] * 500, dtype=object), "id": ROWS}
    keys = fastpq.FileEncryptionProperties(
        FOOTER_KEY, column_keys, plaintext_footer=True, unlisted="plaintext" if column_keys else None
    )
    data = write(columns, keys, compression="none")
    assert b"hidden" not in data
    size = int.from_bytes(data[-8:-4], "little")
    footer, _ = fmt.decode(fmt.FileMetaData, data, len(data) - 8 - size)
    metadata = footer.row_groups[0].columns[0].meta_data
    assert metadata is not None
    visible = fmt.ColumnMetaData(**{name: getattr(metadata, name) for name in VISIBLE_TO_ALL})
    assert metadata == visible
    assert fmt.encode(metadata) == fmt.encode(visible)      # nor anything in fields that parquet.thrift does not have
    identifier = footer.row_groups[0].columns[1].meta_data
    assert identifier is not None
    assert (identifier.statistics is not None) == bool(column_keys)     # beside column keys it is a plaintext column
    with fastpq.ParquetFile(data) as file:      # no key at all
        assert file.metadata.num_rows == 1000
        assert file.schema.columns[0].name == "secret"
        assert file.metadata.row_group(0).column(0).statistics is None
        with pytest.raises(fastpq.KeyAccessError, match="secret"):
            file.read(["secret"])
    with fastpq.ParquetFile(data, decryption_properties=fastpq.FileDecryptionProperties(FOOTER_KEY, column_keys)) as file:
        statistics = file.metadata.row_group(0).column(0).statistics
        assert statistics is not None


@pytest.mark.parametrize("column", [KEY, ColumnEncryptionProperties()], ids=["column key", "footer key"])
def test_readers_without_keys_read_what_is_plaintext(tmp_path: Any, column: Any) -> None:
    path = tmp_path / "signed.parquet"
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, {"secret": column}, plaintext_footer=True, unlisted="plaintext")
    options: dict[str, Any] = {"row_group_size": 300, "bloom_filter": {"id": True, "secret": True}}
    fastpq.write_table({"id": ROWS, "secret": -ROWS}, path, encryption_properties=keys, **options)
    few = [("id", ">=", 990)]
    assert pq.read_table(path, columns=["id"], filters=few)["id"].to_pylist() == list(range(990, 1000))
    assert pq.read_metadata(path).row_group(3).column(0).statistics.max == 999
    assert pl.scan_parquet(path).select("id").filter(pl.col("id") >= 990).collect()["id"].to_list() == list(range(990, 1000))
    assert duckdb.sql(f"SELECT count(*), sum(id) FROM '{path}' WHERE id >= 990").fetchall() == [(10, sum(range(990, 1000)))]
    with fastpq.ParquetFile(path) as file:
        assert file.read(["id"], filters=few)["id"].to_pylist() == list(range(990, 1000))
        assert file.min_max("id") == (0, 999)


# ---- keys of all sizes


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("footer_key", [FOOTER_KEY, KEY, OTHER_KEY], ids=len)
def test_columns_have_keys_of_their_own_sizes(footer_key: bytes, algorithm: Any) -> None:
    paths: dict[str, bytes | ColumnEncryptionProperties] = {
        "a": FOOTER_KEY, "b": ColumnEncryptionProperties(KEY), "c": OTHER_KEY, "d": ColumnEncryptionProperties()
    }
    columns = dict.fromkeys("abcde", ROWS * 3)
    data = write(columns, fastpq.FileEncryptionProperties(footer_key, paths, algorithm=algorithm))
    keys = fastpq.FileDecryptionProperties(
        footer_key, {"a": FOOTER_KEY, "b": KEY, "c": OTHER_KEY}, allowed_algorithms=[algorithm]
    )
    table = fastpq.read_table(data, decryption_properties=keys)
    assert all((table[name].to_numpy() == ROWS * 3).all() for name in "abcde")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_a_key_at_its_end_leaves_the_old_file(tmp_path: Any, algorithm: Any, plaintext_footer: bool) -> None:
    """The footer as well counts: with one encryption less than the file takes, nothing is written."""
    path = tmp_path / "file.parquet"
    options: dict[str, Any] = {"algorithm": algorithm, "plaintext_footer": plaintext_footer}
    counting = AesKey(KEY)
    fastpq.write_table({"a": ROWS, "b": ROWS}, path, encryption_properties=fastpq.FileEncryptionProperties(counting, **options))
    old = path.read_bytes()
    for left in range(counting.operations):
        spent = fastpq.FileEncryptionProperties(AesKey(KEY, operations=2**32 - left), **options)
        with pytest.raises(fastpq.CryptoError, match=r"2\^32"):
            fastpq.write_table({"a": ROWS, "b": ROWS}, path, threads=2, encryption_properties=spent)
        assert path.read_bytes() == old
        assert list(tmp_path.iterdir()) == [path]
    enough = fastpq.FileEncryptionProperties(AesKey(KEY, operations=2**32 - counting.operations), **options)
    fastpq.write_table({"a": ROWS, "b": ROWS}, path, encryption_properties=enough)
    assert enough.footer_key.operations == 2**32


def test_a_retriever_gets_the_key_metadata_of_the_footer_and_of_columns() -> None:
    paths: dict[str, bytes | ColumnEncryptionProperties] = {
        "a": ColumnEncryptionProperties(KEY, key_metadata=b"id of a"), "b": OTHER_KEY
    }
    data = write({"a": ROWS, "b": ROWS}, fastpq.FileEncryptionProperties(FOOTER_KEY, paths, footer_key_metadata=b"id of footer"))
    known = {b"id of a": KEY, b"id of footer": FOOTER_KEY}
    keys = fastpq.FileDecryptionProperties(column_keys={"b": OTHER_KEY}, key_retriever=known.__getitem__)
    assert (fastpq.read_table(data, decryption_properties=keys)["a"].to_numpy() == ROWS).all()


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_a_plaintext_footer_tells_no_order_of_encrypted_columns(plaintext_footer: bool) -> None:
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, {"b": KEY}, plaintext_footer=plaintext_footer, unlisted="plaintext")
    data = write({"a": ROWS // 10, "b": -ROWS, "c": ROWS}, keys, sort_by=["a", "b", "c"])
    groups = open_file(data, fastpq.FileDecryptionProperties(FOOTER_KEY, {"b": KEY})).metadata.row_groups
    told = [entry.column_idx for group in groups for entry in group.sorting_columns or []]
    assert told == ([0] if plaintext_footer else [0, 1, 2])
