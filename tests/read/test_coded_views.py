"""Text columns of few texts are held as codes (CodedViews), and look like views: files of pyarrow, Polars and DuckDB."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrays.table import BinaryOffsets, BinaryViews, CodedViews, Column, Table
from fastpq.read import dictionary_columns, scan
from tests.narrowing import present
from tests.requirements import peer

duckdb, pl = peer("duckdb"), peer("polars")

ROWS = 3000
GROUP = 700
STRINGS: tuple[Literal["views", "offsets", "dictionary"], ...] = ("views", "offsets", "dictionary")
LONG = "a text that is longer than a view holds, number "


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small columns are held as codes, too."""
    monkeypatch.setattr(scan, "ROWS_WORTH_CODES", 0)
    monkeypatch.setattr(dictionary_columns, "ROWS_A_STORED_BYTE", 0)


def table(seed: int = 3) -> pa.Table:
    """Columns whose row groups have dictionaries of other entries, in another order."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 12, ROWS) + np.arange(ROWS) // 500 * 5
    short = [f"{number}" for number in numbers]
    long = [LONG + text if number % 3 else text for number, text in zip(numbers, short, strict=True)]
    is_null = (numbers % 4 == 0) | (np.arange(ROWS) < GROUP)
    nulls = [None if null else text for null, text in zip(is_null, long, strict=True)]
    return pa.table({
        "short": pa.array(short),
        "required": pa.array(long),
        "nulls": pa.array(nulls),
        "bytes": pa.array([None if text is None else text.encode() for text in nulls], pa.binary()),
        "none": pa.nulls(ROWS, pa.string()),
        "empty": pa.array(["", "x"] * (ROWS // 2)),
    }, pa.schema([
        pa.field("short", pa.string(), nullable=False),
        pa.field("required", pa.string(), nullable=False),
        pa.field("nulls", pa.string()),
        pa.field("bytes", pa.binary()),
        pa.field("none", pa.string()),
        pa.field("empty", pa.string()),
    ]))


def stored(made: pa.Table, **options: Any) -> bytes:
    target = io.BytesIO()
    pq.write_table(made, target, row_group_size=GROUP, **options)
    return target.getvalue()


def coded(column: Any) -> CodedViews:
    assert isinstance(column, Column)
    assert isinstance(column.values, CodedViews)
    return column.values


def views_of(data: Any, **options: Any) -> Table:
    """The table as plain views."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scan, "ROWS_WORTH_CODES", 1 << 60)
        read = fastpq.read_table(data, **options)
    assert not any(isinstance(column, Column) and isinstance(column.values, CodedViews) for column in read.columns)
    return read


