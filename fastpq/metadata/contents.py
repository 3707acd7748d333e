"""Contents of a footer as text and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastpq.common.display import Grid, Heading, counted, more, of_bytes
from fastpq.errors import ParquetError

if TYPE_CHECKING:
    from fastpq.metadata.file_metadata import FileMetaData

# Shown in the place of the number of columns.
BROKEN_SCHEMA = "broken schema"


def row_group_grid(metadata: FileMetaData, most: int) -> Grid | None:
    """Rows and sizes of the first row groups."""
    names = ["row group", "rows", "stored", "uncompressed", "offset"]
    rows = [_row_group_cells(metadata, index) for index in range(min(most, metadata.num_row_groups))]
    note = more(metadata.num_row_groups, len(rows), "row group")
    return Grid([Heading(name, is_number=True) for name in names], rows, note) if rows else None


def _row_group_cells(metadata: FileMetaData, index: int) -> list[str]:
    try:
        group = metadata.row_group(index)
        sizes, offset = [group.total_compressed_size, group.total_byte_size], group.file_offset
    except ParquetError:
        return [str(index), "broken", "", "", ""]
    stored, plain = ("unknown" if size is None else of_bytes(size) for size in sizes)
    return [str(index), f"{group.num_rows:,}", stored, plain, "" if offset is None else f"{offset:,}"]


def facts_of(metadata: FileMetaData) -> list[str]:
    """Rows, row groups, columns, writer and encryption, a few words each."""
    algorithm = metadata.encryption_algorithm
    name = "AES_GCM_V1" if algorithm is not None and algorithm.AES_GCM_V1 is not None else "AES_GCM_CTR_V1"
    return [
        counted(metadata.num_rows, "row"),
        counted(metadata.num_row_groups, "row group"),
        _columns_fact(metadata),
        f"by {metadata.created_by}" if metadata.created_by else "by an unnamed writer",
        "plaintext" if algorithm is None else f"encrypted with {name}",
    ]


def _columns_fact(metadata: FileMetaData) -> str:
    try:
        return counted(metadata.num_columns, "column")
    except ParquetError:
        return BROKEN_SCHEMA
