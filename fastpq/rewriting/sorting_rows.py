"""sort_file: sorts all rows in a file by some columns, in bounded memory."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import IO, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.table import Table
from fastpq.column.shred import LeafToWrite
from fastpq.common.parallel import resolve_threads, run_parallel
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.io.sink_opening import open_sink
from fastpq.io.source import Source
from fastpq.io.source_opening import open_source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.metadata.footer import read_finished
from fastpq.options import MIB, ReaderProperties, SortingColumn, WriterProperties, takes_options
from fastpq.read.file_reader import FileReader
from fastpq.read.open_file import OpenFile, ReadRequest
from fastpq.rewriting.one_file import FilePlan, RewrittenFile, leaf_of_row_groups, rewrite_file
from fastpq.rewriting.regrouping import NoEntries, Regrouping
from fastpq.rewriting.report import RewritingReport
from fastpq.rewriting.rewriting_options import RewritingKeywords, RewritingOptions
from fastpq.write.file_writer import FileWriter
from fastpq.write.row_groups import RowGroups
from fastpq.write.sorting import RowOrder
from fastpq.write.spec import column_specs

DEFAULT_RUN_BYTES = 512 * MIB
PARTS = 64              # row groups in a run's temporary file, because they are read one after another
KEY_BYTES = 16

RowNumbers = NDArray[np.int64]


@takes_options(RewritingOptions)
def sort_file(
    source: Any,
    target: Any,
    sort_by: Sequence[str | SortingColumn],
    *,
    row_group_size: int | None = None,
    run_bytes: int = DEFAULT_RUN_BYTES,
    **options: Unpack[RewritingKeywords],
) -> RewritingReport:
    """Sort all rows in a file by some columns, through all its row groups.

    The order is as in ``write_table(sort_by=...)``, and equal rows keep their order. The footer records the sorting columns. If
    the rows are sorted already and row groups keep their sizes, all pages are copied. INT96 timestamps are sorted by time, which
    the footer does not record, because the specification leaves their order undefined. They keep their bytes.

    Otherwise all pages are decoded. Codecs, encodings, page version and bloom filters are as in the first row group. Rows are
    sorted in runs, one run after another, and then merged. Memory holds the sorting columns' values, one run, and one row group
    for the new file. It also holds 40 bytes for each row while the order is computed, and 8 bytes afterwards. Several runs go
    to a temporary folder (``TMPDIR``), encrypted with a random key if the source is encrypted.

    Args:
        source, target: as in ``project_file``.
        sort_by: the columns, first column first.
        row_group_size: rows in a row group. None takes as many as the source's largest row group has.
        run_bytes: most bytes that a run's rows have, decoded. A larger row group is a run of its own.
        **options: any of the options that are common to all functions that make one file from another:

    Returns:
        A RewritingReport, which counts the copied and the decoded pages.

    Raises:
        SchemaError: an unknown column, a column that is named twice, or a column with many values in a row.
        UnsupportedError: a column whose values have no order.
        FormatError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as in encrypt_file.
    """
    if isinstance(sort_by, str):
        raise TypeError(f"sort_by must be a list of columns, not {sort_by!r}")
    if not sort_by:
        raise ValueError("sort_by names no column")
    arguments = RewritingOptions.of(options)

    def plan(file: Source, metadata: FileMetaData) -> FilePlan:
        metadata.calendar.is_kept = True        # values are written as they are stored
        row_order = RowOrder(metadata.schema, WriterProperties(sort_by=list(sort_by)), has_stored_int96=True)
        order = _order_of(file, metadata, arguments.reading, row_order)
        size = row_group_size or max([1, *metadata.row_counts])
        keeps_groups = row_group_size is None or max([0, *metadata.row_counts]) <= size

        def fill(new_file: RewrittenFile) -> None:
            if keeps_groups and np.array_equal(order, np.arange(len(order))):
                new_file.sorting_columns = row_order.sorting_columns
                for index in range(metadata.num_row_groups):
                    new_file.copy_row_group(metadata.row_group(index))
                return
            settings = {"row_group_size": size, "sorting_columns": row_order.recorded}
            _add_sorted(Regrouping(new_file, file, metadata, arguments.reading, settings), new_file, metadata, order, run_bytes)

        return FilePlan(metadata.schema, range(metadata.num_columns), metadata.key_values or None, fill=fill)

    return rewrite_file(source, target, plan, arguments)


def _add_sorted(
    regrouping: Regrouping, new_file: RewrittenFile, metadata: FileMetaData, order: RowNumbers, run_bytes: int
) -> None:
    """Write all rows in sorted order. The regrouping says how many rows a row group has."""
    size = regrouping.properties.row_group_size
    with ExitStack() as files:
        runs = _Runs(regrouping, metadata, order, run_bytes, files, is_encrypted=new_file.is_encrypted)
        for rows in np.split(order, range(size, len(order), size)):
            regrouping.add_row_group(runs.take(rows))
            new_file.meter.add(len(rows))


def _order_of(source: Source, metadata: FileMetaData, reading: ReaderProperties, row_order: RowOrder) -> RowNumbers:
    """Return all row numbers in sorted order. Only the sorting columns are decoded."""
    groups = range(metadata.num_row_groups)
    leaves: dict[int, LeafToWrite] = {
        column.index: leaf_of_row_groups(source, metadata, reading, groups, column)() for column in row_order.columns
    }
    num_rows = sum(metadata.row_counts)     # the leaves have these rows, whatever the footer's num_rows says
    return row_order.order(leaves, 0, num_rows) if num_rows else np.empty(0, np.int64)


class _Run(NamedTuple):
    """Sorted rows from some consecutive row groups.

    Attributes:
        start, stop: the rows' numbers in the old file are in [start, stop).
        file: the temporary file that has the rows.
    """

    start: int
    stop: int
    file: IO[bytes]


class _Runs:
    """All rows in the old file, as sorted runs.

    Args:
        regrouping: decodes row groups.
        metadata: the old file's footer.
        order: all row numbers in sorted order.
        run_bytes: most bytes in a run, unless one row group has more.
        files: closes temporary files. They have no name, so that nothing is left if the process is killed.
        is_encrypted: whether temporary files are encrypted.
    """

    def __init__(
        self,
        regrouping: Regrouping,
        metadata: FileMetaData,
        order: RowNumbers,
        run_bytes: int,
        files: ExitStack,
        *,
        is_encrypted: bool,
    ) -> None:
        self._schema, self._files = metadata.schema, files
        key = secrets.token_bytes(KEY_BYTES)
        self._sealing = FileEncryptionProperties(key) if is_encrypted else None
        self._opening = FileDecryptionProperties(key) if is_encrypted else None
        first_rows = metadata.first_rows.tolist()
        self._runs: list[_Run] = []
        self._only_run: Table | None = None     # all rows in the old file's order, if they are one run
        bounds = list(_bounds([metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)], run_bytes))
        for first, last in bounds:
            start, stop = first_rows[first], first_rows[last]
            table = regrouping.read([metadata.row_group(group) for group in range(first, last)])
            if len(bounds) > 1:
                own_rows = order[(start <= order) & (order < stop)] - start
                self._runs.append(_Run(start, stop, self._stored(_taken(table, own_rows))))
            else:
                self._only_run = table
            del table
        self._positions = [0] * len(self._runs)     # how many rows are taken from each run

    def take(self, rows: RowNumbers) -> Table:
        """Return the next rows in sorted order, by their numbers."""
        if self._only_run is not None:
            return _taken(self._only_run, rows)
        parts: list[Table] = []
        places = np.empty(len(rows), np.int64)
        num_taken = 0
        for number, run in enumerate(self._runs):
            is_here = (run.start <= rows) & (rows < run.stop)
            count = int(is_here.sum())
            if count:
                position = self._positions[number]
                parts.append(self._slice(run, position, position + count))
                self._positions[number] += count
                places[is_here] = np.arange(num_taken, num_taken + count)
                num_taken += count
        return _taken(Table.concat(parts), places) if len(parts) > 1 else parts[0]

    def _stored(self, table: Table) -> IO[bytes]:
        """Write a run to a temporary file, and return the file."""
        file = self._files.enter_context(tempfile.TemporaryFile())     # noqa: SIM115 - the ExitStack closes it
        size = max(1, -(-table.num_rows // PARTS))
        properties = WriterProperties(
            row_group_size=size, use_dictionary=False, write_statistics=False, write_page_index=False, compression="lz4"
        )
        with open_sink(file, durable=False) as sink:
            row_groups = RowGroups(sink, self._schema, self._sealing)
            writer = FileWriter(
                sink, self._schema, properties, column_specs(self._schema, properties), row_groups, threads=None, meter=None,
                description=NoEntries(),
            )
            writer.write_last(table)
        return file

    def _slice(self, run: _Run, start: int, stop: int) -> Table:
        """Return the rows [start, stop) in a run."""
        with open_source(run.file) as source:
            metadata = read_finished(source, ReaderProperties(), self._opening)
            first_rows = metadata.first_rows
            first = int(np.searchsorted(first_rows, start, side="right")) - 1
            last = int(np.searchsorted(first_rows, stop, side="left"))
            file = OpenFile(source, metadata, ReaderProperties(), "views", "stored", 1)
            request = ReadRequest(metadata.schema.columns, [(group, None) for group in range(first, last)])
            table = FileReader(file).read(request, None, None)
        before = int(first_rows[first])
        return table.slice(start - before, stop - before)


def _bounds(sizes: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Yield the row groups [first, last) for each run."""
    starts = [0]
    total = 0
    for group, size in enumerate(sizes):
        if total and total + size > most:
            starts.append(group)
            total = 0
        total += size
    yield from pairwise([*starts, len(sizes)])


def _taken(table: Table, rows: RowNumbers) -> Table:
    return table._of(run_parallel(lambda column: column.take(rows), table.columns, resolve_threads(None)), len(rows))


