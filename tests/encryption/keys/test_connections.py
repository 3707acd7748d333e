"""Connections: what names cached clients and keys, and whom a reader follows to a key service."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
from fastpq.encryption import CryptoFactory, DecryptionConfiguration, EncryptionConfiguration, KmsConnectionConfig
from tests.encryption.keys.peers import MASTER_KEYS, InMemoryKms, arrow_factory, factory

UNIFORM = EncryptionConfiguration("kf", uniform_encryption=True)
BY_COLUMN = EncryptionConfiguration("kf", column_keys={"kc1": ["a"], "kc2": ["b"]})
EXTERNAL = EncryptionConfiguration("kf", column_keys={"kc1": ["a"]}, internal_key_material=False)
TABLE = {"a": np.arange(10), "b": np.arange(10)}
BASE: dict[str, Any] = {
    "kms_instance_id": "eu", "kms_instance_url": "https://kms", "key_access_token": "t",
    "custom_kms_conf": {"profile_name": "alice"},
}
DIFFERENT: list[dict[str, Any]] = [
    {"kms_instance_id": "us"},
    {"kms_instance_url": "https://other"},
    {"key_access_token": "u"},
    {"custom_kms_conf": {"profile_name": "bob"}},
    {"custom_kms_conf": {}},
    *({"custom_kms_conf": {"profile_name": "alice", name: "x"}} for name in ("namespace", "mount_point", "token_label")),
    {"custom_kms_conf": {"profile_name": "alice", "library": ""}},
]


class Services:
    """A factory of clients that may unwrap only if made for the first connection."""

    def __init__(self) -> None:
        self.clients: list[tuple[KmsConnectionConfig, InMemoryKms]] = []

    def __call__(self, config: KmsConnectionConfig) -> InMemoryKms:
        keys = MASTER_KEYS if not self.clients else dict.fromkeys(MASTER_KEYS, b"n" * 16)
        self.clients.append((config, InMemoryKms(keys)))
        return self.clients[-1][1]


@pytest.mark.parametrize("different", DIFFERENT, ids=str)
@pytest.mark.parametrize("double", [True, False])
def test_connections_that_differ_in_one_field_share_nothing(
    tmp_path: Path, different: dict[str, Any], double: bool
) -> None:
    services, path = Services(), tmp_path / "file.parquet"
    keys = CryptoFactory(services)
    alice, bob = KmsConnectionConfig(**BASE), KmsConnectionConfig(**BASE | different)
    configuration = replace(UNIFORM, double_wrapping=double)
    first = keys.file_encryption_properties(alice, configuration)
    fastpq.write_table(TABLE, path, encryption_properties=first)
    assert fastpq.read_table(path, decryption_properties=keys.file_decryption_properties(alice)).num_rows == 10
    assert len(services.clients) == 1
    for _ in range(2):
        with pytest.raises(fastpq.KeyAccessError, match="InvalidTag"):
            fastpq.read_table(path, decryption_properties=keys.file_decryption_properties(bob))
    assert len(services.clients) == 2
    second = keys.file_encryption_properties(bob, configuration)
    stored = [json.loads(made.footer_key_metadata or b"") for made in (first, second)]
    assert stored[0].get("keyEncryptionKeyID", 0) != stored[1].get("keyEncryptionKeyID", 1)
    assert services.clients[1][1].wrapped == ["kf"]
    same = KmsConnectionConfig(**BASE)      # another object of the same fields shares all
    assert fastpq.read_table(path, decryption_properties=keys.file_decryption_properties(same)).num_rows == 10
    assert len(services.clients) == 2


def test_the_order_of_options_does_not_matter() -> None:
    services = Services()
    keys = CryptoFactory(services)
    for names in ("ab", "ba"):
        config = KmsConnectionConfig(custom_kms_conf=dict.fromkeys(names, "x"))
        keys.file_encryption_properties(config, UNIFORM)
    assert len(services.clients) == 1


def test_a_configuration_that_changes_while_in_use() -> None:
    services, config = Services(), KmsConnectionConfig(custom_kms_conf={"profile_name": "alice"})
    keys = CryptoFactory(services)
    keys.file_encryption_properties(config, UNIFORM)
    config.custom_kms_conf["profile_name"] = "bob"      # type: ignore[index]
    config.kms_instance_id = "eu"
    keys.file_encryption_properties(config, UNIFORM)
    assert [made_for.custom_kms_conf["profile_name"] for made_for, _ in services.clients] == ["alice", "bob"]
    assert services.clients[0][0].kms_instance_id == "DEFAULT"


def test_a_refreshed_token_does_not_reach_those_who_have_the_old_one() -> None:
    """Two users have the token ``old``; one of them gets a better one."""
    services = Services()
    keys = CryptoFactory(services)
    first, second = (KmsConnectionConfig(key_access_token="old") for _ in range(2))
    keys.file_encryption_properties(first, UNIFORM)
    first.key_access_token = "better"       # the same as refresh_key_access_token, as in pyarrow
    keys.file_encryption_properties(second, replace(UNIFORM, footer_key="kc1"))
    [(config, client)] = services.clients
    assert (config.key_access_token, client.wrapped) == ("old", ["kf", "kc1"])


INSTANCES = {"eu": MASTER_KEYS, "us": {name: key[::-1] for name, key in MASTER_KEYS.items()}}


@pytest.mark.parametrize("configuration", [UNIFORM, BY_COLUMN], ids=["uniform", "columns"])
def test_properties_of_many_files_do_not_stick_to_the_first_file_s_instance(
    tmp_path: Path, configuration: EncryptionConfiguration
) -> None:
    reached: list[str] = []

    def client(config: KmsConnectionConfig) -> InMemoryKms:
        reached.append(config.kms_instance_id)
        return InMemoryKms(INSTANCES[config.kms_instance_id])

    keys = CryptoFactory(client)
    paths = [tmp_path / f"{instance}.parquet" for instance in INSTANCES]
    for path in paths:
        made = keys.file_encryption_properties(KmsConnectionConfig(path.stem), configuration)
        fastpq.write_table(TABLE, path, encryption_properties=made)
    keys.remove_cache_entries_for_all_tokens()
    opened = keys.file_decryption_properties(KmsConnectionConfig(), DecryptionConfiguration(trust_kms_url_from_file=True))
    for path in paths * 2:
        assert fastpq.read_table(path, decryption_properties=opened).num_rows == 10
    assert reached == ["eu", "us"] * 2
    with ThreadPoolExecutor(8) as pool:
        tables = pool.map(lambda path: fastpq.read_table(path, decryption_properties=opened), paths * 16)
        assert sum(table.num_rows for table in tables) == 320


def test_columns_follow_the_footer_s_instance_where_the_footer_key_is_explicit(tmp_path: Path) -> None:
    """The key service has the columns' keys alone; the footer's key metadata still say where it is."""
    path = tmp_path / "file.parquet"
    keys = CryptoFactory(lambda config: InMemoryKms(INSTANCES[config.kms_instance_id]))
    made = keys.file_encryption_properties(KmsConnectionConfig("us"), BY_COLUMN)
    fastpq.write_table(TABLE, path, encryption_properties=made)
    trust = DecryptionConfiguration(trust_kms_url_from_file=True)
    opened = keys.file_decryption_properties(KmsConnectionConfig(), trust, footer_key=made.footer_key)
    assert fastpq.read_table(path, decryption_properties=opened).num_rows == 10
    other = fastpq.FileEncryptionProperties(
        b"k" * 16, {"a": made.column(("a",))}, footer_key_metadata=b"another library's"    # type: ignore[dict-item]
    )
    fastpq.write_table(TABLE, path, encryption_properties=other)
    opened = keys.file_decryption_properties(KmsConnectionConfig("us"), footer_key=b"k" * 16)
    assert fastpq.read_table(path, decryption_properties=opened).num_rows == 10


TRUSTED: list[Collection[str] | Callable[[str], bool]] = [
    ["kf", "kc1"], {"kf", "kc1"}, ("kf", "kc1"), lambda name: name in ("kf", "kc1"),
]


@pytest.mark.parametrize("trusted", TRUSTED, ids=["list", "set", "tuple", "function"])
@pytest.mark.parametrize("double", [True, False])
def test_master_keys_that_a_reader_does_not_trust(tmp_path: Path, trusted: Any, double: bool) -> None:
    path, asked = tmp_path / "file.parquet", InMemoryKms()
    keys = CryptoFactory(lambda config: asked)
    made = keys.file_encryption_properties(KmsConnectionConfig(), replace(BY_COLUMN, double_wrapping=double))
    fastpq.write_table(TABLE, path, encryption_properties=made)
    configuration = DecryptionConfiguration(trusted_master_keys=trusted)
    opened = keys.file_decryption_properties(KmsConnectionConfig(), configuration)
    with fastpq.ParquetFile(path, decryption_properties=opened) as file:
        assert file.read(["a"]).num_rows == 10
        with pytest.raises(fastpq.KeyAccessError, match=r"'kc2', which trusted_master_keys.*column b"):
            file.read(["b"])
    assert asked.unwrapped == ["kf", "kc1"]
    alone = DecryptionConfiguration(trusted_master_keys=["kc1", "kc2"])
    with pytest.raises(fastpq.KeyAccessError, match="'kf', which trusted"):
        fastpq.read_table(path, decryption_properties=keys.file_decryption_properties(KmsConnectionConfig(), alone))


def test_rotation_keeps_to_the_same_policies(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    writer = KmsConnectionConfig("eu", kms_instance_url="https://there")
    fastpq.write_table(
        TABLE, path, encryption_properties=factory().file_encryption_properties(writer, EXTERNAL, path)
    )
    material = tmp_path / "_KEY_MATERIAL_FOR_file.parquet.json"
    before, keys = material.read_bytes(), factory()
    for options, message in (
        ({}, "trust_kms_url_from_file"),
        ({"trust_kms_url_from_file": True, "trusted_master_keys": ["kf"]}, "'kc1', which trusted_master_keys"),
    ):
        with pytest.raises(fastpq.KeyAccessError, match=message):
            keys.rotate_master_keys(KmsConnectionConfig(), path, **options)     # type: ignore[arg-type]
        assert material.read_bytes() == before
    assert keys.rotate_master_keys(KmsConnectionConfig(), path, None, True, 600, True) == [str(path)]   # as for pyarrow
    assert material.read_bytes() != before


def test_arguments_that_are_no_trust() -> None:
    wrong: Any
    for wrong in ("kf", 7, ["kf", 7], [""]):
        with pytest.raises((TypeError, ValueError), match="identifier"):
            DecryptionConfiguration(trusted_master_keys=wrong)
    answer: Any = "no"
    with pytest.raises(TypeError, match="True or False"):
        DecryptionConfiguration(trusted_master_keys=lambda name: answer).trusts_master_key("kf")
    assert not DecryptionConfiguration(trusted_master_keys=[]).trusts_master_key("kf")


OPTIONS: dict[str, Any] = {
    "column_keys": {"kc1": ["a"]}, "uniform_encryption": False, "encryption_algorithm": "AES_GCM_CTR_V1",
    "plaintext_footer": True, "double_wrapping": False, "cache_lifetime": timedelta(seconds=7), "internal_key_material": False,
    "data_key_length_bits": 256,
}


def test_configurations_as_pyarrow_takes_them() -> None:
    """By position in pyarrow's order, by name, and with None for a default."""
    ours, arrow = EncryptionConfiguration("kf", *OPTIONS.values()), pe.EncryptionConfiguration("kf", **OPTIONS)
    assert ours == EncryptionConfiguration("kf", **OPTIONS)
    assert {name: getattr(arrow, name) for name in OPTIONS} == {name: getattr(ours, name) for name in OPTIONS}
    nothing = dict.fromkeys(OPTIONS)
    ours = EncryptionConfiguration("kf", **nothing | {"uniform_encryption": True})      # type: ignore[arg-type]
    arrow = pe.EncryptionConfiguration("kf", **nothing | {"uniform_encryption": True})
    named = [name for name in OPTIONS if name != "column_keys"]     # pyarrow's getter fails without columns
    assert {name: getattr(arrow, name) for name in named} == {name: getattr(ours, name) for name in named}
    assert ours.column_keys == {}
    reads: list[dict[str, Any]] = [{"cache_lifetime": timedelta(seconds=7)}, {"cache_lifetime": 7}, {"read_kms_url": True}, {}]
    for options in (*reads, {"read_kms_url": None}):
        reading, peer = DecryptionConfiguration(**options), pe.DecryptionConfiguration(**options)
        assert (reading.cache_lifetime, reading.read_kms_url) == (peer.cache_lifetime, peer.read_kms_url)
    assert DecryptionConfiguration(7, True) == DecryptionConfiguration(timedelta(seconds=7), trust_kms_url_from_file=True)
    assert replace(DecryptionConfiguration(7, True), trust_kms_url_from_file=False) == DecryptionConfiguration(7)
    with pytest.raises(ValueError, match="contradicts"):
        DecryptionConfiguration(read_kms_url=False, trust_kms_url_from_file=True)
    text: Any = "False"
    with pytest.raises(TypeError, match="read_kms_url must be True or False"):
        DecryptionConfiguration(read_kms_url=text)
    empty: dict[str, Any] = dict.fromkeys(("kms_instance_id", "kms_instance_url", "key_access_token", "custom_kms_conf"))
    config, peer = KmsConnectionConfig(**empty), pe.KmsConnectionConfig(**empty)
    for name in ("kms_instance_id", "kms_instance_url", "key_access_token", "custom_kms_conf"):
        assert getattr(config, name) == getattr(peer, name)
    for zero in (0, False, b""):
        with pytest.raises(TypeError, match="text"):
            KmsConnectionConfig(zero)   # type: ignore[arg-type]


def test_pyarrow_follows_the_url_of_a_file_where_we_do(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    writer = KmsConnectionConfig(kms_instance_url="https://there")
    fastpq.write_table(TABLE, path, encryption_properties=factory().file_encryption_properties(writer, UNIFORM))
    reached = {}

    def client(config: KmsConnectionConfig) -> InMemoryKms:
        reached["ours"] = config.kms_instance_url
        return InMemoryKms()

    opened = CryptoFactory(client).file_decryption_properties(KmsConnectionConfig(), DecryptionConfiguration(read_kms_url=True))
    assert fastpq.read_table(path, decryption_properties=opened).num_rows == 10
    assert reached == {"ours": "https://there"}
    trust = pe.DecryptionConfiguration(read_kms_url=True)
    properties = arrow_factory().file_decryption_properties(pe.KmsConnectionConfig(), trust)
    assert pq.read_table(path, decryption_properties=properties).num_rows == 10
