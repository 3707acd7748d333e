"""Values with the logical type FILE: one reference with its rules, and reference columns (LogicalTypes.md, "FILE").

A FileReference resolves to inline bytes or to a ByteRange. The caller reads the byte range.
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
from fastpq.schema.variant_group import FILE_FIELDS, check_file_fields

if TYPE_CHECKING:
    from fastpq.arrays.nested_columns import StructColumn

LARGEST_OFFSET = (1 << 63) - 1      # the largest INT64


def _crc32c(data: bytes) -> int:
    try:
        import google_crc32c
    except ImportError:
        raise UnsupportedError("CRC32C checksums need the package google-crc32c (pip install google-crc32c)") from None
    return int(google_crc32c.value(data))


# Checksum algorithms: how many hexadecimal digits the digest has, and the function that computes it.
_ALGORITHMS: dict[str, tuple[int, Callable[[bytes], str]]] = {
    "MD5": (32, lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest()),
    "CRC32": (8, lambda data: f"{zlib.crc32(data):08x}"),
    "CRC32C": (8, lambda data: f"{_crc32c(data):08x}"),
    "SHA-256": (64, lambda data: hashlib.sha256(data).hexdigest()),
}
_LOWERCASE_HEX = re.compile(r"[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A byte range in a file.

    Attributes:
        uri: the file's URI as written. None for the Parquet file that holds the value.
        offset: where the range begins in the file, in bytes.
        size: size in bytes. None means that the range reaches to the file's end.
    """

    uri: str | None
    offset: int
    size: int | None


@dataclass(frozen=True, slots=True)
class FileReference:
    """One FILE value. A text field that is null, missing or empty counts as not set.

    Attributes:
        uri: a URI-reference (RFC 3986). It is not set if the bytes are in the Parquet file itself.
        offset: where the bytes begin in the file, in bytes.
        size: how many bytes there are.
        content_type: the bytes' media type (RFC 2046).
        checksum: the bytes' checksum, as ``<algorithm>:<digest>``.
        inline: the bytes themselves. If they are set, the other fields only describe where the bytes came from.
    """

    uri: str | None = None
    offset: int | None = None
    size: int | None = None
    content_type: str | None = None
    checksum: str | None = None
    inline: bytes | None = None

    @property
    def is_self_reference(self) -> bool:
        """Whether the reference points into the Parquet file that holds it. This file must then be unencrypted."""
        return self.inline is None and not self.uri

    def resolve(self) -> bytes | ByteRange:
        """Return the inline bytes, or the range where the bytes are.

        Raises:
            FormatError: fields contradict each other or are out of range, or the reference points to nothing.
        """
        if self.inline is not None:
            return self.inline
        for name, number in (("offset", self.offset), ("size", self.size)):
            if number is not None and not 0 <= number <= LARGEST_OFFSET:
                raise FormatError(f"a file reference has the invalid {name} {number}")
        if self.offset is not None and self.size is None:
            raise FormatError("a file reference has an offset but no size")
        if not self.uri and self.offset is None:
            raise FormatError("a file reference points to nothing: it has no inline bytes, no uri and no offset")
        if (self.offset or 0) + (self.size or 0) > LARGEST_OFFSET:
            raise FormatError(f"a file reference has {self.size} bytes at offset {self.offset}, past the largest offset")
        return ByteRange(self.uri or None, self.offset or 0, self.size)

    def verify(self, data: bytes) -> bool:
        """Compare bytes with the checksum.

        Args:
            data: the bytes that the reference points to.

        Returns:
            True if the checksums are equal. False if nothing was compared: there is no checksum, it is an ETAG, or its algorithm
            is unknown.

        Raises:
            FormatError: the checksums differ, or the stored checksum is malformed.
        """
        if not self.checksum:
            return False
        algorithm, colon, digest = self.checksum.partition(":")
        if not colon:
            raise FormatError("the checksum of a file reference names no algorithm")
        if algorithm not in _ALGORITHMS:
            return False
        digits, compute = _ALGORITHMS[algorithm]
        if len(digest) != digits or not _LOWERCASE_HEX.fullmatch(digest):
            raise FormatError(f"the {algorithm} checksum of a file reference is not {digits} lowercase hex digits")
        if compute(data) != digest:
            raise FormatError(f"the bytes do not match the {algorithm} checksum of their file reference")
        return True


def file_references(column: StructColumn) -> list[FileReference | None]:
    """Return a FILE column's values. A null value is None.

    Args:
        column: structs whose type is annotated FILE.
    """
    names = [field.name for field in column.type.fields]
    rows = zip(*(child.to_pylist() for child in column.children), strict=True)
    return [
        FileReference(**dict(zip(names, row, strict=True))) if is_valid else None
        for row, is_valid in zip(rows, column.validity_mask().tolist(), strict=True)
    ]


def file_column(references: Sequence[FileReference | None], fields: Collection[str] = tuple(FILE_FIELDS)) -> StructColumn:
    """Return a FILE column that can be written.

    Args:
        references: the values. None is a null value.
        fields: which fields the group has, by name.

    Raises:
        SchemaError: ``fields`` is empty, FILE does not have one of them, a reference sets a field that is missing in ``fields``,
            or a value has a wrong type.
    """
    from fastpq.arrays.nested_columns import StructColumn
    from fastpq.convert.numpy_input import column_from_numpy
    from fastpq.schema.nested_types import StructType

    check_file_fields(fields)
    missing_fields = [name for name in FILE_FIELDS if name not in fields]
    valid = np.array([reference is not None for reference in references], np.bool_)
    if any(getattr(reference, name) is not None for reference in references if reference is not None for name in missing_fields):
        raise SchemaError(f"file references have other fields than {', '.join(fields)}")
    children = {
        name: column_from_numpy([getattr(reference, name, None) for reference in references], type=type_, nullable=True)
        for name, type_ in FILE_FIELDS.items()
        if name in fields
    }
    nulls = len(valid) - int(np.count_nonzero(valid))
    struct_type = StructType(tuple(child.as_field(name) for name, child in children.items()), "FILE")
    return StructColumn(struct_type, tuple(children.values()), len(valid), pack_bitmap(valid) if nulls else None, nulls)
