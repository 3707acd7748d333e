"""compact: joins the small files and row groups of a dataset."""

from __future__ import annotations

import os
import posixpath
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Unpack

from fastpq.api.functions import read_metadata
from fastpq.common.lazy import LazyModule
from fastpq.common.progress import Meter, Progress
from fastpq.datasets.consolidation import Consolidation, consolidate, joined_kind, small_row_groups
from fastpq.datasets.discovery import DataFile, find_files
from fastpq.datasets.keys_of_files import DatasetDecryption, DatasetEncryption, check_names, decryption_of, encryption_by_path
from fastpq.datasets.metadata_writing import settle_metadata
from fastpq.datasets.replaced_files import ReplacedFiles, ReplacedObjects
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import SchemaError
from fastpq.io.file_version import FileVersion
from fastpq.io.location import Remote, locate, placed
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import MIB, WriterProperties, takes_options, with_options

if TYPE_CHECKING:
    from fastpq.api import keywords
else:       # typing.get_type_hints looks up annotation types here
    keywords = LazyModule("fastpq.api.keywords")

DEFAULT_TARGET_SIZE = 128 * MIB
# Divisor of the target size. A row group whose stored size is at least the quotient is copied: 8 MiB by default.
LEAST_PART = 16


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """What ``compact`` has done.

    Attributes:
        replaced_files: paths of the old files, which no longer exist.
        new_files: paths of the new files, which have the rows of the old files.
        num_rows: number of rows in the new files.
        copied_row_groups: row groups that were copied byte for byte.
        rewritten_row_groups: small row groups whose rows were decoded and joined.
    """

    replaced_files: tuple[str, ...] = ()
    new_files: tuple[str, ...] = ()
    num_rows: int = 0
    copied_row_groups: int = 0
    rewritten_row_groups: int = 0

    def __str__(self) -> str:
        return (
            f"{len(self.replaced_files)} files became {len(self.new_files)}: {self.copied_row_groups} row groups copied, "
            f"{self.rewritten_row_groups} joined"
        )


@takes_options(WriterProperties)
def compact(
    root: Any,
    *,
    target_size: int = DEFAULT_TARGET_SIZE,
    encryption_properties: DatasetEncryption = None,
    decryption_properties: DatasetDecryption = None,
    threads: int | None = None,
    progress: Progress | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    **options: Unpack[keywords.WriterOptions],
) -> CompactionReport:
    """Join the small files of a dataset to larger files, and their small row groups to larger row groups.

    Files are joined if they are in the same folder and have the same schema. A row group is small if it has fewer bytes than a
    sixteenth of ``target_size``, and fewer rows than ``row_group_size``. Large row groups are copied byte for byte. The small
    ones are decoded, and their rows come after the large row groups in the new file. A file that is joined with no other is only
    rewritten if it has several small row groups. Readers see the old or the new files of a folder, even if the process is killed.
    Another call has nothing to do, unless the new files became so small that several fit in one.

    Args:
        root: the dataset's directory, or a URL of one in S3, Azure or Google's store.
        target_size: stored size of the new files in bytes.
        encryption_properties: keys for the new files, a DatasetEncryptionProperties, or a function that returns the keys for a
            file's path. Encrypted files need them.
        decryption_properties: keys for the files, a DatasetDecryptionProperties, or a function that returns the keys for a file's
            path.
        threads: how many columns are decoded and encoded at the same time, or None for one per core.
        progress: called as ``progress(done, total)``, in rows. The last call is ``(total, total)``.
        filesystem: an fsspec or pyarrow.fs filesystem for the path, or None to find one by the URL.
        storage_options: options for the URL's fsspec filesystem, as for pandas and Polars.
        timeout: for S3 URLs, longest time in seconds without a byte from the server.
        **options: any of the fields of WriterProperties for joined row groups. The default codec and bloom filters are those of
            the first file:

    Returns:
        A CompactionReport.

    Raises:
        SchemaError: ``root`` is no directory, files are encrypted but there are no keys for new ones, a file changed meanwhile,
            or ``sort_by`` or ``checkpoint_every`` is given.
        UnsupportedError: the filesystem cannot replace files in one step.
        FormatError, KeyAccessError, CryptoError: a file cannot be read. Nothing is replaced then.
    """
    if options.get("sort_by") or options.get("checkpoint_every"):
        raise SchemaError("compact copies row groups as they are: it takes no sort_by and no checkpoint_every")
    properties = with_options(None, options)
    least_bytes = target_size // LEAST_PART
    place = locate(placed(root, filesystem, storage_options, timeout))
    if place is None or (isinstance(place, str) and not os.path.isdir(place)):
        raise SchemaError(f"compact needs a directory, and {root} is not one")
    where: Any = place if isinstance(place, str) else placed(place.path, place.filesystem, None, None)
    data_files = find_files(where)
    check_names(decryption_properties, data_files)
    files = [CompactedFile.of(file, place, decryption_of(decryption_properties, file)) for file in data_files]
    if encryption_properties is None and any(file.is_encrypted for file in files):
        raise SchemaError("some files are encrypted: give encryption_properties for the new files")
    groups = groups_to_join(files, target_size, properties.row_group_size)
    if not groups:
        return CompactionReport()
    meter = Meter(progress, sum(file.footer.num_rows for group in groups for file in group))
    keys_of = encryption_by_path(encryption_properties, (), place)
    results = _joined(groups, place, keys_of, least_bytes, {**options, "durable": True}, threads, meter)
    settle_metadata(where, None)
    meter.finish()
    return CompactionReport(
        tuple(file.file.path for group in groups for file in group), tuple(path for path, _ in results),
        sum(result.rows for _, result in results), sum(result.copied_row_groups for _, result in results),
        sum(result.rewritten_row_groups for _, result in results),
    )


