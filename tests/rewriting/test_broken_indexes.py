"""Rewriting of readable files with broken page indexes and bloom filters: the broken ones are left out and reported."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
from fastpq import format as fmt
from tests.narrowing import present
from tests.requirements import DATA, needs_data

KEY = b"sixteen bytes k!"
KEYS = fastpq.FileDecryptionProperties(KEY)
ROWS = 300
TRUTH = pa.table({"id": range(ROWS), "name": [f"name {row % 7}" for row in range(ROWS)]})
BOTH = ["offset index", "column index"]

Break = Callable[[bytearray, fmt.ColumnChunk], None]


def sound(**options: Any) -> bytes:
    out = io.BytesIO()
    fastpq.write_table(TRUTH, out, data_page_rows=50, row_group_size=150, bloom_filter={"id": True, "name": True}, **options)
    return out.getvalue()


def forged(spoil: Break) -> bytes:
    """The sound file with the indexes of the first chunk spoilt, and the footer made anew."""
    data = bytearray(sound())
    size = struct.unpack("<I", data[-8:-4])[0]
    footer, _ = fmt.decode(fmt.FileMetaData, bytes(data[-8 - size : -8]))
    del data[-8 - size :]
    spoil(data, footer.row_groups[0].columns[0])
    encoded = fmt.encode(footer)
    return bytes(data) + encoded + struct.pack("<I", len(encoded)) + b"PAR1"


def overwritten(data: bytearray, offset: int | None, size: int | None) -> None:
    start = present(offset)
    data[start : start + present(size)] = b"\xff" * present(size)


def of_other_pages(data: bytearray, chunk: fmt.ColumnChunk) -> None:
    """An offset index in accord with itself, whose pages are not the chunk's."""
    start = present(chunk.offset_index_offset)
    index, _ = fmt.decode(fmt.OffsetIndex, bytes(data[start : start + present(chunk.offset_index_length)]))
    first, second = index.page_locations[:2]
    first.compressed_page_size -= 1
    second.offset -= 1
    second.compressed_page_size += 1
    chunk.offset_index_offset = len(data)
    encoded = fmt.encode(index)
    chunk.offset_index_length = len(encoded)
    data += encoded


def of_other_rows(data: bytearray, chunk: fmt.ColumnChunk) -> None:
    start = present(chunk.offset_index_offset)
    index, _ = fmt.decode(fmt.OffsetIndex, bytes(data[start : start + present(chunk.offset_index_length)]))
    index.page_locations[1].first_row_index -= 1
    chunk.offset_index_offset = len(data)
    encoded = fmt.encode(index)
    chunk.offset_index_length = len(encoded)
    data += encoded


def outside(name: str) -> Break:
    def spoil(data: bytearray, chunk: fmt.ColumnChunk) -> None:
        setattr(chunk, name, 1 << 40)

    return spoil


def bloom_outside(data: bytearray, chunk: fmt.ColumnChunk) -> None:
    present(chunk.meta_data).bloom_filter_offset = 1 << 40


def bloom_cut_off(data: bytearray, chunk: fmt.ColumnChunk) -> None:
    metadata = present(chunk.meta_data)
    metadata.bloom_filter_length = present(metadata.bloom_filter_length) - 1


FORGED: dict[str, tuple[Break, list[str]]] = {
    "offset index overwritten": (lambda d, c: overwritten(d, c.offset_index_offset, c.offset_index_length), BOTH),
    "offset index outside of the file": (outside("offset_index_offset"), BOTH),
    "offset index of other pages": (of_other_pages, BOTH),
    "offset index of other rows": (of_other_rows, BOTH),
    "column index overwritten": (lambda d, c: overwritten(d, c.column_index_offset, c.column_index_length), ["column index"]),
    "column index outside of the file": (outside("column_index_offset"), ["column index"]),
    "bloom filter overwritten": (
        lambda d, c: overwritten(d, present(c.meta_data).bloom_filter_offset, 8), ["bloom filter"]
    ),
    "bloom filter outside of the file": (bloom_outside, ["bloom filter"]),
    "bloom filter cut off": (bloom_cut_off, ["bloom filter"]),
}


def kinds(report: fastpq.RewritingReport) -> list[str]:
    assert {(index.row_group, index.column) for index in report.dropped_indexes} <= {(0, "id")}
    return [index.kind for index in report.dropped_indexes]


@pytest.mark.parametrize("name", FORGED)
def test_a_broken_index_is_dropped(name: str) -> None:
    spoil, dropped = FORGED[name]
    data = forged(spoil)
    out = io.BytesIO()
    report = fastpq.encrypt_file(data, out, fastpq.FileEncryptionProperties(KEY))
    assert kinds(report) == dropped
    assert all(index.reason and index.kind in str(report) for index in report.dropped_indexes)
    read = pq.read_table(io.BytesIO(out.getvalue()), decryption_properties=pe.create_decryption_properties(KEY))
    assert read.equals(TRUTH)
    with fastpq.ParquetFile(out.getvalue(), decryption_properties=KEYS) as file:
        for group in range(2):
            for column in ("id", "name"):
                left = dropped if (group, column) == (0, "id") else []
                assert (file.offset_index(group, column) is None) is ("offset index" in left)
                assert (file.column_index(group, column) is None) is ("column index" in left)
                assert (file.bloom_filter(group, column) is None) is ("bloom filter" in left)
        assert file.read(filters=[("id", "==", 77)])["id"].to_pylist() == [77]
    merged = io.BytesIO()
    again = fastpq.merge_files([sound(), data], merged)
    assert [(index.row_group, index.kind) for index in again.dropped_indexes] == [(0, kind) for kind in dropped]
    assert pq.read_table(merged).num_rows == 2 * ROWS


def test_a_sound_file_loses_nothing() -> None:
    report = fastpq.merge_files([sound()], io.BytesIO())
    assert (report.dropped_indexes, str(report)) == ((), "nothing was left out")


@pytest.mark.parametrize("name", ["offset_index_offset", "column_index_offset"])
def test_an_altered_index_of_an_encrypted_file_is_no_broken_one(name: str) -> None:
    """Its tag tells of an attack: nothing is written."""
    data = bytearray(sound(encryption_properties=fastpq.FileEncryptionProperties(KEY)))
    with fastpq.ParquetFile(bytes(data), decryption_properties=KEYS) as file:
        start = present(getattr(file.metadata.row_group(0).column(0).chunk, name))
    data[start + 20] ^= 1
    with pytest.raises(fastpq.TagVerificationError):
        fastpq.encrypt_file(bytes(data), io.BytesIO(), fastpq.FileEncryptionProperties(KEY), decryption_properties=KEYS)


@needs_data
@pytest.mark.parametrize(
    ("path", "column"),
    [
        ("apache+impala/32b5a5c47b-alltypes_empty_pages.parquet", "smallint_col"),
        ("r-lib+nanoparquet/002fac67d9-repeated_primitive_no_list_no_nest.parquet", "Int32_list"),
        ("apache+arrow-testing/031b615746-clusterfuzz-testcase-minimized-parquet-arrow-fuzz-5382863341289472", "a"),
    ],
)
def test_strangers_files(path: str, column: str) -> None:
    source = DATA / "wild/files" / path
    out = io.BytesIO()
    report = fastpq.encrypt_file(source, out, fastpq.FileEncryptionProperties(KEY))
    assert column in {index.column for index in report.dropped_indexes}
    before, after = fastpq.read_table(source), fastpq.read_table(out.getvalue(), decryption_properties=KEYS)
    assert pa.table(after).equals(pa.table(before))
