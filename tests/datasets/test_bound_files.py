"""Files that are bound to a table and to their names or paths: exchanged files are refused by fastpq and by pyarrow."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
from fastpq.encryption import (
    CryptoFactory,
    DatasetDecryptionProperties,
    DatasetEncryptionProperties,
    DecryptionConfiguration,
    EncryptionConfiguration,
    KmsConnectionConfig,
)
from tests.encryption.keys.peers import InMemoryKms

KEY = bytes(range(16))
CONNECTION = KmsConnectionConfig()


def explicit(root: Path | None = None, *, table_id: str = "sales", store: bool = True) -> tuple[Any, Any]:
    return (
        DatasetEncryptionProperties(fastpq.FileEncryptionProperties(KEY), table_id=table_id, root=root, store_aad_prefix=store),
        DatasetDecryptionProperties(fastpq.FileDecryptionProperties(KEY), table_id=table_id, root=root),
    )


def by_service(root: Path | None = None, *, table_id: str = "sales", store: bool = True) -> tuple[Any, Any]:
    factory = CryptoFactory(lambda config: InMemoryKms())
    configuration = EncryptionConfiguration("kf", {"kc1": ["b"]}, internal_key_material=False)
    trusted = DecryptionConfiguration(trusted_master_keys=["kf", "kc1"])
    return (
        factory.dataset_encryption_properties(CONNECTION, configuration, table_id=table_id, root=root, store_aad_prefix=store),
        factory.dataset_decryption_properties(CONNECTION, trusted, table_id=table_id, root=root),
    )


Keys = Callable[..., tuple[Any, Any]]


def exchange(one: str, other: str) -> None:
    """Exchange two files and their key material."""
    for prefix, suffix in (("", ""), ("_KEY_MATERIAL_FOR_", ".json")):
        places = [str(Path(path).with_name(f"{prefix}{Path(path).name}{suffix}")) for path in (one, other)]
        if os.path.exists(places[0]):
            os.rename(places[0], "exchanged")
            os.rename(places[1], places[0])
            os.rename("exchanged", places[1])


def data(count: int = 90) -> dict[str, Any]:
    return {"a": np.arange(count), "b": np.arange(count) * 2, "part": np.arange(count) % 3}


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("keys", [explicit, by_service])
def test_exchanged_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: Keys, store: bool) -> None:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "t"
    writing, reading = keys(store=store)
    files = fastpq.write_dataset(data(), root, partition_by=["part"], encryption_properties=writing)
    files += fastpq.write_dataset(data(), root, partition_by=["part"], encryption_properties=writing)    # appended
    assert fastpq.read_dataset(root, decryption_properties=reading).num_rows == 180
    for one, other in ((0, 1), (0, 3), (2, 4)):
        exchange(files[one], files[other])
        with pytest.raises(fastpq.CryptoError):
            fastpq.read_dataset(root, decryption_properties=reading)
        with pytest.raises(fastpq.CryptoError):
            fastpq.ParquetDataset(root, schema="first", decryption_properties=reading).read(["a"])
        for path in (files[one], files[other]):
            with pytest.raises(fastpq.CryptoError):
                fastpq.read_table(path, decryption_properties=reading(path))
        for job in (fastpq.compact, fastpq.rotate_dataset, lambda where, **options: fastpq.delete_dataset_rows(
                where, [("a", "<", 5)], decryption_properties=options["decryption_properties"])):
            before = {path: Path(path).read_bytes() for path in files}
            with pytest.raises(fastpq.CryptoError):
                job(root, decryption_properties=reading, encryption_properties=writing)
            assert {path: Path(path).read_bytes() for path in files} == before
        exchange(files[one], files[other])
    assert fastpq.read_dataset(root, decryption_properties=reading).num_rows == 180


def test_a_function_has_to_return_the_keys_of_a_file(tmp_path: Path) -> None:
    writing, reading = explicit()
    fastpq.write_dataset(data(), tmp_path / "t", encryption_properties=writing)
    assert fastpq.read_dataset(tmp_path / "t", decryption_properties=lambda path: reading(path)).num_rows == 90
    with pytest.raises(TypeError, match=r"not DatasetDecryptionProperties \(pass it as decryption_properties, or its name\)"):
        fastpq.read_dataset(tmp_path / "t", decryption_properties=lambda path: reading)
    with pytest.raises(TypeError, match=r"must return FileDecryptionProperties or None, not bytes$"):
        fastpq.read_dataset(tmp_path / "t", decryption_properties=lambda path: KEY)     # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("store", [True, False])
def test_pyarrow_refuses_exchanged_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: bool) -> None:
    monkeypatch.chdir(tmp_path)
    writing, reading = explicit(store=store)
    one, other = fastpq.write_dataset(data(), tmp_path / "t", max_rows_per_file=45, encryption_properties=writing)

    def rows(path: str, prefix: bytes | None) -> int:
        options = {} if prefix is None else {"aad_prefix": prefix}
        keys = pe.create_decryption_properties(KEY, **options)
        count: int = pq.read_table(path, decryption_properties=keys).num_rows
        return count

    assert rows(one, reading.aad_prefix(one)) == rows(other, writing.aad_prefix(other)) == 45
    exchange(one, other)
    for path in (one, other):
        with pytest.raises(OSError, match=r"AAD [Pp]refix|decryption finalization"):
            rows(path, reading.aad_prefix(path))
    if store:
        assert rows(one, None) == 45       # without the rule nobody notices
    else:
        with pytest.raises(OSError, match=r"AAD [Pp]refix"):
            rows(one, None)


@pytest.mark.parametrize("keys", [explicit, by_service])
def test_what_keeps_a_file_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: Keys) -> None:
    """A renamed partition, a moved table, a replaced partition, joined files, deleted rows, appended rows."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "t"
    writing, reading = keys()
    fastpq.write_dataset(data(), root, partition_by=["part"], encryption_properties=writing)
    (root / "part=0").rename(root / "part=7")
    assert fastpq.read_dataset(root, decryption_properties=reading, filters=[("part", "==", 7)]).num_rows == 30
    root.rename(tmp_path / "moved")
    root = tmp_path / "moved"
    fastpq.write_dataset(data(), root, partition_by=["part"], encryption_properties=writing)
    fastpq.write_dataset(
        data(), root, partition_by=["part"], encryption_properties=writing, existing_data_behavior="delete_matching")
    assert fastpq.read_dataset(root, decryption_properties=reading).num_rows == 120
    fastpq.write_dataset(data(), root, partition_by=["part"], encryption_properties=writing)
    assert len(fastpq.compact(root, encryption_properties=writing, decryption_properties=reading).new_files) == 3
    deleted = fastpq.delete_dataset_rows(root, [("a", "<", 5)], decryption_properties=reading)
    assert deleted.deleted_rows == 12
    fastpq.rotate_dataset(root, reading, writing)
    assert fastpq.read_dataset(root, decryption_properties=reading).num_rows == 198
    for path in sorted(root.rglob("*.parquet")):
        assert fastpq.inspect_encryption(path).files[0].aad_prefix == f"sales|file|{path.name}|".encode()
    fastpq.write_dataset(data(), root, encryption_properties=writing, existing_data_behavior="overwrite")
    assert fastpq.read_dataset(root, decryption_properties=reading).num_rows == 90


