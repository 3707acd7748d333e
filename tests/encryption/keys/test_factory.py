"""CryptoFactory: options, calls of the key service, trust, and what becomes of keys."""

from __future__ import annotations

import copy
import json
import logging
import math
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import fastpq
from fastpq.encryption import (
    CryptoFactory,
    DecryptionConfiguration,
    EncryptionConfiguration,
    FileEncryptionProperties,
    KmsClient,
    KmsConnectionConfig,
)
from fastpq.encryption.keys.material import KeyMaterial, parse_key_metadata
from tests.encryption.keys.peers import MASTER_KEYS, InMemoryKms, factory

CONNECTION = KmsConnectionConfig()
BY_COLUMN = EncryptionConfiguration("kf", column_keys={"kc1": ["a", "b"], "kc2": ["c"]})
UNIFORM = EncryptionConfiguration("kf", uniform_encryption=True)
TABLE = {"a": np.arange(10), "b": np.arange(10), "c": np.arange(10), "d": np.arange(10)}


class Recorder:
    """A factory of clients that keeps them."""

    def __init__(self, make: Callable[[], KmsClient] = InMemoryKms) -> None:
        self.make = make
        self.clients: list[Any] = []
        self.configs: list[KmsConnectionConfig] = []

    def __call__(self, config: KmsConnectionConfig) -> KmsClient:
        self.configs.append(config)
        client = self.make()
        self.clients.append(client)
        return client

    @property
    def wrapped(self) -> list[str]:
        return [name for client in self.clients for name in client.wrapped]

    @property
    def unwrapped(self) -> list[str]:
        return [name for client in self.clients for name in client.unwrapped]


def material(properties: FileEncryptionProperties, column: str | None = None) -> KeyMaterial:
    found = None if column is None else properties.column((column,))
    stored = properties.footer_key_metadata if column is None else found and found.key_metadata
    assert stored
    parsed = parse_key_metadata(stored)
    assert isinstance(parsed, KeyMaterial)
    return parsed


def test_columns_of_a_master_key_share_a_kek_and_no_data_key() -> None:
    recorder = Recorder()
    keys = CryptoFactory(recorder)
    first, second = (keys.file_encryption_properties(CONNECTION, BY_COLUMN) for _ in range(2))
    assert sorted(recorder.wrapped) == ["kc1", "kc2", "kf"]
    assert len({material(one, name).kek_id for one in (first, second) for name in "ab"}) == 1
    assert len({material(one, name).wrapped_dek for one in (first, second) for name in "abc"}) == 6
    assert material(first, "a").kek_id != material(first, "c").kek_id
    assert material(first).is_footer_key
    assert not material(first, "a").is_footer_key
    other = first.column(("d",))
    assert other is not None
    assert other.key is None


def test_single_wrapping_asks_for_every_key() -> None:
    recorder = Recorder()
    configuration = EncryptionConfiguration("kf", column_keys=BY_COLUMN.column_keys, double_wrapping=False)
    properties = CryptoFactory(recorder).file_encryption_properties(CONNECTION, configuration)
    assert sorted(recorder.wrapped) == ["kc1", "kc1", "kc2", "kf"]
    assert material(properties).kek_id is None


@pytest.mark.parametrize("bits", [128, 192, 256])
def test_lengths(bits: int) -> None:
    configuration = EncryptionConfiguration("kf", uniform_encryption=True, data_key_length_bits=bits)
    keys = factory()
    properties = keys.file_encryption_properties(CONNECTION, configuration)
    assert isinstance(properties.footer_key, fastpq.encryption.AesKey)
    assert properties.footer_key.bits == bits
    [kek] = keys._caches.write_keks.values()
    assert kek.key.bits == bits


