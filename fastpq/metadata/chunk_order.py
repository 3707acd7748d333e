"""Column chunks of a row group by number of the column; found by their paths where their order is another than the schema's."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.errors import FormatError
from fastpq.schema.parquet_schema import ColumnDescriptor, SchemaNode

Path = tuple[str, ...]
Offsets = NDArray[np.int64]


class ChunkOrder:
    """The column chunks of one row group, decoded on demand; ``len`` is their number.

    Args:
        footer: the serialized footer.
        offsets: offset of each chunk in the footer, in stored order.
        row_group: index of the row group.
        columns: columns of the schema; none for a broken schema, and chunks are in the order of the columns.
    """

    __slots__ = ("_columns", "_footer", "_offsets", "_places", "_row_group")

    def __init__(self, footer: memoryview, offsets: Offsets, row_group: int, columns: Sequence[ColumnDescriptor]) -> None:
        self._footer, self._offsets, self._row_group, self._columns = footer, offsets, row_group, columns
        self._places: list[int | None] | None = None

    def __len__(self) -> int:
        return len(self._offsets)

    def chunk(self, index: int) -> fmt.ColumnChunk:
        """The chunk of a leaf column.

        Args:
            index: number of the leaf column.

        Raises:
            FormatError: the row group has no chunk of the column, or the chunk's entry is broken.
        """
        found = self._stored(index) if 0 <= index < len(self) else None
        path = self._columns[index].path if 0 <= index < len(self._columns) else None
        if path is not None and (found is None or path_of(found) not in (None, path)):
            if self._places is None:
                paths = [column.path for column in self._columns]
                self._places = places_of(paths, list(map(self._stored, range(len(self)))))
            place = self._places[index]
            found = None if place is None else self._stored(place)
        if found is None:
            raise FormatError(f"no chunk of column {index} in a row group of {len(self)}", row_group=self._row_group)
        return found

    def by_column(self, sorting: Sequence[fmt.SortingColumn]) -> list[fmt.SortingColumn]:
        """Sorting columns whose ``column_idx`` is the number of a column; the stored one is a place in the row group."""
        if sorting:
            for index in range(len(self)):
                self.chunk(index)       # finds another order
        if self._places is None:
            return list(sorting)
        numbers = {place: number for number, place in enumerate(self._places)}
        renumbered = [copy.copy(entry) for entry in sorting]
        for entry in renumbered:
            entry.column_idx = numbers.get(entry.column_idx, entry.column_idx)
        return renumbered

    def _stored(self, place: int) -> fmt.ColumnChunk:
        return fmt.decode(fmt.ColumnChunk, self._footer, int(self._offsets[place]))[0]


def path_of(chunk: fmt.ColumnChunk) -> Path | None:
    """The path of a plaintext chunk; None for an encrypted chunk, whose number is a part of AADs."""
    return None if chunk.meta_data is None or chunk.crypto_metadata is not None else tuple(chunk.meta_data.path_in_schema)


def places_of(paths: Sequence[Path], chunks: Sequence[fmt.ColumnChunk]) -> list[int | None]:
    """The place of each column's chunk in the row group; None for a column without a chunk.

    Columns have the places of their numbers where paths do not tell: two columns or chunks of one path, an encrypted chunk, or a
    chunk of a path unknown to the schema.

    Args:
        paths: path of each column of the schema.
        chunks: chunks of the row group.
    """
    by_path = {path_of(chunk): place for place, chunk in enumerate(chunks)}
    known = set(paths)
    if len(by_path) < len(chunks) or len(known) < len(paths) or not by_path.keys() <= known:
        return [place if place < len(chunks) else None for place in range(len(paths))]
    return [by_path.get(path) for path in paths]


def may_be_of(chunk: fmt.ColumnChunk, column: ColumnDescriptor) -> bool:
    """Whether a chunk has the path of a column, or hides its path by encryption."""
    if chunk.meta_data is None or chunk.crypto_metadata is not None:
        return True
    path = chunk.meta_data.path_in_schema
    if column.is_flat:
        return len(path) == 1 and path[0] == column.element.name
    node: SchemaNode = column
    for name in reversed(path):
        if node.parent is None or node.element.name != name:
            return False
        node = node.parent
    return node.parent is None
