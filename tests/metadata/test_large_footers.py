"""Footers of extraordinary size: linear time and memory, and bounds."""

from __future__ import annotations

import io
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastpq
from benchmarks.footers import columns, empty_row_groups, file_of, key_values, row_groups, schema_of
from fastpq import format as fmt
from fastpq.options import LARGEST_KEY_VALUES, MOST_COLUMNS, ReaderProperties


@pytest.mark.parametrize(
    ("bound", "data", "told"),
    [
        ("max_row_groups", empty_row_groups(20), "20 row groups"),
        ("max_columns", columns(20), "20 columns and groups in the schema"),
        ("max_metadata_size", key_values(2), r"\d+ bytes of key-value metadata"),
    ],
)
def test_bounds(bound: str, data: bytes, told: str) -> None:
    size = fastpq.ParquetFile(data).metadata.key_value_bytes if bound == "max_metadata_size" else 20
    enough: dict[str, Any] = {bound: size}
    lacking: dict[str, Any] = {bound: size - 1}
    fastpq.ParquetFile(data, properties=ReaderProperties(**enough))
    options: list[dict[str, Any]] = [{}, {"on_error": "null"}]
    for more in options:
        with pytest.raises(fastpq.LimitError, match=f"{told}, over {bound} "):
            fastpq.ParquetFile(data, properties=ReaderProperties(**lacking), **more)


def test_defaults_refuse_what_would_fill_the_memory() -> None:
    root = fmt.encode(fmt.SchemaElement(name="schema", num_children=250_001))
    wide = file_of([root, *schema_of(["a"])[1:] * 250_001], 0, [])
    long = file_of(schema_of(["a"]), 0, [], [fmt.encode(fmt.KeyValue(key="k", value="v" * (64 << 20)))])
    for data in (empty_row_groups(1_000_001), wide, long):
        with pytest.raises(fastpq.LimitError, match="over max_"):
            fastpq.ParquetFile(data)


def test_the_writer_has_the_same_limits() -> None:
    many = {f"c{index}": np.zeros(1, np.int8) for index in range(MOST_COLUMNS + 1)}
    with pytest.raises(fastpq.LimitError, match="more than 250,000 columns"):
        fastpq.write_table(many, io.BytesIO())
    with pytest.raises(fastpq.LimitError, match="key_value_metadata has more than"):
        fastpq.ParquetWriter(io.BytesIO(), key_value_metadata={"k": "v" * LARGEST_KEY_VALUES}).write_table({"a": np.zeros(1)})


def seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def test_empty_row_groups_cost_no_objects() -> None:
    """Memory and time a row group are some hundred bytes and a microsecond; a decoded one takes a kilobyte and more."""
    data, count = empty_row_groups(100_000), 100_000
    tracemalloc.start()
    try:
        with fastpq.ParquetFile(data) as file:
            assert file.read().num_rows == 0
            assert file.head(3).num_rows == 0
        assert tracemalloc.get_traced_memory()[1] < 300 * count
    finally:
        tracemalloc.stop()
    assert seconds(lambda: fastpq.read_table(data)) < 2


def test_many_row_groups_and_columns() -> None:
    table = fastpq.read_table(row_groups(3000))
    assert table["a"].to_numpy().tolist() == [7] * 3000
    table = fastpq.read_table(columns(3000), threads=4)
    assert [int(table[name].to_numpy()[0]) for name in table.names] == [7] * 3000


def test_key_values_are_decoded_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    data = key_values(1000)
    decoded = fmt.decode_list
    with monkeypatch.context() as patched:
        patched.setattr(fmt, "decode_list", lambda *_: pytest.fail("decoded"))
        with fastpq.ParquetFile(data) as file:
            file.read()
            assert file.metadata.key_value("absent") is None
    assert fmt.decode_list is decoded
    metadata = fastpq.read_metadata(data)
    assert metadata.key_value_metadata == {f"k{number}": "v" for number in range(1000)}
    assert metadata.key_value("k999") == "v"
    assert metadata.key_value("v") is None


def test_a_broken_entry_of_the_key_values() -> None:
    entry = fmt.encode(fmt.KeyValue(key="a", value="b"))
    data = file_of(schema_of(["a"]), 0, [], [entry, b"\x00"])      # the second entry has no key
    metadata = fastpq.read_metadata(data)
    with pytest.raises(fastpq.FormatError, match="KeyValue has no key"):
        metadata.key_values  # noqa: B018 - the access decodes


def test_row_groups_with_unusual_fields() -> None:
    """Row counts are taken from the first pass over the footer only where the pass and the decoder agree."""
    group = fmt.RowGroup(columns=[], total_byte_size=0, num_rows=3, ordinal=5)
    usual = fmt.encode(group)
    as_i32 = b"\x19\x0c\x16\x00\x15\x06\x00"                       # num_rows as an I32: a field of another version
    twice = usual[:-1] + b"\x09\x02\x0c\x00"                       # the list of columns twice
    read = fastpq.read_metadata(file_of(schema_of([]), 3, [usual]))
    assert read.row_counts == [3]
    assert read.row_group(0).ordinal == 5
    assert read.row_group(0).metadata == fmt.RowGroup(total_byte_size=0, num_rows=3, ordinal=5)
    with pytest.raises(fastpq.FormatError, match="RowGroup has no num_rows"):
        fastpq.read_table(file_of(schema_of([]), 3, [as_i32]))
    assert fastpq.read_metadata(file_of(schema_of([]), 3, [twice])).row_counts == [3]
    with pytest.raises(fastpq.FormatError, match="the row group has -1 rows"):
        fastpq.read_table(file_of(schema_of([]), 3, [usual, usual.replace(b"\x16\x06", b"\x16\x01")]))


def test_encrypted_footers_have_the_same_bounds() -> None:
    out = io.BytesIO()
    keys = fastpq.FileEncryptionProperties(bytes(16))
    fastpq.write_table({"a": np.arange(10)}, out, row_group_size=1, encryption_properties=keys)
    opened = fastpq.FileDecryptionProperties(bytes(16))
    with pytest.raises(fastpq.LimitError, match="10 row groups, over max_row_groups"):
        fastpq.read_metadata(out.getvalue(), decryption_properties=opened, properties=ReaderProperties(max_row_groups=9))
