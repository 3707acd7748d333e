"""Files with keys in a key service, exchanged with pyarrow's CryptoFactory and parquet-java's, both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
from fastpq.encryption import CryptoFactory, DecryptionConfiguration, EncryptionConfiguration, KmsClient, KmsConnectionConfig
from fastpq.encryption.properties import ALGORITHMS
from tests.encryption.keys.peers import MASTER_KEYS, InMemoryKms, arrow_factory, factory, managed_keys
from tests.encryption.module_walk import open_file
from tests.encryption.test_exchange import ROWS, assert_expected, columns, expected, lines
from tests.interop.parquet_java import ParquetJava
from tests.requirements import DATA, needs_data

BY_COLUMN: dict[str, list[Any]] = {"kc1": ["price"], "kc2": ["name"]}
CONNECTION = KmsConnectionConfig()
FIXTURE_KEYS = {"kf": b"0123456789012345", "kc1": b"1234567890123450", "kc2": b"1234567890123451"}

# what fastpq writes: name -> options of EncryptionConfiguration
WRITTEN: dict[str, dict[str, Any]] = {
    "double internal": {},
    "single internal": {"double_wrapping": False},
    "double external": {"internal_key_material": False},
    "single external": {"double_wrapping": False, "internal_key_material": False},
    "192 bits": {"data_key_length_bits": 192},
    "256 bits": {"data_key_length_bits": 256},
    "short KEK": {"data_key_length_bits": 256, "kek_length_bits": 128},
    "complete": {"complete_columns": True},
    "as pyarrow": {"unlisted": "plaintext"},
    "signed, complete": {"plaintext_footer": True, "unlisted": "footer_key"},
    "uniform": {"uniform_encryption": True, "column_keys": {}},
    "plaintext footer": {"plaintext_footer": True, "unlisted": "plaintext"},
    "CTR": {"encryption_algorithm": "AES_GCM_CTR_V1"},
    "uniform external": {"uniform_encryption": True, "column_keys": {}, "internal_key_material": False},
}


def write(folder: Path, name: str, **more: Any) -> Path:
    path = folder / f"{name.replace(' ', '_')}.parquet"
    options: dict[str, Any] = {"column_keys": BY_COLUMN, **WRITTEN[name]}
    keys = factory().file_encryption_properties(CONNECTION, EncryptionConfiguration("kf", **options), path, **more)
    fastpq.write_table(columns(), path, row_group_size=2_000, data_page_rows=300, encryption_properties=keys)
    return path


def read(path: Path, **more: Any) -> fastpq.Table:
    more = {"allowed_algorithms": ALGORITHMS} | more
    keys = factory().file_decryption_properties(CONNECTION, DecryptionConfiguration(), path, **more)
    return fastpq.read_table(path, decryption_properties=keys)


def assert_arrow_reads(path: Path, master_keys: Any = MASTER_KEYS) -> None:
    keys = arrow_factory(master_keys).file_decryption_properties(
        pe.KmsConnectionConfig(), pe.DecryptionConfiguration(), str(path)
    )
    assert_expected(pq.read_table(path, decryption_properties=keys))


@pytest.mark.parametrize("name", WRITTEN)
def test_pyarrow_reads(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name)
    assert_arrow_reads(path)
    assert_expected(read(path))
    assert (tmp_path / f"_KEY_MATERIAL_FOR_{path.name}.json").exists() == ("external" in name)


def test_pyarrow_reads_a_stored_aad_prefix(tmp_path: Path) -> None:
    path = write(tmp_path, "double internal", aad_prefix=b"tenant 7")
    assert_arrow_reads(path)
    assert_expected(read(path, aad_prefix=b"tenant 7"))
    with pytest.raises(fastpq.CryptoError, match="is not the supplied one"):
        read(path, aad_prefix=b"tenant 8")
    hidden = write(tmp_path, "single internal", aad_prefix=b"tenant 7", store_aad_prefix=False)
    assert_expected(read(hidden, aad_prefix=b"tenant 7"))
    with pytest.raises(OSError, match="AAD"):
        assert_arrow_reads(hidden)


def test_parquet_java_reads(tmp_path: Path, parquet_java: ParquetJava) -> None:
    paths = [write(tmp_path, name) for name in WRITTEN]
    assert managed_keys(parquet_java, "read", *paths) == lines() * len(paths)


@pytest.mark.parametrize("bits", [128, 192, 256])
@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("internal", [True, False])
def test_reads_pyarrow(tmp_path: Path, bits: int, double: bool, internal: bool) -> None:
    path = tmp_path / "arrow.parquet"
    configuration = pe.EncryptionConfiguration(
        "kf", column_keys=BY_COLUMN, double_wrapping=double, internal_key_material=internal, data_key_length_bits=bits
    )
    keys = arrow_factory().file_encryption_properties(pe.KmsConnectionConfig(), configuration, str(path))
    pq.write_table(expected(), path, encryption_properties=keys, row_group_size=2_000)
    assert_expected(read(path))


def test_reads_pyarrow_s_uniform_encryption(tmp_path: Path) -> None:
    path = tmp_path / "arrow.parquet"
    keys = arrow_factory().file_encryption_properties(
        pe.KmsConnectionConfig(), pe.EncryptionConfiguration("kf", uniform_encryption=True)
    )
    pq.write_table(expected(), path, encryption_properties=keys)
    assert_expected(read(path))


COLUMN_KEYS = "footer.key=kf column.keys=kc1:price;kc2:name"
JAVA_OPTIONS = {
    "double internal": COLUMN_KEYS,
    "single external": f"{COLUMN_KEYS} double.wrapping=false key.material.store.internally=false",
    "256 complete": f"{COLUMN_KEYS} complete.columns=true data.key.length.bits=256 kek.length.bits=192",
    "uniform external": "uniform.key=kf key.material.store.internally=false data.key.length.bits=192",
    "plaintext footer": f"{COLUMN_KEYS} plaintext.footer=true",
}


@pytest.mark.parametrize("name", JAVA_OPTIONS)
def test_reads_parquet_java(tmp_path: Path, parquet_java: ParquetJava, name: str) -> None:
    path = tmp_path / "java.parquet"
    managed_keys(parquet_java, "write", path, str(ROWS), options=JAVA_OPTIONS[name])
    assert (tmp_path / "_KEY_MATERIAL_FOR_java.parquet.json").exists() == ("external" in name)
    assert_expected(read(path))


def test_a_group_s_path_covers_its_columns(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2, 3], "list": [[1, 2], None, []], "point": [{"x": 1, "y": None}, None, {"x": 2, "y": 3.5}]})
    ours, theirs = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    column_keys: dict[str, list[Any]] = {"kc1": ["list"], "kc2": ["point"]}
    configuration = pe.EncryptionConfiguration("kf", column_keys=column_keys)
    arrow = arrow_factory()
    made = arrow.file_encryption_properties(pe.KmsConnectionConfig(), configuration)
    pq.write_table(table, theirs, encryption_properties=made)
    keys = factory().file_encryption_properties(CONNECTION, EncryptionConfiguration("kf", column_keys=column_keys))
    fastpq.write_table(read(theirs), ours, encryption_properties=keys)
    opened = arrow.file_decryption_properties(pe.KmsConnectionConfig(), pe.DecryptionConfiguration())
    assert pq.read_table(ours, decryption_properties=opened).equals(table)
    for path in (ours, theirs):
        assert pa.table(read(path)).cast(table.schema).equals(table)
    without = factory({"kf": MASTER_KEYS["kf"]}).file_decryption_properties(CONNECTION)
    assert fastpq.read_table(ours, ["id"], decryption_properties=without).num_rows == 3
    for name in ("list", "point"):
        with pytest.raises(fastpq.KeyAccessError, match=name):
            fastpq.read_table(ours, [name], decryption_properties=without)


def fixtures() -> list[dict[str, Any]]:
    """The files that pyarrow and Spark wrote with a key service."""
    path = DATA / "encryption/fixtures/manifest.json"
    if not path.exists():
        return []
    manifest = json.loads(path.read_text())
    return [entry | {"master_keys": manifest["kms_master_keys"]} for entry in manifest["files"] if entry["kms"]]


@needs_data
@pytest.mark.parametrize("entry", fixtures(), ids=lambda entry: entry["name"])
def test_fixture_through_the_key_service(entry: dict[str, Any]) -> None:
    path = DATA / "encryption/fixtures" / entry["file"]
    master_keys = {name: bytes.fromhex(key) for name, key in entry["master_keys"].items()}
    # that file names an instance and a URL, so the reader has to say where to go
    own = KmsConnectionConfig("inst1", kms_instance_url="https://own")
    connection = own if entry["name"] == "pa_single" else CONNECTION
    keys = factory(master_keys).file_decryption_properties(
        connection, parquet_file_path=path, allowed_algorithms=[entry["algorithm"]]
    )
    with fastpq.ParquetFile(path, decryption_properties=keys, coerce_int96_timestamp_unit="us") as file:
        table = pa.table(file.read())
    truth = pq.read_table(path.parent / f"expected_{entry['table']}.parquet")
    assert table.select(truth.column_names).cast(truth.schema).equals(truth)


@needs_data
def test_parquet_testing_s_external_material() -> None:
    """Written by parquet-java: every module opens with the keys that the material file leads to."""
    folder = DATA / "parquet-testing/data"
    path = folder / "external_key_material_java.parquet.encrypted"
    keys = factory(FIXTURE_KEYS).file_decryption_properties(CONNECTION, parquet_file_path=path)
    file = open_file(path.read_bytes(), keys)
    arrow = arrow_factory(FIXTURE_KEYS).file_decryption_properties(
        pe.KmsConnectionConfig(), pe.DecryptionConfiguration(), str(path)
    )
    assert file.metadata.num_rows == pq.read_table(path, decryption_properties=arrow).num_rows
    assert file.walk() > 0


@needs_data
@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("efk__key_metadata_not_json", fastpq.FormatError, "key metadata"),
        ("efk__kms_url_replaced_in_FCM", fastpq.KeyAccessError, "trust_kms_url_from_file"),
    ],
)
def test_forged_key_metadata(name: str, kind: type[Exception], message: str) -> None:
    path = DATA / f"encryption/forged/{name}.parquet"
    with pytest.raises(kind, match=message):
        fastpq.read_table(path, decryption_properties=factory(FIXTURE_KEYS).file_decryption_properties(CONNECTION))


@needs_data
def test_a_forged_url_is_where_trust_leads() -> None:
    reached = []

    def connect(config: KmsConnectionConfig) -> KmsClient:
        reached.append(config.kms_instance_url)
        return InMemoryKms(FIXTURE_KEYS)

    path = DATA / "encryption/forged/efk__kms_url_replaced_in_FCM.parquet"
    trusting = DecryptionConfiguration(trust_kms_url_from_file=True)
    keys = CryptoFactory(connect).file_decryption_properties(CONNECTION, trusting)
    assert fastpq.read_table(path, decryption_properties=keys).num_rows > 0
    own = KmsConnectionConfig(kms_instance_url="https://kms.example")
    keys = CryptoFactory(connect).file_decryption_properties(own)
    assert fastpq.read_table(path, decryption_properties=keys).num_rows > 0
    assert reached[0] not in ("DEFAULT", "https://kms.example")
    assert reached[1:] == ["https://kms.example"]
