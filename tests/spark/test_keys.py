"""Keys: exchange with Spark's native encryption and pyarrow, refusals, and no key where Spark keeps things."""

from __future__ import annotations

import base64
import json
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from pyspark import cloudpickle

import fastpq
import fastpq.spark
from fastpq.encryption import AuditLog, AuditRecord, Keyring
from fastpq.spark.keyservice import KEYRING_VARIABLE, PASSPHRASE_VARIABLE, Encryption, ServiceOptions
from fastpq.spark.options import read_options, write_options
from fastpq.spark.scan.dataset_footers import Footers
from fastpq.spark.scan.file_scan import open_file
from fastpq.spark.scan.reader import plan_scan, schema_of_files
from fastpq.spark.tables.listing import list_files
from fastpq.spark.write.folder_writer import Writer
from tests.encryption.keys.peers import MASTER_KEYS, arrow_factory, key_list
from tests.spark.conftest import CLIENT, KEYS_VARIABLE
from tests.spark.kms import KEPT_RECORDS, hash_key

COLUMN_KEYS = {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:price;kc2:name"}
SERVICE: dict[str, Any] = {"kms.client": CLIENT}
MODES = [
    COLUMN_KEYS,
    {"parquet.encryption.uniform.key": "kf"},
    {**COLUMN_KEYS, "parquet.encryption.plaintext.footer": "true", "parquet.encryption.unlisted": "plaintext"},
    {**COLUMN_KEYS, "parquet.encryption.algorithm": "AES_GCM_CTR_V1", "parquet.encryption.double.wrapping": "false"},
    {**COLUMN_KEYS, "parquet.encryption.key.material.store.internally": "false"},
]


def frame_of(spark: Any, rows: int = 1000) -> Any:
    columns = ("id", "id / 4 as price", "if(id % 5 = 0, null, concat('name ', id % 7)) as name")
    return spark.range(rows, numPartitions=2).selectExpr(*columns)


@pytest.mark.parametrize("mode", MODES, ids=["columns", "uniform", "plaintext-footer", "ctr-single", "external"])
def test_exchange(source: Any, tmp_path: Path, mode: dict[str, str]) -> None:
    frame = frame_of(source)
    expected = sorted(frame.collect(), key=lambda row: row.id)
    frame.write.format("fastpq").mode("append").options(**mode, **SERVICE).save(str(tmp_path / "ours"))
    assert sorted(source.read.parquet(str(tmp_path / "ours")).collect(), key=lambda row: row.id) == expected
    frame.write.options(**mode).parquet(str(tmp_path / "native"))
    algorithm = {name: value for name, value in mode.items() if name.endswith("algorithm")}     # CTR must be asked for
    ours = source.read.format("fastpq").options(**SERVICE, **algorithm).load(str(tmp_path / "native"))
    assert sorted(ours.collect(), key=lambda row: row.id) == expected
    if "external" not in str(mode):
        file = next((tmp_path / "ours").glob("*.parquet"))
        opened = arrow_factory().file_decryption_properties(pe.KmsConnectionConfig(), pe.DecryptionConfiguration(), str(file))
        assert 0 < pq.ParquetFile(file, decryption_properties=opened).read().num_rows < 1000


def test_labels_of_spark_ml_do_not_come_into_a_footer(source: Any, tmp_path: Path) -> None:
    frame = frame_of(source).withMetadata("name", {"ml_attr": {"vals": ["name 1", "name 2"]}, "comment": "who"})
    for mode, hidden in ((COLUMN_KEYS, True), (MODES[2], True), ({"parquet.encryption.uniform.key": "kf"}, False)):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        frame.write.format("fastpq").mode("append").options(**mode, **SERVICE).save(str(folder))
        keys = arrow_factory().file_decryption_properties(pe.KmsConnectionConfig(), pe.DecryptionConfiguration())
        told = pq.ParquetFile(next(folder.glob("*.parquet")), decryption_properties=keys).metadata.metadata
        schema = told[b"org.apache.spark.sql.parquet.row.metadata"].decode()
        assert ("name 1" not in schema) is hidden
        assert '"comment"' in schema
        assert fastpq.spark.read(source, str(folder), **SERVICE).count() == 1000


def test_a_user_without_a_key(source: Any, tmp_path: Path) -> None:
    frame_of(source).write.format("fastpq").mode("append").options(**COLUMN_KEYS, **SERVICE).save(str(tmp_path))
    denied: dict[str, Any] = {**SERVICE, "kms.conf.denied": "kc2"}
    assert fastpq.spark.read(source, str(tmp_path), ["id", "price"], **denied).count() == 1000
    with pytest.raises(Exception, match=r"KeyAccessError.*column name"):
        fastpq.spark.read(source, str(tmp_path), ["name"], **denied).collect()
    with pytest.raises(fastpq.KeyAccessError):
        fastpq.spark.read(source, str(tmp_path))


def test_columns_without_a_key_are_null(source: Any, tmp_path: Path) -> None:
    frame_of(source).write.format("fastpq").mode("append").options(**COLUMN_KEYS, **SERVICE).save(str(tmp_path))
    denied: dict[str, Any] = {**SERVICE, "kms.conf.denied": "kc2", "onMissingKey": "null"}
    rows = fastpq.spark.read(source, str(tmp_path), **denied).where("id = 7").collect()
    assert [tuple(row) for row in rows] == [(7, 1.75, None)]
    assert fastpq.spark.read(source, str(tmp_path), filters=[("id", "<", 3)], **denied).count() == 3
    with pytest.raises(Exception, match=r"KeyAccessError.*on whose values the answer depends.*column name"):
        fastpq.spark.read(source, str(tmp_path), filters=[("name", "==", "name 3")], **denied).collect()
    with pytest.raises(fastpq.SchemaError, match="onMissingKey"):
        fastpq.spark.read(source, str(tmp_path), **{**denied, "onMissingKey": "skip"})


def test_inspect_encryption_needs_no_key(source: Any, tmp_path: Path) -> None:
    frame_of(source).coalesce(1).write.format("fastpq").mode("append").options(**COLUMN_KEYS, **SERVICE).save(str(tmp_path))
    fastpq.write_table({"id": [1, 2, 3]}, tmp_path / "plain.parquet")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    rows = fastpq.spark.inspect_dataset_encryption(source, str(tmp_path)).collect()
    torn = [row for row in rows if row.path.endswith("torn.parquet")]
    assert [(row.footer, "FormatError" in row.error) for row in torn] == [(None, True)]
    found = {(row.path, row.footer, row.column, row.key, row.master_key_id) for row in rows if row.error is None}
    inspection = fastpq.inspect_encryption(tmp_path)
    table = inspection.table()
    names = ("path", "footer", "column", "key", "master_key_id")
    assert found == set(zip(*(table[name].to_pylist() for name in names), strict=True))
    assert "kf" in {identifier for *_, identifier in found}


def test_executors_record_who_opened_what(source: Any, tmp_path: Path) -> None:
    folder = tmp_path / "items"
    frame_of(source).write.format("fastpq").mode("append").options(**COLUMN_KEYS, **SERVICE).save(str(folder))
    chained = {"kms.audit": "tests.spark.kms:audit", "kms.audit.hash.key": "tests.spark.kms:hash_key"}
    audited: dict[str, Any] = {**SERVICE, **chained}
    assert len(fastpq.spark.read(source, str(folder), ["price"], **audited).collect()) == 1000
    records = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    in_tasks = [record for record in records if record["task"] is not None]
    files = {str(path) for path in folder.glob("*.parquet")}
    places = {(record["file"], record["column"]) for record in in_tasks}
    assert places == {(file, name) for file in files for name in (None, "price")}
    assert {record["client"] for record in records if record["operation"] == "unwrap"} == {"InMemoryKms"}
    assert all(record["outcome"] == "ok" and record["user"] for record in records)
    assert re.fullmatch(r"stage \d+, partition \d+, attempt \d+", in_tasks[0]["task"])
    for process in {record["process"] for record in records}:
        chain = [record for record in records if record["process"] == process]
        assert AuditLog.verify(chain[1:], chain[0], hash_key=hash_key()) == len(chain) - 1
        assert all(AuditRecord(**record).compute_hash() != record["hash"] for record in chain)      # without the secret
    failing: dict[str, Any] = {**SERVICE, "kms.audit": "tests.spark.kms:failing_audit", "kms.audit.mandatory": "true"}
    with pytest.raises(Exception, match="audit log is mandatory"):
        fastpq.spark.read(source, str(folder), **failing).collect()
    with pytest.raises(Exception, match=r"the audit function 'no:such' \(option kms.audit\)"):
        fastpq.spark.read(source, str(folder), **{**audited, "kms.audit": "no:such"}).collect()


def audited_service(**options: str) -> ServiceOptions:
    service = write_options({"path": "/tmp/t", "kms.audit": "tests.spark.kms:keep", **SERVICE, **options}).service
    assert service is not None
    return service


def test_the_secret_of_an_audit_comes_from_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEYS_VARIABLE, key_list(MASTER_KEYS))
    of_environment = audited_service(**{"kms.audit.hash.key": "env:FASTPQ_TEST_AUDIT_SECRET"})
    with pytest.raises(fastpq.KeyAccessError, match=r"FASTPQ_TEST_AUDIT_SECRET \(option kms.audit.hash.key\) is not set"):
        of_environment.check()
    for text, words in (("no base64!", "is not base64"), (base64.b64encode(b"short").decode(), "16 bytes or more")):
        monkeypatch.setenv("FASTPQ_TEST_AUDIT_SECRET", text)
        with pytest.raises(fastpq.KeyAccessError, match=words) as caught:
            of_environment.check()
        assert text not in str(caught.value)
    monkeypatch.setenv("FASTPQ_TEST_AUDIT_SECRET", base64.b64encode(hash_key()).decode())
    for service in (of_environment, audited_service(**{"kms.audit.hash.key": "tests.spark.kms:hash_key"})):
        service.check()
        KEPT_RECORDS.clear()
        service.encryption(Encryption("kf", options={"uniform_encryption": True}), None)
        assert AuditLog.verify(KEPT_RECORDS, hash_key=hash_key()) == 1
        assert hash_key().decode() not in repr(service) + repr(pickle.dumps(service))
    for function, words in (
        ("failing_hash_key", "failed: RuntimeError$"),
        ("missing_hash_key", "returned None$"),
        ("hash_key_of_text", "malformed: .*bytes"),
    ):
        with pytest.raises(fastpq.KeyAccessError, match=words) as caught:
            audited_service(**{"kms.audit.hash.key": f"tests.spark.kms:{function}"}).check()
        assert "secret" not in str(caught.value).replace("the secret that", "")
    alone = write_options({"path": "/tmp/t", "kms.audit.hash.key": "env:X", **SERVICE}).service
    assert alone is not None
    with pytest.raises(fastpq.SchemaError, match=r"kms.audit.hash.key needs kms.audit"):
        alone.check()


