"""Findings of campaigns, each as a file made anew."""

from __future__ import annotations

import io
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

import fastpq
from fastpq import format as fmt
from tests.corrupt.anatomy import Anatomy, Page, take_apart
from tests.corrupt.seeds import Seed
from tests.corrupt.structured import finished, with_page
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
    with memory(100 * MIB):
        assert fastpq.read_table(data, threads=1)["a"].to_pylist() == [1, None, 3, 4, 5]


@pytest.mark.parametrize("place", [2, -1, -2, (1 << 31) - 1])
def test_sorting_columns_outside_the_schema_are_left_out_of_a_signed_footer(place: int) -> None:
    parts = parts_of({"a": [1, 2, 3], "b": [3, 2, 1]})
    body, stored = parts.laid
    metadata = fmt.decode(fmt.FileMetaData, stored)[0]
    told = [fmt.SortingColumn(column_idx=index, descending=False, nulls_first=False) for index in (0, place)]
    metadata.row_groups[0].sorting_columns = told
    out = io.BytesIO()
    keys = fastpq.FileEncryptionProperties(KEY, {"b": KEY}, plaintext_footer=True)
    fastpq.encrypt_file(parts.closed(body, metadata, Random(0)), out, keys)
    written = fastpq.read_metadata(out.getvalue(), decryption_properties=fastpq.FileDecryptionProperties(KEY)).row_group(0)
    assert [entry.column_idx for entry in written.sorting_columns] == [0]
