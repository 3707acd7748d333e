"""FileReader: reads all rows or some rows of one file as tables. StoredFields: what these tables get besides values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpq.arrays.table import Column, Table
from fastpq.column.layout import OutsideUnitError
from fastpq.common.progress import Meter, Progress
from fastpq.errors import SchemaError
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.metadata.legacy_calendar import CALENDAR_KEYS
from fastpq.read.open_file import OpenFile, ReadRequest
from fastpq.read.plan import ReadPlan, plan_read
from fastpq.read.scan import Scan

if TYPE_CHECKING:
    from fastpq.arrow.hints import ArrowFields
    from fastpq.index.ranges import Int64s
    from fastpq.read.filtered.filtered_scan import FilteredScan
    from fastpq.schema.parquet_schema import ColumnDescriptor

# Number of rows in a Table from ``pieces``.
_PIECE_ROWS = 65_536


class KeyValues(Mapping[str, str]):
    """Key-value metadata, decoded on first use. Keys without a value are left out.

    Args:
        decode: function that returns a footer's key-value metadata.
        hidden_keys: keys that are left out too.
    """

    def __init__(self, decode: Callable[[], Mapping[str, str | None]], hidden_keys: Set[str]) -> None:
        self._decode = decode
        self._hidden_keys = hidden_keys

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {key: value for key, value in self._decode().items() if value is not None and key not in self._hidden_keys}

    def __getitem__(self, key: str) -> str:
        return self._texts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return repr(self._texts)


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reader of an undamaged file. ``fastpq.recovery.reading.RecoveringReader`` does the same for a damaged file.

    Attributes:
        file: the open file.
    """

    file: OpenFile

    def with_units(self, request: ReadRequest, columns: Iterable[ColumnDescriptor]) -> tuple[FileReader, ReadRequest]:
        """Return the reader and the request with units for some INT96 columns, as ``read.int96.with_units`` finds them."""
        if not self.file.metadata.schema.has_int96:
            return self, request
        from fastpq.read.int96 import with_units

        file, request = with_units(self.file, request, columns, self.pieces)
        return FileReader(file), request

    def read(self, request: ReadRequest, out: Mapping[str, Any] | None, progress: Progress | None) -> Table:
        """Read the requested rows as one Table.

        Args:
            request: columns and rows.
            out: arrays to read columns into, by name.
            progress: called with the number of rows that are done, and with the number of all rows.
        """
        if out is not None and any(column.path[0] in out and self.file.awaits_unit(column) for column in request.columns):
            from fastpq.read.int96 import units_of_arrays

            units = {**self.file.int96_units, **units_of_arrays(out, request.columns)}
            reader = FileReader(self.file._replace(int96_units=units))
            reader, request = reader.with_units(request, [column for column in request.columns if column.path[0] in out])
            try:
                return reader.read(request, out, progress)
            except OutsideUnitError as error:
                message = error.message.partition(":")[0]
                raise SchemaError(f"an array to read into has too fine a unit: {message}", **error.context) from None
        if request.is_selective:
            scan = self.selective(request)
            return scan.read(scan.select(request.groups), self.file.threads, out, progress=progress)
        whole, plan = self._whole(request)
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

    def take(self, request: ReadRequest, rows: Int64s) -> Table:
        """Read rows by their numbers.

        Args:
            request: the columns, and the rows of ``rows``, each once, as ranges in row groups.
            rows: row numbers within the file, in result order. Shape (n,), int64.
        """
        distinct, order = np.unique(rows, return_inverse=True)
        in_order = len(distinct) == len(rows) and bool((rows == distinct).all())
        scan = self.selective(request)
        return scan.read(scan.select(request.groups), self.file.threads, order=None if in_order else order)

    def batches(self, request: ReadRequest, batch_size: int, progress: Progress | None) -> Iterator[Table]:
        """Read the requested rows as Tables of batch_size rows. The last Table may have fewer."""
        reader, request = self.with_units(request, [*request.columns, *request.filtered_columns])     # one for all batches
        if request.is_selective:
            scan = reader.selective(request)
            return scan.batches(scan.select(request.groups), batch_size, self.file.threads, progress)
        whole, plan = reader._whole(request)
        return _metered(whole.batches(plan, batch_size, self.file.threads), Meter(progress, plan.num_rows))

    def pieces(self, request: ReadRequest) -> Iterator[Table]:
        """Read the requested rows as Tables of any length, each with INT96 timestamps in the finest unit that fits the Table."""
        if not request.is_selective:
            whole, plan = self._whole(request)
            yield from whole.batches(plan, _PIECE_ROWS, self.file.threads)
            return
        scan = self.selective(request)
        for selection in scan.select(request.groups):
            yield from scan.batches([selection], _PIECE_ROWS, self.file.threads)

    def count(self, request: ReadRequest) -> int:
        """Count the requested rows."""
        scan = self.selective(request)
        return scan.count(scan.select(request.groups), self.file.threads)

    def selective(self, request: ReadRequest) -> FilteredScan:
        """Return a scan for the rows that ranges or a predicate choose."""
        from fastpq.read.filtered.filtered_scan import FilteredScan

        reader, request = self.with_units(request, request.filtered_columns)
        leaves = self.file.metadata.schema.columns
        # filters compare decimals as they are stored
        views = reader.file.opener(leaves, "views", decimals=None if request.predicate is None else "stored")
        finish = reader.file.opener(leaves, allowance=views.allowance).laid_out
        return FilteredScan(Scan(views), self.file.metadata, request.predicate, request.columns, finish)

    def _whole(self, request: ReadRequest) -> tuple[Scan, ReadPlan]:
        """Return the scan and the plan for all rows in the requested row groups."""
        whole = Scan(self.file.opener(request.columns))
        groups = [group for group, _ in request.groups]
        return whole, plan_read(self.file.metadata, request.columns, groups, self.file.source.size)