@pytest.mark.parametrize(
    "options",
    [
        {"footer_key": "x"},
        {"kms.audit.hash.key": base64.b64encode(bytes(20)).decode(), **SERVICE},
        {"kms.audit.hash.key": "a secret that readers do not have", **SERVICE},
        {"kms.audit.hash.key": "base64:c2VjcmV0", **SERVICE},
        {"kms.audit.hash.key": MASTER_KEYS["kf"].hex(":"), **SERVICE},
        {"kms.audit.hash.key": MASTER_KEYS["kf"].hex(), **SERVICE},
        {"parquet.encryption.key.list": "k:AAECAwQFBgcICQoLDA0ODw=="},
        {"parquet.encryption.key.access.token": "t"},
        {"kms.conf.password": "p"},
        {"parquet.encryption.footer.key": MASTER_KEYS["kf"].hex(), **SERVICE},
        {"parquet.encryption.uniform.key": base64.b64encode(MASTER_KEYS["kf"]).decode(), **SERVICE},
        {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": f"{MASTER_KEYS['kc2'].hex()}:price", **SERVICE},
    ],
)
def test_keys_in_options_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(fastpq.SchemaError, match=r"secret|looks like a key") as caught:
        write_options({"path": "/tmp/t", **options})
    assert not any(value in str(caught.value) for value in options.values() if len(value) > 8 and value != CLIENT)


def test_limits_of_calls_are_options(tmp_path: Path) -> None:
    limits = {"kms.client": "tests.spark.kms:DownClient", "kms.timeout": "5", "kms.attempts": "2", "kms.conf.calls": "x"}
    service = write_options({"path": "/tmp/t", "parquet.encryption.uniform.key": "kf", **limits}).service
    assert service is not None
    assert (service.timeout, service.attempts) == (5.0, 2)
    down = replace(service, configuration=(("calls", str(tmp_path / "calls")),))
    with pytest.raises(fastpq.KeyAccessError, match=r"\(2 attempts\)") as raised:
        down.encryption(Encryption("kf", options={"uniform_encryption": True}), None)
    assert raised.value.is_unavailable
    assert (tmp_path / "calls").read_text() == "call\n" * 2


@pytest.mark.parametrize(
    "options",
    [
        {"kms.timeout": "0", **SERVICE},
        {"kms.timeout": "-1", **SERVICE},
        {"kms.timeout": "soon", **SERVICE},
        {"kms.attempts": "0", **SERVICE},
        {"kms.attempts": "1.5", **SERVICE},
        {"parquet.encryption.footer.key": "kf"},
        {"parquet.encryption.column.keys": "kf:a", **SERVICE},
        {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "price", **SERVICE},
        {"parquet.encryption.footer.key": "kf", "parquet.encryption.uniform.key": "kf", **SERVICE},
        {"parquet.encryption.footer.key": "kf", "parquet.encryption.plaintext.footer": "perhaps", **SERVICE},
        {"parquet.encryption.cache.lifetime.seconds": "nan", **SERVICE},
    ],
)
def test_options_that_do_not_fit(options: dict[str, str]) -> None:
    with pytest.raises(fastpq.SchemaError):
        write_options({"path": "/tmp/t", **options})


def test_options_of_a_keyring() -> None:
    with pytest.raises(fastpq.SchemaError, match="custom_kms_conf"):
        ServiceOptions("keyring", configuration=(("passphrase_file", "/somewhere"),)).connection()
    with pytest.raises(fastpq.KeyAccessError, match="FASTPQ_KEYRING"):
        ServiceOptions("keyring").connection()
    with pytest.raises(fastpq.KeyAccessError, match="FASTPQ_KEYRING_PASSPHRASE"):
        ServiceOptions("keyring", configuration=(("path", "/somewhere"),)).connection()


def test_keyrings_of_the_environment_share_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose environment changes: each keyring has master keys of its own under the same names."""
    service, encryption = ServiceOptions("keyring"), Encryption("kf", options={"uniform_encryption": True})
    for name in ("one", "two"):
        Keyring.create(tmp_path / name, f"passphrase {name}", scrypt_log_n=10).create_key("kf")

    def use(name: str) -> None:
        monkeypatch.setenv(KEYRING_VARIABLE, str(tmp_path / name))
        monkeypatch.setenv(PASSPHRASE_VARIABLE, f"passphrase {name}")

    path = str(tmp_path / "file.parquet")
    use("one")
    fastpq.write_table({"a": [1, 2]}, path, encryption_properties=service.encryption(encryption, path))
    assert open_file(path, service).count() == 2
    use("two")
    with pytest.raises(fastpq.TagVerificationError):
        open_file(path, service)
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "passphrase one")
    with pytest.raises(fastpq.KeyAccessError, match="the passphrase is wrong"):
        open_file(path, service)
    use("one")
    assert open_file(path, service).count() == 2


def test_master_keys_that_a_reader_does_not_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEYS_VARIABLE, key_list(MASTER_KEYS))
    path = str(tmp_path / "file.parquet")
    written = ServiceOptions(CLIENT).encryption(Encryption("kc1", options={"uniform_encryption": True}), path)
    fastpq.write_table({"a": [1, 2]}, path, encryption_properties=written)
    for keys, trusted in (("kc1, kf", True), ("kf", False)):
        service = read_options({"path": path, "kms.trusted.keys": keys, **SERVICE}).service
        if trusted:
            assert open_file(path, service).count() == 2
            continue
        with pytest.raises(fastpq.KeyAccessError, match="which trusted_master_keys does not contain"):
            open_file(path, service)


def test_a_plaintext_file_in_the_place_of_an_encrypted_one(tmp_path: Path) -> None:
    fastpq.write_table({"id": [1, 2]}, tmp_path / "a.parquet")
    assert open_file(str(tmp_path / "a.parquet"), ServiceOptions(CLIENT, allow_plaintext_files=True)).count() == 2
    with pytest.raises(fastpq.CryptoError):
        open_file(str(tmp_path / "a.parquet"), ServiceOptions(CLIENT))


def test_no_key_is_left_anywhere(source: Any, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Event logs, plans and pickles of an encrypted job; the native source's keys in spark.hadoop.* are not ours to hide."""
    options = {**COLUMN_KEYS, **SERVICE}
    frame_of(source).write.format("fastpq").mode("append").options(**options).save(str(tmp_path))
    frame = source.read.format("fastpq").options(**SERVICE).load(str(tmp_path))
    frame.collect()
    texts = [frame._jdf.queryExecution().toString().encode(), cloudpickle.dumps(write_options({"path": "p", **options}))]
    parsed = read_options({"path": str(tmp_path), **SERVICE})
    texts.append(pickle.dumps(parsed))
    files, footers = list_files([str(tmp_path)]), Footers(parsed.service)      # by which the driver has opened files
    texts.append(cloudpickle.dumps(plan_scan(files, schema_of_files(files, parsed, footers), parsed, footers)))
    texts.append(cloudpickle.dumps(Writer(frame.schema, write_options({"path": str(tmp_path / "w"), **options}), False)))
    for log in Path(source.conf.get("spark.eventLog.dir").removeprefix("file:")).rglob("*"):
        if log.is_file() and b"SparkListener" in (content := log.read_bytes())[:2000]:
            texts += [line for line in content.splitlines() if b"test.wrap" not in line]
    assert len(texts) > 20
    for key in MASTER_KEYS.values():
        for form in (key, key.hex().encode(), key.hex().upper().encode(), base64.b64encode(key)):
            assert not any(form in text for text in texts)
