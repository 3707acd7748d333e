"""head, tail, take, sample, null_count and batches of datasets, beside pyarrow and DuckDB."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrays.flat_column import DictionaryValues
from fastpq.datasets.opened_files import OpenedFiles
from tests.requirements import peer

duckdb = peer("duckdb")

SIZES = [5, 0, 1, 7, 12, 2]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Files of different sizes and types; the column "late" is missing in the first ones."""
    start = 0
    for number, size in enumerate(SIZES):
        ids = np.arange(start, start + size)
        columns: dict[str, Any] = {
            "id": pa.array(ids, pa.int32() if number % 2 else pa.int64()),
            "text": [None if row % 3 == 0 else f"text number {row}" for row in ids.tolist()],
            "tags": [[row, None][: row % 3] for row in ids.tolist()],
        }
        if number > 2:
            columns["late"] = pa.array([None if row % 2 else row / 7 for row in ids.tolist()], pa.float64())
        folder = tmp_path / f"part={number if number != 5 else '__HIVE_DEFAULT_PARTITION__'}"
        folder.mkdir()
        pq.write_table(pa.table(columns), folder / f"{number}.parquet", row_group_size=4, write_statistics=number != 4)
        start += size
    return tmp_path


def peers(root: Path) -> pa.Table:
    """The rows as pyarrow reads them."""
    types = {"id": pa.int64(), "text": pa.string(), "tags": pa.list_(pa.int64()), "late": pa.float64(), "part": pa.int32()}
    schema = pa.schema(types.items())
    partitioning = ds.partitioning(pa.schema([schema.field("part")]), flavor="hive")
    return ds.dataset(fastpq.ParquetDataset(root).files, schema=schema, format="parquet", partitioning=partitioning).to_table()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 14, 15, 26, 27, 99])
def test_tail(root: Path, n: int) -> None:
    dataset, expected = fastpq.ParquetDataset(root), peers(root)
    assert dataset.tail(n).to_pylist() == expected.slice(max(0, len(expected) - n)).to_pylist()
    assert dataset.head(n).to_pylist() == expected.slice(0, n).to_pylist()
    assert dataset.tail(n, ["part", "id"]).names == ["part", "id"]


FILTERS = [("text", "is not null"), ("part", ">=", 2), [("id", "<", 9), ("late", "is null")], ("id", "<", 0)]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_tail_with_filters(root: Path, filters: Any) -> None:
    dataset = fastpq.ParquetDataset(root)
    rows = dataset.read(["id", "text"], filters=filters).to_pylist()
    for n in (0, 1, 3, 8, 100):
        assert dataset.tail(n, ["id", "text"], filters=filters).to_pylist() == rows[max(0, len(rows) - n) :]
        assert dataset.head(n, ["id", "text"], filters=filters).to_pylist() == rows[:n]


def test_a_long_tail_with_filters(tmp_path: Path) -> None:
    fastpq.write_dataset({"x": np.arange(50_000)}, tmp_path, row_group_size=7_000)
    dataset = fastpq.ParquetDataset(tmp_path, schema={"x": "float64"})
    for n in (1, 5_000, 20_000):
        assert dataset.tail(n, filters=("x", ">=", 10))["x"].to_pylist() == list(np.arange(50_000 - n, 50_000) * 1.0)
        assert dataset.head(n, filters=("x", ">=", 10))["x"].to_pylist() == list(np.arange(10, n + 10) * 1.0)


@pytest.mark.parametrize("indices", [[], [0], [26, 0, 5, 5, 4, 6, -1], [-27], list(range(27)), [12, 13, 12]], ids=str)
def test_take(root: Path, indices: list[int]) -> None:
    dataset, expected = fastpq.ParquetDataset(root), peers(root)
    places = pa.array([index % len(expected) for index in indices], pa.int64())
    for strings in ("views", "offsets", "dictionary"):
        taken = fastpq.ParquetDataset(root, strings=strings).take(indices)
        assert taken.to_pylist() == expected.take(places).to_pylist()
    assert dataset.take(indices, ["late"]).to_pylist() == expected.select(["late"]).take(places).to_pylist()


def test_other_files_are_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[int] = []
    plain = OpenedFiles.opened

    def noted(opened: OpenedFiles, number: int, *, keep: bool = False) -> Any:
        numbers.append(number)
        return plain(opened, number, keep=keep)

    dataset = fastpq.ParquetDataset(root)
    monkeypatch.setattr(OpenedFiles, "opened", noted)
    dataset.take([14, 2])
    assert numbers == [0, 4]
    numbers.clear()
    dataset.tail(3)
    assert numbers == [5, 4]


