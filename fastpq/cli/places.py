"""Places: local paths, folders, globs, fsspec URLs, and ``-`` for standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from fastpq.cli.failures import SYSTEM, USAGE, CommandFailure

if TYPE_CHECKING:
    from fastpq.api.file import ParquetFile
    from fastpq.cli.key_sources import KeySource
    from fastpq.datasets.dataset import ParquetDataset

OpenRows: TypeAlias = "ParquetFile | ParquetDataset"

STANDARD_STREAM = "-"
PARQUET_MAGIC = (b"PAR1", b"PARE")      # the first bytes of a Parquet file, and of one whose footer is encrypted
FORCE = "fastpq.force"                  # what ``--force`` sets in click's context


def is_url(place: str) -> bool:
    """Return whether a place is a URL."""
    return "://" in place


def is_glob(place: str) -> bool:
    """Return whether a place has wildcards, and no file has this name."""
    return any(character in place for character in "*?[") and (is_url(place) or not os.path.exists(place))


def is_folder(place: str) -> bool:
    """Return whether a place is a local folder, or a URL that ends with a slash."""
    return place.endswith("/") if is_url(place) else os.path.isdir(place)


def files_at(places: Sequence[str]) -> list[str]:
    """Return the files at some places, in order. Files whose names begin with ``_`` or ``.`` are left out of folders."""
    files: list[str] = []
    for place in places:
        if place == STANDARD_STREAM or not (is_glob(place) or is_folder(place)):
            files.append(place)
            continue
        members = _members_of_url(place) if is_url(place) else _members(place)
        if not members:
            raise CommandFailure(f"there are no files at {place!r}", SYSTEM)
        files += members
    return files


def _members(place: str) -> list[str]:
    if is_glob(place):
        from glob import glob

        return sorted(path for path in glob(place, recursive=True) if os.path.isfile(path))
    members = []
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if not name.startswith(("_", ".")))
        members += [os.path.join(folder, name) for name in sorted(names) if not name.startswith(("_", "."))]
    return members


def _members_of_url(place: str) -> list[str]:
    import fsspec

    filesystem, path = fsspec.core.url_to_fs(place)
    matches = filesystem.glob(path) if is_glob(place) else filesystem.find(path)
    visible = [match for match in sorted(matches) if not match.rpartition("/")[2].startswith(("_", "."))]
    return [str(filesystem.unstrip_protocol(match)) for match in visible]


def source_of(place: str) -> Any:
    """Return what ParquetFile opens: the place itself, or the bytes of standard input."""
    if place != STANDARD_STREAM:
        return place
    if sys.stdin.isatty():
        raise CommandFailure("standard input is a terminal", USAGE, "fastpq ... - <FILE, or name a file")
    return sys.stdin.buffer.read()


def target_of(place: str) -> Any:
    """Return where a writer of Parquet writes: the place itself, or standard output.

    Raises:
        CommandFailure: a file is there that is not a Parquet file, and there is no ``--force``.
    """
    if place != STANDARD_STREAM:
        if _magic_of(place) not in (None, b"", *PARQUET_MAGIC):
            _refuse(place, "is not a Parquet file")
        return place
    if sys.stdout.isatty():
        problem = "Parquet files are binary, and standard output is a terminal"
        raise CommandFailure(problem, USAGE, "fastpq ... -o FILE, or redirect the output")
    return sys.stdout.buffer


def refuse_parquet_target(place: str | None) -> None:
    """Refuse to write text, a picture or another format in the place of a Parquet file, unless there is ``--force``."""
    if place is not None and place != STANDARD_STREAM and _magic_of(place) in PARQUET_MAGIC:
        _refuse(place, "is a Parquet file")


def _refuse(place: str, what: str) -> None:
    import click

    context = click.get_current_context(silent=True)
    if context is None or not context.meta.get(FORCE):
        raise CommandFailure(f"{place!r} exists and {what}", USAGE, "--force replaces it, -o OTHER leaves it")


def _magic_of(place: str) -> bytes | None:
    """Return the first bytes of a local file, or None if there is no such regular file."""
    path = _local_path(place)
    if path is None or not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            return file.read(len(PARQUET_MAGIC[0]))
    except PermissionError:
        return None


def _local_path(place: str) -> str | None:
    """Return the path of a local file, which may be a URL, or None for a remote file."""
    if not is_url(place):
        return place
    if not place.startswith(("file://", "local://")):
        return None
    from fastpq.io.location import Remote, locate

    location = locate(place)
    return location.path if isinstance(location, Remote) else location


def name_of_place(place: str) -> str:
    """Return how messages call a place."""
    return "standard input" if place == STANDARD_STREAM else place


def open_place(place: str, keys: KeySource, **options: Any) -> ParquetFile:
    """Open one file.

    Args:
        place: a path, a URL or ``-``.
        keys: where keys come from.
        **options: options of ParquetFile.
    """
    from fastpq.api.file import ParquetFile

    if place != STANDARD_STREAM and not is_url(place) and os.path.isdir(place):
        raise CommandFailure(f"{place!r} is a folder, and one file is needed", USAGE, "name a file in it")
    return ParquetFile(source_of(place), decryption_properties=keys.decryption_of(place), **options)


def open_rows(places: Sequence[str], keys: KeySource, **options: Any) -> OpenRows:
    """Open places to read rows: one file as a ParquetFile, everything else as a ParquetDataset with hive partitions.

    Args:
        places: paths, folders, globs and URLs.
        keys: where keys come from.
        **options: options of ParquetFile that ParquetDataset has too.
    """
    if len(places) == 1 and not is_glob(places[0]) and not is_folder(places[0]):
        return open_place(places[0], keys, **options)
    if STANDARD_STREAM in places:
        raise CommandFailure("standard input stands alone: it cannot be read together with other files")
    from fastpq.datasets.dataset import ParquetDataset

    where: Any = places[0] if len(places) == 1 else files_at(places)
    per_file: Any = keys.decryption_of if keys.is_per_file else keys.decryption_of(None)
    return ParquetDataset(where, decryption_properties=per_file, **options)
