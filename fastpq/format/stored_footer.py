"""The footer's place in a file, and the length and magic bytes that follow it (parquet-format, README.md, "File format")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fastpq.errors import FormatError, LimitError
from fastpq.options import DEFAULT_TAIL_READ

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
TAIL_LENGTH = 8             # bytes: the footer length and the magic
SHORTEST_FILE = 12          # bytes: the magic, the footer length and the magic again
HEAD_SHOWN = 512            # bytes from which other_formats guesses what a file is
RECOVERY_ADVICE = ", or read what is left with recover_table"       # recover_table's own errors leave it out
# The key that marks a checkpoint (an unfinished file's footer) in its key-value metadata. The value is the row group count.
CHECKPOINT_KEY = "fastpq.checkpoint"
# The key that stores the columns' Arrow schema in the key-value metadata (fastpq.arrow.ipc_schema).
ARROW_KEY = "ARROW:schema"


class StoredFooter(NamedTuple):
    """A footer as it is stored.

    Attributes:
        data: the footer's bytes, without the length and the magic.
        start: offset of the first byte in the file.
        is_encrypted: whether the file ends with the magic that marks an encrypted footer.
    """

    data: memoryview
    start: int
    is_encrypted: bool


def stored_footer(file_size: int, read: Callable[[int, int], Any], largest: int, *, with_head: bool) -> StoredFooter:
    """Read a file's footer without decoding it.

    The last DEFAULT_TAIL_READ bytes are read first. A longer footer needs a second read.

    Args:
        file_size: file size in bytes.
        read: function (offset, length) -> a buffer with length bytes.
        largest: the footer's size limit in bytes.
        with_head: whether to compare the file's first bytes with the magic too. If the footer is encrypted, they are always
            compared.

    Raises:
        FormatError: this is not a Parquet file, the footer is longer than the file, or the file begins with another magic than
            it ends with.
        LimitError: the footer is larger than the limit.
    """
    if file_size < SHORTEST_FILE:
        raise _not_parquet(file_size, bytes(read(0, file_size)), bytes(read(0, file_size))[-4:])
    tail_size = min(file_size, DEFAULT_TAIL_READ)
    tail = memoryview(read(file_size - tail_size, tail_size))
    magic = bytes(tail[-4:])
    if magic not in (MAGIC, ENCRYPTED_MAGIC):
        raise _not_parquet(file_size, bytes(read(0, min(file_size, HEAD_SHOWN))), magic)
    length = int.from_bytes(tail[-TAIL_LENGTH:-4], "little")
    if length > largest:
        raise LimitError(f"the footer has {length} bytes, which is over max_footer_size", offset=file_size - TAIL_LENGTH)
    if length > file_size - SHORTEST_FILE:
        raise FormatError(f"the footer has {length} bytes, and the file {file_size}", offset=file_size - TAIL_LENGTH)
    start = file_size - TAIL_LENGTH - length
    data = tail[-TAIL_LENGTH - length : -TAIL_LENGTH] if length + TAIL_LENGTH <= tail_size else memoryview(read(start, length))
    if with_head or magic == ENCRYPTED_MAGIC:
        head = bytes(tail[:4] if tail_size == file_size else read(0, 4))
        if head != magic:
            raise FormatError(f"the file begins with {head!r} and ends with {magic!r}", offset=0)
    return StoredFooter(data, start, magic == ENCRYPTED_MAGIC)


def _not_parquet(size: int, head: bytes, end: bytes) -> FormatError:
    """Return the error for a file without a footer.

    Args:
        size: file size in bytes.
        head: the first bytes.
        end: the last four bytes.
    """
    if size == 0:
        return FormatError("this is not a Parquet file: it is empty")
    if head.startswith((MAGIC, ENCRYPTED_MAGIC)):
        return FormatError(
            f"this Parquet file is incomplete: it ends after {size} bytes, and has no footer there. Fetch or write it "
            f"again{RECOVERY_ADVICE}",
            offset=size,
        )
    if head.lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return FormatError(
            "this is not a Parquet file: it is an HTML page. Servers send such pages for folders, errors and logins: give the "
            "URL of a file"
        )
    from fastpq.format.other_formats import looks_like
    if kind := looks_like(head):
        return FormatError(f"this is not a Parquet file: it looks like {kind}")
    if size < SHORTEST_FILE:
        return FormatError(f"this is not a Parquet file: it has {size} bytes, and the shortest has {SHORTEST_FILE}")
    return FormatError(f"this is not a Parquet file: it ends with {end!r}", offset=size - 4)