def test_rows_outside(root: Path) -> None:
    dataset: Any = fastpq.ParquetDataset(root)
    for indices in ([27], [-28]):
        with pytest.raises(fastpq.SchemaError, match=r"there is no row -?2[78]: the dataset has 27 rows"):
            dataset.take(indices)
    with pytest.raises(TypeError, match="must be whole numbers"):
        dataset.take([0.5])
    with pytest.raises(fastpq.SchemaError, match="28 different rows are more than the dataset has: it has 27"):
        dataset.sample(28)
    for call in (lambda: dataset.tail(-1), lambda: dataset.sample(-1)):
        with pytest.raises(ValueError, match="n must be at least 0, not -1"):
            call()
    with pytest.raises(fastpq.SchemaError, match="no column 'none'"):
        dataset.take([0], ["none"])
    with pytest.raises(fastpq.SchemaError, match=r"a column key of a dataset must be a str or a tuple, not \['id'\]"):
        dataset.take([0], [["id"]])
    with fastpq.ParquetFile(dataset.files[0]) as file:
        for rows in (dataset, file):
            with pytest.raises(TypeError, match="indices must be whole numbers, and some are masked"):
                rows.take(np.ma.array([0, 1], mask=[False, True]))


def test_sample(root: Path) -> None:
    dataset = fastpq.ParquetDataset(root)
    sample = dataset.sample(10, ["id"], seed=7)["id"].to_pylist()
    assert sample == sorted(set(sample))
    assert len(sample) == 10
    assert dataset.sample(10, ["id"], seed=7)["id"].to_pylist() == sample
    assert dataset.sample(27).to_pylist() == peers(root).to_pylist()
    assert len({tuple(dataset.sample(3, ["id"])["id"].to_pylist()) for _ in range(20)}) > 1


@pytest.mark.parametrize("column", ["id", "text", "late", "part"])
def test_null_count_as_duckdb(root: Path, column: str) -> None:
    with duckdb.connect() as connection:
        files = f"read_parquet('{root}/**/*.parquet', hive_partitioning=true, union_by_name=true)"
        expected = connection.sql(f'SELECT count(*) - count("{column}") FROM {files}').fetchall()[0][0]
    assert fastpq.ParquetDataset(root).null_count(column) == expected > (column != "id") - 1
    fields = fastpq.ParquetDataset(root).schema
    assert fastpq.ParquetDataset(root, schema=fields).null_count(column) == expected


def test_null_count_of_no_column(root: Path) -> None:
    with pytest.raises(fastpq.UnsupportedError, match="nested column"):
        fastpq.ParquetDataset(root).null_count("tags")
    with pytest.raises(fastpq.SchemaError, match="no column 'none'"):
        fastpq.ParquetDataset(root).null_count("none")
    assert fastpq.ParquetDataset(root, filters=("part", "==", 77)).null_count("text") == 0


@pytest.mark.parametrize("strings", ["views", "offsets", "dictionary"])
@pytest.mark.parametrize("size", [1, 4, 7, 26, 27, 28, 1000])
def test_batches_span_files(root: Path, size: int, strings: Any) -> None:
    dataset, expected = fastpq.ParquetDataset(root, strings=strings), peers(root)
    batches = list(dataset.iter_batches(size))
    full, rest = divmod(27, size)
    assert [batch.num_rows for batch in batches] == [size] * full + [rest] * (rest > 0)
    assert [row for batch in batches for row in batch.to_pylist()] == expected.to_pylist()
    filtered = [batch["id"].to_pylist() for batch in dataset.iter_batches(3, ["id"], filters=("text", "is null"))]
    assert filtered == [[0, 3, 6], [9, 12, 15], [18, 21, 24]]
    assert list(dataset.iter_batches(3, filters=("id", ">", 99))) == []


@pytest.mark.parametrize("stored", [True, False])
def test_dictionaries_stay_dictionaries(tmp_path: Path, stored: bool) -> None:
    texts: list[list[Any]] = [["a", "b", "a"], ["c", "d", None], ["a", "b", "b"]]
    for number, values in enumerate(texts):
        column = pa.array(values).dictionary_encode() if stored else pa.array(values)
        pq.write_table(pa.table({"s": column}), tmp_path / f"{number}.parquet")
    dataset, expected = fastpq.ParquetDataset(tmp_path, strings="dictionary"), [text for values in texts for text in values]
    tables = [dataset.read(), dataset.take(range(9)), dataset.head(9), dataset.tail(9), *dataset.iter_batches(9)]
    for table in [*tables, fastpq.Table.concat(list(dataset.iter_batches(4)))]:
        assert table["s"].to_pylist() == expected
    for table in [*tables, *dataset.iter_batches(2), *dataset.iter_batches(4)]:
        assert isinstance(table.flat("s").values, DictionaryValues)
    assert pa.table(fastpq.ParquetDataset(tmp_path))["s"].to_pylist() == expected


def test_nested_dictionaries_stay_dictionaries(tmp_path: Path) -> None:
    rows: list[list[Any]] = [[["a", "b"], None], [["c", None], []], [["a"]]]
    for number, values in enumerate(rows):
        pq.write_table(pa.table({"t": values, "s": [{"of": value} for value in values]}), tmp_path / f"{number}.parquet")
    dataset = fastpq.ParquetDataset(tmp_path, strings="dictionary")
    tables = [dataset.read(), dataset.take(range(5)), dataset.tail(5), *dataset.iter_batches(3), *dataset.iter_batches(2)]
    for table in tables:
        leaves = [leaf for column in table.columns for _, leaf in column.leaves()]
        assert [type(leaf.values) for leaf in leaves] == [DictionaryValues] * 2
    expected = [{"t": value, "s": {"of": value}} for values in rows for value in values]
    assert tables[0].to_pylist() == tables[1].to_pylist() == expected
    assert [row for table in tables[3:5] for row in table.to_pylist()] == expected


