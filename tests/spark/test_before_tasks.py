"""Faults that a driver can see end in typed errors with the mend, before a task of the write or job runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from pyspark.sql import types as st

import fastpq
import fastpq.spark
from fastpq.encryption import Keyring
from fastpq.spark.keyservice import KEYRING_VARIABLE, PASSPHRASE_VARIABLE
from fastpq.spark.options import write_options
from fastpq.spark.write.folder_writer import Writer
from fastpq.spark.write.write_checks import check_write
from tests.encryption.keys.peers import arrow_factory
from tests.spark.conftest import CLIENT

SERVICE: dict[str, Any] = {"kms.client": CLIENT}
UNIFORM: dict[str, Any] = {"parquet.encryption.uniform.key": "kf"}
SCHEMA = st.StructType([st.StructField("id", st.LongType()), st.StructField("a.b", st.LongType())])


@pytest.fixture
def no_tasks(source: Any) -> Iterator[Any]:
    """The session, in which no job may begin."""
    tracker = source.sparkContext.statusTracker()
    before = tracker.getJobIdsForGroup(None)
    yield source
    assert tracker.getJobIdsForGroup(None) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"footer.key": "kf"}, r"parquet\.encryption\.footer\.key alone .* parquet\.encryption\.uniform\.key"),
        ({"footer.key": "kf", "complete.columns": "true"}, r"parquet\.encryption\.column\.keys"),
        ({"uniform.key": "kf", "complete.columns": "true"}, r"parquet\.encryption\.complete\.columns"),
        ({"uniform.key": "kf", "data.key.length.bits": "100"}, r"parquet\.encryption\.data\.key\.length\.bits"),
        ({"uniform.key": "kf", "algorithm": "AES"}, r"parquet\.encryption\.algorithm"),
        ({"footer.key": "kf", "column.keys": "kc1:nope"}, r"parquet\.encryption\.column\.keys names 'nope'; .* id, a\.b"),
        ({"footer.key": "kf", "column.keys": "kc1:id", "partitionBy": "id"}, "of partitionBy"),
        ({"footer.key": "kf", "column.keys": "kc1:id", "plaintext.footer": "true"}, r"own: a\.b\. .*encryption\.unlisted"),
        ({"footer.key": "kf", "column.keys": "kc1:id", "unlisted": "raise"}, r"own: a\.b\."),
        ({"footer.key": "kf", "column.keys": "kc1:id", "unlisted": "none"}, r"parquet\.encryption\.unlisted must be"),
        ({"footer.key": "kf", "column.keys": "kc1:id", "unlisted": "raise", "complete.columns": "true"}, "cannot differ"),
        ({"uniform.key": "kf", "plaintext.columns": "id"}, r"parquet\.encryption\.plaintext\.columns needs"),
    ],
)
def test_options_of_encryption(options: dict[str, str], message: str, tmp_path: Path) -> None:
    prefixed = {name if name == "partitionBy" else f"parquet.encryption.{name}": value for name, value in options.items()}
    with pytest.raises(fastpq.SchemaError, match=message):
        Writer(SCHEMA, write_options({"path": str(tmp_path), **SERVICE, **prefixed}), False)


def test_complete_keys_leave_no_column_open() -> None:
    """Partition columns are not in the files, and leaves of nested columns can be listed one by one."""
    inner = st.StructType([st.StructField("x", st.LongType()), st.StructField("y", st.ArrayType(st.LongType()))])
    fields = [
        *SCHEMA.fields, st.StructField("part", st.LongType()), st.StructField("s", inner),
        st.StructField("m", st.MapType(st.StringType(), inner)), st.StructField("v", st.VariantType()),
    ]
    keys = {"parquet.encryption.footer.key": "kf", "parquet.encryption.unlisted": "raise", "partitionBy": "part"}
    listed = "kc1:id,a.b,s.x,s.y.list.element,m,v.metadata,v.value"
    options = {"path": "t", **SERVICE, **keys}
    check_write(st.StructType(fields), write_options({**options, "parquet.encryption.column.keys": listed}))
    partly = {**options, "parquet.encryption.column.keys": "kc1:id,a.b,m,v"}
    check_write(st.StructType(fields), write_options({**partly, "parquet.encryption.plaintext.columns": "s"}))
    with pytest.raises(fastpq.SchemaError, match=r"own: s\.y"):
        check_write(st.StructType(fields), write_options({**partly, "parquet.encryption.plaintext.columns": "s.x"}))
    for missing, name in (("s.x,", "s.x"), (",m", "m.key_value.key"), (",v.value", "v.value"), ("s.y.list.element,", "s.y")):
        with pytest.raises(fastpq.SchemaError, match=f"own: {name}"):
            partly = {**options, "parquet.encryption.column.keys": listed.replace(missing, "")}
            check_write(st.StructType(fields), write_options(partly))


def test_columns_of_keys_may_be_leaves_and_have_dots() -> None:
    fields = [*SCHEMA.fields, st.StructField("list", st.ArrayType(st.LongType()))]
    keys = {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:a.b,list.list.element"}
    check_write(st.StructType(fields), write_options({"path": "t", **SERVICE, **keys}))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select array() as x, 1 as y", r"UnsupportedError: writing array<void> .* cast\(\.\.\. as array<string>\)"),
        ("select map() as x, 1 as y", "UnsupportedError: writing map<void,void>"),
        ("select struct(array() as z) as x, 1 as y", "UnsupportedError: writing array<void>"),
        ("select interval '1' month as x", "UnsupportedError: writing interval month .* number of months"),
    ],
)
def test_types(no_tasks: Any, tmp_path: Path, query: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        no_tasks.sql(query).write.format("fastpq").mode("append").save(str(tmp_path))


def test_a_client_that_workers_cannot_import(no_tasks: Any, tmp_path: Path) -> None:
    fastpq.write_table({"id": [1]}, tmp_path / "a.parquet")
    message = r"KeyAccessError: the KMS client 'no\.such:Client' \(option kms\.client\) .*--py-files"
    write = no_tasks.range(3).write.format("fastpq").mode("append").options(**{"kms.client": "no.such:Client"}, **UNIFORM)
    with pytest.raises(Exception, match=message):
        write.save(str(tmp_path))
    with pytest.raises(Exception, match=message):
        no_tasks.read.schema("id long").format("fastpq").option("kms.client", "no.such:Client").load(str(tmp_path)).collect()


def test_a_client_of_the_driver_alone(source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are planned in the driver's own process, which has the module."""
    (tmp_path / "drivers_own.py").write_text("from tests.spark.kms import client\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "data").mkdir()
    fastpq.write_table({"id": [1]}, tmp_path / "data" / "a.parquet")
    service: dict[str, Any] = {"kms.client": "drivers_own:client"}
    for job in (fastpq.spark.encrypt_dataset, fastpq.spark.compact_dataset):
        with pytest.raises(fastpq.KeyAccessError, match=r"in a Python worker of Spark: the KMS client 'drivers_own:client'"):
            job(source, str(tmp_path / "data"), **service, **UNIFORM)
    for action in (fastpq.spark.verify_dataset, fastpq.spark.decrypt_dataset, fastpq.spark.rotate_keys, fastpq.spark.read):
        with pytest.raises(fastpq.KeyAccessError, match="in a Python worker of Spark"):
            action(source, str(tmp_path / "data"), **service)
    sys.modules.pop("drivers_own")
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["a.parquet"]


def test_a_keyring_that_workers_cannot_see(no_tasks: Any, tmp_path: Path) -> None:
    keyring: dict[str, Any] = {"kms.client": "keyring"}
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, rf"KeyAccessError: where is the keyring\? .*kms\.conf\.path.*spark\.executorEnv\.{KEYRING_VARIABLE}"),
        ({"kms.conf.path": str(tmp_path / "none")}, PASSPHRASE_VARIABLE),
    ]
    (tmp_path / "word").write_text("word\n")
    beside = {"kms.conf.path": str(tmp_path / "none"), "kms.conf.passphraseFile": str(tmp_path / "word")}
    cases.append((beside, "KeyAccessError: the keyring .*/none cannot be read by a Python worker of Spark"))
    for options, message in cases:
        write = no_tasks.range(3).write.format("fastpq").mode("append")
        with pytest.raises(Exception, match=message):
            write.options(**keyring, **UNIFORM, **options).save(str(tmp_path / "t"))


