"""The choice of encodings: the pure function, and what it makes of columns whose best encoding is known."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.format import Encoding
from fastpq.write.choice import DictionarySample, Sample, choose_encoding, dictionary_size

ROWS = 40_000


def sample(sizes: dict[Encoding, int], dictionary: DictionarySample | None = None, expected: int = 1_000_000) -> Sample:
    return Sample(1000, expected, sizes, dictionary, 1 << 20)


def test_the_smallest_wins_unless_a_simpler_one_is_hardly_larger() -> None:
    assert choose_encoding(sample({Encoding.PLAIN: 8000, Encoding.DELTA_BINARY_PACKED: 7700})).encoding == "PLAIN"
    choice = choose_encoding(sample({Encoding.PLAIN: 8000, Encoding.DELTA_BINARY_PACKED: 7000}))
    assert choice.encoding == "DELTA_BINARY_PACKED"
    assert choice.reason == "bytes a value, in a sample of 1000: DELTA_BINARY_PACKED 7.00, PLAIN 8.00"


def test_nothing_to_choose_by() -> None:
    assert choose_encoding(Sample(0, 0, {}, None, 1)).encoding == "PLAIN"


def test_a_dictionary_is_judged_by_the_whole_chunk() -> None:
    """Ten values that keep coming back cost a chunk nothing; values that are never seen again cost it a dictionary too large."""
    repeating = DictionarySample(distinct=10, once=0, twice=0, plain_size=80, stored_size=80, indices_size=500)
    assert dictionary_size(sample({}, repeating), repeating) == pytest.approx(0.5, rel=1e-3)
    unique = DictionarySample(distinct=1000, once=1000, twice=0, plain_size=8000, stored_size=8000, indices_size=1250)
    assert dictionary_size(sample({}, unique), unique) is None
    assert dictionary_size(sample({}, unique, 1000), unique) == pytest.approx(1.25 + 8)


def random() -> np.random.Generator:
    return np.random.default_rng(5)


COLUMNS: dict[str, tuple[Any, dict[str, str]]] = {
    "sorted integers": (np.cumsum(random().integers(0, 50, ROWS)), dict.fromkeys(("none", "zstd"), "DELTA_BINARY_PACKED")),
    "timestamps": (
        (np.arange(ROWS) * 1000 + random().integers(0, 99, ROWS)).astype("M8[us]"),
        dict.fromkeys(("none", "zstd"), "DELTA_BINARY_PACKED"),
    ),
    "random integers": (random().integers(-(2**62), 2**62, ROWS), dict.fromkeys(("none", "zstd"), "PLAIN")),
    "few integers": (random().integers(0, 30, ROWS) * 10**9, dict.fromkeys(("none", "zstd"), "RLE_DICTIONARY")),
    "measured": (random().normal(100, 1, ROWS).astype("f4"), {"none": "PLAIN", "zstd": "BYTE_STREAM_SPLIT"}),
    "doubles": (random().random(ROWS), {"none": "PLAIN", "zstd": "BYTE_STREAM_SPLIT"}),
    "sorted strings": (
        np.array([f"https://example.org/some/path/{i:09}/page" for i in range(ROWS)]),
        dict.fromkeys(("none", "zstd"), "DELTA_BYTE_ARRAY"),
    ),
    "few strings": (np.array([f"word {i % 50}" for i in range(ROWS)]), dict.fromkeys(("none", "zstd"), "RLE_DICTIONARY")),
    "runs of booleans": (np.arange(ROWS) // 1000 % 2 == 0, {"none": "RLE"}),
    "random booleans": (random().random(ROWS) < 0.5, dict.fromkeys(("none", "zstd"), "PLAIN")),
}


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_columns_whose_best_encoding_is_known(compression: str) -> None:
    data = {name: values for name, (values, _) in COLUMNS.items()}
    sink = io.BytesIO()
    with fastpq.ParquetWriter(sink, encoding="auto", compression=compression, row_group_size=15_000) as writer:
        assert writer.encodings() == {}
        writer.write_table(data)
    choices = writer.encodings()
    for name, (_, expected) in COLUMNS.items():
        if compression in expected:
            assert choices[name].encoding == expected[compression], choices[name].reason
    file = pq.ParquetFile(sink)
    for index, name in enumerate(file.schema.names):
        for group in range(file.metadata.num_row_groups):
            assert choices[name].encoding in file.metadata.row_group(group).column(index).encodings, name
    plain = io.BytesIO()
    fastpq.write_table(data, plain, compression=compression)
    assert len(sink.getvalue()) < len(plain.getvalue())
    assert file.read().equals(pq.read_table(plain).cast(file.schema_arrow))     # nullable in the file of a writer


def test_what_is_asked_for_comes_first() -> None:
    sink = io.BytesIO()
    data = {"a": np.arange(1000), "b": np.arange(1000) % 3}
    with fastpq.ParquetWriter(sink, encoding="auto", column_encoding={"a": "PLAIN"}, use_dictionary=False) as writer:
        writer.write_table(data)
    choices = writer.encodings()
    assert choices["a"] == fastpq.EncodingChoice("PLAIN", "column_encoding asks for it")
    assert choices["b"].encoding == "DELTA_BINARY_PACKED"
    with fastpq.ParquetWriter(io.BytesIO(), use_dictionary=["b"]) as writer:
        writer.write_table(data)
    assert [choice.encoding for choice in writer.encodings().values()] == ["PLAIN", "RLE_DICTIONARY"]
    with pytest.raises(ValueError, match="encoding must be"):
        fastpq.write_table(data, io.BytesIO(), encoding="PLAIN")    # type: ignore[arg-type]


def test_a_column_without_values_is_chosen_for_later() -> None:
    sink = io.BytesIO()
    nothing = np.ma.masked_all(3000, np.int64)
    with fastpq.ParquetWriter(sink, encoding="auto") as writer:
        writer.write_table({"a": nothing})
        assert writer.encodings() == {}
        writer.write_table({"a": np.ma.masked_array(np.arange(3000), np.arange(3000) % 5 == 0)})
        assert writer.encodings()["a"].encoding == "DELTA_BINARY_PACKED"
    assert pq.read_table(sink).column("a").to_pylist() == [None] * 3000 + [None if i % 5 == 0 else i for i in range(3000)]


def test_leaves_of_nested_columns() -> None:
    table = pa.table({"a": [[i, i + 1] if i % 3 else None for i in range(5000)]})
    sink = io.BytesIO()
    with fastpq.ParquetWriter(sink, encoding="auto") as writer:
        writer.write_table(table)
    assert {choice.encoding for choice in writer.encodings().values()} == {"DELTA_BINARY_PACKED"}
    assert pq.read_table(sink).column("a").to_pylist() == table.column("a").to_pylist()
