"""Ways of writing local files, each with the contents before, the write, and a check behind an interrupted write."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow.parquet as pq

import fastpq
from fastpq.encryption.keys import CryptoFactory, EncryptionConfiguration, KmsConnectionConfig
from fastpq.encryption.keys.keyring import Keyring
from fastpq.spark.tables import journal
from tests.rewriting.verbs import VERBS, plaintext_of, write_source

ROWS = 3000
OLD, NEW = 1, 2         # the constants in old and new rows
KEY = bytes(range(16))
OPTIONS: dict[str, Any] = {"compression": "none", "use_dictionary": False, "row_group_size": 500}


class TornError(Exception):
    """A file that is neither the old one nor the new one, or that cannot be listed."""


def rows(constant: int) -> dict[str, Any]:
    return {"part": np.arange(ROWS) % 3, "value": np.arange(ROWS) * constant}


def value_of(path: Path, keys: fastpq.FileDecryptionProperties | None = None) -> int:
    """OLD or NEW, for a file with these rows; read by pyarrow as well, if it is plaintext.

    Raises:
        TornError: the file has other rows, or is broken.
    """
    try:
        values = fastpq.read_table(path, ["value"], decryption_properties=keys)["value"].to_numpy()
        if keys is None and pq.read_table(path)["value"].to_pylist() != values.tolist():
            raise TornError(f"{path}: pyarrow reads other rows")
    except fastpq.ParquetError as error:
        raise TornError(f"{path}: {error}") from error
    for constant in (OLD, NEW):
        if values.tolist() == rows(constant)["value"].tolist():
            return constant
    raise TornError(f"{path}: other rows")


class Way(ABC):
    """A way of writing.

    Args:
        folder: an empty folder.
    """

    named: ClassVar[bool] = False       # without unnamed files, as on other operating systems

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "target"

    @abstractmethod
    def prepare(self) -> None:
        """Make the contents before the write."""

    @abstractmethod
    def write(self) -> None:
        """Write; interrupted at any moment."""

    @abstractmethod
    def check(self, done: bool, failed: bool) -> None:
        """Check the contents behind the write.

        Args:
            done: the write returned.
            failed: the write raised an error.

        Raises:
            TornError: something is torn or cannot be listed.
        """

    def settle(self, state: int, done: bool, failed: bool) -> None:
        """Check that a write that returned has put the new rows in place, and a write that raised has left the old ones."""
        if (done and state != NEW) or (failed and state != OLD):
            raise TornError(f"{self.path}: the {'new' if state == NEW else 'old'} rows")

    def leftovers(self, killed: bool) -> list[Path]:
        """Hidden files, all of them listed.

        Args:
            killed: whether files may be left at all.
        """
        found = sorted(path for path in self.folder.rglob(".*") if path.is_file())
        if [str(path) for path in found] != sorted(fastpq.unfinished_files(self.folder)):
            raise TornError(f"unlisted files: {found}")
        if found and not killed:
            raise TornError(f"files left without a kill: {found}")
        return found


class Replacing(Way):
    """write_table over an old file."""

    def prepare(self) -> None:
        fastpq.write_table(rows(OLD), self.path, **OPTIONS)

    def write(self) -> None:
        fastpq.write_table(rows(NEW), self.path, **OPTIONS)

    def check(self, done: bool, failed: bool) -> None:
        self.settle(self.state(), done, failed)
        self.leftovers(not done and not failed)

    def state(self) -> int:
        return value_of(self.path)


class New(Replacing):
    """write_table to a new path."""

    def prepare(self) -> None:
        pass

    def state(self) -> int:
        return value_of(self.path) if self.path.exists() else OLD


class NewNamed(New):
    """write_table to a new path, under a hidden name."""

    named = True


class ReplacingNamed(Replacing):
    """write_table over an old file, under a hidden name."""

    named = True


class Checkpoints(Replacing):
    """A writer with a checkpoint behind every row group: hidden files are listed, and read as far as their checkpoint."""

    def write(self) -> None:
        with fastpq.ParquetWriter(self.path, checkpoint_every=1, **OPTIONS) as writer:
            writer.write_table(rows(NEW))

    def leftovers(self, killed: bool) -> list[Path]:
        found = super().leftovers(killed)
        for path in found:
            with suppress(fastpq.FormatError):      # no checkpoint yet
                values = fastpq.recover_table(path).table["value"].to_numpy()
                if values.tolist() != rows(NEW)["value"][: len(values)].tolist():
                    raise TornError(f"{path}: other rows recovered")
        return found


class CheckpointsNamed(Checkpoints):
    """A writer with checkpoints, under a hidden name from the start."""

    named = True


class Encrypting(Replacing):
    """encrypt_file in place, to another key."""

    keys = (KEY, KEY[::-1])

    def prepare(self) -> None:
        fastpq.write_table(rows(OLD), self.path, encryption_properties=self.encryption(0), **OPTIONS)

    def encryption(self, number: int) -> fastpq.FileEncryptionProperties:
        return fastpq.FileEncryptionProperties(self.keys[number])

    def decryption(self, number: int) -> fastpq.FileDecryptionProperties:
        return fastpq.FileDecryptionProperties(self.keys[number])

    def write(self) -> None:
        fastpq.encrypt_file(self.path, self.path, self.encryption(1), decryption_properties=self.decryption(0))

    def state(self) -> int:
        try:
            value_of(self.path, self.decryption(0))
        except TornError:
            value_of(self.path, self.decryption(1))
            return NEW
        return OLD


class Merging(New):
    """merge_files to a new path."""

    def prepare(self) -> None:
        for number, part in enumerate((slice(0, 1000), slice(1000, ROWS))):
            table = {name: values[part] for name, values in rows(NEW).items()}
            fastpq.write_table(table, self.folder / f"source-{number}", **OPTIONS)

    def write(self) -> None:
        fastpq.merge_files([self.folder / "source-0", self.folder / "source-1"], self.path)


class Appending(Replacing):
    """append_table: the first rows alone, or all rows."""

    first = 2000

    def prepare(self) -> None:
        fastpq.write_table({name: values[: self.first] for name, values in rows(NEW).items()}, self.path, **OPTIONS)

    def write(self) -> None:
        fastpq.append_table({name: values[self.first :] for name, values in rows(NEW).items()}, self.path, **OPTIONS)

    def state(self) -> int:
        try:
            values = pq.read_table(self.path)["value"].to_pylist()
            fastpq_values = fastpq.read_table(self.path)["value"].to_pylist()
        except (fastpq.ParquetError, OSError, ValueError) as error:
            raise TornError(f"{self.path}: {error}") from error
        whole = rows(NEW)["value"].tolist()
        if values != fastpq_values or values not in (whole[: self.first], whole):
            raise TornError(f"{self.path}: other rows")
        return NEW if len(values) == ROWS else OLD


class Deleting(Appending):
    """delete_rows in the file's own place: all rows, or all but the last."""

    def prepare(self) -> None:
        fastpq.write_table(rows(NEW), self.path, **OPTIONS)

    def write(self) -> None:
        fastpq.delete_rows(self.path, self.path, rows=range(self.first, ROWS))

    def state(self) -> int:
        return OLD if super().state() == NEW else NEW


