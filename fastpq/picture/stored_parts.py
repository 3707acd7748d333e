"""The byte ranges of a file's parts: what the footer lists, and what stands around it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from fastpq import format as fmt
from fastpq.errors import FormatError
from fastpq.format.stored_footer import ENCRYPTED_MAGIC, MAGIC, TAIL_LENGTH
from fastpq.index.bloom_format import HEADER_READ
from fastpq.io.source import Bytes, Source
from fastpq.picture.byte_owners import ByteKind, ByteMap, Claim, byte_map
from fastpq.picture.chunk_facts import NO_KEY, ChunkFacts

# How many metadata copies are looked for, and the largest one in bytes.
MOST_COPIES, LONGEST_COPY = 5000, 1 << 16
LENGTH_BYTES = 4    # of the length before an encrypted module (Encryption.md)


def file_bytes(source: Source, facts: ChunkFacts) -> ByteMap:
    """Return the owner of each byte in an open file.

    Args:
        source: the file.
        facts: its column chunks.
    """
    claims = [*facts.claims, *_sized_filters(source, facts), *ends_of(source)]
    claims += _metadata_copies(source, facts, claims)
    return byte_map(claims, source.size, has_sealed_parts=facts.has_sealed_chunks)


def sealed_bytes(source: Source) -> ByteMap:
    """Return the owner of each byte in a file whose encrypted footer cannot be opened: only the footer's place is known."""
    return byte_map(ends_of(source), source.size, has_sealed_parts=True)


def ends_of(source: Source) -> list[Claim]:
    """Return the claims for the magic bytes, the footer and its length."""
    size, claims = source.size, []
    if size >= len(MAGIC) and bytes(source.read(0, len(MAGIC))) in (MAGIC, ENCRYPTED_MAGIC):
        claims.append(Claim(0, len(MAGIC), ByteKind.MAGIC))
    if size < TAIL_LENGTH:
        return claims
    tail = bytes(source.read(size - TAIL_LENGTH, TAIL_LENGTH))
    length = int.from_bytes(tail[:LENGTH_BYTES], "little")
    if tail[LENGTH_BYTES:] in (MAGIC, ENCRYPTED_MAGIC) and length <= size - TAIL_LENGTH:
        claims.append(Claim(size - TAIL_LENGTH - length, length, ByteKind.FOOTER))
        claims.append(Claim(size - TAIL_LENGTH, TAIL_LENGTH, ByteKind.MAGIC))
    return claims


def _metadata_copies(source: Source, facts: ChunkFacts, claims: list[Claim]) -> Iterator[Claim]:
    """Yield copied column metadata that stand behind their chunks' pages, where nothing else stands.

    ``ColumnChunk.file_offset`` leads to them. Many writers use it for something else, so that the bytes are decoded first.
    """
    sizes = facts.stored_sizes.ravel()
    starts = sorted(claim.start for claim in claims)
    places = []
    for each in facts.metadata_copies[:MOST_COPIES]:
        place = bisect_left(starts, each.start)
        length = starts[place] - each.start if place < len(starts) else 0
        if 0 < length <= LONGEST_COPY and each.start + length <= source.size:
            places.append((each, length))
    data = source.read_ranges([(each.start, length) for each, length in places])
    for (each, _), copy in zip(places, data, strict=True):
        size = _copy_size(copy, int(sizes[each.chunk]))
        if size is not None:
            yield each._replace(length=size)


def _copy_size(data: Bytes, stored_size: int) -> int | None:
    """Return a copy's length, or None if the bytes are not a copy. Some writers store a ColumnChunk, others a ColumnMetaData.

    Args:
        data: the bytes.
        stored_size: stored bytes of the chunk, which the copy must have too.
    """
    for struct in (fmt.ColumnChunk, fmt.ColumnMetaData):
        try:
            copy, size = fmt.decode(struct, data)
        except FormatError:
            continue
        metadata: Any = copy.meta_data if isinstance(copy, fmt.ColumnChunk) else copy
        if metadata is not None and metadata.total_compressed_size == stored_size:
            return int(size)
    return None


def _sized_filters(source: Source, facts: ChunkFacts) -> Iterator[Claim]:
    """Yield bloom filters with the lengths that their headers tell. Writers before format 2.10 do not store the length.

    A filter whose header cannot be read claims nothing, and its bytes are then a gap.
    """
    filters = [each for each in facts.unsized_filters if 0 < each.start < source.size - LENGTH_BYTES]
    heads = source.read_ranges([(each.start, min(HEADER_READ, source.size - each.start)) for each in filters])
    keys = facts.keys.ravel()
    for each, head in zip(filters, heads, strict=True):
        if keys[each.chunk] == NO_KEY:
            try:
                header, size = fmt.decode(fmt.BloomFilterHeader, head)
            except FormatError:
                continue
            yield each._replace(length=size + max(0, header.numBytes))
            continue
        size = LENGTH_BYTES + int.from_bytes(bytes(head[:LENGTH_BYTES]), "little")
        if each.start + size + LENGTH_BYTES <= source.size:
            bitset = bytes(source.read(each.start + size, LENGTH_BYTES))
            yield each._replace(length=size + LENGTH_BYTES + int.from_bytes(bitset, "little"))