def test_append_table_keeps_the_binding(tmp_path: Path) -> None:
    writing, reading = explicit()
    (path,) = fastpq.write_dataset({"a": [1, 2]}, tmp_path / "t", encryption_properties=writing)
    fastpq.append_table({"a": [3]}, path, decryption_properties=reading(path))
    assert fastpq.read_dataset(tmp_path / "t", decryption_properties=reading)["a"].to_pylist() == [1, 2, 3]


def test_a_path_below_the_root_is_bound(tmp_path: Path) -> None:
    root = tmp_path / "t"
    writing, reading = explicit(root)
    files = fastpq.write_dataset(
        data(), root, partition_by=["part"], encryption_properties=writing, basename_template="data-{i}.parquet")
    assert [writing.aad_prefix(path) for path in files] == [f"sales|path|part={n}/data-0.parquet|".encode() for n in range(3)]
    assert fastpq.read_dataset(root, decryption_properties=reading).num_rows == 90
    (tmp_path / "link").symlink_to(root)
    assert fastpq.read_dataset(tmp_path / "link", decryption_properties=reading).num_rows == 90
    (root / "part=0").rename(root / "part=7")
    with pytest.raises(fastpq.CryptoError):
        fastpq.read_dataset(root, decryption_properties=reading)
    unbound = DatasetDecryptionProperties(fastpq.FileDecryptionProperties(KEY))
    fastpq.rotate_dataset(root, unbound, writing)      # bound again on purpose
    assert fastpq.read_dataset(root, decryption_properties=reading).num_rows == 90
    shutil.copytree(root, tmp_path / "elsewhere")
    with pytest.raises(fastpq.SchemaError, match="not below the root"):
        fastpq.read_dataset(tmp_path / "elsewhere", decryption_properties=reading)
    for outside in (tmp_path / "x.parquet", root / ".." / "x.parquet", "memory://t/x.parquet"):
        with pytest.raises(fastpq.SchemaError, match="not below the root"):
            reading(str(outside))


