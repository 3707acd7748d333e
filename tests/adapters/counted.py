"""Datasets whose reads are counted, plain and encrypted, for the tests of adapters. They can be read in any process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fsspec.implementations.local import LocalFileSystem

import fastpq
from fastpq.encryption import DatasetDecryptionProperties

FILES, ROWS = 3, 100_000
KEY, COLUMN_KEY = b"a key of adapter", b"a column's keys!"
KEY_FUNCTION = "tests.adapters.counted:keys_of"
# spellings of the keys that must be in no plan, text or task
SPELLINGS = tuple(
    spelling for key in (KEY, COLUMN_KEY) for spelling in (key, key.hex().encode(), repr(key).encode(), str(list(key)).encode())
)


class CountedFileSystem(LocalFileSystem):       # type: ignore[misc]
    """The local filesystem, as one that fastpq takes for a remote one. It adds the number of bytes of each read to a file.

    Args:
        log: the file.
    """

    protocol = "counted"
    cachable = False

    def __init__(self, log: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.log = log

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        content: bytes = super().cat_file(path, start=start, end=end, **options)
        with open(self.log, "a") as log:
            log.write(f"{len(content)}\n")
        return content


def keys_of(path: str) -> fastpq.FileDecryptionProperties:
    """Return the keys of the encrypted dataset."""
    return fastpq.FileDecryptionProperties(KEY, {"text": COLUMN_KEY})


bound_keys = DatasetDecryptionProperties(fastpq.FileDecryptionProperties(KEY), table_id="counted")


def rows_of(number: int) -> dict[str, Any]:
    """Return the rows of a file: a sorted column, one that does not compress, and text."""
    start = number * ROWS
    return {
        "id": np.arange(start, start + ROWS),
        "noise": np.random.default_rng(number).random(ROWS),
        "text": np.array([f"row {row % 1000}" for row in range(start, start + ROWS)], object),
        "value": np.ma.masked_equal(np.arange(start, start + ROWS) % 7, 3),
    }


class CountedDataset:
    """A dataset of FILES files, and a count of the bytes that are read of it.

    Args:
        folder: an empty folder.
        is_encrypted: whether the files are encrypted.
    """

    def __init__(self, folder: Path, is_encrypted: bool) -> None:
        self.folder, self.is_encrypted = folder / "rows", is_encrypted
        self.folder.mkdir()
        self._log = folder / "log"
        keys = fastpq.FileEncryptionProperties(KEY, {"text": COLUMN_KEY}) if is_encrypted else None
        for number in range(FILES):
            path = self.folder / f"{number}.parquet"
            fastpq.write_table(rows_of(number), path, encryption_properties=keys, row_group_size=ROWS // 10)
        self.size = sum(path.stat().st_size for path in self.folder.iterdir())

    def options(self, *, by_name: bool = False, counted: bool = True) -> dict[str, Any]:
        """Return keyword arguments with which an adapter reads the dataset.

        Args:
            by_name: whether keys are given by the name of a function.
            counted: whether reads are counted.
        """
        keys = (KEY_FUNCTION if by_name else keys_of("")) if self.is_encrypted else None
        place = {"filesystem": CountedFileSystem(log=str(self._log))} if counted else {}
        return {"decryption_properties": keys, **place}

    def share(self, read: Callable[[], Any]) -> float:
        """Return how many of the dataset's bytes a function reads, as a share of all. It is called once."""
        self._log.write_text("")
        read()
        return sum(map(int, self._log.read_text().split())) / self.size

    def table(self) -> fastpq.Table:
        """Return all rows, in the Arrow types that pyarrow can filter."""
        return fastpq.read_dataset(str(self.folder), strings="offsets", **self.options(counted=False))


def has_no_key(content: bytes | str) -> bool:
    """Return whether no spelling of a key is in a text or a pickle."""
    stored = content.encode() if isinstance(content, str) else content
    return not any(spelling in stored for spelling in SPELLINGS)
