"""encrypt_dataset, decrypt_dataset, rotate_dataset and revoke: whole folders, half-done folders, forged files, kills."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
from fastpq.datasets import folder_job
from fastpq.datasets.job_lock import NAME as LOCK
from fastpq.datasets.job_lock import only_job
from fastpq.encryption import (
    CryptoFactory,
    DatasetDecryptionProperties,
    DatasetEncryptionProperties,
    DecryptionConfiguration,
    EncryptionConfiguration,
    KmsConnectionConfig,
)
from tests.encryption.keys.peers import InMemoryKms, arrow_factory

MASTER_KEYS = {"kf": b"0123456789012345", "kc": b"1234567890123450", "kn": b"5432109876543210"}
CONNECTION = KmsConnectionConfig()
TRUSTED = DecryptionConfiguration(trusted_master_keys=[*MASTER_KEYS])
KEY = bytes(range(16))
ROWS = 100


def factory(master_keys: dict[str, bytes] = MASTER_KEYS) -> CryptoFactory:
    return CryptoFactory(lambda config: InMemoryKms(master_keys))


def configuration(**options: Any) -> EncryptionConfiguration:
    return EncryptionConfiguration("kf", {"kc": ["pay"]}, unlisted="footer_key", **options)


def sealing(table_id: str | None = None, **options: Any) -> DatasetEncryptionProperties:
    return factory().dataset_encryption_properties(CONNECTION, configuration(**options), table_id=table_id)


def opening(table_id: str | None = None, **policies: Any) -> DatasetDecryptionProperties:
    return factory().dataset_decryption_properties(CONNECTION, TRUSTED, table_id=table_id, **policies)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with four plaintext files in two partitions."""
    folder = tmp_path / "people"
    for start in (0, ROWS):
        ids = np.arange(start, start + ROWS)
        fastpq.write_dataset(
            {"id": ids, "pay": ids * 10, "team": ids % 2}, folder, partition_by=["team"], write_metadata_file=True)
    return folder


def ids_in(folder: Any, keys: Any = None) -> list[int]:
    return sorted(fastpq.read_dataset(folder, ["id", "pay"], decryption_properties=keys)["id"].to_pylist())


def data_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.parquet") if not path.name.startswith(("_", ".")))


def others(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path not in data_files(folder))