class Rewriting(Replacing):
    """A verb in the file's own place: the old bytes, or the bytes of an undisturbed run.

    Args:
        folder: an empty folder.
        name: the verb, of VERBS.
    """

    undisturbed: ClassVar[dict[str, tuple[bytes, bytes]]] = {}      # the old bytes, and the new ones in plaintext

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder)
        self.name = name

    def prepare(self) -> None:
        if self.name not in self.undisturbed:
            write_source(self.path, is_encrypted=self.name == "decrypt_file")
            old = self.path.read_bytes()
            self.write()
            self.undisturbed[self.name] = old, plaintext_of(self.path)
        self.old, self.new = self.undisturbed[self.name]
        self.path.write_bytes(self.old)

    def write(self) -> None:
        VERBS[self.name](self.path, self.path)

    def state(self) -> int:
        if self.path.read_bytes() == self.old:
            return OLD
        if plaintext_of(self.path) != self.new:
            raise TornError(f"{self.path}: neither the old file nor the new one")
        return NEW


class Splitting(Replacing):
    """split_file: each new file is whole, and the source stays."""

    parts: ClassVar[dict[str, bytes]] = {}      # of an undisturbed run
    old: ClassVar[bytes] = b""

    def prepare(self) -> None:
        if not self.parts:
            write_source(self.path)
            Splitting.old = self.path.read_bytes()
            self.write()
            self.parts.update({path.name: path.read_bytes() for path in self.folder.glob("part-*")})
            for name in self.parts:
                (self.folder / name).unlink()
        self.path.write_bytes(self.old)

    def write(self) -> None:
        fastpq.split_file(self.path, self.folder / "part-{number}", rows=7000)

    def check(self, done: bool, failed: bool) -> None:
        parts = {path.name: path.read_bytes() for path in self.folder.glob("part-*")}
        if sorted(parts) != sorted(self.parts)[: len(parts)] or (done and len(parts) < len(self.parts)):
            raise TornError(f"the new files are {sorted(parts)}")
        if any(data != self.parts[name] for name, data in parts.items()) or self.path.read_bytes() != self.old:
            raise TornError("another file than that of an undisturbed run")
        self.leftovers(not done and not failed)