def test_caches_are_used_for_their_lifetime_and_token(tmp_path: Path) -> None:
    recorder = Recorder()
    keys = CryptoFactory(recorder)
    path = tmp_path / "file.parquet"
    fastpq.write_table(TABLE, path, encryption_properties=keys.file_encryption_properties(CONNECTION, BY_COLUMN))

    def read(config: KmsConnectionConfig, lifetime: timedelta = timedelta(minutes=10)) -> int:
        before = len(recorder.unwrapped)
        properties = keys.file_decryption_properties(config, DecryptionConfiguration(cache_lifetime=lifetime))
        assert fastpq.read_table(path, decryption_properties=properties).num_rows == 10
        return len(recorder.unwrapped) - before

    assert read(CONNECTION) == 3
    assert read(CONNECTION) == 0
    assert len(recorder.clients) == 1
    assert read(KmsConnectionConfig(key_access_token="another")) == 3
    assert len(recorder.clients) == 2
    # each column asks anew. The two of one master key share an answer only if their threads ask at the same time
    assert read(CONNECTION, timedelta(0)) in (3, 4)
    keys.remove_cache_entries_for_token("another")
    assert read(KmsConnectionConfig(key_access_token="another")) == 3
    keys.remove_cache_entries_for_all_tokens()
    assert read(CONNECTION) == 3


def test_a_refreshed_token_reaches_the_client() -> None:
    recorder = Recorder()
    config = KmsConnectionConfig(key_access_token="old")
    keys = CryptoFactory(recorder)
    keys.file_encryption_properties(config, UNIFORM)
    opened = keys.file_decryption_properties(config).key_retriever
    config.refresh_key_access_token("new")
    made = keys.file_encryption_properties(config, UNIFORM)
    assert opened is not None
    assert opened(made.footer_key_metadata or b"")
    # the client of the old token serves others who have the old token, and keeps it
    assert [made_for.key_access_token for made_for in recorder.configs] == ["old", "new"]


def test_the_connection_is_stored_with_the_footer_key_and_settled() -> None:
    recorder = Recorder()
    keys = CryptoFactory(recorder)
    own = KmsConnectionConfig("eu", kms_instance_url="https://kms.example")
    stored = material(keys.file_encryption_properties(own, UNIFORM))
    assert (stored.kms_instance_id, stored.kms_instance_url) == ("eu", "https://kms.example")
    stored = material(keys.file_encryption_properties(CONNECTION, UNIFORM))
    assert (stored.kms_instance_id, stored.kms_instance_url) == ("DEFAULT", "DEFAULT")
    assert [config.kms_instance_id for config in recorder.configs] == ["eu", "DEFAULT"]


@pytest.mark.parametrize(
    ("reader", "trust", "reached"),
    [
        (KmsConnectionConfig(), False, None),
        (KmsConnectionConfig(), True, ("eu", "https://from.the.file")),
        (KmsConnectionConfig("us", kms_instance_url="https://own"), True, ("us", "https://own")),
        (KmsConnectionConfig("us", kms_instance_url="https://own"), False, ("us", "https://own")),
        (KmsConnectionConfig(kms_instance_url="https://own"), False, None),
        (KmsConnectionConfig(kms_instance_url="https://own"), True, ("eu", "https://own")),
        (KmsConnectionConfig("us"), False, None),
        (KmsConnectionConfig("us"), True, ("us", "https://from.the.file")),
    ],
)
def test_names_from_a_file_are_used_only_when_trusted(
    tmp_path: Path, reader: KmsConnectionConfig, trust: bool, reached: tuple[str, str] | None
) -> None:
    path = tmp_path / "file.parquet"
    writer = KmsConnectionConfig("eu", kms_instance_url="https://from.the.file")
    fastpq.write_table(TABLE, path, encryption_properties=factory().file_encryption_properties(writer, UNIFORM))
    recorder = Recorder()
    configuration = DecryptionConfiguration(trust_kms_url_from_file=trust)
    properties = CryptoFactory(recorder).file_decryption_properties(reader, configuration)
    if reached is None:
        with pytest.raises(fastpq.KeyAccessError, match=r"(https://from\.the\.file|'eu').*trust_kms_url_from_file"):
            fastpq.read_table(path, decryption_properties=properties)
        assert not recorder.clients
        return
    assert fastpq.read_table(path, decryption_properties=properties).num_rows == 10
    assert [(config.kms_instance_id, config.kms_instance_url) for config in recorder.configs] == [reached]


