"""The picture of a dataset, and which of its files a filter reads."""

from __future__ import annotations

import os
import re
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import fastpq
from fastpq.datasets.dataset_layout import filtered_files, start_of_names

ROWS = 4000
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six files of two years. The files of the last year have one more column, and one file has no rows."""
    random = np.random.default_rng(1)
    for year in (2023, 2024):
        for part in range(3):
            rows = 0 if (year, part) == (2023, 2) else ROWS
            first = (year - 2023) * 3 * ROWS + part * ROWS
            table = {"id": np.arange(first, first + rows), "price": random.random(rows)}
            if year == 2024:
                table["extra"] = random.integers(0, 1 << 40, rows)
            path = tmp_path / f"year={year}" / f"part-{part}.parquet"
            path.parent.mkdir(exist_ok=True)
            fastpq.write_table(table, path, row_group_size=1000, compression="zstd" if part else None)
    return tmp_path


def cells(svg: str) -> list[str]:
    """Return the class of each drawn area."""
    classes = (each.get("class", "") for each in ElementTree.fromstring(svg).iter(f"{SVG}rect"))
    return [each for each in classes if each.startswith("c ")]


def test_each_byte_has_one_owner(folder: Path) -> None:
    dataset = fastpq.ParquetDataset(folder)
    picture = dataset.layout()
    size = sum(map(os.path.getsize, dataset.files))
    owners = picture.owners
    assert owners.size == size == sum(picture.bytes_by_part.values())
    assert ((owners.starts + owners.lengths)[:-1] == owners.starts[1:]).all()
    parts: dict[str, int] = {}
    for path in dataset.files:
        with fastpq.ParquetFile(path) as file:
            for name, count in file.layout().bytes_by_part.items():
                parts[name] = parts.get(name, 0) + count
    assert parts == picture.bytes_by_part


def test_numbers_and_drawing(folder: Path) -> None:
    picture = fastpq.ParquetDataset(folder).layout()
    numbers = {each.name: each.text for each in picture.numbers}
    assert numbers["files"].startswith("6: ")
    assert "20,000 rows, 3 columns, 20 row groups" in numbers["files"]
    assert numbers["columns that some files lack"] == "1: extra"
    assert numbers["chunks with statistics"] == "52 of 52"
    assert "rows in a row group" in numbers
    svg = picture.to_svg()
    assert "Files and columns: an area is bytes. 6 files from left to right" in svg
    assert "Every byte of the files" in svg
    assert "year=2024/part-1.parquet" in svg
    assert len(cells(svg)) == 5 + 5 + 3     # a file without rows has no area, and two files have no third column
    html = picture.to_html("time")
    assert html.startswith("<!DOCTYPE html>")
    assert picture._repr_html_()


def test_a_filter_on_rows_and_on_partition_values(folder: Path) -> None:
    dataset = fastpq.ParquetDataset(folder)
    picture = dataset.layout([("year", "=", 2024), ("id", "<", 3 * ROWS + 1500)])
    assert picture.pruning is not None
    assert picture.pruning.reasons[:3] == ["partition values"] * 3
    assert not picture.pruning.reasons[3]
    assert all("statistics" in reason for reason in picture.pruning.reasons[4:])
    assert picture.pruning.bytes_read == dataset.explain([("year", "=", 2024), ("id", "<", 3 * ROWS + 1500)]).bytes_read
    classes = cells(picture.to_svg("pruning"))
    assert sum("p5" in each for each in classes) == 3       # one file is read in part: its three columns
    everything = dataset.layout([("year", "=", 2024)])
    assert everything.pruning is not None
    assert [not reason for reason in everything.pruning.reasons] == [False] * 3 + [True] * 3
    with pytest.raises(fastpq.SchemaError):
        dataset.layout([("nothing", "=", 1)])


def test_filtered_files(folder: Path) -> None:
    dataset = fastpq.ParquetDataset(folder)
    states = [(file is not None, rest is not None) for _, file, rest in filtered_files(dataset, [("year", "=", 2024)])]
    assert states == [(False, False)] * 3 + [(True, False)] * 3
    states = [(file is not None, rest is not None) for _, file, rest in filtered_files(dataset, [("id", "=", 5)])]
    assert states == [(True, True)] * 6


def test_names_begin_behind_the_shared_folders() -> None:
    assert start_of_names(["s3://bucket/a/x", "s3://bucket/a/y"]) == len("s3://bucket/a/")
    assert start_of_names(["/data/part-1", "/data/part-10"]) == len("/data/")
    assert start_of_names(["/data/one"]) == len("/data/")
    assert start_of_names(["x"]) == 0


def test_encrypted_files(tmp_path: Path) -> None:
    keys = fastpq.FileEncryptionProperties(b"0123456789012345", {"b": b"1234567890123450"}, encrypt_unlisted="plaintext")
    for part in range(2):
        fastpq.write_table({"a": [part], "b": [1]}, tmp_path / f"{part}.parquet", encryption_properties=keys)
    opening = fastpq.FileDecryptionProperties(b"0123456789012345", {"b": b"1234567890123450"})
    picture = fastpq.ParquetDataset(tmp_path, decryption_properties=opening).layout()
    assert "fq-h0" in picture.to_svg()
    assert sum(picture.bytes_by_part.values()) == sum(path.stat().st_size for path in tmp_path.iterdir())


@pytest.mark.slow
def test_many_files(tmp_path: Path) -> None:
    table = {f"c{number}": np.arange(20) for number in range(30)}
    fastpq.write_table(table, tmp_path / "0.parquet")
    data = (tmp_path / "0.parquet").read_bytes()
    for number in range(1, 300):
        (tmp_path / f"{number}.parquet").write_bytes(data)
    dataset = fastpq.ParquetDataset(tmp_path)
    before = time.process_time()
    html = dataset.layout([("c0", ">", 5)]).to_html("pruning")
    assert time.process_time() - before < 15
    assert len(html) < 2_000_000
    assert len(re.findall(r"<[a-zA-Z]", html)) < 5000
