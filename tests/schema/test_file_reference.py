"""FILE values and groups (LogicalTypes.md, "FILE")."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Collection
from typing import Any

import google_crc32c
import pytest

from fastpq import format as fmt
from fastpq.errors import FormatError, SchemaError
from fastpq.file_reference import ByteRange, FileReference, file_column
from fastpq.schema.elements import annotation_to_thrift, leaf_element
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.tree import OPTIONAL, REQUIRED, GroupNode
from fastpq.schema.types import Type
from fastpq.schema.variant_group import FILE_FIELDS, file_columns, is_file

URI = "s3://bucket/file.jpg"


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (FileReference(inline=b"x"), b"x"),
        (FileReference(inline=b"", uri=URI, offset=-1), b""),
        (FileReference(uri=URI), ByteRange(URI, 0, None)),
        (FileReference(uri=URI, size=5), ByteRange(URI, 0, 5)),
        (FileReference(uri=URI, offset=3, size=0), ByteRange(URI, 3, 0)),
        (FileReference(offset=3, size=5), ByteRange(None, 3, 5)),
        (FileReference(uri="", offset=0, size=5), ByteRange(None, 0, 5)),
    ],
)
def test_resolution(reference: FileReference, expected: Any) -> None:
    assert reference.resolve() == expected
    assert reference.is_self_reference == (isinstance(expected, ByteRange) and expected.uri is None)


@pytest.mark.parametrize(
    "reference",
    [
        FileReference(),
        FileReference(uri=""),
        FileReference(size=5),
        FileReference(offset=5),
        FileReference(uri=URI, offset=5),
        FileReference(uri=URI, offset=-1, size=5),
        FileReference(uri=URI, size=-1),
        FileReference(offset=1 << 62, size=1 << 62),
        FileReference(content_type="image/png", checksum="CRC32:00000000"),
    ],
)
def test_references_that_are_wrong(reference: FileReference) -> None:
    with pytest.raises(FormatError):
        reference.resolve()


DATA = b"some bytes"


@pytest.mark.parametrize(
    ("checksum", "compared"),
    [
        (None, False),
        ("", False),
        ("ETAG:whatever", False),
        ("BLAKE9:whatever", False),
        ("md5:whatever", False),
        (f"MD5:{hashlib.md5(DATA).hexdigest()}", True),
        (f"SHA-256:{hashlib.sha256(DATA).hexdigest()}", True),
        (f"CRC32:{zlib.crc32(DATA):08x}", True),
        (f"CRC32C:{google_crc32c.value(DATA):08x}", True),
    ],
)
def test_checksums(checksum: str | None, compared: bool) -> None:
    reference = FileReference(checksum=checksum)
    assert reference.verify(DATA) == compared
    if compared:
        with pytest.raises(FormatError, match="do not match"):
            reference.verify(DATA + b"x")


@pytest.mark.parametrize("checksum", ["nothing", "MD5:", "CRC32:0", "CRC32:0000000G", "CRC32:ABCDEF01", "CRC32:٠٠٠٠٠٠٠٠"])
def test_checksums_that_are_wrong(checksum: str) -> None:
    with pytest.raises(FormatError):
        FileReference(checksum=checksum).verify(DATA)


def file_elements(name: str, fields: Collection[str] = tuple(FILE_FIELDS), *, nullable: bool = True) -> list[fmt.SchemaElement]:
    """The schema elements of a FILE group, depth first."""
    group = fmt.SchemaElement(
        name=name,
        repetition_type=OPTIONAL if nullable else REQUIRED,
        num_children=len(fields),
        logicalType=annotation_to_thrift("FILE"),
    )
    return [group, *(leaf_element(field, type_, nullable=True) for field, type_ in FILE_FIELDS.items() if field in fields)]


def group_of(*elements: fmt.SchemaElement) -> GroupNode:
    [group] = ParquetSchema.from_thrift([fmt.SchemaElement(name="schema", num_children=1), *elements]).root.children
    assert isinstance(group, GroupNode)
    return group


def test_groups() -> None:
    elements = file_elements("f")
    group = group_of(*elements)
    assert is_file(group)
    assert list(file_columns(group)) == ["uri", "offset", "size", "content_type", "checksum", "inline"]
    assert "optional group f (FILE) {" in str(ParquetSchema.from_thrift([fmt.SchemaElement(name="s", num_children=1), *elements]))
    few = group_of(*file_elements("f", ["inline", "content_type"], nullable=False))
    assert list(file_columns(few)) == ["content_type", "inline"]
    assert not is_file(few.children[0])
    for wrong in ([], ["url"]):
        with pytest.raises(SchemaError):
            file_column([FileReference()], wrong)


@pytest.mark.parametrize(
    ("member", "value"),
    [("name", "modified"), ("name", "offset"), ("type", Type.INT64), ("repetition_type", 0), ("logicalType", None)],
)
def test_groups_that_are_wrong(member: str, value: Any) -> None:
    elements = file_elements("f")
    setattr(elements[1], member, value)
    if member == "logicalType":
        elements[1].converted_type = None
    with pytest.raises(FormatError):
        file_columns(group_of(*elements))
