"""Files of a dataset as its reads see them: with their filters (FilteredFile) and their INT96 units (BatchUnits)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fastpq.api.file import ParquetFile
from fastpq.arrays.table import Table
from fastpq.datasets.unify import DatasetField
from fastpq.schema.types import TimeUnitName


class FilteredFile(NamedTuple):
    """An open file in a dataset, and the filters that partition values and missing columns have not decided for it.

    Attributes:
        number: number of the file in the dataset, in reading order.
        file: the file.
        own: the file's columns, by name.
        filters: conditions on the file's columns, or None for all rows.
        is_converted: whether a filtered column's type is different in the dataset than in the file.
    """

    number: int
    file: ParquetFile
    own: Mapping[str, DatasetField]
    filters: Any
    is_converted: bool

    @property
    def pushed_filters(self) -> Any:
        """The filters for reading the file itself, or None if they need converted values."""
        return None if self.is_converted else self.filters


class BatchUnits(NamedTuple):
    """INT96 units for a dataset that is read in batches.

    Attributes:
        of_files: for each file number, the units of the INT96 columns, by leaf number.
        empty_table: a table without rows. Each of its columns has the coarsest unit that the column has in any file.
    """

    of_files: Mapping[int, Mapping[int, TimeUnitName]]
    empty_table: Table

    def applied_to(self, member: FilteredFile) -> ParquetFile:
        """Return the file with the INT96 units that belong to it."""
        return member.file._with(member.file._file._replace(int96_units=self.of_files[member.number]))
