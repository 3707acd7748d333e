"""FILE values: one reference with its rules, and columns of references (LogicalTypes.md, "FILE").

A FileReference resolves to inline bytes or to a ByteRange. Reading the bytes of another file is left to the caller.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fastpq.arrays.bitmap import pack_bitmap
from fastpq.errors import FormatError, SchemaError, UnsupportedError
from fastpq.schema.file_group import FIELDS, check_fields

if TYPE_CHECKING:
    from fastpq.arrays.nested_columns import StructColumn

LARGEST_OFFSET = (1 << 63) - 1      # INT64


def _crc32c(data: bytes) -> int:
    try:
        import google_crc32c
    except ImportError:
        raise UnsupportedError("CRC32C checksums need the package google-crc32c (pip install google-crc32c)") from None
    return int(google_crc32c.value(data))


# Supported checksum algorithms: number of hexadecimal digits, and a function from bytes to the digest.
_ALGORITHMS: dict[str, tuple[int, Callable[[bytes], str]]] = {
    "MD5": (32, lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest()),
    "CRC32": (8, lambda data: f"{zlib.crc32(data):08x}"),
    "CRC32C": (8, lambda data: f"{_crc32c(data):08x}"),
    "SHA-256": (64, lambda data: hashlib.sha256(data).hexdigest()),
}
_LOWERCASE_HEX = re.compile(r"[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes in a file.

    Attributes:
        uri: URI of the file, as written; None is the Parquet file with the value.
        offset: offset of the first byte.
        size: number of bytes; None extends to the end of the file.
    """

    uri: str | None
    offset: int
    size: int | None


@dataclass(frozen=True, slots=True)
class FileReference:
    """One FILE value; a null, missing or empty text field counts as not set.

    Attributes:
        uri: a URI-reference (RFC 3986); not set for bytes of the Parquet file itself.
        offset: offset of the first byte.
        size: number of bytes.
        content_type: media type (RFC 2046) of the bytes.
        checksum: ``<algorithm>:<digest>`` of the bytes.
        inline: the bytes themselves; the other fields then only describe the bytes' origin.
    """

    uri: str | None = None
    offset: int | None = None
    size: int | None = None
    content_type: str | None = None
    checksum: str | None = None
    inline: bytes | None = None

    @property
    def is_self_reference(self) -> bool:
        """Whether the bytes are in the Parquet file itself; the file must then be unencrypted."""
        return self.inline is None and not self.uri

    def resolve(self) -> bytes | ByteRange:
        """The inline bytes, or the ByteRange of the bytes.

        Raises:
            FormatError: set fields contradict each other, or no bytes are referred to.
        """
        if self.inline is not None:
            return self.inline
        for name, number in (("offset", self.offset), ("size", self.size)):
            if number is not None and not 0 <= number <= LARGEST_OFFSET:
                raise FormatError(f"a file reference of {name} {number}")
        if self.offset is not None and self.size is None:
            raise FormatError("a file reference with an offset and no size")
        if not self.uri and self.offset is None:
            raise FormatError("a file reference without inline, uri and offset, which refers to nothing")
        if (self.offset or 0) + (self.size or 0) > LARGEST_OFFSET:
            raise FormatError(f"a file reference of {self.size} bytes at offset {self.offset}")
        return ByteRange(self.uri or None, self.offset or 0, self.size)

    def verify(self, data: bytes) -> bool:
        """Compare bytes with the checksum.

        Args:
            data: the bytes referred to.

        Returns:
            True for equal checksums; False without a comparison: no checksum, an ETAG, or an unknown algorithm.

        Raises:
            FormatError: the checksums differ, or the stored checksum is malformed.
        """
        if not self.checksum:
            return False
        algorithm, colon, digest = self.checksum.partition(":")
        if not colon:
            raise FormatError("the checksum of a file reference without an algorithm")
        if algorithm not in _ALGORITHMS:
            return False
        digits, compute = _ALGORITHMS[algorithm]
        if len(digest) != digits or not _LOWERCASE_HEX.fullmatch(digest):
            raise FormatError(f"an {algorithm} checksum of a file reference that is not {digits} digits of lowercase hex")
        if compute(data) != digest:
            raise FormatError(f"bytes that do not have the {algorithm} checksum of their file reference")
        return True


def file_references(column: StructColumn) -> list[FileReference | None]:
    """The values of a FILE column, None where null.

    Args:
        column: structs of a StructType annotated FILE.
    """
    names = [field.name for field in column.type.fields]
    rows = zip(*(child.to_pylist() for child in column.children), strict=True)
    return [
        FileReference(**dict(zip(names, row, strict=True))) if is_there else None
        for row, is_there in zip(rows, column.validity_mask().tolist(), strict=True)
    ]


def file_column(references: Sequence[FileReference | None], fields: Collection[str] = tuple(FIELDS)) -> StructColumn:
    """A column of FILE values to write.

    Args:
        references: the values; None where null.
        fields: names of the fields in the group.

    Raises:
        SchemaError: fields unknown to FILE, no fields, or a set field missing in ``fields``; values of other types.
    """
    from fastpq.arrays.nested_columns import StructColumn
    from fastpq.convert.numpy_input import column_from_numpy
    from fastpq.schema.nested_types import StructType

    check_fields(fields)
    left_out = [name for name in FIELDS if name not in fields]
    there = np.array([reference is not None for reference in references], np.bool_)
    if any(getattr(reference, name) is not None for reference in references if reference is not None for name in left_out):
        raise SchemaError(f"file references with fields beyond {', '.join(fields)}")
    children = {
        name: column_from_numpy([getattr(reference, name, None) for reference in references], type=FIELDS[name], nullable=True)
        for name in FIELDS
        if name in fields
    }
    nulls = len(there) - int(np.count_nonzero(there))
    type_ = StructType(tuple(child.as_field(name) for name, child in children.items()), "FILE")
    return StructColumn(type_, tuple(children.values()), len(there), pack_bitmap(there) if nulls else None, nulls)