def _joined(
    groups: Sequence[Sequence[CompactedFile]],
    place: str | Remote,
    keys_of: Callable[[str], FileEncryptionProperties | None],
    least_bytes: int,
    options: Mapping[str, Any],
    threads: int | None,
    meter: Meter,
) -> list[tuple[str, Consolidation]]:
    """Make one file from each group, and replace the group by it. Return the path of each new file, and how it was made."""
    folders = sorted({group[0].folder for group in groups})
    results: list[tuple[str, Consolidation]] = []
    with ReplacedObjects(place) if isinstance(place, Remote) else ReplacedFiles(place, folders) as placement:
        for number, group in enumerate(groups):
            target, path = placement.target(group[0].folder, f"part-{number}-{secrets.token_hex(16)}.parquet")
            keys = {id(file.file.where): file.keys for file in group}
            result = consolidate(
                [file.file.where for file in group], target, least_bytes=least_bytes, keys=keys_of(path),
                keys_of=lambda where, keys=keys: keys[id(where)],       # type: ignore[misc]
                options=options, threads=threads, meter=meter)
            for file in group:
                placement.replace(file.folder, file.file, file.version)
            results.append((path, result))
    return results


@dataclass(frozen=True, slots=True)
class CompactedFile:
    """A data file of a dataset whose small files are joined.

    Attributes:
        file: the file.
        folder: its folder, relative to the dataset's folder.
        version: its version before the footer was read, or None if it is unknown.
        footer: its footer.
        size: its size in bytes.
        keys: its keys, or None.
    """

    file: DataFile
    folder: str
    version: FileVersion | None
    footer: FileMetaData
    size: int
    keys: FileDecryptionProperties | None

    @classmethod
    def of(cls, file: DataFile, place: str | Remote, keys: FileDecryptionProperties | None) -> CompactedFile:
        path, root = (file.path, place) if isinstance(place, str) else (f"/{file.path}", f"/{place.path}")
        folder = posixpath.dirname(os.path.relpath(path, root).replace(os.sep, "/"))
        version = file.version()
        footer = read_metadata(file.where, decryption_properties=keys)
        return cls(file, folder, version, footer, 0 if footer.file_end is None else footer.file_end.size, keys)

    @property
    def is_encrypted(self) -> bool:
        """Whether the file is encrypted or has a signed footer."""
        return self.footer.encryption_algorithm is not None or self.footer.footer_signing_key_metadata is not None

    @property
    def kind(self) -> tuple[Any, ...]:
        """What two files share if they can be joined."""
        return self.folder, *joined_kind(self.footer), self.is_encrypted


def groups_to_join(
    files: Iterable[CompactedFile],
    target_size: int,
    row_group_size: int,
    kind_of: Callable[[CompactedFile], Any] = attrgetter("kind"),
) -> list[Sequence[CompactedFile]]:
    """Return groups of files. Each group becomes one file. A file joins the first group in which it fits.

    A group has several files with at most ``target_size`` bytes together, or one file with several small row groups.

    Args:
        files: a dataset's files.
        target_size: as for ``compact``.
        row_group_size: rows in a full row group, which is never small.
        kind_of: returns what two files share if they can be joined.
    """
    alike: defaultdict[tuple[Any, ...], list[CompactedFile]] = defaultdict(list)
    for file in files:
        alike[kind_of(file)].append(file)
    groups: list[list[CompactedFile]] = []
    for members in alike.values():
        bins: list[list[CompactedFile]] = []
        for file in members:
            fitting = (each for each in bins if sum(one.size for one in each) + file.size <= target_size)
            if (first := next(fitting, None)) is not None:
                first.append(file)
            else:
                bins.append([file])
        groups += [each for each in bins if len(each) > 1 or _has_small_groups(each[0], target_size, row_group_size)]
    return [*groups]


def _has_small_groups(file: CompactedFile, target_size: int, row_group_size: int) -> bool:
    return len(small_row_groups(file.footer, target_size // LEAST_PART, row_group_size)) > 1
