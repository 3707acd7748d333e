"""The last footer of a file that can be read, be it its own or a checkpoint of a writer that did not finish."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import FormatError, KeyAccessError, LimitError, ParquetError, TagVerificationError
from fastpq.io.source import Source
from fastpq.metadata.file_metadata import (
    ENCRYPTED_MAGIC,
    MAGIC,
    SHORTEST_FILE,
    TAIL_LENGTH,
    FileMetaData,
    read_finished,
    read_footer,
)
from fastpq.options import MIB, ReaderProperties
from fastpq.recovery.losses import RecoveryReport

SEARCHED = 4 * MIB
LENGTH_SIZE = 4
# All footers that are tried may have this many times the bytes of the file, and some more: what looks like one costs time, as
# much as so many bytes beside its own.
MOST_EFFORT = 8
FREE_EFFORT = MIB
EFFORT_A_FOOTER = 1024
# For each encrypted footer that is tried a key service may be asked.
MOST_ENCRYPTED = 64
_MAGICS = re.compile(rb"PAR[1E]")


class FoundFooter(NamedTuple):
    """A footer, and how it was found."""

    metadata: FileMetaData
    report: RecoveryReport


def find_footer(
    source: Source, properties: ReaderProperties, decryption_properties: FileDecryptionProperties | None
) -> FoundFooter:
    """Read the footer of a file; if it has none, the last checkpoint.

    Raises:
        FormatError, TagVerificationError: there is no footer; what is wrong at the end of the file.
        KeyAccessError, CryptoError: the footer cannot be opened, or is refused.
    """
    try:
        return FoundFooter(read_finished(source, properties, decryption_properties), RecoveryReport("footer"))
    except (FormatError, LimitError, TagVerificationError) as error:
        reason = error
    read = partial(read_footer, properties=properties, decryption_properties=decryption_properties)
    effort = MOST_EFFORT * source.size + FREE_EFFORT
    missing: KeyAccessError | None = None
    encrypted = 0
    for end, length, is_encrypted in _candidates(source):
        effort -= length + EFFORT_A_FOOTER
        encrypted += is_encrypted
        if effort < 0 or encrypted > MOST_ENCRYPTED:
            raise LimitError("too much of the file looks like a footer", path=source.name)
        try:
            metadata = read(end, source.read)
            fits = _fits(metadata, end - TAIL_LENGTH - length)
        except KeyAccessError as error:
            missing = error
            continue
        except ParquetError:
            continue        # no footer, or none that is accepted
        if fits:
            unread = ((end, source.size - end),) if end < source.size else ()
            return FoundFooter(metadata, RecoveryReport("checkpoint", unread=unread, reason=str(reason)))
    raise missing or reason


def _candidates(source: Source) -> Iterator[tuple[int, int, bool]]:
    """Where footers may end, from the end of the file backwards, their lengths, and whether they are encrypted."""
    stop = source.size
    while stop > SHORTEST_FILE:
        start = max(0, stop - SEARCHED)
        data = bytes(source.read(start, stop - start))
        for found in reversed([match.start() for match in _MAGICS.finditer(data, LENGTH_SIZE)]):
            end = start + found + len(MAGIC)
            length = int.from_bytes(data[found - LENGTH_SIZE : found], "little")
            if 0 < length <= end - SHORTEST_FILE:
                yield end, length, data[found : found + len(MAGIC)] == ENCRYPTED_MAGIC
        stop = start + LENGTH_SIZE + len(MAGIC) - 1 if start else 0


def _fits(metadata: FileMetaData, start: int) -> bool:
    """Whether a footer is that of the bytes before it: what it tells of ends where it begins.

    A footer within a value, such as one of a Parquet file in a column of another, tells of bytes that begin with that value.
    """
    metadata.schema  # noqa: B018 - it is parsed when it is touched
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
