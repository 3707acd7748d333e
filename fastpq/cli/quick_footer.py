"""Reads a footer without the reader of values, whose import takes as long as NumPy's. ``fastpq meta`` has to start quickly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from fastpq.errors import ParquetError
from fastpq.io.source_opening import open_source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.metadata.footer import read_finished
from fastpq.options import ReaderProperties

if TYPE_CHECKING:
    from fastpq.encryption.properties import FileDecryptionProperties


def footer_of(
    where: Any, keys: FileDecryptionProperties | None, chunk_order: Literal["path", "position"] | None = None
) -> FileMetaData:
    """Return a file's footer, as ``fastpq.read_metadata`` does.

    Args:
        where: a path, a URL or bytes.
        keys: keys, or None.
        chunk_order: the option of ReaderProperties.
    """
    properties = ReaderProperties(chunk_order=chunk_order)
    with open_source(where, memory_map=False, properties=properties) as source:
        try:
            return read_finished(source, properties, keys)
        except ParquetError as error:
            error.at(path=source.name)
            raise