def test_policies_are_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "plain.parquet"
    fastpq.write_table(TABLE, path)
    keys = factory()
    with pytest.raises(fastpq.CryptoError, match="allow_plaintext_files"):
        fastpq.read_table(path, decryption_properties=keys.file_decryption_properties(CONNECTION))
    open_to_all = keys.file_decryption_properties(CONNECTION, allow_plaintext_files=True)
    assert fastpq.read_table(path, decryption_properties=open_to_all).num_rows == 10
    with pytest.raises(TypeError, match="aad_prefixx"):
        keys.file_decryption_properties(CONNECTION, aad_prefixx=b"")   # type: ignore[call-arg]
    with pytest.raises(TypeError, match="aad_prefixx"):
        keys.file_encryption_properties(CONNECTION, UNIFORM, aad_prefixx=b"")  # type: ignore[call-arg]


def test_a_service_that_denies_one_master_key(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    fastpq.write_table(TABLE, path, encryption_properties=factory().file_encryption_properties(CONNECTION, BY_COLUMN))
    allowed = {name: key for name, key in MASTER_KEYS.items() if name != "kc1"}
    properties = factory(allowed).file_decryption_properties(CONNECTION)
    with fastpq.ParquetFile(path, decryption_properties=properties) as file:
        assert file.metadata.num_rows == 10
        assert file.read(["c", "d"]).num_rows == 10
        assert file.metadata.row_group(0).column(3).num_values == 10
        for touch in (lambda: file.read(["a"]), lambda: file.metadata.row_group(0).column(1).num_values):
            with pytest.raises(fastpq.KeyAccessError, match="master key 'kc1'") as raised:
                touch()
            assert isinstance(raised.value.__cause__, KeyError)


def test_a_client_that_cannot_be_made() -> None:
    def client(config: KmsConnectionConfig) -> KmsClient:
        raise RuntimeError("no credentials, but s3cret")

    with pytest.raises(fastpq.KeyAccessError, match=r"cannot be made: RuntimeError$"):
        CryptoFactory(client).file_encryption_properties(CONNECTION, UNIFORM)


def test_wrong_master_keys_and_altered_material(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    keys = factory()
    made = keys.file_encryption_properties(CONNECTION, UNIFORM)
    fastpq.write_table(TABLE, path, encryption_properties=made)
    wrong = factory(dict.fromkeys(MASTER_KEYS, b"x" * 16)).file_decryption_properties(CONNECTION)
    with pytest.raises(fastpq.KeyAccessError, match="InvalidTag"):
        fastpq.read_table(path, decryption_properties=wrong)
    retriever = keys.file_decryption_properties(CONNECTION).key_retriever
    assert retriever is not None
    other = material(keys.file_encryption_properties(CONNECTION, UNIFORM))
    members = json.loads(made.footer_key_metadata or b"")
    assert retriever(json.dumps(members).encode())
    altered = members | {"keyEncryptionKeyID": "AAAAAAAAAAAAAAAAAAAAAA=="}
    with pytest.raises(fastpq.TagVerificationError, match="wrapped key"):
        retriever(json.dumps(altered).encode())
    swapped = members | {"wrappedDEK": members["wrappedDEK"][:-4] + other.wrapped_dek[-4:]}
    with pytest.raises(fastpq.TagVerificationError, match="wrapped key"):
        retriever(json.dumps(swapped).encode())


def test_external_material(tmp_path: Path) -> None:
    keys = factory()
    configuration = EncryptionConfiguration("kf", column_keys={"kc1": ["a"]}, internal_key_material=False)
    with pytest.raises(fastpq.SchemaError, match="parquet_file_path"):
        keys.file_encryption_properties(CONNECTION, configuration)
    path = tmp_path / "file.parquet"
    first = keys.file_encryption_properties(CONNECTION, configuration, path)
    fastpq.write_table({"a": np.arange(3)}, path, encryption_properties=first)
    with pytest.raises(fastpq.KeyAccessError, match="parquet_file_path"):
        fastpq.read_table(path, decryption_properties=keys.file_decryption_properties(CONNECTION))
    properties = keys.file_decryption_properties(CONNECTION, parquet_file_path=str(path))
    assert fastpq.read_table(path, decryption_properties=properties).num_rows == 3
    material_file = tmp_path / "_KEY_MATERIAL_FOR_file.parquet.json"
    entries = json.loads(material_file.read_text())
    assert set(entries) == {"footerKey", "columnKey0"}
    material_file.write_text(json.dumps({"footerKey": entries["footerKey"]}))
    with pytest.raises(fastpq.KeyAccessError, match="no entry"):
        fastpq.read_table(path, decryption_properties=keys.file_decryption_properties(CONNECTION, parquet_file_path=path))
    material_file.unlink()
    with pytest.raises(fastpq.KeyAccessError, match="which is missing"):
        fastpq.read_table(path, decryption_properties=keys.file_decryption_properties(CONNECTION, parquet_file_path=path))
    path.unlink()
    keys.file_encryption_properties(CONNECTION, configuration, path)


def test_external_material_on_another_filesystem() -> None:
    keys = factory()
    configuration = EncryptionConfiguration("kf", uniform_encryption=True, internal_key_material=False)
    memory = fsspec.filesystem("memory")
    path = "memory://keys/file.parquet"
    fastpq.write_table(TABLE, path, encryption_properties=keys.file_encryption_properties(CONNECTION, configuration, path))
    assert memory.exists("/keys/_KEY_MATERIAL_FOR_file.parquet.json")
    for where, filesystem in ((path, None), ("/keys/file.parquet", memory)):
        properties = keys.file_decryption_properties(CONNECTION, None, where, filesystem)
        assert fastpq.read_table(path, decryption_properties=properties).num_rows == 10
    assert keys.rotate_master_keys(CONNECTION, "memory://keys") == ["/keys/file.parquet"]
    memory.rm("/keys", recursive=True)


def test_paths_with_dots_commas_and_groups() -> None:
    columns: dict[str, list[Any]] = {"kc1": [("a.b", "c,d"), "group"], "kc2": ["x;y:z"]}
    configuration = EncryptionConfiguration("kf", column_keys=columns, unlisted="plaintext")
    properties = factory().file_encryption_properties(CONNECTION, configuration)
    for path in (("a.b", "c,d"), ("group", "list", "element"), ("x;y:z",)):
        column = properties.column(path)
        assert column is not None
        assert column.key is not None
    assert properties.column(("other",)) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"plaintext_footer": True}, "either column_keys or uniform"),
        ({"unlisted": "plaintext"}, "either column_keys or uniform"),
        ({"complete_columns": False}, "either column_keys or uniform"),
        ({"plaintext_columns": ["a"]}, "either column_keys or uniform"),
        ({"column_keys": {"k": ["a"]}, "uniform_encryption": True}, "either column_keys or uniform"),
        ({"complete_columns": True, "uniform_encryption": True}, "complete_columns"),
        ({"unlisted": "plaintext", "uniform_encryption": True}, "unlisted needs column_keys"),
        ({"unlisted": "none", "column_keys": {"k": ["a"]}}, "unlisted must be one of"),
        ({"unlisted": "raise", "complete_columns": False, "column_keys": {"k": ["a"]}}, "complete_columns=False means"),
        ({"column_keys": {"k": "abc"}}, "sequence"),
        ({"column_keys": {"k": []}}, "not empty"),
        ({"column_keys": {"": ["a"]}}, "cannot be empty"),
        ({"uniform_encryption": True, "encryption_algorithm": "AES_CBC"}, "encryption_algorithm must be"),
        ({"uniform_encryption": True, "data_key_length_bits": 64}, "128, 192 or 256"),
        ({"uniform_encryption": True, "kek_length_bits": 64}, "128, 192 or 256"),
        ({"uniform_encryption": True, "kek_length_bits": 256, "double_wrapping": False}, "double_wrapping"),
        ({"uniform_encryption": True, "cache_lifetime": timedelta(-1)}, "negative"),
    ],
)
def test_configurations_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EncryptionConfiguration("kf", **options)


