"""Many small files with one schema are read together: the result is that of reading them one after another."""

from __future__ import annotations

import datetime
import os
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.datasets import dataset as dataset_module
from fastpq.datasets import opened_files, stacked_files

ROWS = 20
FILES = 12


def table_of(number: int, rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(number)
    some = rng.random(rows) < 0.3
    texts = [f"{'long text ' * 5}{value}" if value % 3 else str(value) for value in rng.integers(0, 9, rows).tolist()]
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=value) for value in rng.integers(0, 99, rows).tolist()]
    return pa.table({
        "required": pa.array(rng.integers(0, 1 << 40, rows)),
        "nulls": pa.array(rng.integers(0, 9, rows), mask=some),
        "small": pa.array(rng.integers(-9, 9, rows).astype(np.int8)),
        "float": pa.array(rng.random(rows).astype(np.float32), mask=some),
        "flag": pa.array(rng.random(rows) < 0.5, mask=some),
        "text": pa.array(texts, mask=some),
        "bytes": pa.array([text.encode() for text in texts]),
        "day": pa.array(days),
        "time": pa.array(rng.integers(0, 1 << 50, rows), pa.timestamp("us", "Europe/Zurich")),
        "price": pa.array([Decimal(value) / 100 for value in rng.integers(0, 9999, rows).tolist()], pa.decimal128(20, 2)),
        "fixed": pa.array([bytes([number]) * 16] * rows, pa.binary(16)),
        "none": pa.array([None] * rows, pa.int32()),
        "span": pa.array(rng.integers(0, 99, rows), pa.duration("ms")),
    })


def write(folder: Path, tables: list[pa.Table], **options: Any) -> None:
    for number, table in enumerate(tables):
        place = folder / f"month={number // 5}"
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, place / f"part-{number:02}.parquet", **options)


def one_by_one(monkeypatch: pytest.MonkeyPatch, where: Path, *arguments: Any, **options: Any) -> fastpq.Table:
    with monkeypatch.context() as patch:
        patch.setattr(stacked_files, "FEWEST_STACKED", 1 << 30)
        return fastpq.read_table(where, *arguments, **options)


