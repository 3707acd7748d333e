"""FileReader: tables of one file, whole or of chosen rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from fastpq.arrays.allowance import Allowance
from fastpq.arrays.table import Table
from fastpq.column.layout import OutsideUnitError
from fastpq.common.progress import Meter, Progress
from fastpq.io.source import Source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import ReaderProperties
from fastpq.read.opener import ChunkOpener, StringLayout
from fastpq.read.plan import plan_read
from fastpq.read.scan import Scan
from fastpq.schema.parquet_schema import ColumnDescriptor, Int96UnitName, int96_types
from fastpq.schema.types import ColumnType, TimeUnitName

if TYPE_CHECKING:
    from fastpq.filters.predicate import Predicate
    from fastpq.index.ranges import Int64s, RowRanges
    from fastpq.read.selective import SelectiveScan


Reader = TypeVar("Reader", bound="Batches")
Result = TypeVar("Result")


class Batches(Protocol):
    """A reader of Tables."""

    def batches(self, wanted: Wanted, batch_size: int, progress: Progress | None) -> Iterator[Table]: ...


class Wanted(NamedTuple):
    """The columns and rows of a read.

    Attributes:
        columns: leaves, in the order of the result.
        groups: row groups in the order of the result, each with its wanted rows; None for all rows.
        predicate: condition on the rows; None for none.
        is_selective: whether rows are chosen by ranges or by a predicate.
    """

    columns: Sequence[ColumnDescriptor]
    groups: Sequence[tuple[int, RowRanges | None]]
    predicate: Predicate | None = None
    is_selective: bool = False


class OpenFile(NamedTuple):
    """An open file and the form of its values in memory.

    Attributes:
        source: the file.
        metadata: its footer.
        properties: bounds and checks.
        strings: layout of variable-length values.
        int96_unit: unit of INT96 timestamps; ``"auto"`` tries nanoseconds.
        threads: chunks decoded at the same time.
        int96_units: other units of INT96 columns, by number of the leaf.
        becomes_dictionary: whether the values of a flat column become codes after the read, so that its stored codes are read.
    """

    source: Source
    metadata: FileMetaData
    properties: ReaderProperties
    strings: StringLayout
    int96_unit: Int96UnitName
    threads: int
    int96_units: Mapping[int, TimeUnitName] = MappingProxyType({})
    becomes_dictionary: Callable[[ColumnDescriptor], bool] | None = None

    def opener(
        self, leaves: Iterable[ColumnDescriptor], strings: StringLayout | None = None, allowance: Allowance | None = None
    ) -> ChunkOpener:
        """A ChunkOpener for the chunks of leaves.

        Args:
            leaves: leaves to be opened.
            strings: layout of variable-length values; None for the file's.
            allowance: shared with another opener of the same read.
        """
        types = self.types(leaves) if self.metadata.schema.has_int96 else {}
        coded = self.becomes_dictionary if strings is None else None
        layout = strings or self.strings
        return ChunkOpener(self.source, self.metadata.decryptor, self.properties, layout, types, allowance, coded)

    def types(self, leaves: Iterable[ColumnDescriptor]) -> dict[int, ColumnType]:
        """Types in memory other than the schema's, by the number of the leaf."""
        return int96_types(leaves, "ns" if self.int96_unit == "auto" else self.int96_unit, self.int96_units)


def in_fitting_units(
    file: OpenFile, wanted: Wanted, reader_of: Callable[[OpenFile], Reader], work: Callable[[OpenFile, Reader], Result]
) -> Result:
    """Read with work(file, reader), a second time in coarser INT96 units if a value does not fit nanoseconds; returns its result.

    The second time is for the unit ``"auto"`` alone; any other unit raises OutsideUnitError.

    Args:
        file: the file.
        wanted: columns and rows of the read.
        reader_of: returns a reader of the file in its units.
        work: reads the rows.
    """
    try:
        return work(file, reader_of(file))
    except OutsideUnitError:
        if file.int96_unit != "auto":
            raise
    from fastpq.read.int96 import fitted

    file = fitted(file, wanted, reader_of)
    return work(file, reader_of(file))


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads tables of a sound file; ``fastpq.recovery.reading.RecoveringReader`` is the same for a damaged file.

    Attributes:
        file: the open file.
    """

    file: OpenFile

    def read(self, wanted: Wanted, out: Mapping[str, Any] | None, progress: Progress | None) -> Table:
        """The wanted rows as one Table.

        Args:
            wanted: columns and rows.
            out: arrays to read columns into, by name.
            progress: called with rows done and rows in all.
        """
        if wanted.is_selective:
            scan = self.selective(wanted)
            return scan.read(scan.select(wanted.groups), self.file.threads, out, progress=progress)
        whole = Scan(self.file.opener(wanted.columns))
        plan = plan_read(
            self.file.metadata, wanted.columns, [group for group, _ in wanted.groups], self.file.source.size
        )
        outputs = None
        if out is not None:
            from fastpq.read.outputs import Outputs

            outputs = Outputs(out, plan, whole.opener.types)
        if progress is None:
            return whole.read(plan, self.file.threads, outputs)
        meter = Meter(progress, plan.num_rows)
        table = whole.read(plan, self.file.threads, outputs, meter.span(plan.num_rows))
        meter.finish()
        return table

    def take(self, wanted: Wanted, rows: Int64s) -> Table:
        """Rows by their numbers.

        Args:
            wanted: the same rows, each once, as ranges of row groups.
            rows: shape (n,), int64: numbers within the file, in the order of the result.
        """
        distinct, order = np.unique(rows, return_inverse=True)
        in_order = len(distinct) == len(rows) and bool((rows == distinct).all())
        scan = self.selective(wanted)
        return scan.read(scan.select(wanted.groups), self.file.threads, order=None if in_order else order)

    def batches(self, wanted: Wanted, batch_size: int, progress: Progress | None) -> Iterator[Table]:
        """The wanted rows as Tables of batch_size rows; the last may have fewer."""
        if wanted.is_selective:
            scan = self.selective(wanted)
            return scan.batches(scan.select(wanted.groups), batch_size, self.file.threads, progress)
        whole = Scan(self.file.opener(wanted.columns))
        plan = plan_read(
            self.file.metadata, wanted.columns, [group for group, _ in wanted.groups], self.file.source.size
        )
        return _metered(whole.batches(plan, batch_size, self.file.threads), Meter(progress, plan.num_rows))

    def count(self, wanted: Wanted) -> int:
        """Number of wanted rows."""
        scan = self.selective(wanted)
        return scan.count(scan.select(wanted.groups), self.file.threads)

    def selective(self, wanted: Wanted) -> SelectiveScan:
        """The scan of the rows chosen by ranges or by a predicate."""
        from fastpq.read.selective import SelectiveScan

        leaves = self.file.metadata.schema.columns
        views = self.file.opener(leaves, "views")
        finish = self.file.opener(leaves, allowance=views.allowance).laid_out
        return SelectiveScan(Scan(views), self.file.metadata, wanted.predicate, wanted.columns, finish)


def _metered(tables: Iterator[Table], meter: Meter) -> Iterator[Table]:
    """The given Tables; the rows of a Table are counted before the Table is returned."""
    for table in tables:
        meter.add(table.num_rows)
        yield table
    meter.finish()