def test_a_footer_key_alone_encrypts_all_columns() -> None:
    configuration = EncryptionConfiguration("kf")
    assert configuration == EncryptionConfiguration("kf", uniform_encryption=True)
    properties = factory().file_encryption_properties(CONNECTION, configuration)
    assert properties.unlisted == "footer_key"
    assert properties.column(("any",)) is not None


def test_types_are_checked() -> None:
    wrong: Any = 600
    with pytest.raises(TypeError, match="timedelta"):
        EncryptionConfiguration("kf", uniform_encryption=True, cache_lifetime=wrong)
    with pytest.raises(TypeError, match="timedelta"):
        DecryptionConfiguration(cache_lifetime="600")   # type: ignore[arg-type]
    for seconds in (-1, math.nan, math.inf):
        with pytest.raises(ValueError, match="negative"):
            DecryptionConfiguration(cache_lifetime=seconds)
    text: Any = "False"         # which would count as true: it would open a footer, or a policy
    with pytest.raises(TypeError, match="plaintext_footer must be True or False"):
        EncryptionConfiguration("kf", uniform_encryption=True, plaintext_footer=text)
    with pytest.raises(TypeError, match="trust_kms_url_from_file must be True or False"):
        DecryptionConfiguration(trust_kms_url_from_file=text)
    with pytest.raises(TypeError, match="column path"):
        EncryptionConfiguration("kf", column_keys={"kc1": [wrong]})
    with pytest.raises(TypeError, match="text"):
        EncryptionConfiguration(wrong, uniform_encryption=True)
    with pytest.raises(TypeError, match="text"):
        KmsConnectionConfig(key_access_token=wrong)
    with pytest.raises(TypeError, match="text"):
        KmsConnectionConfig().refresh_key_access_token(wrong)
    with pytest.raises(TypeError, match="callable"):
        CryptoFactory(wrong)
    with pytest.raises(fastpq.SchemaError, match="two keys for the column path a"):
        factory().file_encryption_properties(CONNECTION, EncryptionConfiguration("kf", column_keys={"kc1": ["a"], "kc2": ["a"]}))
    not_a_client: Any = object
    with pytest.raises(TypeError, match="wrap_key"):
        CryptoFactory(lambda config: not_a_client()).file_encryption_properties(CONNECTION, UNIFORM)


