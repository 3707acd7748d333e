"""The choice of encodings: the pure function, and what it makes of columns whose best encoding is known."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.column.input import ColumnInput
from fastpq.format import Encoding
from fastpq.write import sampling
from fastpq.write.choice import DictionarySample, Sample, choose_encoding, choose_level, dictionary_size

ROWS = 40_000


def sample(sizes: dict[Encoding, int], dictionary: DictionarySample | None = None, expected: int = 1_000_000) -> Sample:
    return Sample(1000, expected, sizes, dictionary, 1 << 20)


def test_the_smallest_wins_unless_a_simpler_one_is_hardly_larger() -> None:
    assert choose_encoding(sample({Encoding.PLAIN: 8000, Encoding.DELTA_BINARY_PACKED: 7900})).encoding == "PLAIN"
    choice = choose_encoding(sample({Encoding.PLAIN: 8000, Encoding.DELTA_BINARY_PACKED: 7000}))
    assert choice.encoding == "DELTA_BINARY_PACKED"
    assert choice.reason == "bytes per value, in a sample of 1000: DELTA_BINARY_PACKED 7.00, PLAIN 8.00"


def test_a_higher_level_must_save_enough() -> None:
    assert choose_level({1: 1000}) == 1
    assert choose_level({1: 1000, 3: 990, 5: 989}) == 1
    assert choose_level({1: 1000, 3: 980, 5: 979}) == 3
    assert choose_level({1: 1000, 3: 1001, 5: 900}) == 5


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


def test_the_level_of_zstd_is_chosen_with_the_encoding() -> None:
    """Text that repeats itself over long distances needs a higher level and larger pages. Noise needs neither."""
    words = np.array([f"word{i}" for i in random().integers(0, 10**6, 3000)])
    texts = [" ".join(line) for line in words[random().zipf(1.3, (ROWS, 30)) % len(words)]]
    data = {"text": pa.array(texts), "noise": random().random(ROWS)}
    sizes, pages = {}, {}
    for level in (None, 1, 3):
        sink = io.BytesIO()
        with fastpq.ParquetWriter(sink, encoding="auto", compression="zstd", compression_level=level) as writer:
            writer.write_table(data)
        choices = writer.encodings()
        if level is None:
            assert choices["text"].level in (3, 5), choices["text"].reason
            assert choices["noise"].level == 1
        else:
            assert choices["text"].level is None
        sizes[level] = len(sink.getvalue())
        index = fastpq.ParquetFile(sink.getvalue()).offset_index(0, "text")
        assert index is not None
        pages[level] = len(index.page_locations)
        assert pq.read_table(sink).column("text").to_pylist() == texts
    assert sizes[None] < sizes[3] < sizes[1]
    assert pages[None] < pages[3]


def test_a_level_is_chosen_for_zstd_alone() -> None:
    data = {"a": random().random(ROWS), "b": random().random(ROWS)}
    with fastpq.ParquetWriter(
        io.BytesIO(), encoding="auto", compression={"a": "gzip", "b": "zstd"}, compression_level={"b": 2}
    ) as writer:
        writer.write_table(data)
    assert {choice.level for choice in writer.encodings().values()} == {None}


def test_a_sample_of_long_lists_is_small() -> None:
    """A sample has some values, not some rows, however many values a row has."""
    values = random().normal(0, 1, (50, 4000)).astype("f4")
    table = pa.table({"a": pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 4000)})
    sink = io.BytesIO()
    with fastpq.ParquetWriter(sink, encoding="auto", compression="zstd") as writer:
        writer.write_table(table)
    (choice,) = writer.encodings().values()
    assert choice.encoding == "BYTE_STREAM_SPLIT"
    assert "in a sample of 16000:" in choice.reason
    assert pq.read_table(sink)["a"].to_pylist() == values.tolist()


@pytest.mark.parametrize("rows", [1000, 50_000])
def test_one_page_for_each_chunk_needs_no_page_index(rows: int) -> None:
    """The statistics of the chunks say the same. With more pages in any chunk of the row group, every chunk has its index."""
    data = {"a": np.arange(rows), "b": np.arange(rows) % 7 == 0}
    fastpq.write_table(data, sink := io.BytesIO(), encoding="auto")
    file = fastpq.ParquetFile(sink.getvalue())
    has_index = rows > 20_000
    assert (file.offset_index(0, "a") is not None) == has_index
    assert (file.column_index(0, "b") is not None) == has_index
    fastpq.write_table(data, default := io.BytesIO())
    assert fastpq.ParquetFile(default.getvalue()).offset_index(0, "a") is not None
    filtered = file.read(filters=[("a", ">=", rows - 3)])
    assert filtered["a"].to_pylist() == [rows - 3, rows - 2, rows - 1]
    assert fastpq.verify_file(sink.getvalue()).is_sound
    assert pq.read_table(sink, filters=[("a", "<", 5)])["b"].to_pylist() == [True, False, False, False, False]


@pytest.mark.parametrize("is_chunked", [False, True], ids=["one chunk", "chunks"])
def test_samples_of_large_values_are_small(is_chunked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    stored_size = sampling._stored_size

    def measured(run: ColumnInput, *arguments: Any) -> int:
        sizes.append(run.rows * len(value))
        return stored_size(run, *arguments)

    monkeypatch.setattr(sampling, "_stored_size", measured)
    value = np.random.default_rng(1).bytes(100_000)
    values = pa.array([value] * 1_000)
    table = pa.table({"x": pa.chunked_array([values.slice(0, 400), values.slice(400)]) if is_chunked else values})
    target = io.BytesIO()
    fastpq.write_table(table, target, compression="zstd", use_dictionary=False, encoding="auto")
    assert max(sizes) <= sampling.RUN_BYTES
    assert pq.read_table(io.BytesIO(target.getvalue()))["x"].to_pylist() == [value] * 1_000


def test_a_large_value_among_small_ones() -> None:
    values = [b"small"] * 999 + [np.random.default_rng(1).bytes(sampling.PAGE_BYTES + 1)]
    target = io.BytesIO()
    fastpq.write_table({"x": np.array(values, object)}, target, compression="snappy", use_dictionary=False, encoding="auto")
    assert fastpq.read_table(io.BytesIO(target.getvalue()))["x"].to_pylist() == values
