"""FAULTS: the planted faults, each in a file that is sound without it."""

from __future__ import annotations

import functools
import io
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastpq
from fastpq import format as fmt
from fastpq._kernel_calls import decode_hybrid, decode_levels, encode_levels
from fastpq.encodings import rle
from fastpq.types import Geometry
from tests.index.forging import Chunk, Forgery
from tests.index.test_consistency_checks import PAGE_ROWS, ROWS, column, original
from tests.narrowing import present
from tests.verify.page_forging import PageForgery, StoredPage

FOOTER_KEY = b"0123456789012345"
V2_ROWS = 100


class Fault(NamedTuple):
    """A planted fault.

    Attributes:
        name: what is wrong.
        make: returns the file.
        part, message, section: what the violation says. Each is a part of the text.
        column: the violation's column, or None.
        keys: keys of the file, or None.
        is_quick: whether a quick verification finds it too.
    """

    name: str
    make: Callable[[], bytes]
    part: str
    message: str
    section: str
    column: str | None = None
    keys: fastpq.FileDecryptionProperties | None = None
    is_quick: bool = False


FAULTS: list[Fault] = []
Place = tuple[str, str, str]


# ---- faults in the footer, in indexes and in bloom filters, over unaltered pages


def plant(name: str, change: Callable[[Forgery], Any], claim: Place, at: str | None = None, *, quick: bool = True) -> None:
    """Add a fault in the footer or in an index of the file with indexes."""

    def make() -> bytes:
        forgery = Forgery(original())
        change(forgery)
        return forgery.written()

    FAULTS.append(Fault(name, make, *claim, at, is_quick=quick))


def in_chunk(name: str, of: str, change: Callable[[Chunk], Any], claim: Place, *, quick: bool = True) -> None:
    """Add a fault in one chunk of the file with indexes."""
    plant(name, lambda forgery: change(forgery.chunks[column(of)]), claim, of, quick=quick)


def put(target: Any, **values: Any) -> None:
    for attribute, value in values.items():
        assert hasattr(target, attribute), attribute
        setattr(target, attribute, value)


def group_of(forgery: Forgery) -> fmt.RowGroup:
    [group] = forgery.metadata.row_groups
    return group


def sorted_by(forgery: Forgery, number: int, *, descending: bool = False, nulls_first: bool = False) -> None:
    group_of(forgery).sorting_columns = [fmt.SortingColumn(column_idx=number, descending=descending, nulls_first=nulls_first)]


def changed(items: list[Any] | None, place: int, value: Any) -> None:
    present(items)[place] = value


def filter_with_a_gap(chunk: Chunk) -> None:
    """The filter of all values but a few, which are not the minimum or the maximum."""
    bloom_filter = fastpq.SplitBlockBloomFilter(len(chunk.bitset))
    values = np.delete(np.arange(ROWS), slice(200, 220))
    bloom_filter.insert(values.view(np.uint8), 8)
    chunk.bitset[:] = bloom_filter.bitset.tobytes()


FOOTER, GROUP, ENTRY = "parquet.thrift, FileMetaData", "parquet.thrift, RowGroup", "parquet.thrift, ColumnMetaData"
STATISTICS, SIZES, INDEX = "parquet.thrift, Statistics", "parquet.thrift, SizeStatistics", "PageIndex.md"

plant("rows of the footer", lambda forged: put(forged.metadata, num_rows=ROWS + 1), ("footer", "601 rows", FOOTER))
plant("rows of the row group", lambda forged: put(group_of(forged), num_rows=ROWS - 1), ("footer", "its row groups 599", FOOTER))
plant("column orders", lambda forged: present(forged.metadata.column_orders).pop(),
      ("footer", "6 column orders for 7", "ColumnOrder"))
plant("ordinal", lambda forged: put(group_of(forged), ordinal=3), ("row group", "ordinal 3 in the place 0", GROUP))
plant("uncompressed size of the row group", lambda forged: put(group_of(forged), total_byte_size=1),
      ("row group", "total_byte_size is 1", GROUP))
plant("stored size of the row group", lambda forged: put(group_of(forged), total_compressed_size=1),
      ("row group", "total_compressed_size is 1", GROUP))
