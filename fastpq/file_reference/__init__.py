"""Values with the logical type FILE: inline bytes, or references to byte ranges in files (LogicalTypes.md, "FILE")."""

from fastpq.file_reference.reference import ByteRange, FileReference, file_column

__all__ = ["ByteRange", "FileReference", "file_column"]
