"""Pages that are encoded again, with indexes into their chunk's dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fastpq import format as fmt
from fastpq.codecs.catalogue import check_claimed_size, codec_for_read
from fastpq.column.page_walker import WalkedPage
from fastpq.errors import FormatError
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.rewriting.stored_entries import Codes, Mask, decode_runs, encode_codes, split_entries

DICTIONARY_ENCODINGS = (fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY)


class EncodedPage(NamedTuple):
    """A page that is encoded again, in memory.

    Attributes:
        page: as it was encoded.
        header: its header, or None if page and body are as they were encoded.
        body: its stored body, not encrypted.
        num_rows: how many rows it has.
        entry, byte_array_size: what indexes say about it.
    """

    page: WalkedPage
    header: fmt.PageHeader | None
    body: memoryview
    num_rows: int
    entry: Any
    byte_array_size: int | None


def inflated(plan: ChunkPlan, header: fmt.PageHeader, body: memoryview, levels_size: int) -> memoryview:
    """Return a page's body, decompressed."""
    version_2 = header.data_page_header_v2
    is_compressed = plan.codec != fmt.CompressionCodec.UNCOMPRESSED
    if version_2 is not None:
        is_compressed = is_compressed and (version_2.is_compressed is not False or plan.v2_is_compressed)
    size = header.uncompressed_page_size
    if not is_compressed:
        return body
    check_claimed_size(plan.codec, len(body) - levels_size, size - levels_size)
    plain = bytearray(size)
    plain[:levels_size] = body[:levels_size]
    if size > levels_size:
        codec_for_read(plan.codec).decompress_into(body[levels_size:], memoryview(plain)[levels_size:])
    return memoryview(plain)


def parts_of_page(plan: ChunkPlan, page: WalkedPage, body: memoryview) -> tuple[memoryview, int, int]:
    """Return a data page's body without compression, where its values begin, and how many there are.

    Args:
        plan: the chunk's plan.
        page: the page.
        body: its stored body, not encrypted.
    """
    column = plan.column
    header = fmt.decode(fmt.PageHeader, page.header)[0]
    version_2 = header.data_page_header_v2
    if version_2 is not None:
        return inflated(plan, header, body, page.levels_size), page.levels_size, page.num_values - version_2.num_nulls
    plain = inflated(plan, header, body, 0)
    data_header = header.data_page_header
    assert data_header is not None
    if data_header.definition_level_encoding != fmt.Encoding.RLE and column.max_definition_level:
        raise FormatError("levels that are not run-length encoded", page=page.ordinal, offset=page.start)
    position, num_values = 0, page.num_values
    for level in (column.max_repetition_level, column.max_definition_level):
        if not level:
            continue
        size = int.from_bytes(plain[position : position + 4], "little")
        levels = plain[position + 4 : position + 4 + size]
        position += 4 + size
    if column.max_definition_level:
        definition = decode_runs(levels, column.max_definition_level.bit_length(), page.num_values)
        num_values = int((definition == column.max_definition_level).sum())
    return plain, position, num_values


def translated(
    plan: ChunkPlan, own_pages: list[EncodedPage], places: Mapping[bytes, int], is_used: Mask, width: int
) -> list[EncodedPage] | None:
    """Return pages, the first of which is a dictionary page, as pages with indexes into another dictionary.

    Args:
        plan: the chunk's plan.
        own_pages: the pages.
        places: the other dictionary's indexes, by entry.
        is_used: which entries it uses. More are marked here.
        width: an entry's size in bytes, or 0 for BYTE_ARRAY.
    """
    if not own_pages or not own_pages[0].page.is_dictionary:
        return None
    first, *data_pages = own_pages
    header = fmt.decode(fmt.PageHeader, first.page.header)[0]
    entries = split_entries(bytes(inflated(plan, header, first.body, 0)), first.page.num_values, width)
    if any(entry not in places for entry in entries) or any(
        each.page.encoding not in DICTIONARY_ENCODINGS for each in data_pages
    ):
        return None
    new_codes = np.array([places[entry] for entry in entries], np.uint32)
    is_used[new_codes] = True
    bit_width = max(1, (len(is_used) - 1).bit_length())
    return [_with_codes(plan, each, new_codes, bit_width) for each in data_pages]


def _with_codes(plan: ChunkPlan, encoded_page: EncodedPage, new_codes: Codes, bit_width: int) -> EncodedPage:
    """Return a page with other indexes. The new index of each old one is given."""
    page, codec = encoded_page.page, codec_for_read(plan.codec)
    plain, position, num_values = parts_of_page(plan, page, encoded_page.body)
    if not num_values:
        return encoded_page
    codes = decode_runs(plain[position + 1 :], plain[position], num_values)
    values = encode_codes(new_codes[codes], bit_width)
    header = fmt.decode(fmt.PageHeader, page.header)[0]
    header.uncompressed_page_size = position + len(values)
    version_2 = header.data_page_header_v2
    levels, rest = (plain[:position], values) if version_2 is not None else (b"", bytes(plain[:position]) + values)
    is_compressed = codec.number != fmt.CompressionCodec.UNCOMPRESSED
    compressed = codec.compress(rest) if is_compressed else rest
    if version_2 is not None:
        version_2.is_compressed = is_compressed
    return encoded_page._replace(header=header, body=memoryview(bytes(levels) + bytes(compressed)))