class AppendingInPlace(Appending):
    """append_table in place: the old file, the new file, or a torn tail that recover_table cuts back to the old file."""

    def prepare(self) -> None:
        super().prepare()
        self.old = self.path.read_bytes()

    def write(self) -> None:
        rest = {name: values[self.first :] for name, values in rows(NEW).items()}
        fastpq.append_table(rest, self.path, in_place=True, **OPTIONS)

    def state(self) -> int:
        try:
            return super().state()
        except TornError:
            recovered = fastpq.recover_table(self.path, cut_back=True)
            if recovered.table.num_rows != self.first or self.path.read_bytes() != self.old:
                raise TornError(f"{self.path}: not cut back to the old file") from None
            return super().state()


class Dataset(Way):
    """write_dataset to a new folder: every visible file is whole."""

    def prepare(self) -> None:
        pass

    def write(self) -> None:
        fastpq.write_dataset(rows(NEW), self.path / "root", partition_by=["part"], **OPTIONS)

    def check(self, done: bool, failed: bool) -> None:
        files = [path for path in self.path.rglob("*.parquet") if not path.name.startswith(".")]
        for path in files:
            part = int(path.parent.name.removeprefix("part="))
            values = fastpq.read_table(path)["value"].to_numpy()
            if values.tolist() != rows(NEW)["value"][part::3].tolist() or pq.ParquetFile(path).metadata.num_rows != len(values):
                raise TornError(f"{path}: other rows")
        if done and len(files) != 3:
            raise TornError(f"{len(files)} files of 3")
        self.leftovers(not done and not failed)


class CreatingKeyring(Way):
    """Keyring.create: a whole keyring or none."""

    def prepare(self) -> None:
        pass

    def write(self) -> None:
        Keyring.create(self.path, "secret", scrypt_log_n=10)

    def check(self, done: bool, failed: bool) -> None:
        if self.path.exists():
            Keyring(self.path, "secret").create_key("k")
        elif done:
            raise TornError("no keyring")
        self.leftovers(not done and not failed)


class ChangingKeyring(Way):
    """Keyring.create_key: the old keys, or the old and the new one."""

    def prepare(self) -> None:
        Keyring.create(self.path, "secret", scrypt_log_n=10).create_key("old")

    def write(self) -> None:
        Keyring(self.path, "secret").create_key("new")

    def check(self, done: bool, failed: bool) -> None:
        self.settle(NEW if Keyring(self.path, "secret").key_ids == ["new", "old"] else OLD, done, failed)
        self.leftovers(not done and not failed)


