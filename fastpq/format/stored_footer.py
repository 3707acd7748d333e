"""The framing of a footer: magic bytes, length, and the place of the footer in a file (README.md, "File format")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fastpq.errors import FormatError, LimitError
from fastpq.options import DEFAULT_TAIL_READ

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
TAIL_LENGTH = 8             # bytes of footer length and magic
SHORTEST_FILE = 12          # bytes of magic, footer length and magic
HEAD_SHOWN = 512            # bytes at the beginning of a file that is none, to tell what it is
# Key-value metadata of a checkpoint, the footer of an unfinished file: number of row groups in the footer.
CHECKPOINT_KEY = "fastpq.checkpoint"
# Key-value metadata: the Arrow schema of the columns (fastpq.arrow.ipc_schema).
ARROW_KEY = "ARROW:schema"


class StoredFooter(NamedTuple):
    """A footer as stored.

    Attributes:
        data: its bytes, without length and magic.
        start: its offset in the file.
        is_encrypted: whether the file ends with the magic of encrypted footers.
    """

    data: memoryview
    start: int
    is_encrypted: bool


def stored_footer(file_size: int, read: Callable[[int, int], Any], largest: int, *, with_head: bool) -> StoredFooter:
    """Read the bytes of a footer: the end of the file first, the rest of a longer footer then.

    Args:
        file_size: bytes of the file.
        read: function (offset, length) -> a buffer of length bytes.
        largest: most bytes of the footer.
        with_head: compare the first bytes of the file too, as always before an encrypted footer.

    Raises:
        FormatError: no Parquet file, a length beyond the file, or one magic at the beginning and another at the end.
        LimitError: the footer is larger than the bound.
    """
    if file_size < SHORTEST_FILE:
        raise _no_file(file_size, bytes(read(0, file_size)), bytes(read(0, file_size))[-4:])
    fetched = min(file_size, DEFAULT_TAIL_READ)
    tail = memoryview(read(file_size - fetched, fetched))
    magic = bytes(tail[-4:])
    if magic not in (MAGIC, ENCRYPTED_MAGIC):
        raise _no_file(file_size, bytes(read(0, min(file_size, HEAD_SHOWN))), magic)
    length = int.from_bytes(tail[-TAIL_LENGTH:-4], "little")
    if length > largest:
        raise LimitError(f"a footer of {length} bytes is over max_footer_size", offset=file_size - TAIL_LENGTH)
    if length > file_size - SHORTEST_FILE:
        raise FormatError(f"a footer of {length} bytes in a file of {file_size}", offset=file_size - TAIL_LENGTH)
    start = file_size - TAIL_LENGTH - length
    data = tail[-TAIL_LENGTH - length : -TAIL_LENGTH] if length + TAIL_LENGTH <= fetched else memoryview(read(start, length))
    if with_head or magic == ENCRYPTED_MAGIC:
        head = bytes(tail[:4] if fetched == file_size else read(0, 4))
        if head != magic:
            raise FormatError(f"the file begins with {head!r} and ends with {magic!r}", offset=0)
    return StoredFooter(data, start, magic == ENCRYPTED_MAGIC)


def _no_file(size: int, head: bytes, end: bytes) -> FormatError:
    """The error for bytes without a footer, by their beginning and their last four bytes."""
    if size == 0:
        return FormatError("no Parquet file: it is empty")
    if head.startswith((MAGIC, ENCRYPTED_MAGIC)):
        return FormatError(
            f"no whole Parquet file: it begins as one and ends after {size} bytes without a footer, as if cut off; fetch or "
            "write it again, or read the rest with recover_table",
            offset=size,
        )
    if head.lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return FormatError(
            "no Parquet file: it is a page of HTML, as servers send for folders, errors and logins; give the URL of a file"
        )
    from fastpq.format.other_formats import looks_like
    if found := looks_like(head):
        return FormatError(f"no Parquet file: it looks like {found}")
    if size < SHORTEST_FILE:
        return FormatError(f"no Parquet file: {size} bytes, and the shortest has {SHORTEST_FILE}")
    return FormatError(f"no Parquet file: it ends with {end!r}", offset=size - 4)