plant("offset of the row group", lambda forged: put(group_of(forged), file_offset=77), ("row group", "file_offset", GROUP))
plant("sorting column outside of the schema", lambda forged: sorted_by(forged, 9),
      ("row group", "sorted by column 9", "SortingColumn"))
plant("order of the rows", lambda forged: sorted_by(forged, 0, descending=True),
      ("row group", "not in the order", "SortingColumn"), "number", quick=False)
plant("nulls in the order of the rows", lambda forged: sorted_by(forged, 1, nulls_first=True),
      ("row group", "not in the order", "SortingColumn"), "maybe", quick=False)
plant("chunk outside of the file", lambda forged: put(forged.chunks[0].metadata, data_page_offset=1 << 30),
      ("column chunk", "whose footer begins at", ENTRY), "number")
plant("chunk in the place of another",
      lambda forged: put(forged.chunks[0].metadata, data_page_offset=forged.chunks[1].metadata.data_page_offset),
      ("column chunk", "with the column chunk of", "README.md, File format"))
in_chunk("number of values", "maybe", lambda chunk: put(chunk.metadata, num_values=ROWS + 5),
         ("column chunk", "claims 605 values, and the pages have 600", ENTRY))
in_chunk("stored bytes", "float",
         lambda chunk: put(chunk.metadata, total_compressed_size=chunk.metadata.total_compressed_size - 1),
         ("page header", "a chunk that has", "PageHeader"))
in_chunk("uncompressed bytes", "float", lambda chunk: put(chunk.metadata, total_uncompressed_size=1),
         ("column chunk", "claims 1 uncompressed bytes", ENTRY))
in_chunk("offset of the dictionary", "word", lambda chunk: put(chunk.metadata, dictionary_page_offset=None),
         ("page", "without a dictionary page", "Encodings.md"), quick=False)
in_chunk("list of encodings", "number", lambda chunk: put(chunk.metadata, encodings=[fmt.Encoding.RLE]),
         ("column chunk", "does not list the encoding PLAIN", ENTRY))
in_chunk("pages by encoding", "number", lambda chunk: put(present(chunk.metadata.encoding_stats)[0], count=1),
         ("encoding_stats", "1 data pages in PLAIN", "PageEncodingStats"))
in_chunk("physical type", "number", lambda chunk: put(chunk.metadata, type=fmt.Type.DOUBLE),
         ("column chunk", "physical type 5", ENTRY))
in_chunk("codec", "number", lambda chunk: put(chunk.metadata, codec=77), ("column chunk", "unknown codec 77", "Compression.md"))
in_chunk("path of another column", "number", lambda chunk: put(chunk.metadata, path_in_schema=["maybe"]),
         ("column chunk", "the path 'maybe' of another column", ENTRY))
in_chunk("minimum", "number", lambda chunk: put(chunk.statistics, min_value=struct.pack("<q", 1), min=None, max=None),
         ("statistics", "claims to be exact: the minimum is 1, but the chunk holds 0", STATISTICS), quick=False)
in_chunk("maximum", "text", lambda chunk: put(chunk.statistics, max_value=b"0597", min=None, max=None),
         ("statistics", "claims to be exact: the maximum is '0597', but the chunk holds '", STATISTICS), quick=False)
in_chunk("minimum above the maximum", "number", lambda chunk: put(chunk.statistics, min_value=struct.pack("<q", 9999)),
         ("statistics", "a minimum above the maximum", STATISTICS))
in_chunk("exact bound", "number",
         lambda chunk: put(chunk.statistics, min_value=struct.pack("<q", -1), min=None, max=None, is_min_value_exact=True),
         ("statistics", "claims to be exact", STATISTICS), quick=False)
in_chunk("null count", "maybe", lambda chunk: put(chunk.statistics, null_count=present(chunk.statistics.null_count) - 1),
         ("statistics", "nulls, and the chunk has", STATISTICS), quick=False)
in_chunk("distinct count", "word", lambda chunk: put(chunk.statistics, distinct_count=5),
         ("statistics", "5 distinct values, and the chunk has 300", STATISTICS), quick=False)