@pytest.fixture
def stacked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of files in each stack that was read."""
    counts: list[int] = []

    read = stacked_files.StackedFiles.read

    def counted(stacks: stacked_files.StackedFiles, numbers: range) -> fastpq.Table | None:
        table = read(stacks, numbers)
        if table is not None:
            counts.append(len(numbers))
        return table

    monkeypatch.setattr(stacked_files.StackedFiles, "read", counted)
    return counts


@pytest.mark.parametrize("options", [
    {},
    {"compression": "zstd", "data_page_version": "2.0"},
    {"compression": "none", "row_group_size": 7},
    {"use_dictionary": False, "data_page_size": 64, "write_batch_size": 4},
])
def test_stacked_files_have_the_values_that_pyarrow_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stacked: list[int], options: dict[str, Any]
) -> None:
    write(tmp_path, [table_of(number) for number in range(FILES)], **options)
    table = fastpq.read_table(tmp_path)
    assert stacked == [FILES]
    other = one_by_one(monkeypatch, tmp_path)
    assert table.equals(other)
    assert table.metadata == other.metadata
    assert [column.nullable for column in table.columns] == [column.nullable for column in other.columns]
    truth = ds.dataset(tmp_path, partitioning="hive").to_table()
    mine = pa.table(table)
    assert mine.schema.field("time").type == truth.schema.field("time").type
    assert mine.schema.field("span").type == truth.schema.field("span").type
    for name in truth.column_names:
        assert mine[name].cast(truth[name].type).to_pylist() == truth[name].to_pylist(), name


def test_some_columns_and_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stacked: list[int]) -> None:
    write(tmp_path, [table_of(number) for number in range(FILES)])
    columns = ["price", "month", "required", "text"]
    table = fastpq.read_table(tmp_path, columns)
    assert table.names == columns
    assert table.equals(one_by_one(monkeypatch, tmp_path, columns))
    assert table["month"].to_pylist() == [number // 5 for number in range(FILES) for _ in range(ROWS)]
    assert fastpq.read_table(tmp_path, columns, filters=("month", "==", 1)).num_rows == 5 * ROWS
    assert stacked == [FILES, 5]


def test_only_files_whose_rows_are_all_taken_are_stacked(tmp_path: Path, stacked: list[int]) -> None:
    write(tmp_path, [table_of(number) for number in range(FILES)])
    filters = [[("month", "==", 0)], [("required", "<", 1 << 38)]]
    dataset = fastpq.ParquetDataset(tmp_path)
    table = dataset.read(["required", "month"], filters=filters)
    truth = ds.dataset(tmp_path, partitioning="hive").to_table(
        columns=["required"], filter=(ds.field("month") == 0) | (ds.field("required") < 1 << 38))
    assert table["required"].to_pylist() == truth["required"].to_pylist()
    assert stacked == [5]


def test_other_schemas_nested_and_large_files_are_read_between_stacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stacked: list[int]
) -> None:
    tables = [table_of(number).select(["required", "text"]) for number in range(FILES)]
    tables[5] = tables[5].append_column("more", pa.array([[1], None] * (ROWS // 2)))
    tables.append(table_of(90, 1 << 15).select(["required", "text"]))
    tables += [table_of(number, 0 if number == 95 else 3).select(["required", "text"]) for number in range(91, 100)]
    write(tmp_path, tables)
    columns = ["required", "text"]
    table = fastpq.read_table(tmp_path, columns)
    assert len(stacked) > 1
    assert table.equals(one_by_one(monkeypatch, tmp_path, columns))
    assert pa.table(table)["required"].to_pylist() == [value for each in tables for value in each["required"].to_pylist()]


def test_missing_columns_are_null(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stacked: list[int]) -> None:
    first = table_of(1).select(["required", "text"])
    write(tmp_path, [first.append_column("late", pa.array(range(ROWS)))] + [first] * FILES)
    dataset = fastpq.ParquetDataset(tmp_path)
    assert dataset.read().equals(one_by_one(monkeypatch, tmp_path))
    assert dataset.read(["late"])["late"].null_count == FILES * ROWS
    assert FILES in stacked


@pytest.mark.parametrize("options", [
    {"strings": "offsets"}, {"strings": "dictionary"}, {"invalid_utf8": "binary"}, {"invalid_utf8": "replace"},
    {"arrow_schema": False}, {"memory_map": "keep"}, {"on_error": "null"}, {"threads": 2},
])
def test_reader_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    write(tmp_path, [table_of(number) for number in range(FILES)])
    assert fastpq.read_table(tmp_path, **options).equals(one_by_one(monkeypatch, tmp_path, **options))


def test_dictionaries_and_int96_are_not_stacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stacked: list[int]
) -> None:
    tables = [table_of(number).select(["text", "time"]) for number in range(FILES)]
    dictionaries = [table.set_column(0, "text", table["text"].dictionary_encode()) for table in tables]
    write(tmp_path / "a", dictionaries)
    write(tmp_path / "b", tables, use_deprecated_int96_timestamps=True)
    for folder in (tmp_path / "a", tmp_path / "b"):
        assert fastpq.read_table(folder).equals(one_by_one(monkeypatch, folder))
    assert not stacked


def test_a_damaged_page_is_named(tmp_path: Path, stacked: list[int]) -> None:
    write(tmp_path, [table_of(number) for number in range(FILES)], compression="none", use_dictionary=False)
    path = tmp_path / "month=1" / "part-07.parquet"
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    data = bytearray(path.read_bytes())
    data[chunk.data_page_offset] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(fastpq.FormatError, match="part-07") as caught:
        fastpq.read_table(tmp_path)
    assert caught.value.context["column"] == "required"
    assert not stacked


def test_a_file_that_changed_after_the_dataset_was_opened(tmp_path: Path, stacked: list[int]) -> None:
    tables = [table_of(number) for number in range(FILES)]
    write(tmp_path, tables)
    dataset = fastpq.ParquetDataset(tmp_path)
    path = tmp_path / "month=1" / "part-07.parquet"
    pq.write_table(table_of(77), path)
    table = dataset.read()
    tables[7] = table_of(77)
    assert pa.table(table)["required"].to_pylist() == [value for each in tables for value in each["required"].to_pylist()]
    assert not stacked
    assert dataset.read().equals(table)
    os.unlink(path)
    with pytest.raises(FileNotFoundError):
        dataset.read()


@pytest.mark.parametrize("values", [
    pa.array(range(3)),
    pa.array(range(30)),
    pa.array(range(ROWS), pa.timestamp("us")),
    pa.array([2**64 - 1] * ROWS, pa.uint64()),
    pa.array([None] * ROWS, pa.int64()),
], ids=["fewer rows", "more rows", "timestamps", "unsigned", "nulls"])
@pytest.mark.parametrize("is_pickled", [False, True])
def test_a_changed_file_is_stacked_only_if_it_is_alike(
    tmp_path: Path, stacked: list[int], values: pa.Array, is_pickled: bool
) -> None:
    """The columns and the row counts that the dataset noted are those of the old file."""
    for number in range(FILES):
        pq.write_table(pa.table({"number": pa.array(range(ROWS))}), tmp_path / f"{number:02}.parquet")
    dataset = fastpq.ParquetDataset(tmp_path)
    if is_pickled:
        dataset = pickle.loads(pickle.dumps(dataset))
    pq.write_table(pa.table({"number": values}), tmp_path / f"{FILES - 1:02}.parquet")

    def outcome() -> Any:
        try:
            return pa.table(dataset.read())
        except fastpq.SchemaError as error:
            return str(error)

    first, *others = [outcome() for _ in range(3)]
    assert all(other == first for other in others)
    if values.type == pa.int64():
        assert first["number"].to_pylist() == [*range(ROWS)] * (FILES - 1) + values.to_pylist()
    assert (FILES in stacked) == (values.type == pa.int64() and len(values) == ROWS)


def test_a_pickled_dataset_keeps_footers_too(tmp_path: Path, stacked: list[int]) -> None:
    write(tmp_path, [table_of(number) for number in range(FILES)])
    dataset = pickle.loads(pickle.dumps(fastpq.ParquetDataset(tmp_path)))
    table = dataset.read()
    assert dataset.read().equals(table)
    assert stacked == [FILES]


def test_footers_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, [table_of(number) for number in range(FILES)])
    opened: list[fastpq.ParquetFile] = []
    file_of = fastpq.ParquetFile

    def counted(where: Any, **options: Any) -> fastpq.ParquetFile:
        opened.append(file_of(where, **options))
        return opened[-1]

    monkeypatch.setattr(dataset_module, "ParquetFile", counted)
    dataset = fastpq.ParquetDataset(tmp_path)
    assert len(opened) == FILES
    assert dataset.count() == FILES * ROWS
    dataset.count(("required", "<", 1 << 39))
    assert sum(file.io.requests for file in opened[FILES:]) <= FILES        # the pages of the filtered column alone
    assert all(file.metadata is first.metadata for file, first in zip(opened[FILES:], opened[:FILES], strict=True))


def test_few_footers_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stacked: list[int]) -> None:
    tables = [table_of(number) for number in range(FILES)]
    write(tmp_path, tables)
    monkeypatch.setattr(opened_files, "KEPT_FOOTERS", 6 * os.path.getsize(tmp_path / "month=0" / "part-00.parquet"))
    table = fastpq.read_table(tmp_path)
    assert stacked
    assert stacked[0] < FILES
    assert pa.table(table)["required"].to_pylist() == [value for each in tables for value in each["required"].to_pylist()]


def test_progress_and_limits(tmp_path: Path, stacked: list[int]) -> None:
    write(tmp_path, [table_of(number) for number in range(FILES)])
    calls: list[tuple[int, int]] = []
    fastpq.read_table(tmp_path, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (FILES * ROWS, FILES * ROWS)
    assert stacked == [FILES]
    with pytest.raises(fastpq.LimitError, match="max_allocation"):
        fastpq.read_table(tmp_path, properties=fastpq.ReaderProperties(max_allocation=10_000))


def test_encrypted_files_are_read_one_after_another(tmp_path: Path, stacked: list[int]) -> None:
    properties = fastpq.FileEncryptionProperties(b"k" * 16)
    for number in range(FILES):
        fastpq.write_table({"a": np.arange(ROWS) + number}, tmp_path / f"{number:02}.parquet", encryption_properties=properties)
    keys = fastpq.FileDecryptionProperties(b"k" * 16)
    table = fastpq.read_table(tmp_path, decryption_properties=keys)
    assert table["a"].to_numpy().tolist() == [row + number for number in range(FILES) for row in range(ROWS)]
    assert not stacked
