"""Values of the FILE logical type: references to byte ranges of files, or inline bytes (LogicalTypes.md, "FILE")."""

from fastpq.file_reference.reference import ByteRange, FileReference, file_column

__all__ = ["ByteRange", "FileReference", "file_column"]
