"""Regrouping: a new file whose row groups are partly copied and partly written from decoded rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastpq.arrays.table import Table
from fastpq.common.parallel import resolve_threads
from fastpq.io.source import Source
from fastpq.metadata.file_metadata import FileMetaData, RowGroupMetaData
from fastpq.options import ReaderProperties, with_options
from fastpq.read.file_reader import FileReader
from fastpq.read.open_file import OpenFile, ReadRequest
from fastpq.rewriting.one_file import RewrittenFile
from fastpq.rewriting.similar_file import writing_options_of
from fastpq.stats.writer_bugs import bugs_of
from fastpq.write.file_writer import FileWriter
from fastpq.write.row_group_appending import specs_in_order
from fastpq.write.spec import ColumnSpec


class NoEntries:
    """Description of a file whose footer FileWriter does not write, or which has no key-value metadata."""

    has_key_values = False

    def key_values(self, paths: Sequence[tuple[str, ...]]) -> Mapping[str, str]:
        return {}


class Regrouping:
    """The row groups of a new file, made from those of an old one.

    Args:
        new_file: the new file.
        source, metadata: the old file and its footer.
        reading: limits and checks for reading.
        options: options of WriterProperties. All others are like the old file's.

    Attributes:
        properties: how rows are written.

    Raises:
        SchemaError: an option names an unknown column.
    """

    def __init__(
        self,
        new_file: RewrittenFile,
        source: Source,
        metadata: FileMetaData,
        reading: ReaderProperties,
        options: Mapping[str, Any],
    ) -> None:
        self._new_file, self._metadata = new_file, metadata
        self._old_file = OpenFile(source, metadata, reading, "views", "stored", resolve_threads(None))
        self.properties = with_options(None, {**writing_options_of(metadata), **options})
        self._specs: list[ColumnSpec] = specs_in_order(metadata.schema, metadata.column_orders, self.properties)
        self._writer = FileWriter(
            new_file.sink, metadata.schema, self.properties, self._specs, new_file.row_groups, threads=None, meter=None,
            description=NoEntries(),
        )

    @property
    def has_waiting_rows(self) -> bool:
        """Whether rows wait until they fill a row group."""
        return self._writer.waiting[0] > 0

    @property
    def may_mix(self) -> bool:
        """Whether copied row groups may be in a file that fastpq is the writer of."""
        orders = [spec.column_order for spec in self._specs]
        return not bugs_of(self._metadata.created_by) and self._metadata.column_orders == orders

    def read(self, groups: Sequence[RowGroupMetaData]) -> Table:
        """Decode some row groups. INT96 timestamps stay as they are stored."""
        for group in groups:
            self._new_file.count_decoded_pages(group)
        request = ReadRequest(self._metadata.schema.columns, [(group.index, None) for group in groups])
        return FileReader(self._old_file).read(request, None, None)

    def copy(self, group: RowGroupMetaData) -> None:
        """Write the waiting rows, and copy a row group byte for byte."""
        self.finish()
        self._new_file.copy_row_group(group)

    def add(self, table: Table) -> None:
        """Add rows to those that wait until they fill a row group."""
        self._new_file.becomes_writer_of(self._specs)
        self._writer.add_constant(table)

    def add_row_group(self, table: Table) -> None:
        """Write the waiting rows, and then rows as row groups of their own."""
        self._new_file.becomes_writer_of(self._specs)
        self._writer.write(table)

    def finish(self) -> None:
        """Write the waiting rows."""
        self._writer.flush()
