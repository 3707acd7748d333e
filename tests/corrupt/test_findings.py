"""Findings of campaigns, each as a file made anew."""

from __future__ import annotations

import io
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.codecs.catalogue import PACKAGES_ALONE, codec_for_write
from fastpq.encodings import rle
from tests.corrupt.anatomy import Anatomy, Page, compressed, take_apart
from tests.corrupt.paths import Reading, Reference, filters
from tests.corrupt.seeds import Seed, decryption, encryption
from tests.corrupt.structured import Mutant, Subject, finished, with_page
from tests.corrupt.worker import limit_memory

MIB = 1 << 20
KEY = bytes(16)


def parts_of(columns: Any, **options: Any) -> Anatomy:
    """A new file in parts."""
    sink = io.BytesIO()
    fastpq.write_table(columns, sink, **options)
    return take_apart(Seed("", sink.getvalue()))


@contextmanager
def memory(more: int) -> Iterator[None]:
    """Bound the growth of the address space."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit_memory(more, hard=False)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.linux
def test_a_page_that_claims_more_values_than_its_chunk_takes_no_memory_for_them() -> None:
    parts = parts_of({"a": [1, None, 3, 4, 5]}, use_dictionary=False, compression=None)
    page = parts.chunks[0].pages[0]
    header = page.parsed
    assert header.data_page_header is not None
    header.data_page_header.num_values = (1 << 31) - 1
    data = finished(with_page(parts, 0, 0, Page(fmt.encode(header), page.body)), Random(0))
    with memory(100 * MIB), pytest.raises(fastpq.FormatError, match="definition levels: the values end early"):
        fastpq.read_table(data, threads=1)


@pytest.mark.parametrize("place", [2, -1, -2, (1 << 31) - 1])
def test_sorting_columns_outside_the_schema_are_left_out_of_a_signed_footer(place: int) -> None:
    parts = parts_of({"a": [1, 2, 3], "b": [3, 2, 1]})
    body, stored = parts.laid
    metadata = fmt.decode(fmt.FileMetaData, stored)[0]
    told = [fmt.SortingColumn(column_idx=index, descending=False, nulls_first=False) for index in (0, place)]
    metadata.row_groups[0].sorting_columns = told
    out = io.BytesIO()
    keys = fastpq.FileEncryptionProperties(KEY, {"b": KEY}, plaintext_footer=True, unlisted="plaintext")
    fastpq.encrypt_file(parts.closed(body, metadata, Random(0)), out, keys)
    written = fastpq.read_metadata(out.getvalue(), decryption_properties=fastpq.FileDecryptionProperties(KEY)).row_group(0)
    assert [entry.column_idx for entry in written.sorting_columns] == [0]


def with_levels(repetition: list[int], definition: list[int]) -> bytes:
    """One row of optional lists of optional numbers (1 is an empty list, 2 a null, 3 a number) with these levels."""
    parts = parts_of({"a": pa.array([[7] * len(repetition)])}, use_dictionary=False, compression=None)
    page = parts.chunks[0].pages[0]
    body = b"".join(
        len(stored).to_bytes(4, "little") + stored
        for stored in (
            bytes(rle.encode(np.array(levels, np.uint32), width)) for levels, width in ((repetition, 1), (definition, 2))
        )
    )
    body += bytes(8 * len(repetition))
    return finished(with_page(parts, 0, 0, compressed(page.parsed, page, body, 0)), Random(0))


@pytest.mark.parametrize(
    ("repetition", "definition", "expected"),
    [
        ([0, 1, 1], [3, 2, 3], [0, None, 0]),
        ([0, 1], [1, 2], None),     # an element of an empty list
        ([0, 1], [0, 3], None),     # an element of a null
        ([0, 1, 1], [3, 1, 3], None),       # an empty list in place of an element
        ([0] + [1] * 99, [3] * 70 + [0] + [3] * 29, None),
    ],
)
@pytest.mark.parametrize("batches", [False, True])
def test_levels_that_contradict_each_other(
    repetition: list[int], definition: list[int], expected: list[Any] | None, batches: bool
) -> None:
    data = with_levels(repetition, definition)
    with fastpq.ParquetFile(data, threads=1) as file:
        if expected is not None:
            assert next(file.iter_batches(1))["a"].to_pylist() == file.read()["a"].to_pylist() == [expected]
            return
        with pytest.raises(fastpq.FormatError, match="an element of a list that is empty or null"):
            next(file.iter_batches(1)) if batches else file.read()


def test_rows_behind_a_checkpoint_of_no_columns() -> None:
    parts = parts_of({"a": list(range(40))}, checkpoint_every=1, row_group_size=10)
    body, stored = parts.laid
    metadata = fmt.decode(fmt.FileMetaData, stored)[0]
    metadata.schema = [fmt.SchemaElement(name="schema", num_children=0)]
    for group in metadata.row_groups:
        group.columns = []
    data = parts.closed(body, metadata, Random(0)) + body[4:] + b"rest"
    found = fastpq.recover_table(data, threads=1)
    assert found.table.names == []
    assert found.report.unread


@pytest.mark.parametrize("strings", ["views", "offsets", "dictionary"])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("converted", [True, False])
def test_unknown_keys_of_maps_abort_no_consumer(converted: bool, on_error: Any, strings: Any) -> None:
    """An Arrow map with null keys aborts the process in pyarrow (array_nested.cc). Keys of the type UNKNOWN are null."""
    maps = pa.array([[("k", 1), ("l", 2)]], pa.map_(pa.string(), pa.int64()))
    parts = parts_of(pa.table({"m": maps}))
    body, stored = parts.laid
    footer = fmt.decode(fmt.FileMetaData, stored)[0]
    key = next(element for element in footer.schema if element.name == "key")
    key.logicalType = fmt.LogicalType(UNKNOWN=fmt.NullType())
    if not converted:
        key.converted_type = None
    with fastpq.ParquetFile(parts.closed(body, footer, Random(0)), strings=strings, on_error=on_error, threads=1) as file:
        column = next(iter(file.iter_batches(6)))["m"]
    if converted:       # UNKNOWN beside a converted type is a placeholder
        assert pa.array(column).to_pylist() == [[("k", 1), ("l", 2)]]
    else:
        with pytest.raises(fastpq.SchemaError, match="null keys"):
            pa.array(column)


@pytest.mark.parametrize("package", [False, True])
def test_bytes_behind_a_gzip_member_are_refused(package: bool) -> None:
    """The package stops behind the first member; the last four bytes of the page were the size, and the rest was left out."""
    codec, page = codec_for_write("gzip", package=package or PACKAGES_ALONE), b"one page"
    member = bytes(codec.compress(page))
    out = bytearray(len(page))
    codec.decompress_into(member, out)
    assert out == page
    for behind in (member, member[-8:], member[5:], member[-4:]):
        with pytest.raises(fastpq.FormatError):
            codec.decompress_into(member + behind, out)


def test_an_encrypted_index_in_another_place_is_refused_and_no_finding() -> None:
    """An index of a plaintext file is left out; of an encrypted file, bytes that do not authenticate are an attack."""
    sink = io.BytesIO()
    columns = {"a": list(range(40)), "b": list(range(40))}
    fastpq.write_table(columns, sink, data_page_rows=5, encryption_properties=encryption("ctr", "a"))
    seed = Seed("", sink.getvalue(), "ctr")
    parts = take_apart(seed)
    body, stored = parts.laid
    metadata = fmt.decode(fmt.FileMetaData, stored)[0]
    chunk = metadata.row_groups[0].columns[0]
    chunk.offset_index_offset, chunk.offset_index_length = chunk.column_index_offset, chunk.column_index_length
    data = parts.closed(body, metadata, Random(0))
    with fastpq.ParquetFile(data, decryption_properties=decryption("ctr")) as file:
        assert file.read()["a"].to_pylist() == columns["a"]
        with pytest.raises(fastpq.TagVerificationError, match="OFFSET_INDEX"):
            file.read(filters=("a", "==", 7))
    reference = Reference(Subject(seed))
    for index in range(20):
        filters(Reading(Mutant("", data, 0, true_claims=True), reference, index))
