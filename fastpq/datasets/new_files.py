"""PartitionFiles: creates the new files of a dataset, each with its name, its writer and its keys."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fastpq.api.file import ParquetFile
from fastpq.api.writer import ParquetWriter
from fastpq.arrays.table import Table
from fastpq.common.progress import Progress
from fastpq.datasets.appending import SchemaCheck
from fastpq.datasets.placement import Placement
from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.errors import KeyAccessError
from fastpq.io.location import RemotePath
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import WriterProperties
from fastpq.variant.shredding_choice import Shredding


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A new file of a dataset, for the function ``file_visitor`` of write_dataset.

    Attributes:
        path: the file's path, in the form that its filesystem uses.
        size: the file's size in bytes.
        metadata: the file's footer. None if keys are necessary to read it.
    """

    path: str
    size: int
    metadata: FileMetaData | None


@dataclass(frozen=True, slots=True)
class NewFileOptions:
    """How the new files of a dataset are made.

    Attributes:
        properties: writer properties.
        threads: how many columns are encoded at the same time.
        shred: shredding for variant columns.
        basename_template: file name in which ``{i}`` stands for a number. None gives every file a new name.
        visitor: function that is called with each file after it has its place. None calls nothing.
    """

    properties: WriterProperties
    threads: int | None = None
    shred: Mapping[str, Shredding] | None = None
    basename_template: str | None = None
    visitor: Callable[[WrittenFile], object] | None = None

    def __post_init__(self) -> None:
        template = self.basename_template
        if template is not None and ("{i}" not in template or os.path.basename(template) != template):
            raise ValueError(f'basename_template must be a file name with "{{i}}", not {template!r}')


class PartitionFiles:
    """Creates the new files of a dataset, below one folder.

    Args:
        placement: where the files go.
        keys_of: returns the keys for a file's path.
        options: how the files are made.
        schema_check: compares the first rows with the dataset, and casts rows. None compares nothing.

    Attributes:
        is_remote: whether files are uploaded.
        metadata: metadata of the tables. It is written into each file, after the key-value metadata in the properties.
        properties: writer properties.
    """

    def __init__(
        self,
        placement: Placement,
        keys_of: Callable[[str], FileEncryptionProperties | None],
        options: NewFileOptions,
        schema_check: SchemaCheck | None,
    ) -> None:
        self._placement, self._keys_of, self._options, self._schema_check = placement, keys_of, options, schema_check
        self._numbers: Counter[str] = Counter()     # next number by folder. Without a template, folders share the numbers
        self.properties = options.properties
        self.is_remote = placement.is_remote
        self.metadata: Mapping[str, str] = {}

    def checked(self, rows: Table) -> Table:
        """Return rows with the types of the dataset. The rows have no partition columns.

        Raises:
            SchemaError: the dataset has other columns, or a column's values do not fit its type.
        """
        return rows if self._schema_check is None else self._schema_check.checked(rows)

    def make_folders(self, folders: Iterable[str]) -> None:
        """Make the local folders for partitions together."""
        self._placement.make_folders(folders)

    def open(self, folder: str, schema: Any = None, progress: Progress | None = None) -> tuple[str, ParquetWriter]:
        """Return the path and the writer of a new file.

        Args:
            folder: partition directory, relative to the root.
            schema: as for ParquetWriter.
            progress: as for ParquetWriter.
        """
        where, path = self._placement.target(folder, self._new_name(folder))
        writer = ParquetWriter(
            where,
            schema,
            properties=self._options.properties,
            threads=self._options.threads,
            encryption_properties=self._keys_of(path),
            shred=self._options.shred,
            progress=progress,
            if_none_match=None if self._options.basename_template is None else self._placement.conditions.if_none_match,
        )
        writer._describe(self.metadata)
        return path, writer

    def visit(self, paths: Iterable[str]) -> None:
        """Call the visitor with each file. The files are in their places."""
        if self._options.visitor is None:
            return
        for path in paths:
            where = self._placement.placed(path)
            try:
                with ParquetFile(where) as file:
                    self._options.visitor(WrittenFile(path, file._size, file.metadata))
            except KeyAccessError:
                size = where.fs.size(path) if isinstance(where, RemotePath) else os.path.getsize(path)
                self._options.visitor(WrittenFile(path, int(size), None))

    def _new_name(self, folder: str) -> str:
        template = self._options.basename_template
        if template is None:
            self._numbers[""] += 1
            return f"part-{self._numbers[''] - 1}-{secrets.token_hex(16)}.parquet"
        while True:
            name = template.replace("{i}", str(self._numbers[folder]))
            self._numbers[folder] += 1
            if self._placement.free_name(folder, name):
                return name
