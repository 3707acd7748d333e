"""compact: small files and row groups are joined, large row groups are copied byte for byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import SchemaError
from fastpq.datasets import staged_files
from tests.datasets.test_existing_data import killed_at, others, rows, values
from tests.io.object_stores import Store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="folders are exchanged on Linux")

NOISE = np.random.default_rng(3).integers(0, 1 << 62, 60_000)


def chunk_bytes(path: str) -> list[bytes]:
    """The stored bytes of each row group's only column."""
    data, footer = Path(path).read_bytes(), fastpq.read_metadata(path)
    ranges = [group.column(0).byte_range for group in footer.row_groups]
    return [data[start : start + length] for start, length in ranges]


def test_large_row_groups_are_copied(tmp_path: Path) -> None:
    """The bytes of large row groups stay. Small ones become one."""
    large = NOISE[:50_000]
    (first,) = fastpq.write_dataset({"x": large}, tmp_path / "d", row_group_size=20_000, compression="zstd")     # 160, 160, 80 kB
    before = chunk_bytes(first)
    for start in range(50_000, 60_000, 1000):
        fastpq.write_dataset({"x": NOISE[start : start + 1000]}, tmp_path / "d", compression="zstd")
    report = fastpq.compact(tmp_path / "d", target_size=1_000_000)
    assert (report.copied_row_groups, report.rewritten_row_groups, report.num_rows) == (3, 10, 60_000)
    assert len(report.replaced_files) == 11
    (path,) = report.new_files
    assert os.listdir(tmp_path / "d") == [os.path.basename(path)]
    assert os.listdir(tmp_path) == ["d"]
    assert chunk_bytes(path)[:3] == before
    footer = fastpq.read_metadata(path)
    assert [group.num_rows for group in footer.row_groups] == [20_000, 20_000, 10_000, 10_000]
    assert footer.row_group(3).column(0).codec == footer.row_group(0).column(0).codec
    assert others(tmp_path / "d") == [sorted(NOISE.tolist())] * 3
    assert fastpq.ParquetFile(path).count([("x", "==", int(NOISE[55_555]))]) == 1
    assert fastpq.ParquetFile(path).offset_index(3, "x") is not None
    assert fastpq.compact(tmp_path / "d", target_size=1_000_000) == fastpq.CompactionReport()


def test_a_target_bounds_files(tmp_path: Path) -> None:
    for start in range(0, 60_000, 6000):
        fastpq.write_dataset({"x": NOISE[start : start + 6000]}, tmp_path)       # 48 kB a file
    report = fastpq.compact(tmp_path, target_size=250_000)
    assert len(report.new_files) == 2
    assert max(os.path.getsize(path) for path in report.new_files) < 250_000
    assert values(tmp_path) == sorted(NOISE.tolist())


def test_partitions_nested_columns_and_metadata(tmp_path: Path) -> None:
    data: dict[str, Any] = {
        "x": np.arange(8), "s": ["a", None] * 4, "l": [[1, 2], None, [], [3]] * 2, "t": [{"u": 1}, None] * 4,
        "when": np.arange(8).astype("M8[us]"), "part": [0, 1] * 4}
    for _ in range(3):
        fastpq.write_dataset(data, tmp_path / "d", partition_by=["part"], write_metadata_file=True)
    (tmp_path / "d" / "part=0" / "_note.txt").write_text("kept")
    before = fastpq.read_table(tmp_path / "d")
    report = fastpq.compact(tmp_path / "d")
    assert (len(report.replaced_files), len(report.new_files)) == (6, 2)
    assert fastpq.read_table(tmp_path / "d").to_pylist() == before.to_pylist()
    assert (tmp_path / "d" / "part=0" / "_note.txt").exists()
    assert fastpq.read_metadata(tmp_path / "d" / "_metadata").num_rows == 24
    expected = sorted(before["x"].to_pylist())
    assert sorted(ds.dataset(tmp_path / "d", partitioning="hive").to_table()["x"].to_pylist()) == expected
    assert sorted(pl.read_parquet(tmp_path / "d" / "*" / "*.parquet")["x"].to_list()) == expected
    found = duckdb.connect().execute(f"select t.u from read_parquet('{tmp_path}/d/*/*.parquet') order by x").fetchall()
    assert found == [(value,) for value in (1, 1, 1, None, None, None) * 4]