class BrokenKms:
    """Returns what it is told to."""

    def __init__(self, wrapped: Any, unwrapped: Any) -> None:
        self.returned = wrapped, unwrapped

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> Any:
        return self.returned[0]

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> Any:
        return self.returned[1]


@pytest.mark.parametrize("wrapped", [None, "", b"", b"\xff", 7, "\ud800"])
def test_a_client_that_does_not_wrap(wrapped: Any) -> None:
    with pytest.raises(fastpq.CryptoError, match=r"BrokenKms\.wrap_key did not return text"):
        CryptoFactory(lambda config: BrokenKms(wrapped, None)).file_encryption_properties(CONNECTION, UNIFORM)


@pytest.mark.parametrize("unwrapped", [None, "0123456789012345", b"", b"x" * 15, b"x" * 33, memoryview(b"x" * 16)])
def test_a_client_that_does_not_unwrap(unwrapped: Any) -> None:
    keys = CryptoFactory(lambda config: BrokenKms("opaque", unwrapped))
    made = keys.file_encryption_properties(CONNECTION, EncryptionConfiguration("kf", uniform_encryption=True))
    retriever = keys.file_decryption_properties(CONNECTION).key_retriever
    assert retriever is not None
    with pytest.raises(fastpq.CryptoError, match="key"):
        retriever(made.footer_key_metadata or b"")


def test_a_wrapped_key_that_no_reader_would_take() -> None:
    with pytest.raises(fastpq.LimitError, match="key material"):
        CryptoFactory(lambda config: BrokenKms("x" * 70_000, None)).file_encryption_properties(CONNECTION, UNIFORM)


