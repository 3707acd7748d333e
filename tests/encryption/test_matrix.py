"""Every mode of encryption by codec, page version and dictionary, nested columns among the others: what fastpq writes is read by
parquet-java (Spark's reader) and pyarrow through a key service, by pyarrow with a footer key, by Polars with explicit keys;
and the other way round."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
from fastpq.encryption import ColumnEncryptionProperties, KmsConnectionConfig
from fastpq.encryption.properties import ALGORITHMS
from tests.encryption.keys.peers import MASTER_KEYS, arrow_factory, factory, managed_keys, wrap
from tests.interop.parquet_java import ParquetJava

ROWS = 300
FOOTER_KEY, COLUMN_KEY = b"the footer's key", b"the column's key, of 32 bytes..."
COLUMN_PATHS = ("price", "tags.list.element", "point.x")    # a flat column, and leaves of a list and of a struct


@dataclass(frozen=True)
class Case:
    """One written file.

    Attributes:
        mode: of MODES.
        codec: as write_table takes it.
        pages: ``"1.0"``, ``"2.0"``, or ``"2.0 java"`` for parquet-java's layout of encrypted pages V2.
        dictionary: whether columns are dictionary-encoded.
    """

    mode: str
    codec: str
    pages: str
    dictionary: bool

    @property
    def version(self) -> Literal["1.0", "2.0"]:
        """The version of data pages."""
        return "1.0" if self.pages == "1.0" else "2.0"

    @property
    def indexed(self) -> bool:
        """Whether there are page indexes and bloom filters: in half the cases, with each codec, page kind and dictionary."""
        return (CODECS.index(self.codec) + PAGES.index(self.pages) + self.dictionary) % 2 == 0

    @property
    def name(self) -> str:
        return f"{self.mode}, {self.codec}, {self.pages}, {'dictionary' if self.dictionary else 'plain'}"


MODES: dict[str, dict[str, Any]] = {
    "uniform": {},
    "by column": {"columns": True, "unlisted": "plaintext"},
    "signed footer": {"columns": True, "plaintext_footer": True, "unlisted": "plaintext"},
    "everything": {"columns": True},
    "CTR": {"columns": True, "algorithm": "AES_GCM_CTR_V1", "unlisted": "plaintext"},
    "CTR, signed footer": {"plaintext_footer": True, "algorithm": "AES_GCM_CTR_V1"},
    "prefix": {"aad_prefix": b"file 7"},
}
CODECS = ("none", "snappy", "gzip", "zstd", "lz4")
PAGES = ("1.0", "2.0", "2.0 java")
CASES = [Case(*case) for case in itertools.product(MODES, CODECS, PAGES, (True, False))]
ARROW_READS = [case for case in CASES if case.pages != "2.0 java"]
JAVA_READS = [case for case in CASES if case.pages != "2.0"]


def truth() -> pa.Table:
    rows = range(ROWS)
    point = pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.int32())])
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "price": pa.array([None if row % 3 == 0 else row % 50 / 4 for row in rows], pa.float64()),
            "name": pa.array([f"name {row % 7}" for row in rows], pa.string()),
            "tags": pa.array(
                [None if row % 11 == 0 else [None if item == 2 else f"t{item}" for item in range(row % 4)] for row in rows],
                pa.list_(pa.string()),
            ),
            "point": pa.array([None if row % 5 == 0 else {"x": row / 8, "y": row} for row in rows], point),
        }
    )


def assert_true(table: Any) -> None:
    found = pa.table(table)
    assert found.select(truth().column_names).cast(truth().schema).equals(truth())


def key_metadata(key: bytes, master_key: str, is_footer_key: bool) -> bytes:
    """Singly wrapped PKMT1 material, so that a file with explicit keys is open to a key service as well."""
    material: dict[str, Any] = {"keyMaterialType": "PKMT1", "internalStorage": True, "isFooterKey": is_footer_key}
    if is_footer_key:
        material |= {"kmsInstanceID": "DEFAULT", "kmsInstanceURL": "DEFAULT"}
    material |= {"masterKeyID": master_key, "wrappedDEK": wrap(MASTER_KEYS, key, master_key), "doubleWrapping": False}
    return json.dumps(material).encode()


def encryption(case: Case) -> fastpq.FileEncryptionProperties:
    options = dict(MODES[case.mode])
    column = ColumnEncryptionProperties(COLUMN_KEY, key_metadata=key_metadata(COLUMN_KEY, "kc1", False))
    columns = dict.fromkeys(COLUMN_PATHS, column) if options.pop("columns", False) else None
    return fastpq.FileEncryptionProperties(
        FOOTER_KEY,
        columns,
        footer_key_metadata=key_metadata(FOOTER_KEY, "kf", True),
        v2_layout="parquet-java" if case.pages == "2.0 java" else "arrow",
        **options,
    )


def write(case: Case, path: Path) -> None:
    fastpq.write_table(
        truth(),
        path,
        compression=case.codec,
        data_page_version=case.version,
        use_dictionary=case.dictionary,
        row_group_size=200,
        data_page_rows=60,
        write_page_index=case.indexed,
        bloom_filter=dict.fromkeys(("id", "name", *COLUMN_PATHS), True) if case.indexed else {},
        encryption_properties=encryption(case),
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[Case, Path]:
    folder = tmp_path_factory.mktemp("matrix")
    paths = {case: folder / f"{number}.parquet" for number, case in enumerate(CASES)}
    for case, path in paths.items():
        write(case, path)
    return paths


def test_fastpq_reads(files: dict[Case, Path]) -> None:
    for case, path in files.items():
        options: dict[str, Any] = {"allowed_algorithms": [MODES[case.mode].get("algorithm", "AES_GCM_V1")]}
        columns = dict.fromkeys(COLUMN_PATHS, COLUMN_KEY) if "columns" in MODES[case.mode] else {}
        explicit = fastpq.FileDecryptionProperties(FOOTER_KEY, columns, **options)
        assert_true(fastpq.read_table(path, decryption_properties=explicit))
        managed = factory().file_decryption_properties(KmsConnectionConfig(), **options)
        assert_true(fastpq.read_table(path, decryption_properties=managed))


def test_pyarrow_reads_through_a_key_service(files: dict[Case, Path]) -> None:
    keys = arrow_factory()      # the properties below refer to it
    for case in ARROW_READS:
        properties = keys.file_decryption_properties(pe.KmsConnectionConfig(), pe.DecryptionConfiguration())
        assert_true(pq.read_table(files[case], decryption_properties=properties))


def test_pyarrow_reads_with_a_footer_key(files: dict[Case, Path]) -> None:
    """It takes no explicit column keys."""
    for case in ARROW_READS:
        if "columns" not in MODES[case.mode]:
            keys = pe.create_decryption_properties(FOOTER_KEY, aad_prefix=MODES[case.mode].get("aad_prefix"))
            assert_true(pq.read_table(files[case], decryption_properties=keys))


def test_polars_reads_with_explicit_keys(files: dict[Case, Path]) -> None:
    with warnings.catch_warnings(action="ignore"):      # Polars calls its encryption unstable
        for case in ARROW_READS:
            if "algorithm" in MODES[case.mode] or MODES[case.mode].get("plaintext_footer"):
                continue
            columns = dict.fromkeys(COLUMN_PATHS, COLUMN_KEY) if "columns" in MODES[case.mode] else {}
            keys = pl.ParquetDecryptionProperties(
                footer_key=FOOTER_KEY, column_keys=columns, aad_prefix=MODES[case.mode].get("aad_prefix")
            )
            assert_true(pl.read_parquet(files[case], decryption=keys).to_arrow())


def test_parquet_java_reads_through_a_key_service(files: dict[Case, Path], parquet_java: ParquetJava, tmp_path: Path) -> None:
    """All rows are, in text, those of a plaintext file that pyarrow wrote."""
    pq.write_table(truth(), tmp_path / "plain.parquet")
    paths = [tmp_path / "plain.parquet", *(files[case] for case in JAVA_READS)]
    digests = managed_keys(parquet_java, "digest", *paths).splitlines()
    assert digests[0].split()[0] == str(ROWS)
    different = [case.name for case, digest in zip(JAVA_READS, digests[1:], strict=True) if digest != digests[0]]
    assert not different


# ---- the other way round


def managed(path: Path) -> fastpq.FileDecryptionProperties:
    return factory().file_decryption_properties(KmsConnectionConfig(), None, path, allowed_algorithms=ALGORITHMS)


JAVA_MODES = {
    "uniform": "uniform.key=kf",
    "by column": f"footer.key=kf column.keys=kc1:{','.join(COLUMN_PATHS)}",
    "signed footer": f"footer.key=kf column.keys=kc1:{','.join(COLUMN_PATHS)} plaintext.footer=true",
    "CTR": f"footer.key=kf column.keys=kc1:{','.join(COLUMN_PATHS)}|kc2:id algorithm=AES_GCM_CTR_V1",
    "everything": "footer.key=kf column.keys=kc1:price complete.columns=true data.key.length.bits=256",
}
JAVA_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4_RAW")


def test_reads_parquet_java(parquet_java: ParquetJava, tmp_path: Path) -> None:
    """With page indexes and an encrypted bloom filter, which a filter goes through."""
    pq.write_table(truth(), tmp_path / "plain.parquet")
    cases = list(itertools.product(JAVA_MODES, JAVA_CODECS, ("v1", "v2"), ("true", "false")))
    names = [f"file{number}" for number in range(len(cases))]
    described = [
        ";".join((name, codec, version, dictionary, JAVA_MODES[mode]))
        for name, (mode, codec, version, dictionary) in zip(names, cases, strict=True)
    ]
    managed_keys(parquet_java, "copy", tmp_path / "plain.parquet", tmp_path, *described)
    for name in names:
        path = tmp_path / f"{name}.parquet"
        assert_true(fastpq.read_table(path, decryption_properties=managed(path)))
        found = fastpq.read_table(path, ["id"], filters=[("name", "==", "name 3")], decryption_properties=managed(path))
        assert found["id"].to_pylist() == [row for row in range(ROWS) if row % 7 == 3]


ARROW_MODES: dict[str, dict[str, Any]] = {
    "uniform": {"uniform_encryption": True},
    "by column": {"column_keys": {"kc1": list(COLUMN_PATHS)}},
    "signed footer": {"column_keys": {"kc1": list(COLUMN_PATHS)}, "plaintext_footer": True},
    "CTR": {"column_keys": {"kc1": list(COLUMN_PATHS)}, "encryption_algorithm": "AES_GCM_CTR_V1"},
}


def arrow_options() -> Iterator[dict[str, Any]]:
    for codec, version, dictionary, index in itertools.product(CODECS, ("1.0", "2.0"), (True, False), (True, False)):
        yield {
            "compression": codec,
            "data_page_version": version,
            "use_dictionary": dictionary,
            "write_page_index": index,
            "row_group_size": 200,
        }


@pytest.mark.parametrize("mode", ARROW_MODES)
def test_reads_pyarrow(tmp_path: Path, mode: str) -> None:
    path, keys = tmp_path / "arrow.parquet", arrow_factory()
    for options in arrow_options():
        configuration = pe.EncryptionConfiguration("kf", **ARROW_MODES[mode])
        properties = keys.file_encryption_properties(pe.KmsConnectionConfig(), configuration)
        pq.write_table(truth(), path, encryption_properties=properties, **options)
        assert_true(fastpq.read_table(path, decryption_properties=managed(path)))


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "zstd", "lz4"])
@pytest.mark.parametrize("columns", [{}, dict.fromkeys(COLUMN_PATHS, COLUMN_KEY)], ids=["uniform", "by column"])
def test_reads_polars(tmp_path: Path, columns: dict[str, bytes], codec: Any) -> None:
    path = tmp_path / "polars.parquet"
    with warnings.catch_warnings(action="ignore"):
        keys = pl.ParquetEncryptionProperties(footer_key=FOOTER_KEY, column_keys=columns)
        pl.DataFrame(pl.from_arrow(truth())).write_parquet(path, compression=codec, row_group_size=200, encryption=keys)
    assert_true(fastpq.read_table(path, decryption_properties=fastpq.FileDecryptionProperties(FOOTER_KEY, columns)))