def test_a_folder_above_others(tmp_path: Path) -> None:
    """Files beside folders of files: both are replaced."""
    for folder in ("d", "d/inside", "d/inside/deep"):
        os.makedirs(tmp_path / folder)
        for value in range(2):
            fastpq.write_table(rows(value), tmp_path / folder / f"{value}.parquet")
    report = fastpq.compact(tmp_path / "d")
    assert len(report.new_files) == 3
    assert values(tmp_path / "d") == [0, 0, 0, 1, 1, 1]
    assert os.listdir(tmp_path) == ["d"]


def test_other_schemas_and_writers(tmp_path: Path) -> None:
    """Files of another schema stay apart. Files of pyarrow are joined with ours, under our name."""
    fastpq.write_table(rows(1), tmp_path / "a.parquet")
    pq.write_table(pa.table(rows(2)), tmp_path / "b.parquet", store_schema=False)
    fastpq.write_table({"y": [1]}, tmp_path / "c.parquet")
    fastpq.write_table(rows(3), tmp_path / "d.parquet")
    report = fastpq.compact(tmp_path)
    assert len(report.new_files) >= 1
    found = fastpq.read_table(tmp_path)["x"].to_pylist()
    assert sorted(value for value in found if value is not None) == [1, 2, 3]
    assert all(fastpq.read_metadata(path).created_by.startswith("fastpq") for path in report.new_files)  # type: ignore[union-attr]


def test_lists_of_one_size_stay_apart(tmp_path: Path) -> None:
    """One ARROW:schema for both would keep pyarrow from reading the file."""
    pairs, lists = pa.array([[1, 2]], pa.list_(pa.int64(), 2)), pa.array([[1, 2, 3], None])
    for number, column in enumerate([pairs, lists, pairs, lists]):
        pq.write_table(pa.table({"x": column}), tmp_path / f"{number}.parquet")
    report = fastpq.compact(tmp_path)
    found = [pq.read_table(path)["x"].to_pylist() for path in report.new_files]
    assert sorted(found, key=len) == [[[1, 2]] * 2, [[1, 2, 3], None] * 2]
    with pytest.raises(SchemaError, match="list sizes"):
        fastpq.merge_files(report.new_files, tmp_path / "merged")


def test_encrypted_files(tmp_path: Path) -> None:
    keys, new_keys = (fastpq.FileEncryptionProperties(key) for key in (b"0123456789012345", b"5432109876543210"))
    old = fastpq.FileDecryptionProperties(b"0123456789012345")
    for value in range(3):
        fastpq.write_dataset({"x": NOISE[value * 20_000 :][:20_000]}, tmp_path, encryption_properties=keys)
    with pytest.raises(SchemaError, match="encryption_properties"):
        fastpq.compact(tmp_path, decryption_properties=old)
    report = fastpq.compact(tmp_path, decryption_properties=old, encryption_properties=new_keys, target_size=1_000_000)
    assert (report.copied_row_groups, report.rewritten_row_groups) == (3, 0)
    found = fastpq.read_dataset(tmp_path, decryption_properties=fastpq.FileDecryptionProperties(b"5432109876543210"))
    assert sorted(found["x"].to_pylist()) == sorted(NOISE.tolist())


def test_int96_is_copied(tmp_path: Path) -> None:
    times = pa.table({"t": pa.array([0, 10**15], pa.timestamp("us"))})
    for number in range(2):
        pq.write_table(times, tmp_path / f"{number}.parquet", use_deprecated_int96_timestamps=True)
    report = fastpq.compact(tmp_path)
    assert (report.copied_row_groups, report.rewritten_row_groups) == (2, 0)
    assert pq.read_table(tmp_path)["t"].to_pylist() == times["t"].to_pylist() * 2


