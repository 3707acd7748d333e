"""ChunkOrder: a row group's column chunks, looked up by column index.

Parquet asks for chunks in schema order. Where their paths say otherwise, ``ReaderProperties.chunk_order`` decides.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.errors import FormatError
from fastpq.schema.parquet_schema import ColumnDescriptor, SchemaNode

Path = tuple[str, ...]
Matching: TypeAlias = Literal["path", "position"] | None     # as the option chunk_order
Offsets = NDArray[np.int64]


class ChunkOrder:
    """One row group's column chunks, decoded on demand. ``len`` is the chunk count.

    Args:
        footer: the serialized footer.
        offsets: where each chunk's entry begins in the footer, in stored order.
        row_group: row group index.
        columns: the schema's leaf columns. If the schema is broken, they are empty, and the chunks count as being in schema
            order.
        matching: what decides if paths and positions disagree. None refuses such a row group.
    """

    __slots__ = ("_columns", "_footer", "_matching", "_offsets", "_places", "_row_group")

    def __init__(
        self, footer: memoryview, offsets: Offsets, row_group: int, columns: Sequence[ColumnDescriptor], matching: Matching
    ) -> None:
        self._footer, self._offsets, self._row_group, self._columns = footer, offsets, row_group, columns
        self._matching = matching
        self._places: list[int | None] | None = None

    def __len__(self) -> int:
        return len(self._offsets)

    def chunk(self, index: int) -> fmt.ColumnChunk:
        """Return a leaf column's chunk.

        Args:
            index: leaf column index.

        Raises:
            FormatError: the row group has no chunk for the column, the chunk's entry is broken, or the chunk's path is another
                column's and no option decides.
        """
        chunk = self._stored(index) if 0 <= index < len(self) else None
        path = self._columns[index].path if 0 <= index < len(self._columns) else None
        by_position = self._matching == "position"
        if path is not None and not by_position and (chunk is None or path_of(chunk) not in (None, path)):
            if self._places is None:
                paths = [column.path for column in self._columns]
                self._places = places_of(paths, list(map(self._stored, range(len(self)))))
            place = self._places[index]
            if self._matching is None and chunk is not None and place != index:
                raise self._disagreement(chunk, index)
            chunk = None if place is None else self._stored(place)
        if chunk is None:
            raise FormatError(f"the row group has {len(self)} chunks, and none for column {index}", row_group=self._row_group)
        return chunk

    def _disagreement(self, chunk: fmt.ColumnChunk, index: int) -> FormatError:
        own, other = ".".join(self._columns[index].path), ".".join(path_of(chunk) or ())
        return FormatError(
            f"column chunk {index} belongs to {own!r} by its position and to {other!r} by its path: "
            'chunk_order="path" or "position" decides',
            row_group=self._row_group,
            column=own,
        )

    def by_column(self, sorting: Sequence[fmt.SortingColumn]) -> list[fmt.SortingColumn]:
        """Return sorting columns whose ``column_idx`` is a column index. The file stores a place in the row group instead."""
        if sorting and self._matching != "position":
            for index in range(len(self)):
                self.chunk(index)       # sets _places if the chunks are not in schema order
        if self._places is None:
            return list(sorting)
        numbers = {place: number for number, place in enumerate(self._places)}
        entries = [copy.copy(entry) for entry in sorting]
        for entry in entries:
            entry.column_idx = numbers.get(entry.column_idx, entry.column_idx)
        return entries

    def _stored(self, place: int) -> fmt.ColumnChunk:
        return fmt.decode(fmt.ColumnChunk, self._footer, int(self._offsets[place]))[0]


def path_of(chunk: fmt.ColumnChunk) -> Path | None:
    """Return a plaintext chunk's path. None if it is not stored.

    None for an encrypted chunk too: AADs contain its place, so it cannot have been moved.
    """
    path = None if chunk.meta_data is None or chunk.crypto_metadata is not None else chunk.meta_data.path_in_schema
    return None if path is None else tuple(path)


def places_of(paths: Sequence[Path], chunks: Sequence[fmt.ColumnChunk]) -> list[int | None]:
    """Return each column's place: where its chunk is in the row group. None for a column without a chunk.

    The place is the column index if the paths cannot decide. This is so if two columns or two chunks have the same path, if
    chunks are encrypted, or if a chunk has a path that the schema does not have.

    Args:
        paths: each column's path in the schema.
        chunks: the row group's chunks.
    """
    by_path = {path_of(chunk): place for place, chunk in enumerate(chunks)}
    unique_paths = set(paths)
    if len(by_path) < len(chunks) or len(unique_paths) < len(paths) or not by_path.keys() <= unique_paths:
        return [place if place < len(chunks) else None for place in range(len(paths))]
    return [by_path.get(path) for path in paths]


def may_be_of(chunk: fmt.ColumnChunk, column: ColumnDescriptor) -> bool:
    """Return whether a chunk may belong to a column: it has the column's path, or encryption hides its path."""
    if chunk.meta_data is None or chunk.crypto_metadata is not None:
        return True
    path = chunk.meta_data.path_in_schema
    if path is None:
        return True
    if column.is_flat:
        return len(path) == 1 and path[0] == column.element.name
    node: SchemaNode = column
    for name in reversed(path):
        if node.parent is None or node.element.name != name:
            return False
        node = node.parent
    return node.parent is None
