"""Values of the FILE logical type: references to ranges of bytes (LogicalTypes.md, "FILE")."""

from fastpq.file_reference.reference import ByteRange, FileReference, file_column

__all__ = ["ByteRange", "FileReference", "file_column"]