def pay_by_arrow(path: Path, master_keys: dict[str, bytes] = MASTER_KEYS) -> list[int]:
    connection, options = pe.KmsConnectionConfig(), pe.DecryptionConfiguration()
    keys = arrow_factory(master_keys).file_decryption_properties(connection, options, str(path))
    with pq.ParquetFile(path, decryption_properties=keys) as file:
        values: list[int] = file.read(["pay"])["pay"].to_pylist()
        return values


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("table_id", [None, "people"])
def test_there_and_back(root: Path, external: bool, table_id: str | None) -> None:
    all_ids, sizes, calls = ids_in(root), {path: path.stat().st_size for path in data_files(root)}, []
    keys, opened = sealing(table_id, internal_key_material=not external), opening(table_id)
    planned = fastpq.encrypt_dataset(root, keys, dry_run=True)
    assert {file.status for file in planned.files} == {"planned"}
    assert str(planned) == "4 files would be changed, 0 unchanged"
    assert others(root) == ["_common_metadata", "_metadata"]
    assert {path: path.stat().st_size for path in data_files(root)} == sizes
    report = fastpq.encrypt_dataset(root, keys, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert sorted(report.changed_files) == [str(path) for path in data_files(root)]
    assert str(report) == "4 files changed, 0 unchanged"
    table = report.table()
    assert table["status"].to_pylist() == ["changed"] * 4
    assert table["size"].to_pylist() == [sizes[Path(path)] for path in table["path"].to_pylist()]
    assert others(root) == sorted(f"_KEY_MATERIAL_FOR_{path.name}.json" for path in data_files(root)) * external
    assert ids_in(root, opened) == all_ids
    assert sorted(value for path in data_files(root) for value in pay_by_arrow(path)) == [number * 10 for number in all_ids]
    with pytest.raises(fastpq.KeyAccessError):
        ids_in(root)
    again = fastpq.encrypt_dataset(root, keys)
    assert (len(again.changed_files), len(again.unchanged_files), again.is_resumed) == (0, 4, False)
    back = fastpq.decrypt_dataset(root, opened)
    assert len(back.changed_files) == 4
    assert others(root) == []
    assert ids_in(root) == all_ids
    assert sorted(pq.read_table(root)["id"].to_pylist()) == all_ids
    with pytest.raises(fastpq.CryptoError, match="all files are plaintext"):
        fastpq.decrypt_dataset(root, opened)
    assert len(fastpq.decrypt_dataset(root, opened, allow_plaintext_files=True).unchanged_files) == 4


def explicit(folder: Path) -> tuple[Any, Any]:
    return fastpq.FileEncryptionProperties(KEY), fastpq.FileDecryptionProperties(KEY)


def by_function(folder: Path) -> tuple[Any, Any]:
    return lambda path: fastpq.FileEncryptionProperties(KEY), lambda path: fastpq.FileDecryptionProperties(KEY)


def explicit_and_bound(folder: Path) -> tuple[Any, Any]:
    encryption, decryption = explicit(folder)
    return (
        DatasetEncryptionProperties(encryption, table_id="t", root=folder, store_aad_prefix=False),
        DatasetDecryptionProperties(decryption, table_id="t", root=folder),
    )


def by_service(folder: Path) -> tuple[Any, Any]:
    return sealing("t"), opening("t")


def by_service_external(folder: Path) -> tuple[Any, Any]:
    return sealing("t", internal_key_material=False), opening("t")


WAYS = [explicit, by_function, explicit_and_bound, by_service, by_service_external]


class StoppedError(Exception):
    """An interruption."""


def stopping(count: int) -> Callable[[int, int], None]:
    def stop(done: int, total: int) -> None:
        if done == count:
            raise StoppedError

    return stop


@pytest.mark.parametrize("way", WAYS)
def test_an_interrupted_job_goes_on(root: Path, way: Callable[[Path], tuple[Any, Any]]) -> None:
    encryption, decryption = way(root)
    all_ids = ids_in(root)
    with pytest.raises(StoppedError):
        fastpq.encrypt_dataset(root, encryption, progress=stopping(2))
    assert "_metadata" not in others(root)
    bytes_before = {path: path.read_bytes() for path in data_files(root)}
    encryption, decryption = way(root)
    report = fastpq.encrypt_dataset(root, encryption)
    assert report.is_resumed
    assert (len(report.changed_files), len(report.unchanged_files)) == (2, 2)
    assert all(Path(path).read_bytes() == bytes_before[Path(path)] for path in report.unchanged_files)
    assert ids_in(root, decryption) == all_ids
    assert not any(name.startswith("_fastpq") for name in others(root))
    with pytest.raises(StoppedError):
        fastpq.decrypt_dataset(root, decryption, progress=stopping(3))
    report = fastpq.decrypt_dataset(root, decryption)
    assert (len(report.changed_files), report.is_resumed) == (1, True)
    assert others(root) == []
    assert ids_in(root) == all_ids


def forge(path: Path, source: bytes, status: os.stat_result) -> None:
    """Put a plaintext file in the place of another, with the same size and times, as far as its owner can set them."""
    path.write_bytes(source)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("way", WAYS)
def test_a_forged_plaintext_file_does_not_become_genuine(root: Path, way: Callable[[Path], tuple[Any, Any]]) -> None:
    encryption, _ = way(root)
    originals = {path: (path.read_bytes(), path.stat()) for path in data_files(root)}
    with pytest.raises(StoppedError):
        fastpq.encrypt_dataset(root, encryption, progress=stopping(2))
    done = data_files(root)[0]
    assert done.read_bytes() != originals[done][0]
    forge(done, *originals[done])
    for verb in (fastpq.encrypt_dataset, lambda *arguments: fastpq.encrypt_dataset(*arguments, dry_run=True)):
        with pytest.raises(fastpq.CryptoError, match="new, or was changed, since"):
            verb(root, way(root)[0])
    report = fastpq.encrypt_dataset(root, way(root)[0], allow_plaintext_files=True)
    assert len(report.changed_files) == 3


@pytest.mark.parametrize("way", WAYS)
def test_a_mixed_folder_is_refused(root: Path, way: Callable[[Path], tuple[Any, Any]]) -> None:
    encryption, decryption = way(root)
    plaintext = data_files(root)[1].read_bytes()
    fastpq.encrypt_dataset(root, encryption)
    data_files(root)[1].write_bytes(plaintext)
    with pytest.raises(fastpq.CryptoError, match="side by side"):
        fastpq.encrypt_dataset(root, encryption)
    with pytest.raises(fastpq.CryptoError, match="side by side"):
        fastpq.decrypt_dataset(root, decryption)
    with pytest.raises(fastpq.CryptoError, match="the file is plaintext"):
        fastpq.rotate_dataset(root, decryption, encryption)
    report = fastpq.rotate_dataset(root, decryption, encryption, allow_plaintext_files=True)
    assert (len(report.changed_files), len(report.unchanged_files)) == (3, 1)


def test_a_journal_of_somebody_without_keys_is_not_believed(root: Path) -> None:
    """Neither a plaintext journal, nor one with other keys, nor a data file under the journal's name."""
    encryption = fastpq.FileEncryptionProperties(KEY)
    fastpq.encrypt_dataset(root, encryption)
    sealed_bytes = data_files(root)[1].read_bytes()
    forged = data_files(root)[0]
    fastpq.write_table({"id": [1], "pay": [1]}, forged)
    status = forged.stat()
    version = repr((status.st_size, status.st_mtime_ns, None, status.st_ctime_ns))
    row = json.dumps(["encrypt", str(forged), version])
    keys = fastpq.FileDecryptionProperties(KEY, allow_plaintext_files=True, allowed_algorithms=["AES_GCM_V1", "AES_GCM_CTR_V1"])
    other_key = fastpq.FileEncryptionProperties(KEY[::-1])
    same_key = fastpq.FileEncryptionProperties(KEY)        # as somebody might copy it from a table with such a column
    for forgery in (None, other_key, same_key):
        fastpq.write_table({"fastpq:job": [row]}, root / "_fastpq_job.parquet", encryption_properties=forgery)
        with pytest.raises(fastpq.CryptoError, match="side by side"):
            fastpq.encrypt_dataset(root, encryption, decryption_properties=keys)
    (root / "_fastpq_job.parquet").write_bytes(sealed_bytes)
    with pytest.raises(fastpq.CryptoError, match="side by side"):
        fastpq.encrypt_dataset(root, encryption, decryption_properties=keys)


def test_keys_that_fit_no_file_are_refused_before_the_first(root: Path) -> None:
    before = {path: path.read_bytes() for path in data_files(root)}
    with pytest.raises(fastpq.SchemaError, match="does not have: salary"):
        fastpq.encrypt_dataset(root, fastpq.FileEncryptionProperties(KEY, {"salary": KEY}))
    with pytest.raises(fastpq.SchemaError, match="without a key of their own: id"):
        fastpq.encrypt_dataset(root, fastpq.FileEncryptionProperties(KEY, {"pay": KEY}, unlisted="raise"))
    with pytest.raises(fastpq.SchemaError, match="a partition column cannot have a key"):
        fastpq.encrypt_dataset(root, fastpq.FileEncryptionProperties(KEY, {"team": KEY}))
    assert {path: path.read_bytes() for path in data_files(root)} == before
    assert others(root) == ["_common_metadata", "_metadata"]
    with pytest.raises(fastpq.SchemaError, match=r"the path of a folder is needed, and .* is a file"):
        fastpq.encrypt_dataset(data_files(root)[0], fastpq.FileEncryptionProperties(KEY))
    with pytest.raises(FileNotFoundError, match="no-folder"):
        fastpq.encrypt_dataset(root / "no-folder", fastpq.FileEncryptionProperties(KEY))


def test_keys_of_another_class_are_refused_by_name(root: Path) -> None:
    """A configuration is no keys, and keys for reading are none for writing."""
    words = r"encryption_properties must be FileEncryptionProperties, or a function .*, not "
    way = r"EncryptionConfiguration: CryptoFactory\.dataset_encryption_properties makes them from it"
    for keys, end in ((configuration(), way), (opening(), "DatasetDecryptionProperties$"), (KEY, "bytes$")):
        with pytest.raises(TypeError, match=words + end):
            fastpq.encrypt_dataset(root, keys)      # type: ignore[arg-type]
        with pytest.raises(TypeError, match=words + end):
            fastpq.write_dataset({"id": [1]}, root, encryption_properties=keys)     # type: ignore[arg-type]
    words = r"decryption_properties must be FileDecryptionProperties, or a function .*, not "
    way = r"DecryptionConfiguration: CryptoFactory\.dataset_decryption_properties makes them from it"
    for change in (
        fastpq.decrypt_dataset, fastpq.rotate_dataset,
        lambda where, keys: fastpq.read_dataset(where, decryption_properties=keys),
        lambda where, keys: fastpq.revoke(where, ["pay"], "kn", keys),
        lambda where, keys: fastpq.encrypt_dataset(where, sealing(), decryption_properties=keys),
    ):
        with pytest.raises(TypeError, match=words + way):
            change(root, TRUSTED)       # type: ignore[arg-type]
        with pytest.raises(TypeError, match=words + "DatasetEncryptionProperties$"):
            change(root, sealing())     # type: ignore[arg-type]
    with pytest.raises(TypeError, match="call them with the file's path"):
        fastpq.read_table(data_files(root)[0], decryption_properties=opening("t"))     # type: ignore[arg-type]
    with pytest.raises(TypeError, match="call them with the file's path"):
        fastpq.write_table({"a": [1]}, root / "x", encryption_properties=sealing("t"))     # type: ignore[arg-type]


@pytest.mark.parametrize("way", [explicit, explicit_and_bound, by_service, by_service_external])
def test_a_half_encrypted_folder_is_read_and_explained(root: Path, way: Callable[[Path], tuple[Any, Any]]) -> None:
    """Readers need a word for the plaintext files, and other jobs name the interrupted one, unless a file is forged."""
    encryption, decryption = way(root)
    all_ids = ids_in(root)
    with pytest.raises(StoppedError):
        fastpq.encrypt_dataset(root, encryption, progress=stopping(2))
    with pytest.raises(fastpq.CryptoError, match="the file is not encrypted"):
        ids_in(root, decryption)
    if way is by_service:
        assert ids_in(root, opening("t", allow_plaintext_files=True)) == all_ids
        with pytest.raises(fastpq.CryptoError, match="an interrupted encrypt_dataset has left the file in plaintext"):
            fastpq.revoke(root, ["pay"], "kn", decryption)
    with pytest.raises(fastpq.CryptoError, match="an interrupted encrypt_dataset has left the file in plaintext"):
        fastpq.rotate_dataset(root, decryption, encryption)
    with pytest.raises(fastpq.CryptoError, match="an interrupted encrypt_dataset has left plaintext and encrypted files"):
        fastpq.decrypt_dataset(root, decryption)
    plaintext_file = data_files(root)[3]
    stored, status = plaintext_file.read_bytes(), plaintext_file.stat()
    forge(plaintext_file, stored, status)
    with pytest.raises(fastpq.CryptoError, match="side by side"):
        fastpq.decrypt_dataset(root, decryption)
    with pytest.raises(fastpq.CryptoError, match="may have been put in the place"):
        fastpq.rotate_dataset(root, decryption, encryption)
    report = fastpq.decrypt_dataset(root, decryption, allow_plaintext_files=True)
    assert [file.reason for file in report.files] == ["encrypted becomes plaintext"] * 2 + ["was plaintext before"] * 2
    assert ids_in(root) == all_ids
    assert others(root) == []


def wrapped_keys(folder: Path) -> list[str]:
    """The wrapped keys that files and material files name."""
    files = fastpq.inspect_encryption(folder).files
    return [str(file.footer_key and file.footer_key.key_metadata) for file in files] + [
        path.read_text() for path in sorted(folder.rglob("_KEY_MATERIAL_FOR_*"))
    ]


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("new_data_keys", [False, True])
def test_rotation(root: Path, external: bool, new_data_keys: bool) -> None:
    all_ids = ids_in(root)
    fastpq.encrypt_dataset(root, sealing("people", internal_key_material=not external))
    before, wrapped = {path: path.read_bytes() for path in data_files(root)}, wrapped_keys(root)
    assert len(fastpq.rotate_dataset(root, opening("people"), new_data_keys=new_data_keys, dry_run=True).changed_files) == 4
    assert wrapped_keys(root) == wrapped
    report = fastpq.rotate_dataset(root, opening("people"), new_data_keys=new_data_keys)
    assert len(report.changed_files) == 4
    rewritten = not external or new_data_keys
    assert all((path.read_bytes() != data) == rewritten for path, data in before.items())
    assert not {*wrapped_keys(root)} & ({*wrapped} if not (external and not new_data_keys) else {*wrapped[4:]})
    assert ids_in(root, opening("people")) == all_ids
    assert sorted(value for path in data_files(root) for value in pay_by_arrow(path)) == [number * 10 for number in all_ids]
    protection = fastpq.inspect_encryption(root).files[0]
    assert protection.master_key_ids == (("kf", "kc") if external else ("kf",))
    assert protection.aad_prefix == f"people|file|{Path(protection.path).name}|".encode()
    assert len(others(root)) == 4 * external


@pytest.mark.parametrize("double", [True, False])
def test_external_keys_are_wrapped_as_before(root: Path, double: bool) -> None:
    """One key encryption key for each master key serves all files."""
    fastpq.encrypt_dataset(root, sealing(internal_key_material=False, double_wrapping=double))
    service = InMemoryKms(MASTER_KEYS)
    keys = CryptoFactory(lambda config: service).dataset_decryption_properties(CONNECTION, TRUSTED)
    fastpq.rotate_dataset(root, keys)
    assert len(service.wrapped) == (2 if double else 8)
    footers = [file.footer_key for file in fastpq.inspect_encryption(root).files]
    assert {footer.wrapping for footer in footers if footer is not None} == {"double" if double else "single"}


@pytest.mark.parametrize("external", [False, True])
def test_readers_during_a_job_see_the_old_or_the_new_files(root: Path, external: bool) -> None:
    fastpq.encrypt_dataset(root, sealing("people", internal_key_material=not external))
    all_ids = list(range(2 * ROWS))
    problems: list[Exception] = []
    reads: list[int] = []
    is_done = threading.Event()

    def read() -> None:
        while not is_done.is_set():
            try:
                assert ids_in(root, opening("people")) == all_ids
                assert sorted(value for path in data_files(root) for value in pay_by_arrow(path)) == [10 * n for n in all_ids]
            except Exception as error:
                problems.append(error)
            reads.append(1)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(2):
        fastpq.rotate_dataset(root, opening("people"), new_data_keys=True)
    fastpq.rotate_dataset(root, opening("people"))
    fastpq.revoke(root, ["pay"], "kn", opening("people"))
    is_done.set()
    for reader in readers:
        reader.join()
    assert problems == []
    assert len(reads) > 4


def test_keys_of_replaced_files_do_not_stop_a_rotation(root: Path) -> None:
    """A killed job leaves old keys beside the new ones. Their master key may be gone later."""
    fastpq.encrypt_dataset(root, sealing(internal_key_material=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder_job.FolderJob, "_settle", lambda job: None)
        fastpq.revoke(root, ["pay"], "kn", opening())
    later = factory({name: key for name, key in MASTER_KEYS.items() if name != "kc"})
    fastpq.rotate_dataset(root, later.dataset_decryption_properties(CONNECTION, TRUSTED))
    assert ids_in(root, opening()) == list(range(2 * ROWS))
    assert sorted(value for path in data_files(root) for value in pay_by_arrow(path)) == [10 * n for n in range(2 * ROWS)]


def test_an_interrupted_rotation_goes_on(root: Path) -> None:
    fastpq.encrypt_dataset(root, sealing())
    with pytest.raises(StoppedError):
        fastpq.rotate_dataset(root, opening(), progress=stopping(1))
    before = {path: path.read_bytes() for path in data_files(root)}
    os.utime(data_files(root)[3])       # whoever touches a file does not keep it from being rotated
    report = fastpq.rotate_dataset(root, opening())
    assert report.is_resumed
    assert (len(report.changed_files), len(report.unchanged_files)) == (3, 1)
    assert sum(path.read_bytes() != data for path, data in before.items()) == 3
    assert others(root) == []
    assert len(fastpq.rotate_dataset(root, opening()).changed_files) == 4


KEYS = {name: bytes([number]) * 16 for number, name in enumerate((b"A", b"B", b"C"))}


def test_a_rotation_to_other_keys_does_not_pass_for_an_interrupted_one(root: Path) -> None:
    """Files that the interrupted rotation has put under B are not under C, where the second one wants them."""
    either = fastpq.FileDecryptionProperties(key_retriever=lambda metadata: KEYS[metadata])
    fastpq.encrypt_dataset(root, fastpq.FileEncryptionProperties(KEYS[b"A"], footer_key_metadata=b"A"))
    targets = [fastpq.FileEncryptionProperties(KEYS[name], footer_key_metadata=name) for name in KEYS]
    with pytest.raises(StoppedError):
        fastpq.rotate_dataset(root, either, targets[1], progress=stopping(2))
    report = fastpq.rotate_dataset(root, either, targets[2])
    assert (len(report.changed_files), report.is_resumed) == (4, True)
    assert len(ids_in(root, fastpq.FileDecryptionProperties(KEYS[b"C"]))) == 2 * ROWS
    with pytest.raises(StoppedError):
        fastpq.rotate_dataset(root, either, targets[0], progress=stopping(2))
    report = fastpq.rotate_dataset(root, either, targets[0])
    assert (len(report.changed_files), len(report.unchanged_files)) == (2, 2)
    assert len(ids_in(root, fastpq.FileDecryptionProperties(KEYS[b"A"]))) == 2 * ROWS


@pytest.mark.parametrize("external", [False, True])
def test_a_rotation_to_other_master_keys_does_not_pass_for_an_interrupted_one(root: Path, external: bool) -> None:
    fastpq.encrypt_dataset(root, sealing())
    with pytest.raises(StoppedError):
        fastpq.rotate_dataset(root, opening(), sealing(internal_key_material=not external), progress=stopping(2))
    other = EncryptionConfiguration("kf", {"kn": ["pay"]}, unlisted="footer_key", internal_key_material=not external)
    report = fastpq.rotate_dataset(root, opening(), factory().dataset_encryption_properties(CONNECTION, other))
    assert (len(report.changed_files), report.is_resumed) == (4, True)
    without_kc = factory({"kf": MASTER_KEYS["kf"], "kn": MASTER_KEYS["kn"]}).dataset_decryption_properties(CONNECTION)
    assert len(ids_in(root, without_kc)) == 2 * ROWS
    assert len(others(root)) == 4 * external
    with pytest.raises(StoppedError):
        fastpq.rotate_dataset(root, opening(), sealing(internal_key_material=not external), progress=stopping(1))
    report = fastpq.rotate_dataset(root, opening(), sealing(internal_key_material=not external))
    assert (len(report.changed_files), len(report.unchanged_files)) == (3, 1)
    without_kn = factory({"kf": MASTER_KEYS["kf"], "kc": MASTER_KEYS["kc"]}).dataset_decryption_properties(CONNECTION)
    assert len(ids_in(root, without_kn)) == 2 * ROWS


def test_a_plaintext_journal_never_keeps_files_from_being_rotated(root: Path) -> None:
    old, new = fastpq.FileEncryptionProperties(KEY), fastpq.FileEncryptionProperties(KEY[::-1])
    fastpq.encrypt_dataset(root, old)
    rows = [json.dumps(["rotate", str(path.relative_to(root)), "00"]) for path in data_files(root)]
    fastpq.write_table({"fastpq:job": rows}, root / "_fastpq_job.parquet")

    def keys_of(path: str) -> fastpq.FileDecryptionProperties | None:
        return None if "_fastpq" in path else fastpq.FileDecryptionProperties(KEY)

    report = fastpq.rotate_dataset(root, keys_of, lambda path: new)
    assert (len(report.changed_files), report.is_resumed) == (4, False)
    assert len(ids_in(root, fastpq.FileDecryptionProperties(KEY[::-1]))) == 2 * ROWS


def test_a_malformed_journal_is_not_believed(root: Path) -> None:
    """decrypt_dataset writes its journal in plaintext, so that anybody may have written one."""
    keys, opened = explicit(root)
    fastpq.encrypt_dataset(root, keys)
    for row in ("[" * 100_000, "[1]", "null", '["decrypt", ["a"], ""]', None):
        fastpq.write_table({"fastpq:job": [row]}, root / "_fastpq_job.parquet", schema={"fastpq:job": "string"})
        report = fastpq.decrypt_dataset(root, opened, dry_run=True)
        assert (len(report.changed_files), report.is_resumed) == (4, False)


def test_an_interrupted_job_goes_on_under_another_spelling_of_the_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys, opened = explicit(root)
    monkeypatch.chdir(root.parent)
    for verb, argument in ((fastpq.encrypt_dataset, keys), (fastpq.decrypt_dataset, opened)):
        with pytest.raises(StoppedError):
            verb(root, argument, progress=stopping(2))
        report = verb(f"./{root.name}/", argument)
        assert (len(report.changed_files), report.is_resumed) == (2, True)


def test_the_journal_is_not_written_through_a_link(root: Path) -> None:
    precious = root.parent / "precious"
    precious.write_bytes(b"precious")
    (root / "_fastpq_job.parquet").symlink_to(precious)
    fastpq.encrypt_dataset(root, fastpq.FileEncryptionProperties(KEY))
    assert precious.read_bytes() == b"precious"
    assert others(root) == []


@pytest.mark.linux
def test_two_jobs_never_change_a_folder_at_once(root: Path) -> None:
    """The second would overwrite the key material of the file that the first is encrypting."""
    refusals = []

    def second(done: int, total: int) -> None:
        with pytest.raises(fastpq.CryptoError, match="another job") as caught:
            fastpq.encrypt_dataset(root, sealing(internal_key_material=False), allow_plaintext_files=True)
        refusals.append(caught.value.context["path"])

    report = fastpq.encrypt_dataset(root, sealing(internal_key_material=False), progress=second)
    assert len(report.changed_files) == 4
    assert refusals == [str(root)] * 4
    assert len(ids_in(root, opening())) == 2 * ROWS
    assert not any(name.startswith("_fastpq") for name in others(root))


@pytest.mark.linux
def test_jobs_on_a_folder_and_on_one_in_it_are_kept_apart(root: Path) -> None:
    inner, refusals = root / "team=0", []

    def refuse(folder: Path) -> Callable[[int, int], None]:
        def second(done: int, total: int) -> None:
            with pytest.raises(fastpq.CryptoError, match="another job is changing the files of the folder") as caught:
                fastpq.encrypt_dataset(folder, sealing(), allow_plaintext_files=True)
            refusals.append(str(caught.value))
            assert not (folder / LOCK).exists()

        return second

    assert len(fastpq.encrypt_dataset(root, sealing(), progress=refuse(inner)).changed_files) == len(refusals) == 4
    assert re.search(rf"folder {root}: encrypt job in process {os.getpid()} on .*, begun at 20", refusals[0])
    fastpq.decrypt_dataset(inner, opening(), progress=refuse(root))
    assert f"folder {inner}: decrypt job in process" in refusals[-1]

    reports = []
    fastpq.decrypt_dataset(
        root / "team=1", opening(), progress=lambda done, total: reports.append(fastpq.encrypt_dataset(inner, sealing())))
    assert len(reports[0].changed_files) == 2
    assert not any(name.startswith("_fastpq") for name in others(root))


@pytest.mark.linux
def test_locks_of_dead_jobs_and_planted_files_stop_no_job(root: Path) -> None:
    inner = root / "team=0"
    (root / LOCK).write_text("rotate job in process 1")
    (root.parent / LOCK).symlink_to("/dev/zero")
    os.mkfifo(root / "team=1" / LOCK)
    fastpq.encrypt_dataset(inner, sealing())
    fastpq.decrypt_dataset(inner, opening())
    fastpq.encrypt_dataset(root, sealing())
    assert len(ids_in(root, opening())) == 2 * ROWS


def test_a_job_without_its_lock_leaves_the_lock_of_another_job(root: Path) -> None:
    def replace_lock(done: int, total: int) -> None:
        (root / LOCK).unlink()
        jobs.enter_context(only_job(str(root), "encrypt_dataset"))

    with ExitStack() as jobs:
        with pytest.raises(fastpq.CryptoError, match="somebody removed its lock"):
            fastpq.encrypt_dataset(root, sealing(), progress=replace_lock)
        with pytest.raises(fastpq.CryptoError, match="another job is changing"):
            fastpq.encrypt_dataset(root, sealing(), allow_plaintext_files=True)
    assert not (root / LOCK).exists()


def test_the_journal_of_a_finished_rotation_does_not_prevent_another_one(root: Path) -> None:
    """Somebody without keys may have copied it, and put it back."""
    fastpq.encrypt_dataset(root, sealing())
    journal, copies = root / "_fastpq_job.parquet", []
    fastpq.rotate_dataset(root, opening(), progress=lambda done, total: copies.append(journal.read_bytes()))
    journal.write_bytes(copies[0])
    report = fastpq.rotate_dataset(root, opening())
    assert (len(report.changed_files), report.is_resumed) == (4, False)
    assert not journal.exists()


def test_files_after_a_finished_rotation_do_not_make_it_an_interrupted_one(root: Path) -> None:
    """The first rotation was killed before it removed its journal."""
    fastpq.encrypt_dataset(root, sealing())
    journal, copies = root / "_fastpq_job.parquet", []
    fastpq.rotate_dataset(root, opening(), progress=lambda done, total: copies.append(journal.read_bytes()))
    journal.write_bytes(copies[0])
    later = root / "team=0" / "later.parquet"
    fastpq.write_table({"id": [2 * ROWS], "pay": [0]}, later, encryption_properties=sealing()(str(later)))
    report = fastpq.rotate_dataset(root, opening())
    assert (len(report.changed_files), report.is_resumed) == (5, False)
    assert not journal.exists()


def test_the_journal_of_a_finished_encryption_explains_no_plaintext_file(root: Path) -> None:
    journal, copies = root / "_fastpq_job.parquet", []
    fastpq.encrypt_dataset(root, sealing(), progress=lambda done, total: copies.append(journal.read_bytes()))
    journal.write_bytes(copies[0])
    fastpq.write_table({"id": [1], "pay": [0]}, root / "team=0" / "later.parquet")
    with pytest.raises(fastpq.CryptoError, match="no interrupted job explains it"):
        fastpq.encrypt_dataset(root, sealing())


def test_rotation_keeps_how_each_file_is_encrypted(tmp_path: Path) -> None:
    data = {"a": [1], "b": [2], "c": [3]}
    for number, options in enumerate((
        {"plaintext_footer": True, "unlisted": "plaintext"}, {"double_wrapping": False}, {"data_key_length_bits": 256},
        {"plaintext_footer": True, "unlisted": "footer_key"},
    )):
        made = EncryptionConfiguration("kf", {"kc": ["a"]}, **options)      # type: ignore[arg-type]
        keys = factory().file_encryption_properties(CONNECTION, made)
        fastpq.write_table(data, tmp_path / f"{number}.parquet", encryption_properties=keys)
    uniform = factory().file_encryption_properties(CONNECTION, EncryptionConfiguration("kf", uniform_encryption=True))
    fastpq.write_table(data, tmp_path / "uniform.parquet", encryption_properties=uniform)

    def facts() -> list[Any]:
        files = fastpq.inspect_encryption(tmp_path).files
        return [(file.footer, file.algorithm, [(column.key, column.column) for column in file.columns or ()],
                 file.footer_key and file.footer_key.wrapping) for file in files]

    before = facts()
    assert len(fastpq.rotate_dataset(tmp_path, opening()).changed_files) == 5
    assert facts() == before
    assert fastpq.read_dataset(tmp_path, decryption_properties=opening()).num_rows == 5


def test_rotation_and_revocation_need_trusted_names(root: Path) -> None:
    fastpq.encrypt_dataset(root, sealing())
    trusting_all = factory().dataset_decryption_properties(CONNECTION)
    with pytest.raises(fastpq.SchemaError, match="trusted_master_keys"):
        fastpq.rotate_dataset(root, trusting_all)
    with pytest.raises(fastpq.SchemaError, match="trusted_master_keys"):
        fastpq.revoke(root, ["pay"], "kn", trusting_all)
    few = factory().dataset_decryption_properties(CONNECTION, DecryptionConfiguration(trusted_master_keys=["kf", "kc"]))
    with pytest.raises(fastpq.SchemaError, match="new master key is not among"):
        fastpq.revoke(root, ["pay"], "kn", few)
    with pytest.raises(fastpq.SchemaError, match="come from no key service"):
        fastpq.rotate_dataset(root, fastpq.FileDecryptionProperties(KEY))
    only_footer = factory().dataset_decryption_properties(CONNECTION, DecryptionConfiguration(trusted_master_keys=["kf"]))
    with pytest.raises(fastpq.KeyAccessError, match="trusted_master_keys"):
        fastpq.rotate_dataset(root, only_footer)


@pytest.mark.parametrize("external", [False, True])
def test_former_holders_cannot_open_new_files(root: Path, external: bool) -> None:
    all_ids = ids_in(root)
    fastpq.encrypt_dataset(root, sealing("people", internal_key_material=not external))
    copy = root.parent / "copy"
    shutil.copytree(root, copy)
    former = {name: key for name, key in MASTER_KEYS.items() if name != "kn"}
    former_keys = factory(former).dataset_decryption_properties(CONNECTION, table_id="people")
    assert ids_in(root, former_keys) == all_ids
    old_keys = [column_key(path, former_keys) for path in data_files(root)]
    with pytest.raises(StoppedError):
        fastpq.revoke(root, ["pay"], "kn", opening("people"), progress=stopping(1))
    report = fastpq.revoke(root, ["pay"], "kn", opening("people"))
    assert report.is_resumed
    assert (len(report.changed_files), len(report.unchanged_files)) == (3, 1)
    assert ids_in(root, opening("people")) == all_ids
    fresh_reader = factory(former).dataset_decryption_properties(CONNECTION, table_id="people")
    for keys in (former_keys, fresh_reader):
        assert sorted(fastpq.read_dataset(root, ["id"], decryption_properties=keys)["id"].to_pylist()) == all_ids
        with pytest.raises(fastpq.KeyAccessError):
            ids_in(root, keys)
    for path, old_key in zip(data_files(root), old_keys, strict=True):
        with pytest.raises(KeyError, match="kn"):
            pay_by_arrow(path, former)
        kept = factory(former).file_decryption_properties(
            CONNECTION, None, path, column_keys={"pay": old_key}, aad_prefix=opening("people").aad_prefix(path))
        with pytest.raises(fastpq.TagVerificationError):
            fastpq.read_table(path, ["pay"], decryption_properties=kept)
    assert ids_in(copy, former_keys) == all_ids     # copies stay readable, as the docs say
    named_keys = re.compile(r"masterKeyID\W+kc\W")      # wrapped keys are random text, which may have the same letters
    assert any(map(named_keys.search, wrapped_keys(copy))) == external
    assert not any(map(named_keys.search, wrapped_keys(root)))
    assert len(fastpq.revoke(root, ["pay"], "kn", opening("people")).changed_files) == 0


def column_key(path: Path, keys: DatasetDecryptionProperties) -> Any:
    """The data key of the column pay, as a former holder may have kept it."""
    from fastpq.rewriting.renewed_keys import PresentKeys

    column = PresentKeys.of(path, keys(path)).own.column_keys.find(("pay",))
    assert column is not None
    return column.key


def test_revoking_columns_that_are_missing_or_without_own_key(root: Path) -> None:
    fastpq.encrypt_dataset(root, sealing())
    before = {path: path.read_bytes() for path in data_files(root)}
    for columns, message in ((["nope"], "no file has the columns nope"), (["team"], "partition column"), ("pay", "list")):
        with pytest.raises(fastpq.SchemaError, match=message):
            fastpq.revoke(root, columns, "kn", opening())
    assert {path: path.read_bytes() for path in data_files(root)} == before
    fastpq.revoke(root, ["id"], "kn", opening())        # it had the footer key
    former = factory({name: key for name, key in MASTER_KEYS.items() if name != "kn"})
    keys = former.dataset_decryption_properties(CONNECTION)
    assert fastpq.read_dataset(root, ["pay"], decryption_properties=keys).num_rows == 2 * ROWS
    with pytest.raises(fastpq.KeyAccessError):
        fastpq.read_dataset(root, ["id"], decryption_properties=keys)


def test_checksums(root: Path) -> None:
    for path in data_files(root):
        path.with_name(f".{path.name}.crc").write_bytes(b"stale")
    fastpq.encrypt_dataset(root, sealing("people", internal_key_material=False))
    fastpq.decrypt_dataset(root, opening("people"))
    assert others(root) == []


KILLED = """
import os, signal, sys
sys.path.insert(0, os.getcwd())
import fastpq
from fastpq.io import new_file, sink
from fastpq.encryption.keys import store
from tests.datasets import test_key_changes as tests

verb, external, where, count = sys.argv[1], sys.argv[2] == "external", sys.argv[3], int(sys.argv[4])
steps = 0

def killing(function):
    def call(*arguments, **options):
        global steps
        steps += 1
        if steps == count:
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*arguments, **options)
        return result
    return call

os.rename, os.replace, os.link, os.unlink = map(killing, (os.rename, os.replace, os.link, os.unlink))
from fastpq.datasets import folder_job
folder_job.GRACE_SECONDS = 0.0
sink.FileSink._finish = killing(sink.FileSink._finish)
tests.VERBS[verb](where, external)
"""
VERBS: dict[str, Callable[[Any, bool], Any]] = {
    "encrypt": lambda where, external: fastpq.encrypt_dataset(where, sealing("people", internal_key_material=not external)),
    "decrypt": lambda where, external: fastpq.decrypt_dataset(where, opening("people")),
    "rotate": lambda where, external: fastpq.rotate_dataset(where, opening("people"), new_data_keys=True),
    "revoke": lambda where, external: fastpq.revoke(where, ["pay"], "kn", opening("people")),
}


def killed_at(verb: str, where: Path, external: bool) -> Iterator[int]:
    """Run a verb in processes that are killed at the first, second ... step. Yield after each until one comes through."""
    for count in range(1, 1000):
        kind = "external" if external else "internal"
        result = subprocess.run(
            [sys.executable, "-c", KILLED, verb, kind, str(where), str(count)], capture_output=True, text=True, check=False,
            timeout=120)
        if result.returncode == 0:
            return
        assert result.returncode == -signal.SIGKILL, result.stderr
        yield count


@pytest.mark.linux
@pytest.mark.slow
@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("verb", VERBS)
def test_kills_at_every_step(tmp_path: Path, verb: str, external: bool) -> None:
    """After each kill every file is readable, also by pyarrow, and a second call finishes the work."""
    first = tmp_path / "first"
    for start in (0, 3):
        fastpq.write_dataset({"id": np.arange(start, start + 3), "pay": np.arange(start, start + 3)}, first)
    if verb != "encrypt":
        fastpq.encrypt_dataset(first, sealing("people", internal_key_material=not external))
    either = factory().dataset_decryption_properties(CONNECTION, TRUSTED, table_id="people", allow_plaintext_files=True)
    root = tmp_path / "people"
    shutil.copytree(first, root)
    steps = 0
    for count in killed_at(verb, root, external):
        steps += 1
        assert ids_in(root, either) == list(range(6)), count
        for path in data_files(root):
            is_sealed = path.read_bytes()[-4:] == b"PARE"
            assert sorted(pay_by_arrow(path) if is_sealed else pq.read_table(path)["pay"].to_pylist()) in ([0, 1, 2], [3, 4, 5])
        is_finished = verb == "decrypt" and all(path.read_bytes()[:4] == b"PAR1" for path in data_files(root)) and (
            not (root / "_fastpq_job.parquet").exists())       # plaintext files are refused then
        if is_finished:
            (root / "_fastpq_job.lock").unlink(missing_ok=True)     # of a process that was killed before it removed the file
        else:
            VERBS[verb](root, external)
        left = [name for name in others(root) if not name.startswith(".")]     # unfinished_files lists the others
        assert verb != "decrypt" or left == [], count
        assert ids_in(root, None if verb == "decrypt" else opening("people")) == list(range(6)), count
        assert not any(name.startswith("_fastpq") for name in others(root)), count
        shutil.rmtree(root)
        shutil.copytree(first, root)
    assert steps > 3