def test_a_keyring_of_the_driver_alone(source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables are set after the session began: workers do not have them."""
    Keyring.create(tmp_path / "ring", "word", scrypt_log_n=10).create_key("kf")
    monkeypatch.setenv(KEYRING_VARIABLE, str(tmp_path / "ring"))
    monkeypatch.setenv(PASSPHRASE_VARIABLE, "word")
    (tmp_path / "data").mkdir()
    fastpq.write_table({"id": [1]}, tmp_path / "data" / "a.parquet")
    with pytest.raises(fastpq.KeyAccessError, match=r"in a Python worker of Spark: where is the keyring\?"):
        fastpq.spark.encrypt_dataset(source, str(tmp_path / "data"), **{**UNIFORM, "kms.client": "keyring"})


def test_writing_from_a_thread(source: Any, tmp_path: Path) -> None:
    """A new thread has no active session, in which Spark looks up the format: the thread registers for itself."""
    problems: list[str | None] = []

    def write(registers: bool) -> None:
        if registers:
            fastpq.spark.register(source)
        try:
            frame = source.range(10)
            frame.write.format("fastpq").mode("append").save(str(tmp_path / "t"))
            problems.append(None)
        except Exception as error:
            problems.append(str(error))

    for registers in (False, True):
        thread = threading.Thread(target=write, args=(registers,))
        thread.start()
        thread.join()
    assert problems[1] is None
    assert problems[0] is None or "fastpq.DefaultSource" in problems[0]     # Spark's own refusal, before a line of fastpq runs
    assert source.read.format("fastpq").load(str(tmp_path / "t")).count() == 10 * problems.count(None)


def test_labels_of_open_columns_stay(source: Any, tmp_path: Path) -> None:
    """One closed column beside an open one: readers of the footer see the labels of the open one."""
    labels = {"ml_attr": {"vals": ["some", "labels"]}}
    frame = source.range(3).selectExpr("id", "string(id) as open", "string(id) as closed")
    frame = frame.withMetadata("open", labels).withMetadata("closed", {"ml_attr": {"vals": ["a secret"]}})
    keys = {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:closed"}
    frame.write.format("fastpq").mode("append").options(**keys, **SERVICE).save(str(tmp_path))
    opened = arrow_factory().file_decryption_properties(pe.KmsConnectionConfig(), pe.DecryptionConfiguration())
    told = pq.ParquetFile(next(tmp_path.glob("*.parquet")), decryption_properties=opened).metadata.metadata
    schema = told[b"org.apache.spark.sql.parquet.row.metadata"].decode()
    assert "labels" in schema
    assert "a secret" not in schema
