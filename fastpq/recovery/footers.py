"""Search for the last readable footer: a file's own footer, or a checkpoint of an unfinished file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import FormatError, KeyAccessError, LimitError, ParquetError, TagVerificationError
from fastpq.format.stored_footer import ENCRYPTED_MAGIC, MAGIC, SHORTEST_FILE, TAIL_LENGTH
from fastpq.io.source import Source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.metadata.footer import read_finished, read_footer
from fastpq.options import MIB, ReaderProperties
from fastpq.recovery.losses import RecoveryReport

SEARCHED = 4 * MIB      # bytes read at a time in the search for magic bytes
LENGTH_SIZE = 4         # bytes of a footer's length, before the magic bytes
# Bound on the search against files full of false footers: tried footers may total MOST_EFFORT times the file's bytes plus
# FREE_EFFORT bytes. Each try counts as the footer's length plus EFFORT_A_FOOTER bytes, for the fixed cost of a try.
MOST_EFFORT = 8
FREE_EFFORT = MIB
EFFORT_A_FOOTER = 1024
# Most encrypted footers tried: each may cost a request to a key service.
MOST_ENCRYPTED = 64
_MAGICS = re.compile(rb"PAR[1E]")


class FoundFooter(NamedTuple):
    """A footer, and the report of its search."""

    metadata: FileMetaData
    report: RecoveryReport


def find_footer(
    source: Source, properties: ReaderProperties, decryption_properties: FileDecryptionProperties | None
) -> FoundFooter:
    """Read the footer of a file; without a readable footer, the last checkpoint.

    Raises:
        FormatError, TagVerificationError: neither footer nor checkpoint; the message describes the end of the file.
        KeyAccessError, CryptoError: no key for the footer, or a policy refuses the footer.
        LimitError: too many bytes of the file resemble footers.
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
            continue        # not a footer, or a refused footer
        if fits:
            unread = ((end, source.size - end),) if end < source.size else ()
            return FoundFooter(metadata, RecoveryReport("checkpoint", unread=unread, reason=str(reason)))
    raise missing or reason


def _candidates(source: Source) -> Iterator[tuple[int, int, bool]]:
    """End, length and encryption of possible footers, found by their magic bytes from the end of the file backwards."""
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
    """Whether a footer describes the bytes right before it: the last described byte must lie where the footer starts.

    The footer of a Parquet file stored as a value of another file's column fails: its offsets count from the value's start.
    """
    metadata.schema  # noqa: B018 - the access parses the schema, and raises for a damaged one
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