def test_files_that_come_meanwhile_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in range(3):
        fastpq.write_dataset(rows(value), tmp_path / "d")
    exchange = staged_files.exchange_folders

    def late(new: str, old: str) -> None:
        fastpq.write_dataset(rows(100), tmp_path / "d")
        exchange(new, old)

    monkeypatch.setattr("fastpq.datasets.replaced_files.exchange_folders", late)
    fastpq.compact(tmp_path / "d")
    assert values(tmp_path / "d") == [0, 1, 2, 100]


def test_what_others_do_at_the_last_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that others replace or remove between the links and the exchange."""
    root = tmp_path / "d"
    (root / "sub").mkdir(parents=True)
    for value in range(3):
        fastpq.write_table(rows(value), root / f"part-{value}.parquet")
    for name in ("replaced", "removed"):
        fastpq.write_table({"x": np.array([50]), "y": [1]}, root / f"{name}.parquet")
        fastpq.write_table({"x": np.array([50]), "y": [1]}, root / "sub" / f"{name}.parquet")
    exchange = staged_files.exchange_folders

    def late(new: str, old: str) -> None:
        for folder in (root, root / "sub"):
            if (folder / "removed.parquet").exists():
                fastpq.write_table({"x": np.array([60, 61]), "y": [1, 2]}, folder / "replaced.parquet")
                os.unlink(folder / "removed.parquet")
        exchange(new, old)

    monkeypatch.setattr("fastpq.datasets.replaced_files.exchange_folders", late)
    choose = "fastpq.datasets.small_files.groups_to_join"
    monkeypatch.setattr(choose, lambda files, *_: [[f for f in files if "part-" in f.file.path]])
    fastpq.compact(root)
    assert values(root) == [0, 1, 2, 60, 60, 61, 61]


def test_a_source_that_changes_at_the_last_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "d"
    paths = [fastpq.write_dataset(rows(value), root)[0] for value in range(3)]
    exchange = staged_files.exchange_folders
    calls: list[str] = []

    def late(new: str, old: str) -> None:
        if not calls:
            fastpq.write_table(rows(7, 8), paths[0])
        calls.append(new)
        exchange(new, old)
        if len(calls) == 1:
            fastpq.write_dataset(rows(100), root)      # in the new folder, which goes away again

    monkeypatch.setattr("fastpq.datasets.replaced_files.exchange_folders", late)
    with pytest.raises(SchemaError, match="changed"):
        fastpq.compact(root)
    assert values(root) == [1, 2, 7, 8, 100]
    assert os.listdir(tmp_path) == ["d"]


def test_links_folders_and_permissions_stay(tmp_path: Path) -> None:
    root = tmp_path / "d"
    for value in range(2):
        fastpq.write_dataset(rows(value), root)
    for name in ("private", "empty", "closed"):
        (root / name).mkdir()
    fastpq.write_table(rows(5), root / "private" / "a.parquet")
    fastpq.write_table(rows(6), root / "closed" / "a.parquet")
    (tmp_path / "elsewhere").mkdir()
    fastpq.write_table(rows(7), tmp_path / "elsewhere" / "a.parquet")
    (root / "link").symlink_to(tmp_path / "elsewhere")
    modes = {"private": 0o700, "empty": 0o750, "closed": 0o555}
    for name, mode in modes.items():
        os.chmod(root / name, mode)
    fastpq.compact(root)
    assert {name: os.stat(root / name).st_mode & 0o777 for name in modes} == modes
    assert os.readlink(root / "link") == str(tmp_path / "elsewhere")
    assert sorted(pq.read_table(root)["x"].to_pylist()) == [0, 1, 5, 6, 7]
    os.chmod(root / "closed", 0o755)


def test_more_files_than_a_process_can_open(tmp_path: Path) -> None:
    for value in range(60):
        fastpq.write_table(rows(value), tmp_path / f"{value}.parquet")
    code = (
        "import resource, fastpq\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\n"
        f"print(len(fastpq.compact({str(tmp_path)!r}, threads=1).replaced_files))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("60\n", "")
    assert values(tmp_path) == [*range(60)]


def test_statements_about_all_rows(tmp_path: Path) -> None:
    """The first file's metadata say nothing false about the rows of the others."""
    geo = {"version": "1.1.0", "columns": {"g": {"encoding": "WKB", "bbox": [0, 0, 1, 1], "geometry_types": ["Point"]}}}
    entries = {"geo": json.dumps(geo), "hoodie_max_record_key": "z", "own": "kept"}
    (tmp_path / "d").mkdir()
    for value in range(2):
        frame = pd.DataFrame({"x": [value, value]}, index=pd.RangeIndex(5, 9, 2, name="n"))
        fastpq.write_table(frame, tmp_path / "d" / f"{value}.parquet", key_value_metadata=entries, arrow_schema=True)
    fastpq.merge_files(sorted((tmp_path / "d").iterdir()), tmp_path / "merged.parquet")
    (compacted,) = fastpq.compact(tmp_path / "d").new_files
    for path in (tmp_path / "merged.parquet", Path(compacted)):
        metadata = fastpq.read_metadata(path).key_value_metadata
        assert "hoodie_max_record_key" not in metadata
        assert metadata["own"] == "kept"
        assert json.loads(str(metadata["geo"]))["columns"]["g"] == {"encoding": "WKB", "geometry_types": []}
        expected = pd.RangeIndex(5, 13, 2, name="n")
        assert fastpq.read_pandas(path).index.equals(expected)
        assert pq.read_table(path).to_pandas().index.equals(expected)


