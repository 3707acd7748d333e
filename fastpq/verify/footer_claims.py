"""Claims of the footer that its other claims, the schema or the size of the file refute. No page is read."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from fastpq.errors import ParquetError
from fastpq.format.enums import CompressionCodec, Type
from fastpq.format.stored_footer import ENCRYPTED_MAGIC, MAGIC
from fastpq.io.source import Source
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.metadata.file_metadata import FileMetaData, RowGroupMetaData
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.stats.writer_bugs import row_count_is_trusted
from fastpq.verify import sections
from fastpq.verify.findings import Findings, PlaceInFile

FIRST_OFFSET = len(MAGIC)       # of anything but the magic bytes
_PHYSICAL_TYPES = {type_.value for type_ in Type}
BY_POSITION = "pyarrow takes chunks by their positions"
_CHECKPOINT = (
    "an unfinished file of fastpq, which ends with a checkpoint",
    "pyarrow, DuckDB and Polars read the rows up to the checkpoint without a word",
    'an error, unless recover_table or on_error="null" reads it',
)
_CODECS = {codec.value for codec in CompressionCodec}


class OwnedRange(NamedTuple):
    """A byte range, and what it belongs to."""

    start: int
    end: int
    part: str
    place: PlaceInFile


def check_head(findings: Findings, source: Source) -> None:
    """Check that the file begins with the magic bytes with which it ends."""
    head, tail = bytes(source.read(0, FIRST_OFFSET)), bytes(source.read(source.size - FIRST_OFFSET, FIRST_OFFSET))
    if head != tail:
        magic = ENCRYPTED_MAGIC if tail == ENCRYPTED_MAGIC else MAGIC
        message = f"the file begins with {head!r} and not with {magic!r}"
        findings.violate("footer", sections.FILE_FORMAT, message, PlaceInFile(offset=0), "pyarrow and DuckDB do not look")


def check_footer(findings: Findings, metadata: FileMetaData) -> frozenset[int]:
    """Check row counts, column orders, and names and types of columns. Return the numbers of columns of unknown types."""
    with findings.catching("row group", sections.ROW_GROUP, PlaceInFile()):
        _check_row_counts(findings, metadata)
    num_orders = len(metadata.orders.offsets)
    if num_orders not in (0, metadata.num_columns):
        message = f"{num_orders} column orders for {metadata.num_columns} columns"
        findings.violate("footer", sections.COLUMN_ORDERS, message, PlaceInFile())
    if metadata.is_checkpoint:
        findings.differ(*_CHECKPOINT, PlaceInFile())
    for name, count in Counter(metadata.schema.names).items():
        if count > 1:
            case = f"{count} columns with the same name"
            findings.differ(case, "pyarrow: an error from read_table", "reads all of them", PlaceInFile(column=name))
    return _check_types(findings, metadata)


def _check_row_counts(findings: Findings, metadata: FileMetaData) -> None:
    row_counts = metadata.row_counts
    for group, count in enumerate(row_counts):
        if count < 0:
            findings.violate("row group", sections.ROW_GROUP, f"{count} rows", PlaceInFile(group))
    if metadata.num_rows != sum(row_counts) and row_count_is_trusted(metadata.created_by):
        message = f"the footer claims {metadata.num_rows} rows, and its row groups {sum(row_counts)}"
        readers = "pyarrow and DuckDB: the rows of the row groups"
        findings.violate("footer", sections.FILE_METADATA, message, PlaceInFile(), readers)


def _check_types(findings: Findings, metadata: FileMetaData) -> frozenset[int]:
    """Return the numbers of columns of unknown types, which are reported."""
    unknown_types = set()
    for column in metadata.schema.columns:
        if column.element.type not in _PHYSICAL_TYPES:
            unknown_types.add(column.index)
            message = f"the physical type {column.element.type}, which the specification does not have"
            findings.violate("schema", sections.SCHEMA, message, PlaceInFile(column=column.name))
            continue
        try:
            column.type  # noqa: B018  # the annotations are checked when the type is first used
        except ParquetError as error:
            unknown_types.add(column.index)
            findings.take(error, "schema", sections.SCHEMA, PlaceInFile(column=column.name))
    return frozenset(unknown_types)


def check_row_group(findings: Findings, group: RowGroupMetaData, chunks: list[ColumnChunkMetaData | None]) -> None:
    """Check what a row group claims about its chunks together.

    Args:
        findings: gets the violations.
        group: the row group.
        chunks: its chunks by column. None for a chunk whose entry cannot be read.
    """
    place, section = PlaceInFile(group.index), sections.ROW_GROUP
    if group.num_columns != len(chunks):
        findings.violate("row group", section, f"{group.num_columns} chunks for {len(chunks)} columns", place)
    is_elsewhere = any(chunk is not None and chunk.file_path for chunk in chunks)
    if group.ordinal != group.index and not is_elsewhere:       # the row groups of a _metadata file keep their own ordinals
        findings.violate("row group", section, f"the ordinal {group.ordinal} in the place {group.index}", place)
    for sorting in group.metadata.sorting_columns or ():
        if not 0 <= sorting.column_idx < len(chunks):
            findings.violate("row group", sections.SORTING, f"sorted by column {sorting.column_idx} of {len(chunks)}", place)
    entries = [chunk.metadata for chunk in chunks if chunk is not None]
    if len(entries) < len(chunks) or not entries:
        return
    uncompressed_size, stored_size = (sum(getattr(each, name) for each in entries) for name in (
        "total_uncompressed_size", "total_compressed_size"))
    if group.total_byte_size != uncompressed_size:
        message = f"total_byte_size is {group.total_byte_size}, and the chunks have {uncompressed_size} uncompressed bytes"
        findings.violate("row group", section, message, place, harmless=True)
    if group.total_compressed_size not in (None, 0, stored_size):
        message = f"total_compressed_size is {group.total_compressed_size}, and the chunks have {stored_size} stored bytes"
        findings.violate("row group", section, message, place, harmless=True)
    own_chunks = [chunk for chunk in chunks if chunk is not None and not chunk.file_path]
    starts = [min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset) for chunk in own_chunks]
    if group.file_offset and starts and group.num_rows and group.file_offset not in starts:
        message = "file_offset is not where a chunk of the row group begins"
        findings.violate("row group", section, message, place, harmless=True)


def check_chunk_entry(
    findings: Findings, chunk: ColumnChunkMetaData, column: ColumnDescriptor, file_size: int, footer_start: int,
    place: PlaceInFile,
) -> bool:
    """Check the entry of a chunk against schema and file size. Return whether its pages can be walked."""
    metadata, section = chunk.metadata, sections.CHUNK_METADATA
    if metadata.type != column.element.type:
        findings.violate("column chunk", section, f"physical type {metadata.type}, and the schema has another", place)
        return False
    if metadata.path_in_schema is not None and tuple(metadata.path_in_schema) != column.path:
        name = ".".join(metadata.path_in_schema)
        findings.violate("column chunk", section, f"the path {name!r} of another column", place, BY_POSITION)
    if metadata.codec not in _CODECS:
        findings.violate("column chunk", sections.COMPRESSION, f"an unknown codec {metadata.codec}", place)
        return False
    if metadata.num_values < 0 or metadata.total_uncompressed_size < 0:
        findings.violate("column chunk", section, "a negative number of values or uncompressed bytes", place)
        return False
    try:
        start, size = chunk.byte_range
    except ParquetError as error:
        findings.take(error, "column chunk", section, place)
        return False
    if chunk.file_path is not None:
        return True
    if start < FIRST_OFFSET and not metadata.num_values:
        return False        # some writers store such an entry for a chunk without pages
    if (start < FIRST_OFFSET and size) or start + size > footer_start:
        message = f"{size} bytes at offset {start} of a file of {file_size}, whose footer begins at {footer_start}"
        findings.violate("column chunk", section, message, place)
        return False
    return True


def claimed_ranges(chunk: ColumnChunkMetaData, place: PlaceInFile) -> list[OwnedRange]:
    """Return the byte ranges that a chunk claims: its pages, its indexes and its bloom filter."""
    metadata, entry = chunk.metadata, chunk.chunk
    if chunk.file_path is not None:
        return []
    start = metadata.data_page_offset
    if metadata.dictionary_page_offset and metadata.dictionary_page_offset > 0:
        start = min(start, metadata.dictionary_page_offset)
    ranges = [(start, metadata.total_compressed_size, "column chunk")] if metadata.num_values else []
    ranges += [
        (offset, length, part)
        for offset, length, part in (
            (entry.offset_index_offset, entry.offset_index_length, "offset index"),
            (entry.column_index_offset, entry.column_index_length, "column index"),
            (metadata.bloom_filter_offset, metadata.bloom_filter_length, "bloom filter"),
        )
        if offset and length
    ]
    return [OwnedRange(offset, offset + length, part, place) for offset, length, part in ranges if length > 0]


def check_overlaps(findings: Findings, ranges: list[OwnedRange]) -> None:
    """Check that no byte belongs to two parts of the file."""
    last: OwnedRange | None = None
    for each in sorted(ranges):
        if last is not None and each.start < last.end:
            message = f"shares {min(last.end, each.end) - each.start} bytes with the {last.part} of {last.place.column!r}"
            findings.violate(each.part, sections.FILE_FORMAT, message, each.place._replace(offset=each.start))
        if last is None or each.end > last.end:
            last = each