def test_many_rows_of_few_texts() -> None:
    """Columns of many rows for each text are codes by default, other columns are views."""
    rows = 1 << 17
    many = [f"text {number}" for number in range(rows)]
    made = pa.table({"few": [f"text {number % 9}" for number in range(rows)], "many": many})
    target = io.BytesIO()
    pq.write_table(made, target, row_group_size=rows // 4)
    read = fastpq.read_table(target)
    assert read["few"].nbytes < rows * 5 < rows * 16 <= views_of(target)["few"].nbytes
    assert len(coded(read["few"]).entries) == 9
    assert type(read["many"].leaf(()).values) is BinaryViews
    assert isinstance(fastpq.read_table(target, strings="offsets")["few"].leaf(()).values, BinaryOffsets)
    assert pa.table(read).cast(made.schema).equals(made)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_every_way_out(compression: str, threads: int) -> None:
    made = table()
    data = stored(made, compression=compression)
    read, plain = fastpq.read_table(data, threads=threads), views_of(data)
    for name in made.column_names:
        column, other, values = read[name], plain[name], made[name].to_pylist()
        assert len(coded(column).entries) == len(set(values) - {None})
        assert (len(column), column.null_count) == (ROWS, made[name].null_count)
        assert column.to_pylist() == values
        assert column.equals(other)
        assert other.equals(column)
        assert np.array_equal(column.to_numpy(nulls="object"), other.to_numpy(nulls="object"))
        assert column.used_bytes() == other.used_bytes()
        assert str(column) == str(other)
        assert column[1500] == values[1500]
        for part, part_of in ((column.slice(13, 1777), values[13:1777]), (column.take(np.arange(ROWS)[::-7]), values[::-7])):
            assert part.to_pylist() == part_of
            coded(part)
            assert part.to_arrow().to_pylist() == part_of
        assert pickle.loads(pickle.dumps(column)).to_pylist() == values
        dictionary = column.as_dictionary()
        assert dictionary.to_pylist() == values
        assert dictionary.values.dictionary.to_pylist() == list(dict.fromkeys(value for value in values if value is not None))
        assert column.as_offsets().to_pylist() == column.as_views().to_pylist() == values
    assert pa.table(read).cast(made.schema).equals(made)
    assert pl.DataFrame(read).equals(pl.read_parquet(io.BytesIO(data)))
    assert read.to_pandas().equals(plain.to_pandas())


@pytest.mark.usefixtures("small")
def test_views_are_made_once_and_counted() -> None:
    values = coded(fastpq.read_table(stored(table()))["nulls"])
    size = values.nbytes
    first = values.views
    assert values.views is first
    assert values.nbytes == size + first.nbytes == size + 16 * ROWS
    assert len(values.buffers) == 1


@pytest.mark.usefixtures("small")
def test_tables_joined() -> None:
    """Dictionaries become one; columns of codes and of views become views."""
    made, other = table(), table(4).slice(100, 1900)
    first, second, views = fastpq.read_table(stored(made)), fastpq.read_table(stored(other)), views_of(stored(other))
    joined = Table.concat([first, second, first])
    for name in made.column_names:
        wanted = made[name].to_pylist() + other[name].to_pylist() + made[name].to_pylist()
        assert len(coded(joined[name]).entries) == len(set(wanted) - {None})
        assert joined[name].to_pylist() == wanted
        assert joined[name].to_arrow().to_pylist() == wanted
        assert first[name].to_pylist() == made[name].to_pylist()        # not changed by the new codes
        mixed = Table.concat([first, views])[name]
        assert not isinstance(mixed.leaf(()).values, CodedViews)
        assert mixed.to_pylist() == made[name].to_pylist() + other[name].to_pylist()
    few = Table.concat([first.slice(0, 2), second.slice(0, 2)])["required"]        # more entries than rows
    assert not isinstance(few.leaf(()).values, CodedViews)
    assert few.to_pylist() == made["required"].to_pylist()[:2] + other["required"].to_pylist()[:2]


@pytest.mark.usefixtures("small")
def test_rows_of_a_predicate() -> None:
    made = table()
    data = stored(made, write_page_index=True, data_page_size=300)
    filters: list[list[tuple[str, str, Any]]] = [
        [("short", "==", "7")], [("nulls", "!=", LONG + "7")], [("required", "in", ["3", LONG + "40"])], [("nulls", ">", "4")],
    ]
    for each in filters:
        wanted = pq.read_table(io.BytesIO(data), filters=each)
        assert 0 < wanted.num_rows < ROWS
        assert pa.table(fastpq.read_table(data, filters=each)).cast(made.schema).equals(wanted)
    with fastpq.ParquetFile(data) as file:
        read = file.read(row_ranges=[(5, 80), (690, 1500)])
        assert pa.table(read).cast(made.schema).equals(pa.concat_tables([made.slice(5, 75), made.slice(690, 810)]))
        assert pa.table(file.head(1000)).cast(made.schema).equals(made.slice(0, 1000))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("options", [
    {}, {"dictionary_page_size": 100}, {"use_dictionary": False}, {"data_page_size": 200}, {"bloom_filter": {"nulls": True}},
], ids=["whole", "full dictionary", "no dictionary", "small pages", "bloom filters"])
def test_writing_codes(tmp_path: Path, options: dict[str, Any]) -> None:
    """The file of codes is that of views, byte for byte, and pyarrow, DuckDB and Polars read it."""
    made = table()
    data = stored(made)
    read = fastpq.read_table(data)
    for group in (900, ROWS):
        fastpq.write_table(read, tmp_path / "codes", row_group_size=group, **options)
        fastpq.write_table(views_of(data), tmp_path / "views", row_group_size=group, **options)
        assert (tmp_path / "codes").read_bytes() == (tmp_path / "views").read_bytes()
    fastpq.write_table(read.slice(123, 2901), tmp_path / "codes", row_group_size=900, **options)
    wanted = made.slice(123, 2778)
    assert pq.read_table(tmp_path / "codes").cast(made.schema).equals(wanted)
    assert pl.read_parquet(tmp_path / "codes").equals(pl.DataFrame(wanted))
    rows = duckdb.sql(f"select * from read_parquet('{tmp_path / 'codes'}')").fetchall()
    assert rows == [tuple(row.values()) for row in wanted.to_pylist()]


@pytest.mark.usefixtures("small")
def test_pages_of_other_encodings() -> None:
    """A footer that hides the pages behind a full dictionary: their values get codes, too."""
    made = pa.table({"text": [f"{LONG}{number % 500}" for number in range(ROWS)]})
    data = stored(made, dictionary_pagesize_limit=1000, data_page_size=500, compression="none")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dictionary_columns, "stored_dictionary_size", lambda *arguments: 1)
        read = fastpq.read_table(data)
    assert len(coded(read["text"]).entries) == 500
    assert read["text"].to_pylist() == made["text"].to_pylist()
    assert "text" in str(present(read["text"].to_arrow())[0].as_py())


def test_a_chunk_that_leaves_a_small_dictionary() -> None:
    """Compressed, the page of the full dictionary is smaller than that of the chunk before, with all values in its dictionary."""
    random = np.random.default_rng(1)
    few = [random.bytes(70).hex() for _ in range(120)]
    texts = [few[number % 120] for number in range(150_000)] + [f"common prefix of texts {number}" for number in range(100_000)]
    made = pa.table({"text": texts}, schema=pa.schema([pa.field("text", pa.string(), nullable=False)]))
    target = io.BytesIO()
    pq.write_table(
        made, target, row_group_size=150_000, compression="zstd", dictionary_pagesize_limit=20_000, write_batch_size=100)
    data = target.getvalue()
    chunks = [pq.ParquetFile(target).metadata.row_group(number).column(0) for number in range(2)]
    sizes = [chunk.data_page_offset - chunk.dictionary_page_offset for chunk in chunks]
    assert sizes[1] < sizes[0]
    column = fastpq.read_table(data)["text"]
    assert isinstance(column, Column)
    assert not isinstance(column.values, CodedViews)
    assert column.to_pylist() == texts
    coded(fastpq.read_table(data, row_groups=[0])["text"])


