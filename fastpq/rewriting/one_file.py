"""rewrite_file: the common part of all functions that copy one file's chunks into one new file. Each supplies a FilePlan."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.column.shred import LeafToWrite, leaves_to_write
from fastpq.common.extensions import registered
from fastpq.common.progress import Meter
from fastpq.encryption.encryptor import closed_columns
from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.errors import FormatError, KeyAccessError, ParquetError, SchemaError, UnsupportedError
from fastpq.io.location import locate, placed_each
from fastpq.io.sink import Sink
from fastpq.io.sink_opening import open_sink
from fastpq.io.source import Source
from fastpq.io.source_opening import open_source
from fastpq.metadata.file_metadata import FileMetaData, RowGroupMetaData, decryptor_of
from fastpq.metadata.footer import read_finished
from fastpq.options import ReaderProperties, WriterProperties
from fastpq.read.file_reader import FileReader
from fastpq.read.open_file import OpenFile, ReadRequest
from fastpq.rewriting.chunk_copy import check_copyable, copy_leaf, opened_source, places_of_leaf
from fastpq.rewriting.chunk_edits import COPIED_AS_IT_IS, ChunkEdit
from fastpq.rewriting.redaction import without_values
from fastpq.rewriting.report import DroppedIndex, DroppedMetadata, RewritingReport
from fastpq.rewriting.rewriting_options import RewritingOptions
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
from fastpq.schema.tree import GroupNode, SchemaNode
from fastpq.stats.writer_bugs import for_writer
from fastpq.version import VERSION
from fastpq.write.chunks import ChunkToWrite, encode_chunk
from fastpq.write.row_group_appending import specs_in_order
from fastpq.write.row_groups import PlacedChunk, RowGroups
from fastpq.write.spec import ColumnSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastpq.read.chunk_plan import ChunkPlan


class EncodedLeaf(NamedTuple):
    """A leaf whose chunks are encoded, and not copied.

    Attributes:
        leaf_of: returns the leaf's rows in a row group of the old file.
        spec: how the leaf is encoded.
        decodes: whether the old chunk's pages are decoded for that.
    """

    leaf_of: Callable[[RowGroupMetaData], LeafToWrite]
    spec: ColumnSpec
    decodes: bool


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What a new file gets from an old one.

    Attributes:
        schema: the new file's schema.
        leaves: for each leaf of the new file, the number of the old leaf whose chunks it gets.
        key_values: the new file's key-value metadata.
        edit_of: returns the edit for a chunk, by the chunk's read plan.
        dropped_metadata: parts of the key-value metadata that are left out.
        kept_rows: which rows stay, for each row group that loses rows. Shape (rows,), bool. Other row groups are copied whole.
            A plan that removes rows must have all leaves, in their old order.
        column_orders: the orders of the new file's columns. None takes those of the old file.
        encoded_leaves: leaves whose chunks are encoded, by their number in the new file.
        keeps_order: whether encoded leaves are in the same order as the old ones.
        fill: writes all row groups, if they are not those of the old file. None copies the old file's row groups.
    """

    schema: ParquetSchema
    leaves: Sequence[int]
    key_values: list[fmt.KeyValue] | None
    edit_of: Callable[[ChunkPlan], ChunkEdit] = field(default=lambda _: COPIED_AS_IT_IS)
    dropped_metadata: tuple[DroppedMetadata, ...] = ()
    kept_rows: Mapping[int, NDArray[np.bool_]] = field(default_factory=dict)
    column_orders: list[fmt.ColumnOrder] | None = None
    encoded_leaves: Mapping[int, EncodedLeaf] = field(default_factory=dict)
    keeps_order: bool = False
    fill: Callable[[RewrittenFile], None] | None = None


Planner = Callable[[Source, FileMetaData], FilePlan]