class RotatingKeys(Way):
    """Rotation of the master keys of a file with external key material: readable with the keyring at any moment."""

    def factory(self) -> CryptoFactory:
        return CryptoFactory(lambda _: self.keyring)

    def prepare(self) -> None:
        self.keyring = Keyring.create(self.folder / "keyring", "secret", scrypt_log_n=10)
        self.keyring.create_key("k")
        configuration = EncryptionConfiguration("k", uniform_encryption=True, internal_key_material=False)
        keys = self.factory().file_encryption_properties(KmsConnectionConfig(), configuration, self.path)
        fastpq.write_table(rows(OLD), self.path, encryption_properties=keys, **OPTIONS)
        self.keyring.rotate_key("k")

    def write(self) -> None:
        self.factory().rotate_master_keys(KmsConnectionConfig(), self.path)

    def check(self, done: bool, failed: bool) -> None:
        value_of(self.path, self.factory().file_decryption_properties(KmsConnectionConfig(), parquet_file_path=self.path))
        self.leftovers(not done and not failed)


class SparkCommit(Way):
    """A local commit of the Spark source: all files of the job or none, once interrupted commits are finished."""

    def prepare(self) -> None:
        for number in range(2):
            fastpq.write_table(rows(OLD), self.folder / f"old-{number}.parquet", **OPTIONS)

    def write(self) -> None:
        root, job = str(self.folder), "job"
        os.makedirs(journal.job_folder(root, job))
        moves = {}
        for number in range(2):
            place = os.path.join(journal.TEMPORARY, job, f"task-{number}.parquet")
            fastpq.write_table(rows(NEW), os.path.join(root, place), **OPTIONS)
            moves[place] = os.path.join("deeper", f"new-{number}.parquet")
        journal.commit(root, job, moves, [f"old-{number}.parquet" for number in range(2)])

    def check(self, done: bool, failed: bool) -> None:
        for path in self.folder.rglob("*.parquet"):
            if not path.name.startswith("."):
                value_of(path)
        listed = {*map(Path, fastpq.unfinished_files(self.folder))}
        unlisted = {path for path in self.folder.rglob(".*") if path.is_file()} - listed
        if unlisted:
            raise TornError(f"unlisted files: {unlisted}")
        journal.recover(str(self.folder))
        journal.finish_commits(str(self.folder), -1)        # what others have left is removed, whatever its age
        left = sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())
        old, new = [f"old-{number}.parquet" for number in range(2)], [f"deeper/new-{number}.parquet" for number in range(2)]
        if left not in (old, new) or (done and left != new):
            raise TornError(f"files of half a commit: {left}")


class Torn(Replacing):
    """A write into the old file, which the trials must notice."""

    def write(self) -> None:
        with (self.folder / "target").open("wb", buffering=0) as file:
            fastpq.write_table(rows(NEW), file, **OPTIONS)


class Unlisted(Replacing):
    """A temporary file under a name of its own, which the trials must notice."""

    def write(self) -> None:
        hidden = self.folder / ".own"
        with hidden.open("wb", buffering=0) as file:
            fastpq.write_table(rows(NEW), file, **OPTIONS)
        hidden.replace(self.path)


WAYS: dict[str, Callable[[Path], Way]] = {
    "write_table, new": New,
    "write_table, replacing": Replacing,
    "write_table, new, named": NewNamed,
    "write_table, replacing, named": ReplacingNamed,
    "checkpoints": Checkpoints,
    "checkpoints, named": CheckpointsNamed,
    "encrypt_file": Encrypting,
    "merge_files": Merging,
    "append_table": Appending,
    "append_table, in place": AppendingInPlace,
    "delete_rows": Deleting,
    "split_file": Splitting,
    "write_dataset": Dataset,
    "Keyring.create": CreatingKeyring,
    "Keyring.create_key": ChangingKeyring,
    "rotate_master_keys": RotatingKeys,
    "Spark commit": SparkCommit,
}
WAYS |= {f"{name}, in place": partial(Rewriting, name=name) for name in VERBS}

# Ways with faults of their own.
FAULTY: dict[str, Callable[[Path], Way]] = {"torn": Torn, "unlisted": Unlisted}
