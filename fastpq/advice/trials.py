"""RowSample: rows of a file, which are written anew with other settings to measure what these settings change."""

from __future__ import annotations

import os
from collections.abc import Iterable
from io import BytesIO
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpq.advice.present_settings import FileStructure, structure_of
from fastpq.advice.writing_settings import FileSettings, writer_options_of
from fastpq.api.file import ParquetFile
from fastpq.api.functions import write_table
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.schema.parquet_schema import ColumnDescriptor

MOST_ROWS = 1 << 20         # in a sample: one row group that fastpq writes by default
MOST_BYTES = 256 << 20      # of decoded values in a sample
REPEATS = 3                 # how often time is measured. The shortest counts


class Trial(NamedTuple):
    """The sample, written with some settings.

    Attributes:
        data: the bytes of the file.
        structure: how this file is built.
        file: the open file.
        keys: keys that open it, or None for a plaintext file.
    """

    data: bytes
    structure: FileStructure
    file: ParquetFile
    keys: FileDecryptionProperties | None

    def reopened(self) -> ParquetFile:
        """Return the file, opened anew as a file object, whose reads are counted."""
        return ParquetFile(BytesIO(self.data), decryption_properties=self.keys)


class RowSample:
    """Rows of a file, in memory. A file with few rows is its own sample, so that trials are exact.

    Args:
        file: the file.
        structure: how it is built. Columns that it leaves out are not read.
        most_rows: most rows of the sample.

    Attributes:
        start, stop: the first row in the file, and the row behind the last one.
        is_whole: whether the sample has all rows.
        names: top-level columns that are read, or None for all. If some are left out, bytes that belong to no column are not
            counted, because the footer has entries for all columns.
        columns: the leaf columns, as fastpq writes them.
        structure: how the file is built, with the names of these columns.
    """

    def __init__(self, file: ParquetFile, structure: FileStructure, most_rows: int = MOST_ROWS) -> None:
        self._file = file
        rows = structure.facts.rows
        total = int(rows.sum())
        decoded_size = max(int(structure.facts.decoded_sizes.sum()), 1)
        most_rows = max(1, min(most_rows, MOST_BYTES * total // decoded_size if decoded_size > MOST_BYTES else most_rows))
        self.start, self.stop = _middle(rows, most_rows)
        self.is_whole = self.stop - self.start == total
        ranges = None if self.is_whole else [(self.start, self.stop)]
        read_tops = [file.schema.columns[leaf].path[0] for leaf in structure.leaves]
        self.names = None if len(structure.leaves) == len(file.schema.columns) else list(dict.fromkeys(read_tops))
        self._table = file.read(self.names, row_ranges=ranges)
        self.columns: list[ColumnDescriptor] = list(self._table.schema.columns)
        self.structure = self._structure = structure.with_names([column.name for column in self.columns])
        self._trials: dict[Any, Trial] = {}
        self._seconds: dict[Any, float] = {}
        is_encrypted = bool((structure.facts.keys >= 0).any())
        self._key = os.urandom(16) if is_encrypted else None      # trials are sealed too, because seals take bytes

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self.stop - self.start

    @property
    def growth(self) -> float:
        """How many times more rows the file has than the sample."""
        return float(self._structure.facts.rows.sum() / max(self.num_rows, 1))

    @property
    def table(self) -> Any:
        """The rows, as a Table."""
        return self._table

    def present_bytes(self) -> NDArray[np.float64]:
        """Return the bytes that each column takes in the file for the rows of the sample, shape (columns,).

        Nobody knows how many bytes a part takes in a row group. This is measured: the part is written with the present settings.
        """
        ends = np.cumsum(self._structure.facts.rows)
        starts = ends - self._structure.facts.rows
        groups = np.flatnonzero((ends > self.start) & (starts < self.stop))
        if len(groups) and (starts[groups[0]] < self.start or ends[groups[-1]] > self.stop):
            return self.trial(self._structure.settings).structure.bytes_by_column().astype(np.float64)
        first, last = (int(groups[0]), int(groups[-1]) + 1) if len(groups) else (0, 0)
        return self._structure.bytes_by_column(first, last).astype(np.float64)

    def trial(self, settings: FileSettings, names: Iterable[str] | None = None) -> Trial:
        """Return the sample as a file with some settings.

        Args:
            settings: how to write.
            names: top-level columns, or None for all.
        """
        names = None if names is None else tuple(names)
        key = (names, repr(settings.options()))
        trial = self._trials.get(key)
        if trial is None:
            table = self._table if names is None else self._table.select(names)
            trial = self._trials[key] = self._written(table, settings)
        return trial

    def _written(self, table: Any, settings: FileSettings) -> Trial:
        keys = opening = None
        if self._key is not None:
            keys, opening = FileEncryptionProperties(self._key), FileDecryptionProperties(self._key)
        target = BytesIO()
        write_table(table, target, encryption_properties=keys, **writer_options_of(settings.options()))
        data = target.getvalue()
        file = ParquetFile(data, decryption_properties=opening)
        return Trial(data, structure_of(file), file, opening)

    def bytes_by_column(self, trial: Trial) -> NDArray[np.float64]:
        """Return the bytes that each column of the whole file would take if all rows were written like a trial.

        The trial has all columns. The trial says how much a column of the sample shrinks, and the file how large the column is.

        Returns:
            Shape (columns,).
        """
        sizes = trial.structure.bytes_by_column().astype(np.float64)
        if self.is_whole:
            return sizes
        present = self.present_bytes()
        whole = self._structure.bytes_by_column()
        return np.where(present > 0, sizes * whole / np.maximum(present, 1), sizes * self.growth)

    def rest_bytes(self, trial: Trial) -> float:
        """Return the bytes that belong to no column, such as the footer, if all rows were written like a trial.

        They are 0 if columns are left out.
        """
        if self.names is not None:
            return 0.0
        rest = float(trial.structure.size - trial.structure.bytes_by_column().sum())
        if self.is_whole:
            return rest
        groups = max(len(trial.structure.facts.rows), 1)
        all_groups = -(-int(self._structure.facts.rows.sum()) // trial.structure.settings.row_group_rows)
        return rest * max(1.0, all_groups / groups)

    def present_seconds(self, name: str) -> float:
        """Return the processor seconds in which fastpq decodes a top-level column of the sample's rows, from the file."""
        if name not in self._seconds:
            ranges = None if self.is_whole else [(self.start, self.stop)]
            self._seconds[name] = _shortest(self._file, name, ranges)
        return self._seconds[name]

    def trial_seconds(self, trial: Trial, name: str) -> float:
        """Return the same for a trial."""
        key = (id(trial.data), name)
        if key not in self._seconds:
            self._seconds[key] = _shortest(trial.file, name, None)
        return self._seconds[key]


def _shortest(file: ParquetFile, name: str, ranges: Any) -> float:
    times = []
    for _ in range(REPEATS):
        before = process_time()
        file.read([name], row_ranges=ranges)
        times.append(process_time() - before)
    return min(times)


def _middle(rows: NDArray[np.int64], most_rows: int) -> tuple[int, int]:
    """Return the first row, and the row behind the last one, for whole row groups around a file's middle.

    A row group that is larger than the sample gives its first rows.
    """
    total = int(rows.sum())
    if total <= most_rows:
        return 0, total
    starts = np.cumsum(rows) - rows
    first = int(np.searchsorted(starts, (total - most_rows) // 2, "left"))
    first = min(first, len(rows) - 1)
    start = int(starts[first])
    ends = np.cumsum(rows)
    fitting = ends[(ends > start) & (ends <= start + most_rows)]
    return start, int(fitting[-1]) if len(fitting) else min(start + most_rows, total)
