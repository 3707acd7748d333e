"""AuditLog: one record for each use of a key, none of them with a key."""

from __future__ import annotations

import io
import itertools
import json
import logging
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.encryption import (
    AuditLog,
    AuditRecord,
    ColumnEncryptionProperties,
    CryptoFactory,
    EncryptionConfiguration,
    KmsConnectionConfig,
)
from tests.encryption.keys.peers import MASTER_KEYS, InMemoryKms

FOOTER_KEY, PRICE_KEY = b"key of the foot.", b"key of one col. "
DATA: dict[str, Any] = {"id": np.arange(100), "price": np.arange(100) / 4, "note": np.arange(100)}
GUARD = 20      # seconds, so that a mistake cannot hang the tests
CONNECTION = KmsConnectionConfig(key_access_token="token of the caller")


class Records(list[AuditRecord]):
    """Records of a log, which a test looks at."""

    def log(self, **options: Any) -> AuditLog:
        return AuditLog(self.append, **options)

    def facts(self) -> list[tuple[str, str | None, str | None, str]]:
        return [(record.operation, record.column, record.key_id, record.outcome) for record in self]


@pytest.fixture
def records() -> Records:
    return Records()


def explicit_file(path: Any, **options: Any) -> None:
    keys = fastpq.FileEncryptionProperties(
        FOOTER_KEY,
        {"price": ColumnEncryptionProperties(PRICE_KEY, key_metadata=b"key 1"), "note": PRICE_KEY},
        footer_key_metadata=b"footer", **options)
    fastpq.write_table(DATA, path, encryption_properties=keys, row_group_size=30)


def managed_file(path: Any, factory: CryptoFactory, **options: Any) -> None:
    configuration = EncryptionConfiguration("kf", column_keys={"kc1": ["price", "note"]}, **options)
    keys = factory.file_encryption_properties(CONNECTION, configuration, path)
    fastpq.write_table(DATA, path, encryption_properties=keys, row_group_size=30)


def test_explicit_keys(tmp_path: Path, records: Records) -> None:
    path = tmp_path / "a.parquet"
    explicit_file(path, audit=records.log())
    written = [("explicit", None, "footer", "ok"), ("footer key", "id", "footer", "ok"), ("explicit", "price", "key 1", "ok"),
               ("explicit", "note", None, "ok")]
    assert records.facts() == written
    assert {record.file for record in records} == {str(path)}
    records.clear()
    keys = fastpq.FileDecryptionProperties(FOOTER_KEY, {"price": PRICE_KEY, "note": PRICE_KEY}, audit=records.log())
    with fastpq.ParquetFile(path, decryption_properties=keys) as file:
        assert records.facts() == written[:1]
        for _ in range(2):
            assert file.read(["price"]).num_rows == 100
        assert records.facts() == [written[0], written[2]]
        file.read()
        list(file.iter_batches(10))
    assert sorted(records.facts(), key=str) == sorted(written, key=str)
    assert [record.sequence for record in records] == [1, 2, 3, 4]
    for record in records:
        assert record.process == os.getpid()
        assert record.user
        assert record.time.endswith("+00:00")
        assert record.file == str(path)


def test_retrieved_keys(tmp_path: Path, records: Records) -> None:
    path = tmp_path / "a.parquet"
    explicit_file(path)

    def find(key_metadata: bytes) -> bytes | None:
        return {b"footer": FOOTER_KEY}.get(key_metadata)

    keys = fastpq.FileDecryptionProperties(key_retriever=find, audit=records.log())
    with pytest.raises(fastpq.KeyAccessError):
        fastpq.read_table(path, decryption_properties=keys)
    assert records.facts()[:1] == [("retrieved", None, "footer", "ok")]
    assert ("retrieved", "price", "key 1", "denied") in records.facts()
    assert records[0].client == "test_retrieved_keys.<locals>.find"