def test_names_that_only_partitions_tell_apart_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "t"
    writing, reading = explicit()
    with pytest.raises(fastpq.SchemaError, match="basename_template"):
        fastpq.write_dataset(
            data(), root, partition_by=["part"], encryption_properties=writing, basename_template="data-{i}.parquet")
    assert not root.exists()
    files = fastpq.write_dataset(data(), root, partition_by=["part"], encryption_properties=writing)
    shutil.copy(files[0], root / "part=1" / Path(files[0]).name)        # rows that somebody copied to another partition
    with pytest.raises(fastpq.SchemaError, match="has the same name"):
        fastpq.read_dataset(root, decryption_properties=reading)


def test_files_of_another_table_or_of_none_are_refused(tmp_path: Path) -> None:
    writing, reading = explicit(table_id="other")
    _, own = explicit()
    for name, keys in (("other", writing), ("none", fastpq.FileEncryptionProperties(KEY))):
        fastpq.write_dataset({"a": [1]}, tmp_path / name, encryption_properties=keys)
        with pytest.raises(fastpq.CryptoError):
            fastpq.read_dataset(tmp_path / name, decryption_properties=own)
    assert fastpq.read_dataset(tmp_path / "other", decryption_properties=reading).num_rows == 1


def test_prefixes_differ_and_none_begins_another(tmp_path: Path) -> None:
    """Names that try to look like another table's, another kind or another path."""
    tables = ["a", "a|file|b|", "a|", "a%7C", "a b", "é", "a/b"]
    names = ["b", "b|", "b|path|c", "%7C", "c=1", "\udcff", " ", "b\n"]
    prefixes = []
    for table in tables:
        for name in names:
            place = tmp_path / "r" / "p=1" / name
            roots = (None, tmp_path / "r", tmp_path / "r" / "p=1")
            prefixes += [explicit(root, table_id=table)[1].aad_prefix(place) for root in roots]
    assert len({*prefixes}) == len(prefixes)
    assert not any(one != other and one.startswith(other) for one in prefixes for other in prefixes)


def test_stores_and_urls() -> None:
    memory = fsspec.filesystem("memory")
    writing, reading = explicit()
    try:
        for where, filesystem in (("memory://bound/t", None), ("/bound/u", memory)):
            files = fastpq.write_dataset({"a": [1, 2]}, where, max_rows_per_file=1, encryption_properties=writing,
                                         filesystem=filesystem)
            dataset = fastpq.read_dataset(where, decryption_properties=reading, filesystem=filesystem)
            assert dataset["a"].to_pylist() == [1, 2]
            one, other = (memory.cat_file(path) for path in files)
            memory.pipe_file(files[0], other)
            memory.pipe_file(files[1], one)
            with pytest.raises(fastpq.CryptoError):
                fastpq.read_dataset(where, decryption_properties=reading, filesystem=filesystem)
        in_store = DatasetDecryptionProperties(fastpq.FileDecryptionProperties(KEY), table_id="s", root="memory://bound/t")
        assert in_store.aad_prefix("memory://bound/t/x=1/y.parquet") == b"s|path|x%3D1/y.parquet|".replace(b"%3D", b"=")
        with pytest.raises(fastpq.SchemaError, match="not below the root"):
            in_store("memory://bound/other/y.parquet")
    finally:
        memory.rm("/bound", recursive=True)


def test_wrong_arguments_and_what_properties_show() -> None:
    keys, opened = fastpq.FileEncryptionProperties(KEY), fastpq.FileDecryptionProperties(KEY)
    with pytest.raises(ValueError, match="give table_id too"):
        DatasetEncryptionProperties(keys, root="t")
    with pytest.raises(ValueError, match="needs a table_id"):
        DatasetEncryptionProperties(keys, store_aad_prefix=False)
    with pytest.raises(ValueError, match="cannot be empty"):
        DatasetDecryptionProperties(opened, table_id="")
    with pytest.raises(TypeError, match="must be text"):
        DatasetDecryptionProperties(opened, table_id=b"t")      # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not a bytes"):
        DatasetEncryptionProperties(KEY)        # type: ignore[arg-type]
    prefixed = fastpq.FileDecryptionProperties(KEY, aad_prefix=b"x")
    with pytest.raises(ValueError, match="prefix already"):
        DatasetDecryptionProperties(prefixed, table_id="t")
    with pytest.raises(ValueError, match="prefix already"):
        DatasetDecryptionProperties(lambda where: prefixed, table_id="t")("x")
    with pytest.raises(TypeError, match="unknown policies: nope"):
        CryptoFactory(lambda config: InMemoryKms()).dataset_decryption_properties(CONNECTION, nope=True)
    for properties in (DatasetEncryptionProperties(keys, table_id="t"), DatasetDecryptionProperties(opened)):
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                attempt(properties)
        assert KEY.hex() not in repr(properties)
        assert repr(KEY) not in repr(properties)