def test_a_file_that_changes_meanwhile(tmp_path: Path) -> None:
    paths = [fastpq.write_dataset(rows(value), tmp_path / "d")[0] for value in range(3)]
    done: list[int] = []

    def progress(rows_done: int, total: int) -> None:
        if not done:
            done.append(rows_done)
            fastpq.write_table(rows(7, 8, 9), paths[0])

    with pytest.raises(SchemaError, match="changed"):
        fastpq.compact(tmp_path / "d", progress=progress)
    assert values(tmp_path / "d") == [1, 2, 7, 8, 9]
    assert os.listdir(tmp_path) == ["d"]


def test_killed_at_every_step(tmp_path: Path) -> None:
    for step in range(0, 1000, 4):
        fastpq.write_dataset(rows(1), tmp_path / "d", existing_data_behavior="overwrite")
        fastpq.write_dataset(rows(2), tmp_path / "d")
        is_done = killed_at(step, lambda: fastpq.compact(tmp_path / "d", threads=1))
        assert values(tmp_path / "d") == [1, 2]
        if is_done:
            break
    assert is_done
    assert len(fastpq.ParquetDataset(tmp_path / "d").files) == 1


def test_objects(object_store: Store) -> None:
    filesystem = object_store.filesystem()
    root = f"{object_store.new_bucket(filesystem)}/set"
    for value in range(3):
        fastpq.write_dataset(rows(value, value + 10, part=value % 2), root, filesystem=filesystem, partition_by=["part"])
    report = fastpq.compact(root, filesystem=filesystem)
    assert (len(report.replaced_files), len(report.new_files)) == (2, 1)
    assert values(root, filesystem=filesystem) == [0, 1, 2, 10, 11, 12]
    assert len(fastpq.ParquetDataset(root, filesystem=filesystem).files) == 2


def test_arguments(tmp_path: Path) -> None:
    fastpq.write_table(rows(1), tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match="directory"):
        fastpq.compact(tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match="sort_by"):
        fastpq.compact(tmp_path, sort_by=["x"])
    calls: list[tuple[int, int]] = []
    fastpq.write_table(rows(1), tmp_path / "b.parquet")
    fastpq.compact(tmp_path, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (2, 2)
