"""Pages as no common writer makes them today, made by hand; pyarrow reads what it can of them."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence

import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt

REQUIRED, OPTIONAL, REPEATED = range(3)
FUTURE_PAGE = 7


def int64s(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def levels(values: Sequence[int]) -> bytes:
    """Levels of 0 and 1 of a page V1: its size, and bit-packed groups of eight."""
    groups = -(-len(values) // 8)
    packed = sum(level << place for place, level in enumerate(values)).to_bytes(groups, "little")
    run = bytes([groups << 1 | 1]) + packed
    return struct.pack("<I", len(run)) + run


def data_page(count: int, body: bytes, encoding: fmt.Encoding = fmt.Encoding.PLAIN, crc: int | None = None) -> bytes:
    rle = fmt.Encoding.RLE
    header = fmt.DataPageHeader(
        num_values=count, encoding=encoding, definition_level_encoding=rle, repetition_level_encoding=rle
    )
    sizes = {"uncompressed_page_size": len(body), "compressed_page_size": len(body)}
    return fmt.encode(fmt.PageHeader(type=fmt.PageType.DATA_PAGE, data_page_header=header, crc=crc, **sizes)) + body


def other_page(kind: int, body: bytes) -> bytes:
    index = fmt.IndexPageHeader() if kind == fmt.PageType.INDEX_PAGE else None
    sizes = {"uncompressed_page_size": len(body), "compressed_page_size": len(body)}
    return fmt.encode(fmt.PageHeader(type=kind, index_page_header=index, **sizes)) + body


def dictionary_page(values: Sequence[int]) -> bytes:
    body = int64s(values)
    header = fmt.DictionaryPageHeader(num_values=len(values), encoding=fmt.Encoding.PLAIN)
    sizes = {"uncompressed_page_size": len(body), "compressed_page_size": len(body)}
    return fmt.encode(fmt.PageHeader(type=fmt.PageType.DICTIONARY_PAGE, dictionary_page_header=header, **sizes)) + body


def file_of(
    chunks: Sequence[Sequence[bytes]],
    num_rows: int,
    num_values: Sequence[int],
    *,
    repetition: int = REQUIRED,
    dictionary_offset: int | None = None,
    data_offset: int = 0,
) -> bytes:
    """A file of INT64 columns "a", "b" ... with these pages; offsets are counted from the first page of each."""
    data, entries = b"PAR1", []
    names = "abc"[: len(chunks)]
    for name, pages, values in zip(names, chunks, num_values, strict=True):
        start = len(data)
        data += b"".join(pages)
        metadata = fmt.ColumnMetaData(
            type=2,
            encodings=[0, 3, 8],
            path_in_schema=[name],
            codec=0,
            num_values=values,
            total_uncompressed_size=len(data) - start,
            total_compressed_size=len(data) - start,
            data_page_offset=start + data_offset,
            dictionary_page_offset=dictionary_offset if not dictionary_offset else start + dictionary_offset - 1,
        )
        entries.append(fmt.ColumnChunk(file_offset=0, meta_data=metadata))
    root = fmt.SchemaElement(name="schema", num_children=len(names))
    leaves = [fmt.SchemaElement(name=name, type=2, repetition_type=repetition) for name in names]
    group = fmt.RowGroup(columns=entries, total_byte_size=len(data), num_rows=num_rows)
    footer = fmt.encode(fmt.FileMetaData(version=1, schema=[root, *leaves], num_rows=num_rows, row_groups=[group]))
    return data + footer + struct.pack("<I", len(footer)) + b"PAR1"


def read(data: bytes) -> list[object]:
    """The column "a", read at once, in batches and by rows, which must agree."""
    with fastpq.ParquetFile(data) as file:
        values = file.read()["a"].to_pylist()
        assert [value for batch in file.iter_batches(2) for value in batch["a"].to_pylist()] == values
        assert file.take(range(len(values)))["a"].to_pylist() == values
    return values


@pytest.mark.parametrize("kind", [fmt.PageType.INDEX_PAGE, FUTURE_PAGE])
def test_pages_that_hold_no_values_are_passed_over(kind: int) -> None:
    first, last = data_page(2, int64s([1, 2])), data_page(2, int64s([3, 4]))
    odd = other_page(kind, b"anything at all")
    for pages in ([odd, first, last], [first, odd, odd, last], [first, last, odd], [first, data_page(0, b""), last]):
        data = file_of([pages], 4, [4])
        assert read(data) == [1, 2, 3, 4]
        assert fastpq.recover_table(data).report.is_whole


def test_a_chunk_that_ends_in_mid_page() -> None:
    pages = [data_page(2, int64s([1, 2])), data_page(4, int64s([3, 4, 5, 6]))]
    assert read(file_of([pages], 3, [3])) == [1, 2, 3]
    nested = [data_page(6, levels([0, 1, 0, 0, 1, 1]) + levels([1] * 6) + int64s([1, 2, 3, 4, 5, 6]))]
    assert read(file_of([nested], 2, [3], repetition=REPEATED)) == [[1, 2], [3]]


def test_pages_that_begin_in_mid_row() -> None:
    pages = [
        data_page(2, levels([0, 1]) + levels([1, 1]) + int64s([1, 2])),
        data_page(1, levels([1]) + levels([1]) + int64s([3])),
        data_page(3, levels([1, 0, 0]) + levels([1, 0, 1]) + int64s([4, 5])),
    ]
    data = file_of([pages], 3, [6], repetition=REPEATED)
    assert read(data) == [[1, 2, 3, 4], [], [5]]
    assert pq.read_table(io.BytesIO(data))["a"].to_pylist() == [[1, 2, 3, 4], [], [5]]
    # what stands before a lost page ends in a row that may go on in it, and what follows begins within one
    lost = pages[1][:-1]
    broken = file_of([[pages[0], lost[:1] + b"\xff" + lost[2:] + b"\0", pages[2]]], 3, [6], repetition=REPEATED)
    table, report = fastpq.recover_table(broken)
    assert table["a"].to_pylist() == [None, None, None]
    assert [(loss.start, loss.stop) for loss in report.losses] == [(0, 3)]
    with pytest.raises(fastpq.FormatError, match="middle of a row"):
        fastpq.read_table(file_of([pages[1:]], 3, [4], repetition=REPEATED))


DICTIONARY = dictionary_page([10, 20, 30])
INDICES = data_page(4, b"\x02\x03\xe4\x00", fmt.Encoding.RLE_DICTIONARY)       # 0, 1, 2, 3 in two bits
GOOD_INDICES = data_page(4, b"\x02\x03\x24\x00", fmt.Encoding.RLE_DICTIONARY)   # 0, 1, 2, 0


@pytest.mark.parametrize(
    ("dictionary_offset", "data_offset"),
    [
        (1, len(DICTIONARY)),       # as it should be
        (None, 0),                  # not said, and data_page_offset is that of the dictionary page
        (0, 0),                     # 0 for none
        (1, 0),                     # both the same
        (1 + len(DICTIONARY), 0),   # exchanged
    ],
)
def test_where_the_dictionary_page_is(dictionary_offset: int | None, data_offset: int) -> None:
    pages = [DICTIONARY, GOOD_INDICES]
    data = file_of([pages], 4, [4], dictionary_offset=dictionary_offset, data_offset=data_offset)
    assert read(data) == [10, 20, 30, 10]


def test_dictionaries_that_are_wrong() -> None:
    with pytest.raises(fastpq.FormatError, match="values"):
        fastpq.read_table(file_of([[DICTIONARY, INDICES]], 4, [4]))
    with pytest.raises(fastpq.FormatError, match="second dictionary"):
        fastpq.read_table(file_of([[DICTIONARY, DICTIONARY, GOOD_INDICES]], 4, [4]))
    with pytest.raises(fastpq.FormatError):
        fastpq.read_table(file_of([[GOOD_INDICES]], 4, [4]))


def test_columns_that_disagree() -> None:
    three, two = [data_page(3, int64s([1, 2, 3]))], [data_page(2, int64s([4, 5]))]
    with pytest.raises(fastpq.FormatError, match="2 values in a row group of 3 rows"):
        fastpq.read_table(file_of([three, two], 3, [3, 2]))
    with pytest.raises(fastpq.FormatError, match="ends 1 values early"):
        fastpq.read_table(file_of([three, two], 3, [3, 3]))
    rows = [data_page(3, levels([0, 1, 0]) + levels([1, 1, 1]) + int64s([1, 2, 3]))]
    with pytest.raises(fastpq.FormatError, match="lacks 1 of the 3 rows"):
        fastpq.read_table(file_of([rows], 3, [3], repetition=REPEATED))
    with pytest.raises(fastpq.FormatError, match="more rows than its row group, which has 1"):
        fastpq.read_table(file_of([rows], 1, [3], repetition=REPEATED))
