"""Columns of text read as codes into a dictionary, from dictionary pages as they are stored."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrays.flat_column import DictionaryValues
from fastpq.read.scan import Scan
from tests.narrowing import present

KEY = bytes(range(16))
RNG = np.random.default_rng(7)
WORDS = ["", "a", "over twelve bytes", "ä, not ASCII", *(f"word {n}" for n in range(40))]
ROWS = 5000


def words(start: int, nulls: bool) -> list[str | None]:
    """Words of which each part of the rows uses others, so that the row groups have different dictionaries."""
    chosen = [WORDS[(start + int(n) + row // 800) % len(WORDS)] for row, n in enumerate(RNG.integers(0, 12, ROWS))]
    return [None if nulls and n == 0 else word for word, n in zip(chosen, RNG.integers(0, 4, ROWS), strict=True)]


def check(target: Any, **options: Any) -> fastpq.Table:
    """Codes are those of the values read as views, whose dictionary is in the order of first appearance."""
    expected = fastpq.read_table(target, **options)
    for threads in (1, 3):
        read = fastpq.read_table(target, strings="dictionary", threads=threads, **options)
        for name in expected.names:
            values, before = read.flat(name).values, expected.flat(name).as_dictionary()
            assert isinstance(values, DictionaryValues)
            assert isinstance(before.values, DictionaryValues)
            assert values.codes.dtype == np.int32
            assert values.dictionary.to_pylist() == before.values.dictionary.to_pylist()
            assert values.codes.tolist() == before.values.codes.tolist()
            assert read[name].to_pylist() == expected[name].to_pylist()
            assert read[name].null_count == expected[name].null_count
    return read


@pytest.fixture
def coded(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The answers to whether a column is read as codes."""
    answers: list[bool] = []
    asked = Scan._reads_codes

    def noted(self: Scan, *arguments: Any) -> bool:
        answers.append(asked(self, *arguments))
        return answers[-1]

    monkeypatch.setattr(Scan, "_reads_codes", noted)
    return answers


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("nulls", [False, True])
def test_files_of_pyarrow(version: str, nulls: bool, coded: list[bool]) -> None:
    text = words(0, nulls)
    octets = [None if word is None else word.encode() for word in words(5, nulls)]
    schema = pa.schema([pa.field("text", pa.string(), nullable=nulls), pa.field("bytes", pa.binary(), nullable=nulls)])
    target = io.BytesIO()
    table = pa.table({"text": text, "bytes": octets}, schema=schema)
    pq.write_table(table, target, row_group_size=700, data_page_version=version, data_page_size=200)
    read = check(target)
    assert all(coded)
    assert read["text"].to_pylist() == text
    assert read["bytes"].to_pylist() == octets


def test_a_file_of_polars(coded: list[bool]) -> None:
    target, text = io.BytesIO(), words(3, True)
    pl.DataFrame({"text": text}).write_parquet(target, row_group_size=900, use_pyarrow=False)
    assert check(target)["text"].to_pylist() == text
    assert coded


def test_an_encrypted_file(coded: list[bool]) -> None:
    target, text = io.BytesIO(), words(1, True)
    fastpq.write_table(
        {"text": text}, target, row_group_size=900, encryption_properties=fastpq.FileEncryptionProperties(KEY))
    assert check(target, decryption_properties=fastpq.FileDecryptionProperties(KEY))["text"].to_pylist() == text
    assert all(coded)


@pytest.mark.parametrize("text", [[], [None] * 50, [None] * 50 + ["a"] * 50, ["a"] * 50 + [None] * 50])
def test_chunks_without_values(text: list[str | None]) -> None:
    target = io.BytesIO()
    pq.write_table(pa.table({"text": pa.array(text, pa.string())}), target, row_group_size=50)
    assert check(target)["text"].to_pylist() == text


def test_row_groups_in_another_order() -> None:
    target = io.BytesIO()
    pq.write_table(pa.table({"text": words(0, True)}), target, row_group_size=1000)
    check(target, row_groups=[3, 0, 4])


def test_memory() -> None:
    """Four bytes a row, and no page of the file."""
    target = io.BytesIO()
    pq.write_table(pa.table({"text": words(0, False)}), target, row_group_size=1000)
    read = fastpq.read_table(target, strings="dictionary")
    assert read.nbytes < 4 * ROWS + 3000
    assert fastpq.read_table(target).nbytes > 16 * ROWS


@pytest.mark.parametrize("options", [
    {"dictionary_pagesize_limit": 100},         # the dictionary is full in the middle of a chunk
    {"use_dictionary": False},
    {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
    {"use_dictionary": False, "column_encoding": "DELTA_LENGTH_BYTE_ARRAY"},
])
def test_pages_without_a_dictionary(options: dict[str, Any], coded: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read as codes too, if the metadata promise dictionaries where there are none."""
    target = io.BytesIO()
    table = pa.table({"text": words(2, True)})
    pq.write_table(table, target, row_group_size=1000, data_page_size=300, write_batch_size=50, **options)
    check(target)
    assert not any(coded)
    monkeypatch.setattr(Scan, "_reads_codes", lambda *arguments: True)
    check(target)


def test_values_outside_of_the_dictionary_count_as_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    target = io.BytesIO()
    text = [f"a value of its own, number {number}" for number in range(50_000)]
    pq.write_table(pa.table({"text": text}), target, use_dictionary=False)
    monkeypatch.setattr(Scan, "_reads_codes", lambda *arguments: True)
    with pytest.raises(fastpq.LimitError, match="max_allocation"):
        fastpq.read_table(target, strings="dictionary", properties=fastpq.ReaderProperties(max_allocation=2_500_000))
    assert fastpq.read_table(target, strings="dictionary")["text"].to_pylist() == text


def test_broken_text_and_indices() -> None:
    target = io.BytesIO()
    pq.write_table(pa.table({"text": ["same", "other", "third"] * 500}), target, compression=None)
    sound = target.getvalue()
    for place, octet, fault in ((sound.index(b"other"), 0xFF, "UTF-8"), (sound.index(b"\x24\x49\x92"), 0x27, "dictionary")):
        broken = bytearray(sound)
        broken[place] = octet       # of the second: index 3 of three entries
        with pytest.raises(fastpq.FormatError, match=fault):
            fastpq.read_table(io.BytesIO(broken), strings="dictionary")


def test_a_dictionary_behind_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Footers may lie about the encodings of pages: a dictionary page moved behind the first page of values is read."""
    target = io.BytesIO()
    table = pa.table({"s": [f"a{n:02}" for n in range(60)]}, pa.schema([pa.field("s", pa.string(), nullable=False)]))
    sizes = {"dictionary_pagesize_limit": 60, "data_page_size": 40, "write_batch_size": 5}
    pq.write_table(table, target, compression="none", write_page_index=True, **sizes)
    data = target.getvalue()
    column = pq.ParquetFile(target).metadata.row_group(0).column(0)
    with fastpq.ParquetFile(data) as file:
        pages = present(file.offset_index(0, "s")).page_locations
        places = [(page.offset, page.offset + page.compressed_page_size) for page in pages]
    start, end = column.dictionary_page_offset, places[-1][1]
    values, count = [data[first:last] for first, last in places], len(table) - pages[-1].first_row_index
    moved = values[-1] + data[start : column.data_page_offset] + b"".join(values[:-1])
    monkeypatch.setattr(Scan, "_reads_codes", lambda *arguments: True)
    read = fastpq.read_table(data[:start] + moved + data[end:], strings="dictionary")
    texts = table["s"].to_pylist()
    assert read["s"].to_pylist() == texts[-count:] + texts[:-count]
