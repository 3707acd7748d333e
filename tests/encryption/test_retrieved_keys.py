"""Key retrievers: their answers, good and bad, and how often and how many at a time they are asked."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.encryption import (
    ColumnEncryptionProperties,
    CryptoFactory,
    EncryptionConfiguration,
    FileDecryptionProperties,
    FileEncryptionProperties,
    KmsConnectionConfig,
)
from tests.encryption.keys.peers import InMemoryKms

FOOTER_KEY = b"f" * 16
COLUMNS = [f"c{number}" for number in range(8)]
TABLE = {name: np.arange(10) for name in COLUMNS}
GUARD = 20      # seconds until a test fails that hangs
SINGLE = EncryptionConfiguration("kf", column_keys={"kc1": COLUMNS}, double_wrapping=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with a key of its own for each column, named by its key metadata."""
    columns = {name: ColumnEncryptionProperties(key_of(name.encode()), key_metadata=name.encode()) for name in COLUMNS}
    made = tmp_path / "file.parquet"
    keys = FileEncryptionProperties(FOOTER_KEY, columns, footer_key_metadata=b"f")
    fastpq.write_table(TABLE, made, encryption_properties=keys)
    return made


def key_of(key_metadata: bytes) -> bytes:
    return key_metadata[-1:] * 16


@pytest.mark.parametrize(
    "answer",
    ["f" * 16, "", 7, ["f"], np.full(16, ord("f"), np.uint8), object()],
    ids=["text", "no text", "int", "list", "array", "object"],
)
def test_answers_that_are_no_key(path: Path, answer: Any) -> None:
    for wrong in (b"f", b"c1"):
        def retriever(key_metadata: bytes, wrong: bytes = wrong) -> Any:
            return answer if key_metadata == wrong else key_of(key_metadata)

        properties = FileDecryptionProperties(key_retriever=retriever)
        with pytest.raises(fastpq.CryptoError, match=rf"a key in bytes, not {type(answer).__name__}.*file\.parquet"):
            fastpq.read_table(path, decryption_properties=properties)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, fastpq.encryption.AesKey], ids=lambda kind: kind.__name__)
def test_answers_that_are_keys(path: Path, kind: Any) -> None:
    asked: list[bytes] = []

    def retriever(key_metadata: bytes) -> Any:
        asked.append(key_metadata)
        return kind(key_of(key_metadata))

    with fastpq.ParquetFile(path, decryption_properties=FileDecryptionProperties(key_retriever=retriever)) as file:
        assert file.read().num_rows == file.read(COLUMNS[:2]).num_rows == 10
    assert sorted(asked) == [*(name.encode() for name in COLUMNS), b"f"]


def test_a_function_is_called_by_one_thread_at_a_time(path: Path) -> None:
    calling = threading.Lock()

    def retriever(key_metadata: bytes) -> bytes:
        assert calling.acquire(blocking=False)
        time.sleep(0.005)
        calling.release()
        return key_of(key_metadata)

    with fastpq.ParquetFile(path, decryption_properties=FileDecryptionProperties(key_retriever=retriever)) as file:
        readers = [threading.Thread(target=file.read, args=([name],)) for name in COLUMNS]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        assert file.read().num_rows == 10


class DistantKms(InMemoryKms):
    """Takes its time, and answers the calls for columns when as many have come as there are columns."""

    def __init__(self, together: int) -> None:
        super().__init__()
        self.barrier = threading.Barrier(together)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        time.sleep(0.01)
        if master_key_identifier == "kc1":
            self.barrier.wait(GUARD)
        return super().unwrap_key(wrapped_key, master_key_identifier)


@pytest.mark.parametrize("filters", [None, [("c1", ">", 3)]], ids=["all rows", "filtered"])
def test_a_distant_service_is_asked_for_all_columns_at_once(tmp_path: Path, filters: Any) -> None:
    path, kms = tmp_path / "file.parquet", DistantKms(len(COLUMNS))
    factory = CryptoFactory(lambda config: kms)
    made = factory.file_encryption_properties(KmsConnectionConfig(), SINGLE)
    fastpq.write_table(TABLE, path, encryption_properties=made)
    opened = factory.file_decryption_properties(KmsConnectionConfig())
    assert fastpq.read_table(path, filters=filters, decryption_properties=opened).num_rows == (6 if filters else 10)
    assert sorted(kms.unwrapped) == ["kc1"] * len(COLUMNS) + ["kf"]


def test_errors_come_where_the_column_is_opened(tmp_path: Path) -> None:
    class Denying(DistantKms):
        calls = itertools.count()       # atomic: threads ask at once

        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            key = super().unwrap_key(wrapped_key, master_key_identifier)
            if next(self.calls) == 2:
                raise PermissionError
            return key

    path, kms = tmp_path / "file.parquet", Denying(1)
    factory = CryptoFactory(lambda config: kms)
    made = factory.file_encryption_properties(KmsConnectionConfig(), SINGLE)
    fastpq.write_table(TABLE, path, encryption_properties=made)
    with fastpq.ParquetFile(path, decryption_properties=factory.file_decryption_properties(KmsConnectionConfig())) as file:
        with pytest.raises(fastpq.KeyAccessError, match=r"PermissionError.*column c\d"):
            file.read()
        assert len(kms.unwrapped) == 1 + len(COLUMNS)
        assert file.read().num_rows == 10       # asked again, for the one key
    assert len(kms.unwrapped) == 2 + len(COLUMNS)