in_chunk("NaN count", "float", lambda chunk: put(chunk.statistics, nan_count=5),
         ("statistics", "5 NaNs, and the chunk has 0", STATISTICS), quick=False)
in_chunk("histogram of levels", "maybe",
         lambda chunk: put(chunk.metadata, size_statistics=fmt.SizeStatistics(definition_level_histogram=[ROWS // 2] * 2)),
         ("statistics", "levels", "parquet.thrift"), quick=False)
in_chunk("bytes of values", "text",
         lambda chunk: put(present(chunk.metadata.size_statistics), unencoded_byte_array_data_bytes=5),
         ("statistics", "5 bytes of values", SIZES), quick=False)
in_chunk("first row of a page", "number",
         lambda chunk: put(chunk.offset_index.page_locations[3], first_row_index=3 * PAGE_ROWS + 1),
         ("offset index", "and the page begins with row 150", INDEX), quick=False)
in_chunk("size of a page", "number",
         lambda chunk: put(chunk.offset_index.page_locations[-1], compressed_page_size=5),
         ("offset index", "to the end of the chunk", INDEX))
in_chunk("bytes of values of a page", "text",
         lambda chunk: put(chunk.offset_index, unencoded_byte_array_data_bytes=[
             size + {0: 1, 1: -1}.get(page, 0)
             for page, size in enumerate(present(chunk.offset_index.unencoded_byte_array_data_bytes))]),
         ("offset index", "bytes of values, and the page has", INDEX), quick=False)


def other_null_counts(chunk: Chunk) -> None:
    counts = present(chunk.pages.null_counts)
    counts[0] += 1
    counts[1] -= 1
    chunk.pages.definition_level_histograms = None


in_chunk("null counts of pages", "maybe", other_null_counts, ("column index", "nulls, and the page has", INDEX), quick=False)
def null_page(chunk: Chunk) -> None:
    changed(chunk.pages.null_pages, 0, True)
    chunk.pages.null_counts = None


in_chunk("null page", "maybe", null_page,
         ("column index", "null page", INDEX))
in_chunk("minimum of a page", "number", lambda chunk: changed(chunk.pages.min_values, 5, struct.pack("<q", 255)),
         ("column index", "a minimum above a value of the page: the minimum is 255, but the page holds 250", INDEX), quick=False)
in_chunk("maximum of a page", "number", lambda chunk: changed(chunk.pages.max_values, 5, struct.pack("<q", 290)),
         ("column index", "a maximum below a value of the page: the maximum is 290, but the page holds 299", INDEX), quick=False)
in_chunk("order of the pages", "number", lambda chunk: put(chunk.pages, boundary_order=fmt.BoundaryOrder.DESCENDING),
         ("column index", "a boundary order against the bounds", INDEX))
in_chunk("pages of the index", "number", lambda chunk: (chunk.offset_index.page_locations.pop(),),
         ("offset index", "to the end of the chunk", INDEX))


def other_histogram(chunk: Chunk) -> None:
    histograms = present(chunk.pages.definition_level_histograms)
    histograms[:2] = [histograms[0] + 1, histograms[1] - 1]
    histograms[2:4] = [histograms[2] - 1, histograms[3] + 1]
    chunk.pages.null_counts = None


in_chunk("histogram of a page", "maybe", other_histogram,
         ("column index", "a histogram of definition levels", INDEX), quick=False)
in_chunk("bloom filter without a value", "number", filter_with_a_gap,
         ("bloom filter", "the filter denies", "BloomFilter.md"), quick=False)
in_chunk("size of the bloom filter", "number", lambda chunk: put(present(chunk.bloom_header), numBytes=33),
         ("bloom filter", "a size of other than whole blocks", "BloomFilter.md"))


# ---- faults in pages


@functools.cache
def paged(version: str = "1.0", codec: str = "none") -> bytes:
    """A file of pages without indexes and statistics."""
    lists = [[row, row + 1] if row % 3 else [] for row in range(V2_ROWS)]
    structs = [{"a": row, "b": f"b{row % 5}"} if row % 4 else None for row in range(V2_ROWS)]
    table = pa.table({
        "number": pa.array(range(V2_ROWS), pa.int64()),
        "maybe": pa.array([row if row % 2 else None for row in range(V2_ROWS)], pa.int32()),
        "text": pa.array([f"text {row}" for row in range(V2_ROWS)]),
        "coded": pa.array([f"value {row % 7}" for row in range(V2_ROWS)]),
        "money": pa.array([Decimal(row) for row in range(V2_ROWS)], pa.decimal128(5, 2)),
        "time": pa.array(range(V2_ROWS), pa.time32("ms")),
        "list": pa.array(lists, pa.list_(pa.int32())),
        "struct": pa.array(structs, pa.struct({"a": pa.int32(), "b": pa.string()})),
    })
    sink = io.BytesIO()
    pq.write_table(
        table, sink, compression=codec, data_page_version=version, use_dictionary=["coded"], write_statistics=False,
        store_schema=False, max_rows_per_page=50, write_batch_size=10, write_page_checksum=codec == "none",
        store_decimal_as_integer=True,
    )
    return sink.getvalue()


LEAVES = ["number", "maybe", "text", "coded", "money", "time", "list.list.element", "struct.a", "struct.b"]


def in_pages(
    name: str, of: str, change: Callable[[list[StoredPage]], Any], claim: Place, *, version: str = "1.0", codec: str = "none",
    quick: bool = False, keeps_checksums: bool = False,
) -> None:
    """Add a fault in the pages of a column."""

    def make() -> bytes:
        forgery = PageForgery(paged(version, codec))
        pages = forgery.chunks[LEAVES.index(of)]
        if not keeps_checksums:
            for page in pages:
                page.header.crc = None
        change(pages)
        return forgery.written()

    FAULTS.append(Fault(name, make, *claim, of, is_quick=quick))


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def rewritten(page: StoredPage, old: bytes, new: bytes) -> None:
    assert page.body.count(old) == 1
    assert len(old) == len(new)
    page.set_body(page.body.replace(old, new))


def with_levels(page: StoredPage, changed_levels: bytes) -> None:
    """Replace the definition levels of a V1 page of a flat column."""
    size = int.from_bytes(page.body[:4], "little")
    page.set_body(struct.pack("<I", len(changed_levels)) + changed_levels + page.body[4 + size :])


def first_levels_of_list(page: StoredPage, repetition: list[int] | None, definition: list[int] | None) -> None:
    """Replace the first levels of the lists in a V2 page."""
    count = page.v2.num_values
    sizes = page.v2.repetition_levels_byte_length, page.v2.definition_levels_byte_length
    streams = [page.body[: sizes[0]], page.body[sizes[0] : sum(sizes)]]
    rest = page.body[sum(sizes) :]
    for number, (new, highest) in enumerate(((repetition, 1), (definition, 3))):
        if new is not None:
            own = decode_levels(streams[number], count, highest).copy()
            own[: len(new)] = new
            streams[number] = encode_levels(own, highest)
    page.set_body(streams[0] + streams[1] + rest)
    page.v2.repetition_levels_byte_length, page.v2.definition_levels_byte_length = map(len, streams)


def out_of_dictionary(pages: list[StoredPage]) -> None:
    page = pages[1]
    size = int.from_bytes(page.body[:4], "little")
    codes = rle.encode(decode_hybrid(page.body[5 + size :], page.body[4 + size], 50) + 1, 3)
    page.set_body(page.body[: 4 + size] + bytes([3]) + codes)


def other_null(pages: list[StoredPage]) -> None:
    """The first struct, which is null, becomes a struct with a null in it, in one of its two columns."""
    page = pages[0]
    size = int.from_bytes(page.body[:4], "little")
    own = decode_levels(page.body[4 : 4 + size], 50, 2).copy()
    own[0] = 1
    with_levels(page, encode_levels(own, 2))


LEVELS, PAGES, HEADER = "README.md, Nested Encoding", "README.md, Data Pages", "parquet.thrift, PageHeader"
V2 = "parquet.thrift, DataPageHeaderV2"

in_pages("bit under a checksum", "number", lambda pages: put(pages[1], body=flipped(pages[1].body, 100)),
         ("page", "CRC-32", "README.md, Checksumming"), quick=True, keeps_checksums=True)
in_pages("bit of a compressed page", "text", lambda pages: put(pages[1], body=flipped(pages[1].body, 5)),
         ("page", "", "Encodings.md"), codec="zstd")
in_pages("values of a page", "number", lambda pages: put(pages[0].v1, num_values=49),
         ("column chunk", "claims 100 values, and the pages have 99", ENTRY), quick=True)
in_pages("nulls in a V2 header", "maybe", lambda pages: put(pages[0].v2, num_nulls=3),
         ("page header", "claims 3 nulls, and the page has 25", V2), version="2.0")
in_pages("rows in a V2 header", "list.list.element", lambda pages: put(pages[0].v2, num_rows=3),
         ("page header", "claims 3 rows, and the page has 50", V2), version="2.0")
in_pages("level above the highest", "struct.a", lambda pages: with_levels(pages[0], bytes([50 << 1, 3])),
         ("page", "level", "Encodings.md"))
in_pages("levels that end early", "maybe", lambda pages: with_levels(pages[0], bytes([10 << 1, 1])),
         ("page", "", "Encodings.md"))
in_pages("first repetition level", "list.list.element", lambda pages: first_levels_of_list(pages[0], [1], None),
         ("levels", "first repetition level", LEVELS), version="2.0")
in_pages("list without an element that continues", "list.list.element",
         lambda pages: first_levels_of_list(pages[0], [0, 1], None), ("levels", "continues a list that has no element", LEVELS),
         version="2.0")
in_pages("page that begins within a row", "list.list.element", lambda pages: first_levels_of_list(pages[1], [1], None),
         ("page", "begins within a row", V2), version="2.0")
in_pages("levels of columns that share a group", "struct.b", other_null,
         ("levels", "other levels for the group 'struct'", LEVELS))
in_pages("code outside of the dictionary", "coded", out_of_dictionary, ("page", "dictionary code 7", "Encodings.md"))
def unsorted(pages: list[StoredPage]) -> None:
    pages[0].dictionary.is_sorted = True
    rewritten(pages[0], b"value 3", b"value 9")


in_pages("dictionary that is not sorted", "coded", unsorted, ("dictionary", "claims to be sorted", "DictionaryPageHeader"))
in_pages("number of dictionary entries", "coded", lambda pages: put(pages[0].dictionary, num_values=6),
         ("dictionary", "after the 6 entries", "Encodings.md"))
in_pages("two dictionaries", "coded", lambda pages: pages.insert(1, pages[0]),
         ("page header", "a second dictionary page", PAGES), quick=True)
in_pages("no dictionary", "coded", lambda pages: pages.pop(0), ("page", "without a dictionary page", "Encodings.md"))
in_pages("text that is not UTF-8", "text", lambda pages: rewritten(pages[0], b"text 7", b"text \xff"),
         ("values", "not UTF-8", "LogicalTypes.md, STRING"))
in_pages("text in the dictionary that is not UTF-8", "coded", lambda pages: rewritten(pages[0], b"value 3", b"value \xff"),
         ("dictionary", "not UTF-8", "LogicalTypes.md, STRING"))
in_pages("digits of a decimal", "money", lambda pages: rewritten(pages[0], struct.pack("<i", 4900), struct.pack("<i", 100_000)),
         ("values", "more than the 5 digits", "LogicalTypes.md, DECIMAL"))
in_pages("time of day", "time", lambda pages: rewritten(pages[0], struct.pack("<i", 49), struct.pack("<i", 86_400_000)),
         ("values", "24 hours", "LogicalTypes.md, TIME"))
in_pages("uncompressed size of a page", "text",
         lambda pages: put(pages[0].header, uncompressed_page_size=pages[0].header.uncompressed_page_size + 1),
         ("page", "", "Encodings.md"), codec="zstd")
in_pages("encoding that the type does not have", "text",
         lambda pages: put(pages[0].v1, encoding=fmt.Encoding.DELTA_BINARY_PACKED),
         ("page", "does not fit BYTE_ARRAY", "Encodings.md"))
in_pages("unknown kind of page", "number", lambda pages: put(pages[1].header, type=9),
         ("page header", "an unknown page type 9", HEADER), quick=True)
in_pages("lengths of texts", "text", lambda pages: rewritten(pages[0], b"\x06\0\0\0text 0", b"\xff\0\0\0text 0"),
         ("page", "", "Encodings.md"))


def rows_of_list(pages: list[StoredPage]) -> None:
    """The last row of a V1 page becomes a part of the row before."""
    page = pages[-1]
    size = int.from_bytes(page.body[:4], "little")
    own = decode_levels(page.body[4 : 4 + size], page.v1.num_values, 1).copy()
    own[-3] = 1
    stream = encode_levels(own, 1)
    page.set_body(struct.pack("<I", len(stream)) + stream + page.body[4 + size :])


in_pages("rows of a list", "list.list.element", rows_of_list, ("column chunk", "99 rows in a row group of 100", GROUP))


# ---- faults in files of other kinds


def head() -> bytes:
    return b"PARX" + original()[4:]


def rest() -> bytes:
    forgery = PageForgery(paged())
    forgery.rest[0] = b"\0" * 5
    return forgery.written()


@functools.cache
def sealed() -> bytes:
    sink = io.BytesIO()
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, plaintext_footer=True)
    options: dict[str, Any] = {"use_dictionary": False, "write_page_checksum": False}
    fastpq.write_table({"number": list(range(1000))}, sink, encryption_properties=keys, **options)
    return sink.getvalue()


def other_tag() -> bytes:
    return flipped(sealed(), 300)


def points() -> bytes:
    """A bounding box without its last point."""
    sink = io.BytesIO()
    values = [struct.pack("<BIdd", 1, 1, float(row), float(row)) for row in range(20)]
    schema = {"point": fastpq.ColumnType(fastpq.Type.BYTE_ARRAY, None, Geometry())}
    fastpq.write_table({"point": values}, sink, schema=schema)
    data = sink.getvalue()
    (size,) = struct.unpack("<I", data[-8:-4])
    start = len(data) - 8 - size
    metadata, _ = fmt.decode(fmt.FileMetaData, data, start)
    box = present(present(metadata.row_groups[0].columns[0].meta_data).geospatial_statistics).bbox
    present(box).xmax = 18.0
    footer = fmt.encode(metadata)
    return data[:start] + footer + struct.pack("<I", len(footer)) + b"PAR1"


def broken_footer() -> bytes:
    data = original()
    (size,) = struct.unpack("<I", data[-8:-4])
    start = len(data) - 8 - size
    return data[:start] + b"\xff" * 20 + data[start + 20 :]


KEYS = fastpq.FileDecryptionProperties(FOOTER_KEY)
FAULTS += [
    Fault("first bytes", head, "footer", "begins with b'PARX'", "README.md, File format", is_quick=True),
    Fault("bytes behind the pages", rest, "page header", "", HEADER, "number", is_quick=True),
    Fault("tag of a page", other_tag, "encryption", "", "Encryption.md", "number", KEYS, is_quick=True),
    Fault("bounding box", points, "statistics", "does not enclose the x", "Geospatial.md", "point"),
    Fault("length of the footer", lambda: original()[:-8] + b"\xff\xff\xff\x7fPAR1", "footer", "the footer has", "README.md",
          is_quick=True),
    Fault("broken footer", broken_footer, "footer", "", "README.md",
          is_quick=True),
    Fault("half a file", lambda: original()[: len(original()) // 2], "footer", "incomplete", "README.md", is_quick=True),
]

# The files without their faults.
SOUND: dict[str, Callable[[], bytes]] = {
    "indexed": original,
    "indexed, written anew": lambda: Forgery(original()).written(),
    **{
        f"pages {version} {codec}": functools.partial(paged, version, codec)
        for version in ("1.0", "2.0")
        for codec in ("none", "zstd")
    },
    "pages written anew": lambda: PageForgery(paged()).written(),
    "sealed": sealed,
}
