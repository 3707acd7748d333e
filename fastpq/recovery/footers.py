"""Search for the last readable footer: the file's own footer, or an unfinished file's checkpoint."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import FormatError, KeyAccessError, LimitError, ParquetError, SchemaError, TagVerificationError
from fastpq.format.stored_footer import ENCRYPTED_MAGIC, MAGIC, RECOVERY_ADVICE, SHORTEST_FILE, TAIL_LENGTH
from fastpq.io.appended_file import LockedFile
from fastpq.io.location import locate
from fastpq.io.source import Source
from fastpq.io.source_opening import open_source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.metadata.footer import read_finished, read_footer
from fastpq.options import MIB, ReaderProperties
from fastpq.recovery.losses import RecoveryReport

SEARCH_SIZE = 4 * MIB   # bytes that are read at a time in the search for magic bytes
LENGTH_SIZE = 4         # size of the footer length in bytes. It stands in front of the magic bytes
# These limit the search in a file that is full of false footers. All tries together may cost MOST_EFFORT times the file's size
# plus FREE_EFFORT bytes. One try costs the footer's length plus EFFORT_A_FOOTER bytes, which stand for its fixed cost.
MOST_EFFORT = 8
FREE_EFFORT = MIB
EFFORT_A_FOOTER = 1024
# Largest number of encrypted footers that are tried. Each may cost a request to a key service.
MOST_ENCRYPTED = 64
_MAGICS = re.compile(rb"PAR[1E]")


class FooterWithReport(NamedTuple):
    """A footer, and a report that tells how it was found."""

    metadata: FileMetaData
    report: RecoveryReport


def find_footer(
    source: Source, properties: ReaderProperties, decryption_properties: FileDecryptionProperties | None
) -> FooterWithReport:
    """Read a file's footer. If it is not readable, read the last checkpoint.

    Raises:
        FormatError, TagVerificationError: there is neither a footer nor a checkpoint. The message describes the file's end.
        KeyAccessError, CryptoError: there is no key for the footer, or a policy refuses it.
        LimitError: too many bytes in the file look like footers.
    """
    if properties.chunk_order is None:      # a missing option is not damage
        properties = replace(properties, chunk_order="path")
    try:
        return FooterWithReport(read_finished(source, properties, decryption_properties), RecoveryReport("footer"))
    except (FormatError, LimitError, TagVerificationError) as error:
        reason = error
        reason.message = reason.message.removesuffix(RECOVERY_ADVICE)
    read = partial(read_footer, properties=properties, decryption_properties=decryption_properties, name=source.name)
    effort = MOST_EFFORT * source.size + FREE_EFFORT
    key_error: KeyAccessError | None = None
    encrypted_count = 0
    for end, length, is_encrypted in _candidates(source):
        effort -= length + EFFORT_A_FOOTER
        encrypted_count += is_encrypted
        if effort < 0 or encrypted_count > MOST_ENCRYPTED:
            raise LimitError("too much of the file looks like a footer", path=source.name)
        try:
            metadata = read(end, source.read)
            fits = _fits(metadata, end - TAIL_LENGTH - length)
        except KeyAccessError as error:
            key_error = error
            continue
        except ParquetError:
            continue        # not a footer, or a footer that is refused
        if fits:
            unread = ((end, source.size - end),) if end < source.size else ()
            return FooterWithReport(metadata, RecoveryReport("checkpoint", unread=unread, reason=str(reason)))
    raise key_error or reason


def cut_back_file(
    where: Any, properties: ReaderProperties, decryption_properties: FileDecryptionProperties | None
) -> None:
    """Cut a local file back to its last complete footer. A file that ends with its footer does not change.

    A checkpoint is not a complete footer, because the writer of a new file wanted to write more.

    Raises:
        BlockingIOError: an append to the file is at work.
        FormatError: there is no complete footer.
        SchemaError: this is not a local path.
    """
    path = None if isinstance(where, bytes | bytearray | memoryview) else locate(where)
    if not isinstance(path, str):
        raise SchemaError("cut_back=True cuts a local file that has a path")
    old = LockedFile(path, writable=True)
    try:
        with open_source(old.path) as source:
            metadata, report = find_footer(source, properties, decryption_properties)
        if report.found_by == "footer":
            return
        if metadata.is_checkpoint:
            raise FormatError("the file has no complete footer to which it could be cut back: it is a new file, unfinished")
        os.ftruncate(old.descriptor, report.unread[0][0])
        os.fsync(old.descriptor)
    finally:
        old.close()


def _candidates(source: Source) -> Iterator[tuple[int, int, bool]]:
    """Yield each possible footer's end and length, and whether it is encrypted. The search runs backwards from the file's end."""
    stop = source.size
    while stop > SHORTEST_FILE:
        start = max(0, stop - SEARCH_SIZE)
        data = bytes(source.read(start, stop - start))
        for position in reversed([match.start() for match in _MAGICS.finditer(data, LENGTH_SIZE)]):
            end = start + position + len(MAGIC)
            length = int.from_bytes(data[position - LENGTH_SIZE : position], "little")
            if 0 < length <= end - SHORTEST_FILE:
                yield end, length, data[position : position + len(MAGIC)] == ENCRYPTED_MAGIC
        stop = start + LENGTH_SIZE + len(MAGIC) - 1 if start else 0


def _fits(metadata: FileMetaData, start: int) -> bool:
    """Return whether a footer describes the bytes in front of it: the last byte it describes must be right before its start.

    A Parquet file can be stored as a value in another file's column. Its footer does not fit, because its offsets count from the
    value's start.
    """
    metadata.schema  # noqa: B018 - the access parses the schema, and raises if it is damaged
    ends = []
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        for column in range(group.num_columns):
            chunk = group.column(column)
            entry = chunk.chunk
            if chunk.file_path:
                continue
            for offset, length in (
                (entry.column_index_offset, entry.column_index_length),
                (entry.offset_index_offset, entry.offset_index_length),
            ):
                if offset is not None and length is not None:
                    ends.append(offset + length)
            try:
                ends.append(sum(chunk.byte_range))
                bloom = chunk.metadata.bloom_filter_offset, chunk.metadata.bloom_filter_length
            except KeyAccessError:
                continue
            if bloom[0] is not None and bloom[1] is not None:
                ends.append(bloom[0] + bloom[1])
    return not ends or max(ends) == start