def rewrite_file(where: Any, target: Any, planner: Planner, arguments: RewritingOptions) -> RewritingReport:
    """Make one file from another by copying chunks. The new file appears whole or not at all.

    Args:
        where: the source.
        target: the new file. It may be the source.
        planner: takes the source and its footer, and returns what the new file gets.
        arguments: the options.
    """
    properties = arguments.reading
    where, target = placed_each([where, target], arguments.filesystem, arguments.storage_options, arguments.timeout)
    with opened_source(where) as source:
        metadata = read_finished(source, properties, arguments.decryption_properties)
        plan = planner(source, metadata)
        encryption = arguments.encryption_properties or _own_encryption(source, metadata, plan)
        meter = Meter(arguments.progress, metadata.num_rows, holds_last=True)
        with open_sink(target) as sink:
            file = RewrittenFile(sink, source, metadata, plan, encryption, properties, meter)
            if plan.fill is not None:
                plan.fill(file)
            else:
                for index in range(metadata.num_row_groups):
                    file.copy_row_group(metadata.row_group(index))
            report = file.finish(arguments.keep_metadata)
            if encryption is not None and arguments.encryption_properties is None:
                _copy_key_material(where, target)
    settle_datasets(target)
    return report


def settle_datasets(target: Any) -> None:
    """Update the ``_metadata`` file of the dataset to which a new local file belongs.

    Nothing happens if no ``_metadata`` file above the new file names it, or if the target is not local.
    """
    settle = registered("settle_metadata")
    is_path = isinstance(target, str | os.PathLike) and not hasattr(target, "fs")
    path = locate(target) if is_path else None
    if settle is not None and isinstance(path, str) and os.path.isfile(path):
        settle(path)


def _copy_key_material(where: Any, target: Any) -> None:
    """Copy the source's file with key material, if there is one, to the target's folder."""
    from fastpq.encryption.keys.store import PREFIX, SUFFIX, MaterialPath

    try:
        source_material, target_material = (MaterialPath(place).sibling(PREFIX, SUFFIX) for place in (where, target))
    except SchemaError:     # a buffer or a file object has no files beside it
        return
    is_same = (source_material.filesystem, source_material.path) == (target_material.filesystem, target_material.path)
    if is_same or not source_material.exists():
        return
    with open_source(source_material.io_argument) as material, open_sink(target_material.io_argument) as sink:
        sink.write(material.read(0, material.size).data)


def _own_encryption(source: Source, metadata: FileMetaData, plan: FilePlan) -> FileEncryptionProperties | None:
    """Return properties that encrypt the new file with the source's keys, or None for a plaintext source.

    The new file gets its own file identifier.
    """
    tail = bytes(source.read(source.size - 4, 4)) if source.footer is None else b""
    is_plaintext_footer = tail != b"PARE"
    if metadata.encryption_algorithm is None and is_plaintext_footer:
        return None
    if not metadata.num_row_groups:
        raise UnsupportedError("an encrypted file without row groups does not say which columns are encrypted: give keys")
    group = metadata.row_group(0)
    chunks = {path: group.column(leaf).chunk for path, leaf in zip(plan.schema.paths, plan.leaves, strict=True)}
    own = decryptor_of(metadata).own_encryption(chunks, plaintext_footer=is_plaintext_footer)
    if own is None:
        raise KeyAccessError("the file is encrypted: its new version needs decryption_properties")
    return own[0]