def test_rows_without_lost_ones(tmp_path: Path) -> None:
    """on_error="skip" leaves out lost rows of take, and counts rows of head and tail without lost rows."""
    pq.write_table(pa.table({"x": np.arange(100)}), tmp_path / "0.parquet", row_group_size=10, compression="none")
    data = bytearray((tmp_path / "0.parquet").read_bytes())
    lost = fastpq.read_metadata(bytes(data)).row_group(1).column(0)
    data[lost.data_page_offset : lost.data_page_offset + 4] = b"\xff" * 4
    for name in ("0", "1"):
        (tmp_path / f"{name}.parquet").write_bytes(data)
    dataset = fastpq.ParquetDataset(tmp_path, on_error="skip")
    rows = dataset.read()["x"].to_pylist()
    assert rows == [*range(10), *range(20, 100)] * 2
    assert dataset.head(95)["x"].to_pylist() == rows[:95]
    assert dataset.tail(95)["x"].to_pylist() == rows[-95:]
    assert dataset.take([150, 119, 15, -1, 0, 150, 110])["x"].to_pylist() == [50, 99, 0, 50]
    assert dataset.take([12])["x"].to_pylist() == []
    assert dataset.sample(200)["x"].to_pylist() == rows
    with fastpq.ParquetFile(tmp_path / "0.parquet", on_error="skip") as file:
        assert file.take([50, 19, 15, -1])["x"].to_pylist() == [50, 99]
    kept = fastpq.ParquetDataset(tmp_path, on_error="null")
    assert kept.take([15, 150])["x"].to_pylist() == [None, 50]


def test_allocation_of_all_files_is_limited(tmp_path: Path) -> None:
    for number in range(5):
        pq.write_table(pa.table({"x": np.arange(10_000)}), tmp_path / f"{number}.parquet")
    dataset = fastpq.ParquetDataset(tmp_path, properties=fastpq.ReaderProperties(max_allocation=200_000))
    calls: list[Callable[[], object]] = [
        dataset.read, lambda: dataset.take(range(50_000)), lambda: dataset.head(50_000), lambda: dataset.tail(50_000),
        lambda: dataset.tail(50_000, filters=("x", ">=", 0)),
    ]
    for call in calls:
        with pytest.raises(fastpq.LimitError, match=r"the values of 3 files take .*over max_allocation"):
            call()
    assert dataset.tail(10_000).num_rows == 10_000


def test_streams_of_many_small_files(root: Path) -> None:
    reader = pa.RecordBatchReader.from_stream(fastpq.ParquetDataset(root))
    batches = list(reader)
    assert [len(batch) for batch in batches] == [27]
    assert pa.Table.from_batches(batches).to_pylist() == peers(root).to_pylist()


def test_int96_has_one_unit(tmp_path: Path) -> None:
    moments = [dt.datetime(2020, 1, 1), dt.datetime(3020, 1, 1)]
    for number, moment in enumerate(moments):
        table = pa.table({"t": pa.array([moment], pa.timestamp("us"))})
        pq.write_table(table, tmp_path / f"{number}.parquet", use_deprecated_int96_timestamps=True)
    dataset = fastpq.ParquetDataset(tmp_path)
    for found in (dataset.tail(2), dataset.take([0, 1]), dataset.tail(2, filters=("t", "is not null")), *dataset.iter_batches(2)):
        assert found["t"].to_pylist() == moments


def test_files_without_an_int96_column(tmp_path: Path) -> None:
    moments = [None, dt.datetime(3020, 1, 1), None, dt.datetime(2020, 1, 1)]
    for number, moment in enumerate(moments):
        columns = {"x": [number]} | ({} if moment is None else {"t": pa.array([moment], pa.timestamp("us"))})
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet", use_deprecated_int96_timestamps=True)
    dataset = fastpq.ParquetDataset(tmp_path)
    tables = [
        dataset.read(), dataset.head(4), dataset.tail(4), dataset.take(range(4)), *dataset.iter_batches(4),
        dataset.tail(4, filters=("x", ">=", 0)), pa.table(dataset),
    ]
    for table in tables:
        assert table["t"].to_pylist() == moments


def test_lost_values_are_null_in_datasets_of_required_columns(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    fastpq.write_table({"id": np.arange(100)}, path, compression=None, use_dictionary=False)
    stored = bytearray(path.read_bytes())
    stored[200] ^= 1
    path.write_bytes(stored)
    fastpq.write_table({"id": np.arange(3)}, tmp_path / "1.parquet")
    with pytest.raises(fastpq.FormatError):
        fastpq.read_table(tmp_path)
    dataset = fastpq.ParquetDataset(tmp_path, on_error="null")
    assert dataset.read()["id"].null_count == 100
    assert dataset.take([0, 101])["id"].to_pylist() == [None, 1]
    assert sum(batch["id"].null_count for batch in dataset.iter_batches(40)) == 100