@pytest.mark.usefixtures("small")
def test_encrypted_columns() -> None:
    made = table()
    properties = fastpq.FileEncryptionProperties(b"0123456789012345", column_keys={"nulls": b"5432109876543210"})
    target = io.BytesIO()
    fastpq.write_table(made, target, row_group_size=GROUP, encryption_properties=properties)
    opening = fastpq.FileDecryptionProperties(b"0123456789012345", column_keys={"nulls": b"5432109876543210"})
    read = fastpq.read_table(target.getvalue(), decryption_properties=opening)
    coded(read["nulls"])
    assert pa.table(read).cast(made.schema).equals(made)


def test_broken_metadata_of_encodings() -> None:
    """Encodings in the metadata are evidence for codes alone: without the evidence, values are read."""
    rows = 1 << 15
    made = pa.table({"text": [f"text {number % 9}" for number in range(rows)]})
    target = io.BytesIO()
    pq.write_table(made, target)
    sound = target.getvalue()
    broken = 0
    for place in range(len(sound) - 8 - int.from_bytes(sound[-8:-4], "little"), len(sound) - 8):
        data = bytearray(sound)
        data[place] ^= 0x10
        try:
            views_of(bytes(data))
        except fastpq.ParquetError:
            continue
        with fastpq.ParquetFile(bytes(data)) as file:
            try:
                assert file.metadata.row_group(0).column(0).encoding_stats is not None
            except fastpq.FormatError:
                broken += 1
                for strings in STRINGS:
                    read = fastpq.read_table(bytes(data), strings=strings, on_error="null")
                    assert read["text"].to_pylist() == made["text"].to_pylist()
    assert broken


@pytest.mark.usefixtures("small")
def test_nulls_that_become_values() -> None:
    """Nulls of a column that loses its bitmap are empty values, as in a column of views."""
    read = fastpq.read_table(stored(table()))
    for name in ("nulls", "none"):
        column = read[name].leaf(())
        values = [value or "" for value in column.to_pylist()]
        assert column._with(validity=None, null_count=0).to_pylist() == values


@pytest.mark.usefixtures("small")
def test_parts_with_more_texts_than_rows() -> None:
    read = fastpq.read_table(stored(table()))["nulls"].leaf(())
    entries = len(coded(read).entries)
    for part in (read.slice(900, 900 + entries - 1), read.take(np.arange(900, 900 + entries - 1))):
        assert type(part.values) is BinaryViews
        assert part.to_pylist() == read.to_pylist()[900 : 900 + entries - 1]


def test_one_copy_of_the_texts_of_many_row_groups() -> None:
    """The dictionaries of all threads and runs become one, and their bytes one copy."""
    rows, texts = 1 << 14, 50
    made = pa.table({"text": [f"{LONG * 4}{number % texts}" for number in range(rows)] * 8})
    target = io.BytesIO()
    pq.write_table(made, target, row_group_size=rows)
    with fastpq.ParquetFile(target) as file:
        values = coded(file.read(progress=lambda *told: None)["text"])
    assert sum(map(len, values.buffers)) <= texts * len(LONG * 5)
    assert values.entries.views.shape == (texts,)


def test_memory_of_files_joined(tmp_path: Path) -> None:
    """Codes count as the views that they become beside a file without codes."""
    rows = 1 << 16
    few = pa.table({"text": [f"text {number % 9}" for number in range(rows)]})
    for number in range(6):
        pq.write_table(few, tmp_path / f"{number}.parquet")
    pq.write_table(few, tmp_path / "plain.parquet", use_dictionary=False)
    with pytest.raises(fastpq.LimitError, match="take"):
        fastpq.read_table(tmp_path, properties=fastpq.ReaderProperties(max_allocation=5 * 16 * rows))
    assert fastpq.read_table(tmp_path, properties=fastpq.ReaderProperties(max_allocation=12 * 20 * rows)).num_rows == 7 * rows


@pytest.mark.usefixtures("small")
def test_memory_of_dictionaries_is_given_back() -> None:
    """Each row group of a read with a filter has a reader, whose tables end with it."""
    made = pa.table({"number": range(400 * 500), "text": [f"{LONG}{number % 300}" for number in range(400 * 500)]})
    target = io.BytesIO()
    pq.write_table(made, target, row_group_size=500)
    properties = fastpq.ReaderProperties(max_allocation=10 << 20)
    read = fastpq.read_table(target, ["number", "text"], filters=[("text", "==", f"{LONG}7")], properties=properties)
    assert read["number"].to_pylist() == [number for number in range(400 * 500) if number % 300 == 7]