class RewrittenFile:
    """A new file that gets an old file's row groups.

    Args:
        sink: the new file.
        source, metadata: the old file and its footer.
        plan: what the new file gets.
        encryption_properties: keys for the new file. None for a plaintext file.
        properties: limits and checks for reading.
        meter: counts the rows.

    Attributes:
        sink, meter: as above.
        row_groups: the row groups so far.
        is_encrypted: whether the new file is encrypted, as it is if the old one is.
        sorting_columns: the sorting columns of copied row groups. None takes those of the old ones.
    """

    def __init__(
        self,
        sink: Sink,
        source: Source,
        metadata: FileMetaData,
        plan: FilePlan,
        encryption_properties: FileEncryptionProperties | None,
        properties: ReaderProperties,
        meter: Meter,
    ) -> None:
        self.sink, self._source, self._metadata, self._plan, self.meter = sink, source, metadata, plan, meter
        self._encryption = encryption_properties
        self._properties = for_writer(properties, metadata)
        self._new_leaf = {leaf: number for number, leaf in enumerate(plan.leaves)}
        self.row_groups = RowGroups(sink, plan.schema, encryption_properties)
        self.is_encrypted = encryption_properties is not None
        self.sorting_columns: list[fmt.SortingColumn] | None = None
        self._created_by: str | None = None
        self._column_orders = plan.column_orders
        self._dropped_indexes: list[DroppedIndex] = []
        self._copied_pages = self._changed_pages = self._decoded_pages = self._deleted_rows = 0

    def copy_row_group(self, group: RowGroupMetaData) -> None:
        """Copy a row group's chunks, as the plan says."""
        self.row_groups.next_ordinal(1)
        check_copyable(self._metadata, group)
        entry = copy.copy(group.metadata)
        entry.sorting_columns = self.sorting_columns or self._sorting_columns(group)
        kept_mask = self._plan.kept_rows.get(group.index)
        if kept_mask is None:
            encoded_leaves = self._plan.encoded_leaves
            chunks = [
                self._encode(group, number, encoded_leaves[number]) if number in encoded_leaves else self._copy(group, number)
                for number in range(len(self._plan.leaves))
            ]
            self.row_groups.add(entry, chunks)
        elif kept_mask.any():
            entry.num_rows = int(kept_mask.sum())
            self.row_groups.add(entry, self._chunks_of_rows(group, kept_mask))
        if kept_mask is not None:
            self._deleted_rows += int((~kept_mask).sum())
        self.meter.add(group.num_rows)

    def becomes_writer_of(self, specs: Sequence[ColumnSpec]) -> None:
        """Let the footer say that fastpq wrote the rows, with the column orders of some specs."""
        self._created_by = f"fastpq version {VERSION}"
        self._column_orders = [spec.column_order for spec in specs]

    def count_decoded_pages(self, group: RowGroupMetaData, leaf: int | None = None) -> None:
        """Count the data pages of a row group, or of one of its leaves, as decoded."""
        numbers = range(group.num_columns) if leaf is None else (leaf,)
        for number in numbers:
            stats = group.column(number).metadata.encoding_stats
            data_pages = [each.count for each in stats or () if each.page_type != fmt.PageType.DICTIONARY_PAGE]
            self._decoded_pages += sum(data_pages) if stats else 1      # old writers do not count their pages

    def finish(self, keep_metadata: Collection[str] = ()) -> RewritingReport:
        """Write the indexes and the footer.

        Args:
            keep_metadata: keys of key-value entries that are copied unchanged, even if they hold values of encrypted columns.
        """
        plan, metadata = self._plan, self._metadata
        footer = copy.copy(metadata.metadata)
        footer.schema = plan.schema.elements
        orders = metadata.column_orders
        footer.created_by = self._created_by or footer.created_by
        footer.column_orders = self._column_orders or ([orders[leaf] for leaf in plan.leaves] if orders else None)
        footer.key_value_metadata = plan.key_values
        dropped_entries = list(plan.dropped_metadata)
        if self._encryption is not None:
            closed = closed_columns(self._encryption, plan.schema.paths)
            entries = FileMetaDataEntries(plan.key_values or [], plan.schema)
            footer.key_value_metadata, removed_entries = without_values(entries, closed, keep_metadata)
            dropped_entries += removed_entries
            if closed:
                footer.unknown_fields = ()     # fields from a newer specification might disclose values
        self.row_groups.write_footer(footer)
        self.meter.finish()
        return RewritingReport(
            tuple(self._dropped_indexes),
            tuple(dropped_entries),
            self._copied_pages,
            self._changed_pages,
            self._decoded_pages,
            self._deleted_rows,
        )

    def _sorting_columns(self, group: RowGroupMetaData) -> list[fmt.SortingColumn] | None:
        """Return the sorting columns up to the first one that the new file does not have."""
        sorting_columns = []
        for column in group.sorting_columns:
            number = self._new_leaf.get(column.column_idx)
            if number is None or (number in self._plan.encoded_leaves and not self._plan.keeps_order):
                break
            new_column = copy.copy(column)
            new_column.column_idx = number
            sorting_columns.append(new_column)
        return sorting_columns or None

    def _chunks_of_rows(self, group: RowGroupMetaData, kept_mask: NDArray[np.bool_]) -> Iterator[PlacedChunk]:
        """Write a row group's chunks with the rows that stay."""
        from fastpq.rewriting.row_removal import ChunkOfRows, RowRemoval

        specs = specs_in_order(self._metadata.schema, self._metadata.column_orders, WriterProperties())
        for node in self._metadata.schema.root.children:
            leaf_of = self._reader_of_leaves(group, node)
            for place, column in enumerate(leaves_of(self._metadata.schema, node)):
                number = column.index
                try:
                    plan, opener, sealer = places_of_leaf(
                        self._source, self._metadata, group, number, self.row_groups, number)
                    chunk = ChunkOfRows(
                        self._source, plan, opener, sealer, self._properties, kept_mask, partial(leaf_of, place), specs[number]
                    )
                    removal = RowRemoval(chunk, self.sink)
                    yield removal.run()
                except ParquetError as error:
                    error.at(column=column.name, row_group=group.index)
                    raise
                self._copied_pages += removal.copied_pages
                self._decoded_pages += removal.decoded_pages

    def _reader_of_leaves(self, group: RowGroupMetaData, node: SchemaNode) -> Callable[[int, NDArray[np.int64]], LeafToWrite]:
        """Read a top-level column in one row group, and return a function over its leaves.

        The function takes a leaf's number in the column and an array of row numbers. It returns the leaf's values in these rows.
        """
        leaves = leaves_of(self._metadata.schema, node)
        file = OpenFile(self._source, self._metadata, self._properties, "views", "stored", 1)
        [column] = FileReader(file).read(ReadRequest(leaves, [(group.index, None)]), None, None).columns
        return lambda place, rows: leaves_to_write(column.take(rows), node.nullable)[place]

    def _encode(self, group: RowGroupMetaData, number: int, encoded_leaf: EncodedLeaf) -> PlacedChunk:
        """Encode a leaf's rows as a chunk."""
        path, ordinal = self._plan.schema.paths[number], len(self.row_groups)
        leaf = encoded_leaf.leaf_of(group)
        if encoded_leaf.decodes:
            self.count_decoded_pages(group, self._plan.leaves[number])
        cipher = self.row_groups.cipher(ordinal, number)
        chunk = encode_chunk(
            ChunkToWrite(leaf, path, encoded_leaf.spec, cipher, ordinal, 0, group.num_rows), self.sink.write_together
        )
        return chunk.placed(chunk.place(self.sink))

    def _copy(self, group: RowGroupMetaData, number: int) -> PlacedChunk:
        plan = self._plan
        chunk, edit, dropped_indexes = copy_leaf(
            self._source, self._metadata, group, plan.leaves[number], self.row_groups, self.sink, self._properties, number,
            plan.schema.paths[number], plan.edit_of)
        self._dropped_indexes += dropped_indexes
        num_pages = sum(stats.count for stats in chunk.metadata.encoding_stats or ())
        if edit.changes_pages:
            self._changed_pages += num_pages
        else:
            self._copied_pages += num_pages
        self._decoded_pages += edit.decoded_pages
        return chunk


def leaf_of_row_groups(
    source: Source, metadata: FileMetaData, properties: ReaderProperties, groups: Iterable[int], column: ColumnDescriptor
) -> Callable[[], LeafToWrite]:
    """Return a function that decodes one leaf of some row groups."""
    requested_groups = [(group, None) for group in groups]
    top = column.top

    def decode() -> LeafToWrite:
        file = OpenFile(source, metadata, properties, "views", "stored", 1)
        table = FileReader(file).read(ReadRequest([column], requested_groups), None, None)
        if table.num_rows != sum(metadata.row_group(group).num_rows for group, _ in requested_groups):
            raise FormatError("the row groups have other row counts than their columns", column=column.name)
        [values] = table.columns
        [leaf] = leaves_to_write(values, top.nullable)
        return leaf

    return decode


def leaves_of(schema: ParquetSchema, node: SchemaNode) -> list[ColumnDescriptor]:
    return list(schema.columns[node.first : node.last]) if isinstance(node, GroupNode) else [
        column for column in schema.columns if column is node
    ]


class FileMetaDataEntries(NamedTuple):
    """Key-value metadata with the schema that they describe."""

    key_values: list[fmt.KeyValue]
    schema: ParquetSchema
