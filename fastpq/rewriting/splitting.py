"""split_file: several files from one, by rows, bytes or the values of a column."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from fastpq.errors import SchemaError
from fastpq.io.location import Remote, locate, placed, placed_each
from fastpq.io.source import Source
from fastpq.io.source_opening import open_source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.metadata.footer import read_finished
from fastpq.options import ReaderProperties, takes_options
from fastpq.read.file_reader import FileReader
from fastpq.read.open_file import OpenFile, ReadRequest
from fastpq.rewriting.one_file import FilePlan, rewrite_file
from fastpq.rewriting.part_metadata import KeptRows, entries_of_part, num_kept_rows
from fastpq.rewriting.report import RewritingReport
from fastpq.rewriting.rewriting_options import RewritingKeywords, RewritingOptions

MOST_VALUES = 10_000        # most files that one split by values makes
_SEPARATORS = re.compile(r"[%/\\\x00]")


@takes_options(RewritingOptions)
def split_file(
    source: Any,
    targets: str | os.PathLike[str],
    *,
    rows: int | None = None,
    num_bytes: int | None = None,
    by: str | None = None,
    **options: Unpack[RewritingKeywords],
) -> dict[str, RewritingReport]:
    """Write the rows of a file to several files, in order.

    Row groups that belong to one file are copied, and so are pages of the others. Where a cut is inside a page, the page is
    decoded, and its rows are encoded again in both files. A file appears when it is complete, so that an error leaves the files
    before it. ``progress`` is called after each file.

    Args:
        source: as in ``project_file``, but no stream.
        targets: paths of the new files, with ``{number}`` for the number of the file, for example
            ``"parts/part-{number:05}.parquet"``. The folder must exist.
        rows: rows of each file but the last.
        num_bytes: most bytes of a file. Only whole row groups are put together, so that a file with one large row group has more.
        by: a column. Each of its values gets a file, in the order in which values first appear. Its number in the path is that of
            the value, and ``{value}`` stands for the value. All NaN are one value. A slash in a value becomes ``%2F``, and so do
            other characters that would lead to another folder.
        **options: any of the options that are common to all functions that make one file from another:

    Returns:
        For each new path its RewritingReport, in order.

    Raises:
        ValueError: not exactly one of rows, num_bytes and by is given, it is not positive, targets give one path twice, or
            a target is the source.
        SchemaError: there is no such column, or it has too many values.
        FormatError, UnsupportedError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as in encrypt_file.
    """
    if [rows, num_bytes, by].count(None) != 2 or (rows is not None and rows < 1) or (num_bytes is not None and num_bytes < 1):
        raise ValueError("give a positive number of rows, a positive num_bytes, or by, which names a column")
    arguments = RewritingOptions.of(options)
    where = arguments.filesystem, arguments.storage_options, arguments.timeout
    place = placed(source, *where)
    with open_source(place) as opened:
        metadata = read_finished(opened, arguments.reading, arguments.decryption_properties)
        values: list[Any] = []
        if by is not None:
            values, parts = _by_value(opened, metadata, by, arguments.reading)
        else:
            parts = list(_by_rows(metadata, rows) if rows is not None else _by_bytes(metadata, num_bytes or 1))
    paths = _paths(os.fspath(targets), values or [""] * len(parts))
    _refuse_source(place, placed_each(paths, *where))
    reports: dict[str, RewritingReport] = {}
    done = 0
    for path, part in zip(paths, parts, strict=True):
        plan = partial(_plan, part, arguments.keep_metadata)
        reports[path] = rewrite_file(source, path, plan, replace(arguments, progress=None))
        done += num_kept_rows(metadata, part)
        if arguments.progress is not None:
            arguments.progress(done, metadata.num_rows)
    return reports


def _plan(kept_rows: KeptRows, keep_metadata: Collection[str], file: Source, metadata: FileMetaData) -> FilePlan:
    """Return what the new file for some rows gets."""
    metadata.calendar.is_kept = True        # values are written as they are stored
    entries, dropped_entries = entries_of_part(metadata, metadata.key_values, kept_rows, keep_metadata)
    leaves = range(metadata.num_columns)
    return FilePlan(metadata.schema, leaves, entries, kept_rows=kept_rows, dropped_metadata=dropped_entries)


def _paths(pattern: str, values: Sequence[Any]) -> list[str]:
    """Return the paths of the new files.

    Args:
        pattern: a path with ``{number}`` or ``{value}``.
        values: for each file the value of its rows, or an empty text.

    Raises:
        ValueError: two files would have one path.
    """
    paths = [pattern.format(number=number, value=_in_path(value)) for number, value in enumerate(values)]
    if len(set(paths)) < len(paths):
        raise ValueError(f"{pattern!r} gives one path to several files: it needs {{number}}")
    return paths


def _refuse_source(source: Any, targets: Iterable[Any]) -> None:
    """Refuse the source as a target, because the later files get their rows from it.

    Raises:
        ValueError: a target has the path of the source.
    """
    own_place = _place(source)
    if own_place is not None and any(_place(target) == own_place for target in targets):
        raise ValueError("a new file would replace the source, from which the others are made: give other targets")


def _place(where: Any) -> Any:
    """Return what is equal for equal places. None for a buffer or a file object."""
    place = None if isinstance(where, bytes | bytearray | memoryview) else locate(where)
    if isinstance(place, Remote):
        return place.filesystem, place.path
    return None if place is None else os.path.realpath(place)


def _in_path(value: Any) -> Any:
    """Return a value for a path, in which its text cannot lead to another folder."""
    text = str(value)
    escaped = text.replace(".", "%2E") if not text.strip(".") else _SEPARATORS.sub(lambda match: f"%{ord(match[0]):02X}", text)
    return value if escaped == text else escaped


def _by_rows(metadata: FileMetaData, rows: int) -> Iterator[KeptRows]:
    """Yield what each file keeps, if all files but the last have so many rows. A file without rows becomes one file."""
    first_rows = metadata.first_rows.tolist()
    for start in range(0, max(first_rows[-1], 1), rows):
        stop = start + rows
        part: KeptRows = {}
        for group, (first, end) in enumerate(pairwise(first_rows)):
            if start <= first and end <= stop:
                continue
            kept_mask = np.zeros(end - first, np.bool_)
            kept_mask[max(start - first, 0) : max(stop - first, 0)] = True
            part[group] = kept_mask
        yield part


def _by_bytes(metadata: FileMetaData, num_bytes: int) -> Iterator[KeptRows]:
    """Yield what each file keeps, if row groups are put together up to so many bytes."""
    sizes = []
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        sizes.append(sum(row_group.column(column).byte_range[1] for column in range(row_group.num_columns)))
    start = 0
    while start < max(len(sizes), 1):
        stop, total = start + 1, sizes[start] if sizes else 0
        while stop < len(sizes) and total + sizes[stop] <= num_bytes:
            total += sizes[stop]
            stop += 1
        counts = metadata.row_counts
        yield {group: np.zeros(counts[group], np.bool_) for group in range(len(sizes)) if not start <= group < stop}
        start = stop


def _by_value(source: Source, metadata: FileMetaData, by: str, properties: ReaderProperties) -> tuple[list[Any], list[KeptRows]]:
    """Return the values of a column, and what the file of each value keeps."""
    column = metadata.schema.column(by)
    if column.max_repetition_level or column.top is not column:
        raise SchemaError("a file is split by a column that is not nested", column=by)
    file = OpenFile(source, metadata, properties, "views", "auto", 1)
    numbers: dict[Any, int] = {}
    codes: list[NDArray[np.int32]] = []
    for group in range(metadata.num_row_groups):
        [values] = FileReader(file).read(ReadRequest([column], [(group, None)]), None, None).columns
        found_values = (value if value == value else math.nan for value in values.to_pylist())      # one NaN for all
        codes.append(np.array([numbers.setdefault(value, len(numbers)) for value in found_values], np.int32))
        if len(numbers) > MOST_VALUES:
            raise SchemaError(f"a file is not split into more than {MOST_VALUES:,} files", column=by)
    parts: list[KeptRows] = []
    for number in numbers.values():
        masks = {group: each == number for group, each in enumerate(codes)}
        parts.append({group: mask for group, mask in masks.items() if not mask.all()})
    return list(numbers), parts
