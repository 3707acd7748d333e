"""Rows of a leaf, encoded, compressed and encrypted into the pages of one column chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fastpq import format as fmt
from fastpq.column.chunk_writer import ChunkWriter
from fastpq.column.input import ColumnInput
from fastpq.column.shred import LeafToWrite
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import ParquetError
from fastpq.schema.types import Geography, Geometry
from fastpq.stats.geospatial import GeospatialBounds
from fastpq.write.encoded_chunk import EncodedChunk
from fastpq.write.spec import ColumnSpec

_GEOSPATIAL = (Geometry, Geography)


class ChunkToWrite(NamedTuple):
    """Rows of a leaf that become a column chunk.

    Attributes:
        leaf: the leaf.
        path: path of the column.
        spec: how the column is written.
        cipher: cipher of the chunk.
        row_group: ordinal of the row group, for errors.
        start, stop: the rows [start, stop) of the leaf.
    """

    leaf: LeafToWrite
    path: tuple[str, ...]
    spec: ColumnSpec
    cipher: ModuleCipher
    row_group: int
    start: int
    stop: int


def encode_chunk(chunk: ChunkToWrite, give: Callable[[list[bytes | memoryview]], object]) -> EncodedChunk:
    """Encode, compress and encrypt a column chunk.

    Args:
        chunk: the rows, and how they are written.
        give: taker of the stored pages, as for Pieces; the last pages wait in the chunk.

    Raises:
        SchemaError: a null of a required column, or a geometry in another form than ISO WKB.
        LimitError: too many levels or pages for one chunk.
    """
    leaf, spec, num_rows = chunk.leaf, chunk.spec, chunk.stop - chunk.start
    try:
        values = leaf.rows(spec.layout, chunk.start, chunk.stop)
        writer = ChunkWriter(values, spec.codec, chunk.cipher, spec.settings, give)
        entries = leaf.entries(spec.layout, num_rows)
        if entries is not None:
            writer.begin_dictionary(entries)
        writer.write(0, num_rows)
        is_geospatial = isinstance(spec.type.logical, _GEOSPATIAL)
        geospatial_statistics = _geospatial_statistics(spec, values) if is_geospatial else None
        return EncodedChunk(chunk.path, spec, chunk.cipher, writer, geospatial_statistics)
    except ParquetError as error:
        if "path" not in error.context:     # else of the file, in give
            error.at(column=".".join(chunk.path), row_group=chunk.row_group)
        raise


def _geospatial_statistics(spec: ColumnSpec, values: ColumnInput) -> fmt.GeospatialStatistics | None:
    """Bounding box and types of a GEOMETRY or GEOGRAPHY column; the values are checked even without statistics."""
    assert values.reader is not None
    bounds = GeospatialBounds(isinstance(spec.type.logical, Geography))
    bounds.observe(values.reader, 0, values.reader.count)
    return bounds.statistics() if spec.settings.statistics else None