class TenLines(KmsClient):
    """What a user may write, down to wrapped keys as bytes, which pyarrow takes as well."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return (master_key_identifier + ":" + key_bytes[::-1].hex()).encode()

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytearray:
        return bytearray.fromhex(wrapped_key.partition(":")[2])[::-1]


@pytest.mark.parametrize("double", [True, False])
def test_a_client_in_ten_lines(tmp_path: Path, double: bool) -> None:
    keys = CryptoFactory(lambda config: TenLines())
    path = tmp_path / "file.parquet"
    made = keys.file_encryption_properties(
        CONNECTION, EncryptionConfiguration("kf", uniform_encryption=True, double_wrapping=double)
    )
    fastpq.write_table(TABLE, path, encryption_properties=made)
    properties = keys.file_decryption_properties(CONNECTION)
    assert fastpq.read_table(path, decryption_properties=properties).num_rows == 10


def test_many_threads(tmp_path: Path) -> None:
    recorder = Recorder()
    keys = CryptoFactory(recorder)

    def work(number: int) -> int:
        path = tmp_path / f"{number}.parquet"
        internal = number % 2 == 0
        configuration = EncryptionConfiguration("kf", column_keys={"kc1": ["a"], "kc2": ["c"]}, internal_key_material=internal)
        made = keys.file_encryption_properties(CONNECTION, configuration, path)
        fastpq.write_table(TABLE, path, threads=1, encryption_properties=made)
        properties = keys.file_decryption_properties(CONNECTION, None, path)
        table = fastpq.read_table(path, threads=2, decryption_properties=properties)
        assert np.array_equal(table["c"].to_numpy(), TABLE["c"])
        return table.num_rows

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(work, range(64))) == [10] * 64
    assert sorted(recorder.wrapped) == ["kc1", "kc2", "kf"]
    assert sorted(recorder.unwrapped) == ["kc1", "kc2", "kf"]
    assert len(recorder.clients) == 1


def test_one_retriever_in_many_threads() -> None:
    recorder = Recorder()
    keys = CryptoFactory(recorder)
    made = keys.file_encryption_properties(CONNECTION, BY_COLUMN)
    retriever = keys.file_decryption_properties(CONNECTION).key_retriever
    assert retriever is not None
    stored = [(made.column((name,)) or made).key_metadata for name in "abc"]   # type: ignore[union-attr]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda number: retriever(stored[number % 3] or b""), range(300)))
    assert all(isinstance(key, fastpq.encryption.AesKey) for key in found)
    assert sorted(recorder.unwrapped) == ["kc1", "kc2"]


def test_nothing_shows_a_key_or_a_token() -> None:
    secret = "hvs.secret-token"
    config = KmsConnectionConfig("eu", key_access_token=secret, custom_kms_conf={"password": secret})
    keys = factory()
    made = keys.file_encryption_properties(config, UNIFORM)
    opened = keys.file_decryption_properties(config)
    [kek] = keys._caches.write_keks.values()
    for thing in (config, keys, made, opened, opened.key_retriever, kek, config.resolved("a", "b")):
        assert secret not in repr(thing)
        assert "x" * 16 not in repr(thing)
        for leave in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                leave(thing)


class FailingKms(InMemoryKms):
    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        raise OSError("gone")


def test_tracebacks_with_variables_show_no_key_or_token(tmp_path: Path) -> None:
    """As tools show them that report errors; but for the frames of the caller, whose keys and tokens they are."""
    config = KmsConnectionConfig(key_access_token="hvs.secret-token")
    path, keys = tmp_path / "file.parquet", factory()
    fastpq.write_table(TABLE, path, encryption_properties=keys.file_encryption_properties(config, UNIFORM))
    opened = CryptoFactory(lambda config: FailingKms()).file_decryption_properties(config)
    with pytest.raises(fastpq.KeyAccessError) as raised:
        fastpq.read_table(path, decryption_properties=opened)
    told = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
    library = [frame for frame in told.stack if "fastpq/encryption" in frame.filename]
    assert any("token" in (frame.locals or {}) for frame in library)
    assert all("secret-token" not in text for frame in library for text in (frame.locals or {}).values())


class Leaky(KmsClient):
    """Fails with the key among its local variables."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        text = key_bytes.hex()
        try:
            int(text[:1] + "no number")
        except ValueError as error:
            raise RuntimeError("the service is gone") from error
        return text

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        raise NotImplementedError