def _metered(tables: Iterator[Table], meter: Meter) -> Iterator[Table]:
    """Yield the tables. The rows of a table are counted before it is yielded."""
    for table in tables:
        meter.add(table.num_rows)
        yield table
    meter.finish()


@dataclass
class StoredFields:
    """What the footer has for the tables of a file: key-value metadata, field ids, and the Arrow fields of ARROW:schema.

    They are decoded on first use.

    Attributes:
        metadata: the file's footer.
        is_requested: whether tables get all this (the option ``arrow_schema``).
        has_texts: whether it is requested, and the footer has key-value metadata.
        stored_names: the names that the columns have in the file, or None if the footer has these names.
        orders: entries of ordered dictionaries, by column number. None for a column whose dictionary pages cannot be read.
    """

    metadata: FileMetaData
    is_requested: bool
    has_texts: bool
    stored_names: Sequence[str] | None = None
    orders: dict[int, Column | None] = field(default_factory=dict)

    @cached_property
    def texts(self) -> KeyValues:
        """The key-value metadata that are still true of the values in a table."""
        # A file that is written from Gregorian values must not say that they are in another calendar.
        hidden_keys = {ARROW_KEY, *(CALENDAR_KEYS if self.metadata.calendar.is_hybrid else ())}
        return KeyValues(lambda: self.metadata.key_value_metadata, hidden_keys)

    @cached_property
    def fields(self) -> ArrowFields | None:
        """The Arrow fields, or None if there is no ARROW:schema."""
        entry = self.metadata.key_value(ARROW_KEY) if self.has_texts else None
        if entry is None:
            return None
        from fastpq.arrow.hints import ArrowFields

        return ArrowFields(entry, self.metadata.schema.root.children, self.stored_names)

    def duration_unit(self, leaf: ColumnDescriptor) -> str | None:
        """Return the unit of durations in a number column, or None for other columns."""
        return None if self.fields is None else self.fields.duration_unit(leaf)

    def is_dictionary(self, leaf: ColumnDescriptor) -> bool:
        """Whether a flat column has a dictionary as its Arrow field."""
        return self.fields is not None and self.fields.has_dictionary(leaf)

    def restored(self, table: Table, leaves: Iterable[ColumnDescriptor], file: OpenFile) -> Table:
        """Return a table with all that is stored for it, and with repaired text if the caller wants that.

        Args:
            table: the columns as they were read.
            leaves: the leaves of these columns.
            file: the open file. Orders of dictionaries are read from it.
        """
        if file.invalid_utf8 == "replace":
            from fastpq.arrays.valid_text import with_repaired_text

            table = with_repaired_text(table)
        if not self.is_requested:
            return table
        if self.has_texts:
            table = table.with_metadata(self.texts)
        nodes, fields = dict.fromkeys(leaf.top for leaf in leaves), self.fields if self.has_texts else None
        if fields is not None:
            table = fields.restored(table, nodes)
        if any(node.has_field_ids for node in nodes):
            from fastpq.arrow.field_ids import with_field_ids

            table = table._of(map(with_field_ids, table.columns, nodes))
        if fields is None:
            return table
        from fastpq.arrow.hints import has_dictionary
        if not any(map(has_dictionary, table.columns)):
            return table
        from fastpq.read.arrow_dictionaries import with_orders
        return with_orders(table, nodes, file, self.orders)