@pytest.mark.parametrize("double", [True, False])
def test_a_key_service(tmp_path: Path, records: Records, double: bool) -> None:
    factory = CryptoFactory(lambda connection: InMemoryKms(), audit=records.log())
    for number in range(2):
        managed_file(tmp_path / f"{number}.parquet", factory, double_wrapping=double)
    later = "cached" if double else "wrap"
    assert records.facts() == [
        ("wrap", None, "kf", "ok"), ("wrap", "price", "kc1", "ok"), (later, "note", "kc1", "ok"),
        ("footer key", "id", "kf", "ok"),
        (later, None, "kf", "ok"), (later, "price", "kc1", "ok"), (later, "note", "kc1", "ok"), ("footer key", "id", "kf", "ok"),
    ]
    assert {record.access for record in records} == {"write"}
    assert {record.client for record in records if record.operation == "wrap"} == {"InMemoryKms"}
    records.clear()
    keys = factory.file_decryption_properties(CONNECTION)
    for number in range(2):
        fastpq.read_table(tmp_path / f"{number}.parquet", ["price", "note"], decryption_properties=keys)
    later = "cached" if double else "unwrap"
    assert sorted(records.facts()[:3], key=str) == sorted(
        [("unwrap", None, "kf", "ok"), ("unwrap", "price", "kc1", "ok"), (later, "note", "kc1", "ok")], key=str)
    assert {record.operation for record in records[3:]} == {later}
    assert {record.access for record in records} == {"read"}
    assert [Path(record.file or "").name for record in records] == ["0.parquet"] * 3 + ["1.parquet"] * 3


def test_a_file_whose_name_the_factory_does_not_know(tmp_path: Path, records: Records) -> None:
    factory = CryptoFactory(lambda connection: InMemoryKms(), audit=records.log())
    keys = factory.file_encryption_properties(CONNECTION, EncryptionConfiguration("kf", uniform_encryption=True))
    assert [(record.operation, record.file) for record in records] == [("wrap", None)]
    fastpq.write_table(DATA, tmp_path / "a.parquet", encryption_properties=keys)
    assert [(record.operation, record.file) for record in records[1:]] == [
        ("wrap", str(tmp_path / "a.parquet")), *[("footer key", str(tmp_path / "a.parquet"))] * 3]


def test_properties_that_serve_a_second_file(tmp_path: Path, records: Records) -> None:
    factory = CryptoFactory(lambda connection: InMemoryKms(), audit=records.log())
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    configuration = EncryptionConfiguration("kf", column_keys={"kc1": ["price"]})
    keys = factory.file_encryption_properties(CONNECTION, configuration, parquet_file_path=str(first))
    for path in (first, second):
        fastpq.write_table(DATA, path, encryption_properties=keys)
    for path in (first, second):
        columns = sorted((record.column for record in records if record.file == str(path)), key=str)
        assert columns == [None, "id", "note", "price"]


@pytest.mark.parametrize("spelling", ["{folder}/x/../a.parquet", "file://{folder}/a.parquet", "a.parquet", "./a.parquet"])
def test_a_path_that_is_spelt_in_another_way(
    tmp_path: Path, records: Records, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    """The file has one record for each key, and not one of the factory and one of the writer."""
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path)
    factory = CryptoFactory(lambda connection: InMemoryKms(), audit=records.log())
    configuration = EncryptionConfiguration("kf", column_keys={"kc1": ["price"]})
    path = spelling.format(folder=tmp_path)
    keys = factory.file_encryption_properties(CONNECTION, configuration, parquet_file_path=path)
    fastpq.write_table(DATA, tmp_path / "a.parquet", encryption_properties=keys)
    assert sorted((record.column for record in records), key=str) == [None, "id", "note", "price"]


def test_rotation(tmp_path: Path, records: Records) -> None:
    factory = CryptoFactory(lambda connection: InMemoryKms(), audit=records.log())
    managed_file(tmp_path / "a.parquet", factory, internal_key_material=False)
    records.clear()
    factory.rotate_master_keys(CONNECTION, tmp_path / "a.parquet")
    assert records.facts() == [("rotate", None, "kf", "ok"), ("rotate", "columnKey0", "kc1", "ok"),
                               ("rotate", "columnKey1", "kc1", "ok")]
    assert {record.access for record in records} == {"write"}