def test_errors_hold_no_key(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        with pytest.raises(fastpq.KeyAccessError, match="did not wrap a key with the master key 'kf': RuntimeError") as raised:
            CryptoFactory(lambda config: Leaky()).file_encryption_properties(CONNECTION, UNIFORM)
    errors: list[BaseException] = [raised.value]
    while errors[-1].__cause__ is not None:
        errors.append(errors[-1].__cause__)
    assert [type(error) for error in errors] == [fastpq.KeyAccessError, RuntimeError, ValueError]
    for error in errors[1:]:
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_code.co_name == "wrap_key"]
        assert frames
        assert all(not frame.f_locals for frame in frames)
    assert not caplog.records


def test_earlier_errors_keep_their_frames() -> None:
    try:
        kept = "kept"
        raise LookupError(kept)
    except LookupError:
        with pytest.raises(fastpq.KeyAccessError):
            CryptoFactory(lambda config: Leaky()).file_encryption_properties(CONNECTION, UNIFORM)
        assert kept == "kept"


SCAN = """
import gc, sys
from pathlib import Path
import fsspec
import numpy as np
import fastpq
from fastpq.encryption import *

class Kms(KmsClient):
    def wrap_key(self, key_bytes, master_key_identifier):
        print(key_bytes.hex(), flush=True)
        return key_bytes[::-1].hex()
    def unwrap_key(self, wrapped_key, master_key_identifier):
        return bytes.fromhex(wrapped_key)[::-1]      # bytes(iterator) would leave the key on the C stack, in CPython's own buffer

def use(path, double):
    keys = CryptoFactory(lambda config: Kms())
    configuration = EncryptionConfiguration("kf", column_keys={"kc": ["a"]}, double_wrapping=double, data_key_length_bits=256)
    made = keys.file_encryption_properties(KmsConnectionConfig(), configuration)
    fastpq.write_table({"a": np.arange(10), "b": np.arange(10)}, path, encryption_properties=made)
    for _ in range(2):
        opened = keys.file_decryption_properties(KmsConnectionConfig())
        assert fastpq.read_table(path, decryption_properties=opened).num_rows == 10
        keys.remove_cache_entries_for_all_tokens()
    if sys.argv[2] == "hold":
        return keys, made
path = Path(sys.argv[1])
held = [use(path, double) for double in (False, True) * 8]
gc.collect()
print("done", flush=True)
sys.stdin.read()
"""


@pytest.mark.linux        # /proc/PID/mem
@pytest.mark.parametrize("held", ["release", "hold"])
def test_memory_holds_no_key_after_use(tmp_path: Path, held: str) -> None:
    """The data keys of single wrapping and the KEKs of double wrapping, which the client prints, in hexadecimal.

    Vector registers that keep a key reach the stack of a thread in one use of five: sixteen uses find them.
    """
    command = [sys.executable, "-c", SCAN, str(tmp_path / "file.parquet"), held]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        keys = []
        while (line := process.stdout.readline().strip()) != "done":
            assert line, "the process failed"
            keys.append(bytes.fromhex(line))
        found = [occurrences(process.pid, key) for key in keys]
        process.kill()
    assert len(keys) == 32
    assert all(len(key) == 32 for key in keys)
    if held == "hold":
        assert sum(found[:2]) > 0       # the scan finds what is there: the data keys that the properties hold
    else:
        assert not any(found)


def occurrences(pid: int, key: bytes) -> int:
    """How often a key is in the writable memory of a process."""
    count = 0
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, permissions = line.split()[:2]
            if not permissions.startswith("rw") or "[vvar" in line:
                continue
            start, stop = (int(bound, 16) for bound in span.split("-"))
            memory.seek(start)
            count += memory.read(stop - start).count(key)
    return count
