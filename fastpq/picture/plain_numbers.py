"""The plain numbers above a picture: row groups, pages, indexes, encodings, gaps, and what a read over a network takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastpq.common.display import counted, of_bytes
from fastpq.options import DEFAULT_TAIL_READ, ReaderProperties
from fastpq.picture.byte_owners import ByteKind, ByteMap
from fastpq.picture.chunk_facts import UNKNOWN_PAGES, ChunkFacts, EncodingClass
from fastpq.schema.parquet_schema import ColumnDescriptor

MOST_ENCODINGS = 4
# Smallest gap, in bytes, that deserves a look. Alignment and padding are smaller.
LARGE_GAP = 1024
NETWORK_NAME = "open and read one column"


class PlainNumber(NamedTuple):
    """One line above the picture.

    Attributes:
        name: what is counted.
        text: the numbers.
        is_notable: whether it deserves a look.
    """

    name: str
    text: str
    is_notable: bool = False


def plain_numbers(
    owners: ByteMap,
    facts: ChunkFacts,
    columns: list[ColumnDescriptor],
    properties: ReaderProperties,
    num_chunks: int | None = None,
) -> list[PlainNumber]:
    """Return the numbers of a file.

    Args:
        owners: the owner of each byte.
        facts: the column chunks.
        columns: the leaf columns.
        properties: options that decide which byte ranges are read together.
        num_chunks: how many chunks there are. None if each row group has each column.
    """
    chunks = facts.stored_sizes.size if num_chunks is None else num_chunks
    num_columns, num_rows = counted(len(columns), "column"), counted(int(facts.rows.sum()), "row")
    numbers = [
        PlainNumber("file", f"{of_bytes(owners.size)}, {num_rows}, {num_columns}, {counted(len(facts.rows), 'row group')}"),
        PlainNumber("rows in a row group", spread_of([f"{count:,}" for count in quartiles(facts.rows)])),
        PlainNumber("bytes in a page", _page_sizes(facts)),
    ]
    for name, flags in (
        ("chunks with statistics", facts.has_statistics),
        ("chunks with a page index", facts.has_column_index & facts.has_offset_index),
        ("chunks with a bloom filter", facts.has_bloom_filter),
    ):
        numbers.append(PlainNumber(name, f"{int(flags.sum()):,} of {chunks:,}"))
    numbers.append(PlainNumber("pages by encoding", _encodings(facts)))
    with_dictionary = int(np.isin(facts.encodings, (EncodingClass.DICTIONARY, EncodingClass.GIVEN_UP)).sum())
    given_up = int((facts.encodings == EncodingClass.GIVEN_UP).sum())
    numbers.append(PlainNumber("dictionaries given up", f"{given_up:,} of {with_dictionary:,}", given_up > 0))
    numbers += _bytes_that_buy_nothing(owners, facts)
    numbers.append(PlainNumber(NETWORK_NAME, _network(owners, facts, columns, properties)))
    unreadable = int((~facts.is_readable).sum())
    if unreadable:
        reason = "without a key" if facts.has_sealed_chunks else "broken"
        numbers.append(PlainNumber("unreadable chunks", f"{unreadable:,} of {chunks:,}: {reason}", True))
    if facts.external_chunks:
        numbers.append(PlainNumber("chunks in other files", f"{facts.external_chunks:,} of {chunks:,}"))
    if owners.overlap or owners.outside:
        text = f"{of_bytes(owners.overlap)} claimed twice, {of_bytes(owners.outside)} outside of the file"
        numbers.append(PlainNumber("contradictions", text, True))
    return numbers


def quartiles(values: np.ndarray) -> list[int]:
    """Return the smallest, the median and the largest value, or nothing."""
    return [int(values.min()), int(np.median(values)), int(values.max())] if values.size else []


def spread_of(texts: list[str]) -> str:
    """Return the texts of a smallest, a median and a largest number as one text."""
    if not texts:
        return "none"
    smallest, median, largest = texts
    return smallest if smallest == largest else f"{smallest} to {largest}, median {median}"


def _page_sizes(facts: ChunkFacts) -> str:
    """Return the mean page size of the chunks: smallest, median and largest. Only chunks that tell their page counts count."""
    has_pages = facts.pages > 0
    if not has_pages.any():
        return "unknown: the footer has no page counts" if (facts.pages == UNKNOWN_PAGES).any() else "none"
    means = facts.stored_sizes[has_pages] // facts.pages[has_pages]
    return f"{spread_of([of_bytes(size) for size in quartiles(means)])}; {counted(int(facts.pages[has_pages].sum()), 'page')}"


def _encodings(facts: ChunkFacts) -> str:
    entries = facts.pages_by_encoding.most_common()
    texts = [f"{name.lower()} {count:,}" for name, count in entries[:MOST_ENCODINGS]]
    if len(entries) > MOST_ENCODINGS:
        texts.append(f"others {sum(count for _, count in entries[MOST_ENCODINGS:]):,}")
    return ", ".join(texts) or "unknown: the footer has no page counts"


def _bytes_that_buy_nothing(owners: ByteMap, facts: ChunkFacts) -> list[PlainNumber]:
    """Return gaps, and parts that repeat others: column indexes over a single page, and copies of column metadata."""
    is_gap = owners.kinds == ByteKind.GAP
    gaps = int(owners.lengths[is_gap].sum())
    text = f"{of_bytes(gaps)} in {counted(int(is_gap.sum()), 'gap')}" if gaps else "none"
    numbers = [PlainNumber("gaps", text, gaps > LARGE_GAP)]
    repeats = (facts.pages == 1) & facts.has_statistics & facts.has_column_index
    is_index = owners.kinds == ByteKind.COLUMN_INDEX
    index_size = int(owners.lengths[is_index][repeats.ravel()[owners.chunks[is_index]]].sum())
    copy_size = int(owners.lengths[owners.kinds == ByteKind.METADATA_COPY].sum())
    texts = [f"{of_bytes(index_size)} in column indexes that repeat the statistics"] if index_size else []
    texts += [f"{of_bytes(copy_size)} in copies of column metadata"] if copy_size else []
    if texts:
        numbers.append(PlainNumber("bytes that buy nothing", "; ".join(texts)))
    sealed_size = int(owners.lengths[owners.kinds == ByteKind.SEALED].sum())
    if sealed_size:
        numbers.append(PlainNumber("sealed", f"{of_bytes(sealed_size)} that nothing tells without a key", True))
    return numbers


def _network(owners: ByteMap, facts: ChunkFacts, columns: list[ColumnDescriptor], properties: ReaderProperties) -> str:
    """Return the requests and bytes to open the file and read the column of median size, over a network.

    Each byte of the file counts once, though the last request may repeat bytes that came with the footer.
    """
    footer = int(owners.lengths[owners.kinds == ByteKind.FOOTER].sum())
    tail = min(owners.size, DEFAULT_TAIL_READ)
    requests, size = 1, tail
    if footer + 8 > tail:
        requests, size = 2, min(owners.size, footer + 8)
    if not columns or not facts.stored_sizes.any():
        return f"{counted(requests, 'request')}, {of_bytes(size)}, to open; no column has bytes"
    sizes = facts.stored_sizes.sum(axis=0)
    column = int(np.argsort(sizes, kind="stable")[len(sizes) // 2])
    is_own = np.isin(owners.kinds, (ByteKind.DATA, ByteKind.DICTIONARY)) & (owners.chunks % max(len(columns), 1) == column)
    starts, ends = owners.starts[is_own], (owners.starts + owners.lengths)[is_own]
    if not len(starts):
        return f"{counted(requests, 'request')}, {of_bytes(size)}, to open"
    opened = owners.size - size      # the bytes from here on came with the footer
    if starts[0] < opened:
        has_gap = starts[1:] - ends[:-1] > properties.coalesce_gap
        requests += 1 + int(has_gap.sum())
        starts, ends = np.minimum(starts, opened), np.minimum(ends, opened)
        size += int((ends - starts).sum()) + int((starts[1:] - ends[:-1])[~has_gap].sum())
    return f"{counted(requests, 'request')}, {of_bytes(size)} (the column of median size, {columns[column].name})"