def test_columns_under_the_footer_key_name_its_master_key(tmp_path: Path, records: Records) -> None:
    factory = CryptoFactory(lambda connection: InMemoryKms(), audit=records.log())
    managed_file(tmp_path / "a.parquet", factory)
    records.clear()
    fastpq.read_table(tmp_path / "a.parquet", ["id"], decryption_properties=factory.file_decryption_properties(CONNECTION))
    assert records.facts() == [("unwrap", None, "kf", "ok"), ("footer key", "id", "kf", "ok")]


class Refusing(InMemoryKms):
    """A key service that refuses one master key. Its error shows the key that it was asked for."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        if master_key_identifier == "kc1":
            raise self.error
        return super().unwrap_key(wrapped_key, master_key_identifier)

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        if master_key_identifier == "kc1":
            raise RuntimeError(key_bytes.hex())
        return super().wrap_key(key_bytes, master_key_identifier)


@pytest.mark.parametrize(
    ("error", "outcome"), [(PermissionError("no"), "denied"), (TimeoutError(), "unavailable"), (RuntimeError("secret"), "failed")]
)
def test_refusals(tmp_path: Path, records: Records, error: Exception, outcome: str) -> None:
    path = tmp_path / "a.parquet"
    managed_file(path, CryptoFactory(lambda connection: InMemoryKms()))
    keys = CryptoFactory(lambda connection: Refusing(error), audit=records.log()).file_decryption_properties(CONNECTION)
    with pytest.raises(fastpq.KeyAccessError):
        fastpq.read_table(path, ["price"], decryption_properties=keys)
    assert records.facts() == [("unwrap", None, "kf", "ok"), ("unwrap", "price", "kc1", outcome)]
    assert type(error).__name__ in str(records[1].reason)
    assert "secret" not in str(records)


def test_a_wrap_that_fails(tmp_path: Path, records: Records) -> None:
    factory = CryptoFactory(lambda connection: Refusing(RuntimeError()), audit=records.log())
    with pytest.raises(fastpq.KeyAccessError):
        managed_file(tmp_path / "a.parquet", factory)
    assert records.facts() == [
        ("wrap", None, "kf", "ok"), ("wrap", "price", "kc1", "failed"), ("wrap", "note", "kc1", "failed")]


def test_a_wrong_footer_key_is_a_failure(tmp_path: Path, records: Records) -> None:
    path = tmp_path / "a.parquet"
    explicit_file(path)
    keys = fastpq.FileDecryptionProperties(PRICE_KEY, audit=records.log())
    with pytest.raises(fastpq.TagVerificationError):
        fastpq.read_table(path, decryption_properties=keys)
    assert records.facts() == [("explicit", None, "footer", "failed")]


def test_columns_read_as_null_are_recorded(tmp_path: Path, records: Records) -> None:
    path = tmp_path / "a.parquet"
    explicit_file(path)
    keys = fastpq.FileDecryptionProperties(FOOTER_KEY, audit=records.log())
    fastpq.read_table(path, decryption_properties=keys, on_missing_key="null")
    assert [(record.column, record.outcome) for record in records] == [
        (None, "ok"), ("id", "ok"), ("price", "denied"), ("note", "denied")]


def test_no_record_holds_a_key(tmp_path: Path, records: Records) -> None:
    factory = CryptoFactory(lambda connection: InMemoryKms(), audit=records.log())
    managed_file(tmp_path / "a.parquet", factory)
    explicit_file(tmp_path / "b.parquet", audit=records.log())
    fastpq.read_table(tmp_path / "a.parquet", decryption_properties=factory.file_decryption_properties(CONNECTION))
    text = "".join(record.to_json() + repr(record) for record in records)
    for secret in (FOOTER_KEY, PRICE_KEY, *MASTER_KEYS.values(), b"token of the caller"):
        assert secret.hex() not in text
        assert secret.decode() not in text


def fail(record: AuditRecord) -> None:
    raise OSError(f"disk full: {record.sequence}")


@pytest.mark.parametrize("way", ["read", "write", "wrap"])
def test_a_mandatory_log_that_fails_refuses_the_key(tmp_path: Path, way: str) -> None:
    path = tmp_path / "a.parquet"
    log = AuditLog(fail, mandatory=True)
    ways: dict[str, Callable[[], Any]] = {
        "read": lambda: fastpq.read_table(path, decryption_properties=fastpq.FileDecryptionProperties(FOOTER_KEY, audit=log)),
        "write": lambda: explicit_file(tmp_path / "b.parquet", audit=log),
        "wrap": lambda: managed_file(tmp_path / "b.parquet", CryptoFactory(lambda connection: InMemoryKms(), audit=log)),
    }
    explicit_file(path)
    with pytest.raises(fastpq.KeyAccessError, match="audit log is mandatory, and failed: OSError: disk full: 1") as caught:
        ways[way]()
    assert not caught.value.is_denied
    assert not (tmp_path / "b.parquet").exists()


def test_a_mandatory_log_fails_in_the_middle(tmp_path: Path) -> None:
    """The second column is refused each time, although the first attempt to record it failed."""
    path = tmp_path / "a.parquet"
    explicit_file(path)
    counter = itertools.count()

    def write(record: AuditRecord) -> None:
        if next(counter) >= 1:
            fail(record)

    keys = fastpq.FileDecryptionProperties(FOOTER_KEY, {"price": PRICE_KEY}, audit=AuditLog(write, mandatory=True))
    with fastpq.ParquetFile(path, decryption_properties=keys) as file:
        options: tuple[Any, ...] = ("raise", "null")
        for _, option in itertools.product(range(2), options):
            with pytest.raises(fastpq.KeyAccessError, match="mandatory"):
                file.read(["price"])
            with pytest.raises(fastpq.KeyAccessError, match="mandatory"):
                fastpq.read_table(path, ["price"], decryption_properties=keys, on_missing_key=option)


def test_a_mandatory_log_that_fails_refuses_the_key_to_all_threads(tmp_path: Path) -> None:
    """A second thread does not use the key while the first one still tries to record it."""
    path = tmp_path / "a.parquet"
    explicit_file(path)
    is_writing, may_fail = threading.Event(), threading.Event()

    def write(record: AuditRecord) -> None:
        if record.column == "price":
            is_writing.set()
            may_fail.wait(GUARD)
            fail(record)

    keys = fastpq.FileDecryptionProperties(FOOTER_KEY, {"price": PRICE_KEY}, audit=AuditLog(write, mandatory=True))
    with fastpq.ParquetFile(path, decryption_properties=keys) as file, ThreadPoolExecutor(2) as threads:
        first = threads.submit(file.read, ["price"])
        assert is_writing.wait(GUARD)
        second = threads.submit(file.read, ["price"])
        with pytest.raises(TimeoutError):
            second.result(0.2)
        may_fail.set()
        for read in (first, second):
            with pytest.raises(fastpq.KeyAccessError, match="mandatory"):
                read.result(GUARD)


def test_a_key_that_can_be_used_later_is_recorded_again(tmp_path: Path, records: Records) -> None:
    path = tmp_path / "a.parquet"
    explicit_file(path)
    answers: Iterator[bytes | OSError] = iter([OSError("down"), OSError("down"), PRICE_KEY])

    def find(key_metadata: bytes) -> bytes:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    keys = fastpq.FileDecryptionProperties(FOOTER_KEY, key_retriever=find, audit=records.log())
    with fastpq.ParquetFile(path, decryption_properties=keys) as file:
        for _ in range(2):
            with pytest.raises(OSError, match="down"):
                file.read(["price"])
        for _ in range(2):
            assert file.read(["price"]).num_rows == 100
    assert [(record.column, record.outcome) for record in records] == [(None, "ok"), ("price", "failed"), ("price", "ok")]


def test_another_log_that_fails_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    explicit_file(tmp_path / "a.parquet", audit=AuditLog(fail))
    assert "the audit log failed: OSError" in caplog.text
    assert "disk full" not in caplog.text


def test_loggers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "compliance")
    explicit_file(tmp_path / "a\nb.parquet", audit=AuditLog(logging.getLogger("compliance"), hash_chain=True))
    lines = [record.getMessage() for record in caplog.records]
    assert [record.levelname for record in caplog.records] == ["INFO"] * 4
    assert all("\n" not in line for line in lines)
    assert AuditLog.verify(lines) == 4
    wrong: Any = "file"
    with pytest.raises(TypeError, match="function or a logging"):
        AuditLog(wrong)
    with pytest.raises(ValueError, match="mandatory"):
        AuditLog(logging.getLogger("compliance"), mandatory=True)
    with pytest.raises(TypeError, match="AuditLog"):
        fastpq.FileDecryptionProperties(FOOTER_KEY, audit=wrong)


def chain(records: Records, count: int = 6, **options: Any) -> list[dict[str, Any]]:
    keys = fastpq.FileDecryptionProperties(FOOTER_KEY, audit=records.log(hash_chain=True, **options))
    out = io.BytesIO()
    explicit_file(out)
    for _ in range(count):
        fastpq.ParquetFile(out.getvalue(), decryption_properties=keys)
    return [json.loads(record.to_json()) for record in records]


FORGERIES: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "removed": lambda chained: chained.pop(3),
    "first removed": lambda chained: chained.pop(0),
    "moved": lambda chained: chained.insert(1, chained.pop(4)),
    "repeated": lambda chained: chained.insert(2, chained[2]),
    "altered": lambda chained: chained[3].update(outcome="denied"),
    "another user": lambda chained: chained[3].update(user="nobody"),
    "without its hash": lambda chained: chained[3].update(hash=None),
    "another previous one": lambda chained: chained[3].update(previous="0" * 64),
    "no record": lambda chained: chained.insert(2, {}),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_chains(records: Records, forgery: str) -> None:
    chained = chain(records)
    assert AuditLog.verify(chained) == 6
    FORGERIES[forgery](chained)
    with pytest.raises(fastpq.CryptoError, match="altered"):
        AuditLog.verify(chained)


HASH_KEY = b"a secret of the auditors"


def forge(chained: list[dict[str, Any]], hash_key: bytes | None = None) -> None:
    """Alter a record, and compute all hashes anew, as everybody can without the key."""
    chained[0]["user"], previous = "nobody", "0" * 64
    for members in chained:
        members["previous"] = previous
        members["hash"] = previous = AuditRecord.from_json(json.dumps(members)).compute_hash(hash_key)


def test_a_chain_that_was_computed_anew(records: Records) -> None:
    """Without a key only a hash that is kept at another place shows it."""
    chained = chain(records)
    last_hash = chained[-1]["hash"]
    assert AuditLog.verify(chained, last_hash=last_hash, count=6) == 6
    forge(chained)
    assert AuditLog.verify(chained, count=6) == 6
    with pytest.raises(fastpq.CryptoError, match="last_hash"):
        AuditLog.verify(chained, last_hash=last_hash)


@pytest.mark.parametrize("forgers_key", [None, b"the secret of a forger"])
def test_a_chain_with_a_key(records: Records, forgers_key: bytes | None) -> None:
    chained = chain(records, hash_key=HASH_KEY)
    assert AuditLog.verify(chained, hash_key=HASH_KEY) == 6
    assert AuditLog.verify(chained[2:], after=chained[1], hash_key=HASH_KEY) == 4
    for wrong in (None, b"the secret of a forger"):
        with pytest.raises(fastpq.CryptoError, match="altered"):
            AuditLog.verify(chained, hash_key=wrong)
    forge(chained, forgers_key)
    with pytest.raises(fastpq.CryptoError, match="altered"):
        AuditLog.verify(chained, hash_key=HASH_KEY)


def test_a_removed_end(records: Records) -> None:
    chained = chain(records, hash_key=HASH_KEY)
    last_hash = chained.pop()["hash"]
    assert AuditLog.verify(chained, hash_key=HASH_KEY) == 5
    for kept in ({"last_hash": last_hash}, {"count": 6}):
        with pytest.raises(fastpq.CryptoError, match="altered"):
            AuditLog.verify(chained, hash_key=HASH_KEY, **kept)
    with pytest.raises(fastpq.CryptoError, match="altered"):
        AuditLog.verify([], last_hash=last_hash)


def test_wrong_hash_keys(records: Records) -> None:
    wrong: Any
    for wrong, error in (("a text of some length", TypeError), (b"short", ValueError), (b"", ValueError)):
        for call in (lambda key: records.log(hash_key=key), lambda key: AuditLog.verify([], hash_key=key)):
            with pytest.raises(error, match="hash_key") as caught:
                call(wrong)
            assert "some length" not in str(caught.value)
    assert HASH_KEY.decode() not in repr(vars(records.log(hash_key=HASH_KEY)))


@pytest.mark.parametrize("hash_key", [None, HASH_KEY])
def test_a_chain_goes_on_after_a_restart(records: Records, hash_key: bytes | None) -> None:
    chain(records, 3, hash_key=hash_key)
    chain(records, 3, hash_key=hash_key, after=records[-1])
    chain(records, 1, hash_key=hash_key, after=records[-1].to_json() + "\n")
    chain(records, 1, hash_key=hash_key, after=json.loads(records[-1].to_json()))
    assert [record.sequence for record in records] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert AuditLog.verify(records, hash_key=hash_key) == 8
    assert AuditLog.verify(records[3:], after=records[2].to_json(), hash_key=hash_key) == 5


def test_a_chain_does_not_go_on_after_another_record(records: Records) -> None:
    chain(records, 1, hash_key=HASH_KEY)
    last = json.loads(records[0].to_json())
    for options in ({}, {"hash_key": b"another secret of 25 bytes"}):
        with pytest.raises(fastpq.CryptoError, match="after"):
            records.log(hash_chain=True, after=last, **options)
    for altered in ({**last, "user": "nobody"}, {**last, "hash": None}):
        with pytest.raises(fastpq.CryptoError, match="after"):
            records.log(hash_key=HASH_KEY, after=altered)
    for text in ("", "[]", "{}", "no record", "[" * 100_000, json.dumps({**last, "sequence": "1"})):
        with pytest.raises(ValueError, match="audit record"):
            records.log(hash_key=HASH_KEY, after=text)
        with pytest.raises(ValueError, match="audit record"):
            AuditRecord.from_json(text)
        with pytest.raises(fastpq.CryptoError, match="altered"):
            AuditLog.verify([text], hash_key=HASH_KEY)
    assert AuditRecord.from_json(records[0].to_json()) == records[0]


def test_a_record_that_was_not_written_has_no_number(records: Records) -> None:
    counter = itertools.count()

    def write(record: AuditRecord) -> None:
        if next(counter) == 1:
            fail(record)
        records.append(record)

    log = AuditLog(write, mandatory=True, hash_chain=True)
    keys = fastpq.FileDecryptionProperties(FOOTER_KEY, audit=log)
    out = io.BytesIO()
    explicit_file(out)
    for _ in range(2):
        with pytest.raises(fastpq.KeyAccessError) if _ else pytest.MonkeyPatch.context():
            fastpq.ParquetFile(out.getvalue(), decryption_properties=keys)
    fastpq.ParquetFile(out.getvalue(), decryption_properties=keys)
    assert AuditLog.verify(records) == 2


def test_threads(records: Records) -> None:
    out = io.BytesIO()
    explicit_file(out)
    keys = fastpq.FileDecryptionProperties(
        FOOTER_KEY, {"price": PRICE_KEY, "note": PRICE_KEY}, audit=records.log(hash_chain=True))
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: fastpq.read_table(out.getvalue(), decryption_properties=keys), range(20)))
    assert AuditLog.verify(records) == 80


def test_a_log_is_not_copied() -> None:
    with pytest.raises(TypeError, match="AuditLog"):
        pickle.dumps(AuditLog(fail))
