"""advise: what would make a file or a dataset smaller, faster to read or safer, for one use."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, get_args

from fastpq.advice.advice_report import AdviceReport, OnMissingKey, Use
from fastpq.advice.dataset_advisor import advise_dataset
from fastpq.advice.single_file import advise_file
from fastpq.advice.trials import MOST_ROWS
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.io.location import Remote, locate
from fastpq.options import ReaderProperties

USES = get_args(Use)


def advise(
    where: Any,
    use: Use = "scan",
    *,
    key: str | None = None,
    sample_rows: int = MOST_ROWS,
    properties: ReaderProperties | None = None,
    decryption_properties: FileDecryptionProperties | None = None,
    on_missing_key: OnMissingKey = "raise",
) -> AdviceReport:
    """Find out what would make a file or a dataset smaller or faster to read. Each change is tried on rows, and measured.

    A file with at most ``sample_rows`` rows is its own sample, so that its gains are exact. A change is not advised if it slows
    reading down by more than its saved bytes speed it up. ``fastpq rewrite --recipe`` takes the report's recipe as JSON.

    For a dataset all footers are read. Changes are tried on sample files, which stand for all files that were written alike. The
    report is about small files and small row groups, types that differ from file to file, codecs, encodings and pages. For
    lookups it is about statistics, page indexes, bloom filters and the order that rows have. The recipe has steps, such as
    ``compact`` and ``sort``.

    Args:
        where: a path, a URL that fsspec supports, a bytes-like object or a binary file object. A folder, a glob, or a list of
            paths is a dataset.
        use: ``"scan"`` for reads of whole columns, ``"lookup"`` for reads of single rows by a key, ``"web"`` for reads over a
            slow network, ``"archive"`` for files that are kept and rarely read, or ``"gpu"`` for decoders on GPUs, by published
            rules.
        key: the column by which lookups look. None chooses a column whose values are unique.
        sample_rows: most rows on which changes are tried. They and their new files are in memory.
        properties: limits for reading.
        decryption_properties: keys.
        on_missing_key: ``"skip"`` leaves out columns whose keys are missing. The report names them, has no recipe, and does not
            count the bytes of the footer. ``"raise"`` needs keys for all columns.

    Returns:
        An AdviceReport. A file that fastpq wrote with its default options has no advice for ``"scan"``.

    Raises:
        ValueError: there is no such use, or no such value of ``on_missing_key``.
        SchemaError: there is no such key column.
        KeyAccessError, TagVerificationError: a part of the file cannot be opened, or there is no key for ``key``.
        UnsupportedError: columns share a name, or a file in a dataset is encrypted.
        FormatError: the file is broken.
    """
    if use not in USES:
        raise ValueError(f"use must be one of {', '.join(USES)}, not {use!r}")
    if on_missing_key not in get_args(OnMissingKey):
        raise ValueError(f'on_missing_key must be "raise" or "skip", not {on_missing_key!r}')
    if is_dataset(where):
        return advise_dataset(
            where, use, key=key, sample_rows=sample_rows, properties=properties, keys=decryption_properties)
    return advise_file(
        where, use, key=key, sample_rows=sample_rows, properties=properties, decryption_properties=decryption_properties,
        on_missing_key=on_missing_key,
    )


def is_dataset(where: Any) -> bool:
    """Return whether a place has several files: a folder, a glob, or a list."""
    if isinstance(where, bytes | bytearray | memoryview) or hasattr(where, "read"):
        return False
    if not isinstance(where, str | os.PathLike):
        return isinstance(where, Iterable)
    place = locate(where)
    path = place.path if isinstance(place, Remote) else str(place)
    if isinstance(place, Remote):
        return os.fspath(where).endswith("/") or any(sign in path for sign in "*?[")
    return os.path.isdir(path) or (any(sign in path for sign in "*?[") and not os.path.exists(path))
