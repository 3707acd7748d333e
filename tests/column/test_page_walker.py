"""The walk over page headers, against pages serialized with the tables of parquet.thrift."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.column.page_walker import PageWalker
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.evp import AesKey
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.errors import FormatError, LimitError, TagVerificationError
from fastpq.io.origin import MemoryOrigin, StoredBytes
from fastpq.options import ReaderProperties

Page = tuple[fmt.PageHeader, bytes]

DEFAULTS = ReaderProperties()
PLAIN, RLE = fmt.Encoding.PLAIN, fmt.Encoding.RLE
FUTURE_PAGE = 9
KEY = AesKey(bytes(range(16)))


def page(kind: int, body: bytes, *, crc: int | None = None, size: int | None = None, **header: Any) -> Page:
    size = len(body) if size is None else size
    return fmt.PageHeader(type=kind, uncompressed_page_size=len(body), compressed_page_size=size, crc=crc, **header), body


def dictionary(count: int, body: bytes, **sizes: Any) -> Page:
    header = fmt.DictionaryPageHeader(num_values=count, encoding=PLAIN)
    return page(fmt.PageType.DICTIONARY_PAGE, body, dictionary_page_header=header, **sizes)


def data(count: int, body: bytes, **sizes: Any) -> Page:
    header = fmt.DataPageHeader(
        num_values=count, encoding=PLAIN, definition_level_encoding=RLE, repetition_level_encoding=RLE
    )
    return page(fmt.PageType.DATA_PAGE, body, data_page_header=header, **sizes)


def data_v2(count: int, rows: int, levels: tuple[int, int], body: bytes) -> Page:
    repetition, definition = levels
    header = fmt.DataPageHeaderV2(
        num_values=count,
        num_nulls=0,
        num_rows=rows,
        encoding=PLAIN,
        repetition_levels_byte_length=repetition,
        definition_levels_byte_length=definition,
    )
    return page(fmt.PageType.DATA_PAGE_V2, body, data_page_header_v2=header)


def chunk_of(pages: list[Page]) -> tuple[bytes, list[int]]:
    """The bytes of plaintext pages, and the positions of the headers."""
    stored, starts = b"", []
    for header, body in pages:
        starts.append(len(stored))
        stored += fmt.encode(header) + body
    return stored, starts


PAGES = [
    dictionary(3, b"abc"),
    page(fmt.PageType.INDEX_PAGE, b"index", index_page_header=fmt.IndexPageHeader()),
    data(5, b"first"),
    page(FUTURE_PAGE, b""),
    data_v2(7, 2, (1, 2), b"second"),
]


def test_every_page_is_placed() -> None:
    stored, starts = chunk_of(PAGES)
    walker = PageWalker(stored, ModuleCipher(), True, DEFAULTS)
    for number, ((header, body), start) in enumerate(zip(PAGES, starts, strict=True)):
        assert walker.position == start
        found = walker.next_page()
        assert found is not None
        assert (found.start, found.type, found.uncompressed_size) == (start, header.type, len(body))
        assert found.header == fmt.encode(header)
        assert (found.body.tobytes(), found.body_start) == (body, start + len(found.header))
        assert found.size == len(found.header) + len(body)
        assert found.ordinal == (number > 2)
        assert (found.is_dictionary, found.is_data) == (number == 0, number in (2, 4))
        inner = header.dictionary_page_header or header.data_page_header or header.data_page_header_v2
        assert inner is None or (found.num_values, found.encoding) == (inner.num_values, inner.encoding)
        assert (found.levels_size, found.num_rows) == ((3, 2) if number == 4 else (0, None))
    assert walker.next_page() is None
    assert walker.position == len(stored)


def test_values_are_counted() -> None:
    stored, starts = chunk_of(PAGES)
    walkers = [PageWalker(stored, ModuleCipher(), True, DEFAULTS) for _ in range(4)]
    assert walkers[0].count_values() == 12
    walkers[1].require_values(5)
    assert walkers[1].position == starts[3]
    with pytest.raises(FormatError, match="the pages hold 12 of the 13 values"):
        walkers[2].require_values(13)
    located, stopped = walkers[3].locate_pages(12)
    sizes = np.diff([*starts, len(stored)]).tolist()
    assert located.tolist() == [[starts[2], sizes[2], 5, -1], [starts[4], sizes[4], 7, 2]]
    assert stopped is None


def test_a_broken_header_ends_the_walk() -> None:
    stored, starts = chunk_of(PAGES)
    broken = bytearray(stored)
    broken[starts[4]] = 0xFF
    located, stopped = PageWalker(broken, ModuleCipher(), True, DEFAULTS).locate_pages(12)
    assert located[:, 0].tolist() == [starts[2]]
    assert isinstance(stopped, FormatError)
    assert (stopped.message, stopped.context["offset"]) == ("no valid page header", starts[4])
    cut = PageWalker(stored[: starts[4] + 2], ModuleCipher(), True, DEFAULTS)
    with pytest.raises(FormatError, match=rf"header is cut off \[page 1, offset {starts[4]}\]"):
        cut.count_values()


@pytest.mark.parametrize("field", ["compressed_page_size", "uncompressed_page_size"])
def test_negative_sizes_are_refused(field: str) -> None:
    header, body = data(5, b"first")
    setattr(header, field, -1)
    with pytest.raises(FormatError, match=r"no valid page header \[page 0, offset 0\]"):
        PageWalker(fmt.encode(header) + body, ModuleCipher(), False, DEFAULTS).next_page()


def test_a_body_longer_than_the_chunk_is_refused() -> None:
    first = data(5, b"first")
    stored, _ = chunk_of([first, data(5, b"second", size=7)])
    start = len(chunk_of([first])[0])
    walker = PageWalker(stored, ModuleCipher(), False, DEFAULTS)
    assert walker.next_page() is not None
    with pytest.raises(FormatError, match=rf"a page of 7 bytes in a chunk that has 6 left \[page 1, offset {start}\]"):
        walker.next_page()


def test_bounds_name_their_property() -> None:
    stored, _ = chunk_of([dictionary(3, b"abc"), data(5, b"first")])
    for bounds, name in (
        (replace(DEFAULTS, max_dictionary_size=2), "max_dictionary_size"),
        (replace(DEFAULTS, max_page_size=4), "max_page_size"),
    ):
        with pytest.raises(LimitError, match=f"is over {name}"):
            PageWalker(stored, ModuleCipher(), True, bounds).count_values()
    assert PageWalker(stored, ModuleCipher(), True, replace(DEFAULTS, max_dictionary_size=3)).count_values() == 5


def test_checksums() -> None:
    for crc, sound in ((crc32(b"first"), True), (crc32(b"other"), False), (None, True)):
        signed = crc if crc is None else crc - (crc >> 31 << 32)
        stored, _ = chunk_of([data(5, b"first", crc=signed)])
        for properties in (DEFAULTS, replace(DEFAULTS, verify_checksums=False)):
            walker = PageWalker(stored, ModuleCipher(), False, properties)
            found = walker.next_page()
            assert found is not None
            if sound or not properties.verify_checksums:
                walker.verify_checksum(found)
                continue
            with pytest.raises(FormatError, match=f"CRC-32 does not match .*offset {found.start}"):
                walker.verify_checksum(found)


def test_a_directory_gives_ordinals_and_is_checked() -> None:
    stored, starts = chunk_of([dictionary(3, b"abc"), data(5, b"first"), data(6, b"third")])
    sizes = np.diff([*starts, len(stored)]).tolist()
    directory = np.array([[4, sizes[1], 5, -1], [9, sizes[2], -1, -1]], np.int64)
    walker = PageWalker(stored, ModuleCipher(), True, DEFAULTS, directory)
    ordinals = [found.ordinal for found in iter(walker.next_page, None)]
    assert ordinals == [0, 4, 9]
    for wrong, text in (
        ([[4, sizes[1], 6, -1], [9, sizes[2], -1, -1]], r"5 values in .* has 6 in .*page 4"),
        ([[4, sizes[1] - 1, 5, -1], [9, sizes[2] + 1, -1, -1]], "where the offset index has 5"),
        ([[4, sizes[1], 5, -1]], "before the first one"),
    ):
        with pytest.raises(FormatError, match=text):
            PageWalker(stored, ModuleCipher(), True, DEFAULTS, np.array(wrong, np.int64)).count_values()


@pytest.mark.parametrize("expected", [True, False])
def test_encrypted_pages(expected: bool) -> None:
    """A wrong claim about the first page does no harm: the header opens as the page type with which the header was sealed."""
    sealer = GcmModuleCipher(KEY, b"file", 1, 2)
    stored, starts = b"", []
    kinds = [(ModuleType.DICTIONARY_PAGE_HEADER, ModuleType.DICTIONARY_PAGE, 0)]
    kinds += [(ModuleType.DATA_PAGE_HEADER, ModuleType.DATA_PAGE, ordinal) for ordinal in (0, 1)]
    for (header, body), (outer, inner, ordinal) in zip((PAGES[0], PAGES[2], PAGES[4]), kinds, strict=True):
        starts.append(len(stored))
        sealed = bytes(sealer.seal_body(inner, ordinal, body, 0))
        header = fmt.PageHeader(**{name: getattr(header, name) for name, _ in header.ORDERED})
        header.compressed_page_size = len(sealed)
        stored += bytes(sealer.seal(outer, ordinal, fmt.encode(header))) + sealed
    walker = PageWalker(stored, GcmModuleCipher(KEY, b"file", 1, 2), expected, DEFAULTS)
    found = [*iter(walker.next_page, None)]
    assert [each.start for each in found] == starts
    assert [each.ordinal for each in found] == [0, 0, 1]
    assert [each.body_start - each.start for each in found] == [len(each.header) + sealer.overhead for each in found]
    altered = bytearray(stored)
    altered[starts[2] + 20] ^= 1
    with pytest.raises(TagVerificationError, match="page 1"):
        PageWalker(altered, GcmModuleCipher(KEY, b"file", 1, 2), expected, DEFAULTS).count_values()


@pytest.mark.parametrize("broken", [0, 1])
def test_errors_of_values_name_their_page(broken: int, tmp_path: Path) -> None:
    target = tmp_path / "text.parquet"
    text = np.array(["first"] * 5 + ["other"] * 5, dtype=object)
    options: dict[str, Any] = {"compression": "none", "use_dictionary": False, "write_page_checksum": False}
    fastpq.write_table({"s": text}, target, data_page_rows=5, **options)
    content = bytearray(target.read_bytes())
    content[content.find(b"other" if broken else b"first")] = 0xFF
    target.write_bytes(content)
    with pytest.raises(FormatError, match=f"not UTF-8 .*page {broken}]"):
        fastpq.read_table(target)


def test_a_checksum_is_of_the_walkers_own_bytes() -> None:
    stored, _ = chunk_of([dictionary(3, b"abc"), data(5, b"first")])
    walker = PageWalker(stored, ModuleCipher(), True, DEFAULTS)
    last = [*iter(walker.next_page, None)][-1]
    walker.verify_checksum(last)
    with pytest.raises(ValueError, match="another walker"):
        PageWalker(stored[:-1], ModuleCipher(), True, DEFAULTS).verify_checksum(last)


def with_long_statistics(size: int, body: bytes) -> Page:
    header, _ = data(5, body)
    assert header.data_page_header is not None
    header.data_page_header.statistics = fmt.Statistics(max_value=bytes(size))
    return header, body


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("cuts", [[], [1, 700_000], list(range(50_001, 1_500_000, 50_001))])
def test_a_walk_in_pieces_is_a_walk_in_memory(cuts: list[int], sealed: bool) -> None:
    """Headers and bodies longer and shorter than the pieces, in one range of the file and in several."""
    sizes = [(0, 10), (3000, 300_000), (100_000, 0), (0, 255 << 10), (5000, 700_000), (300_000, 7), (0, 0)]
    stored = b""
    for ordinal, (header_size, body_size) in enumerate(sizes):
        header, body = with_long_statistics(header_size, np.random.default_rng(ordinal).bytes(body_size))
        cipher = GcmModuleCipher(KEY, b"file", 1, 2)
        if sealed:
            body = bytes(cipher.seal_body(ModuleType.DATA_PAGE, ordinal, body, 0))
            header.compressed_page_size = len(body)
        header.crc = crc32(body) - (1 << 32 if crc32(body) >> 31 else 0)
        encoded = fmt.encode(header)
        stored += (bytes(cipher.seal(ModuleType.DATA_PAGE_HEADER, ordinal, encoded)) if sealed else encoded) + body
    ends = [*(cut for cut in cuts if cut < len(stored)), len(stored)]
    starts = [0, *ends[:-1]]
    # the ranges stand in another order, and apart, in the file
    file, places = bytearray(), {}
    for start, end in reversed([*zip(starts, ends, strict=True)]):
        file += b"between"
        places[start] = (len(file), end - start)
        file += stored[start:end]
    parts = StoredBytes(MemoryOrigin(bytes(file)), [places[start] for start in starts])
    assert parts.read().tobytes() == stored

    def walker(chunk: Any) -> PageWalker:
        return PageWalker(chunk, GcmModuleCipher(KEY, b"file", 1, 2) if sealed else ModuleCipher(), False, DEFAULTS)

    expected, walked = walker(stored), walker(parts)
    for _ in sizes:
        one, other = expected.next_page(), walked.next_page()
        assert one is not None
        assert other is not None
        assert (one.header, one.start, one.body_start, one.size) == (other.header, other.start, other.body_start, other.size)
        assert one.body.tobytes() == other.body.tobytes()
        walked.verify_checksum(other)
    assert walked.next_page() is None
    assert walker(parts).count_values() == 5 * len(sizes)
    cut = StoredBytes(MemoryOrigin(bytes(file)[:-1000]), [places[start] for start in starts])
    with pytest.raises(FormatError, match="was the file truncated while it was read"):
        [*iter(walker(cut).next_page, None)]
