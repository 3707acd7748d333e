"""BrowsedFile: the open file that all sheets show, and facts about it that several sheets need."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastpq.api.encryption_inspection import FileProtection
    from fastpq.api.file import ParquetFile
    from fastpq.metadata.column_chunk import ColumnChunkMetaData
    from fastpq.options import ReaderProperties
    from fastpq.picture.byte_owners import ByteMap
    from fastpq.picture.chunk_facts import ChunkFacts
    from fastpq.schema.parquet_schema import ColumnDescriptor


class BrowsedFile:
    """An open file.

    Args:
        file: the file, or None if its footer is encrypted and there is no key.
        name: how the user calls it.
        source: what ``ParquetFile`` opens.
        properties: limits and checks for reading, or None.

    Attributes:
        name, source: as the arguments.
    """

    def __init__(self, file: ParquetFile | None, name: str, source: Any, properties: ReaderProperties | None = None) -> None:
        self._file, self.name, self.source, self._properties = file, name, source, properties

    @property
    def is_sealed(self) -> bool:
        """Whether the footer is encrypted and there is no key for it."""
        return self._file is None

    @property
    def file(self) -> ParquetFile:
        """The open file. There is none if the file is sealed."""
        assert self._file is not None
        return self._file

    @property
    def columns(self) -> Sequence[ColumnDescriptor]:
        """The leaf columns."""
        return self.file.schema.columns

    @cached_property
    def protection(self) -> FileProtection:
        """How the file is encrypted. The columns in an encrypted footer are there if a key has opened it."""
        from fastpq.cli.file_facts import protection_of

        return protection_of(self.source, self._properties, self._file)

    @cached_property
    def chunk_facts(self) -> ChunkFacts:
        """What the footer says about all column chunks. In a file with many chunks this takes a second."""
        from fastpq.picture.chunk_facts import chunk_facts

        return chunk_facts(self.file.metadata)

    @cached_property
    def stored_bytes(self) -> int:
        """Bytes in all column chunks, as the row groups record them."""
        return sum(group.total_compressed_size or 0 for group in self.file.metadata.row_groups)

    @cached_property
    def byte_map(self) -> ByteMap:
        """Which part owns each byte."""
        from fastpq.io.source_opening import open_source
        from fastpq.picture.stored_parts import file_bytes, sealed_bytes

        if self._file is None:
            with open_source(self.source) as source:
                return sealed_bytes(source)
        return file_bytes(self._file._file.source, self.chunk_facts)

    def chunk(self, row_group: int, column: int) -> ColumnChunkMetaData:
        """Return a column chunk as the footer describes it."""
        return self.file.metadata.row_group(row_group).column(column)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
