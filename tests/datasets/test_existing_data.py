"""Files that are there when a dataset is written: kept, refused, or replaced in one step."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import SchemaError, UnsupportedError
from fastpq.datasets import staged_files
from tests.io.object_stores import Store

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="folders are exchanged on Linux")


def rows(*values: int, part: int | None = None) -> dict[str, Any]:
    data = {"x": np.array(values)}
    return data if part is None else {**data, "part": np.full(len(values), part)}


def values(root: Path | str, **options: Any) -> list[int]:
    return sorted(fastpq.read_table(root, ["x"], **options)["x"].to_pylist())


def others(root: Path) -> list[list[int]]:
    """The values of x as strangers read them."""
    return [
        sorted(ds.dataset(root, partitioning="hive").to_table()["x"].to_pylist()),
        sorted(pl.scan_parquet(root / "**/*.parquet", hive_partitioning=True).collect()["x"].to_list()),
        sorted(row[0] for row in duckdb.connect().execute(f"select x from read_parquet('{root}/**/*.parquet')").fetchall()),
    ]


def below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_error(tmp_path: Path) -> None:
    fastpq.write_dataset(rows(1), tmp_path / "d", existing_data_behavior="error")
    with pytest.raises(FileExistsError, match="not empty"):
        fastpq.write_dataset(rows(2), tmp_path / "d", existing_data_behavior="error")
    assert values(tmp_path / "d") == [1]
    (tmp_path / "empty").mkdir()
    fastpq.write_dataset(rows(1), tmp_path / "empty", existing_data_behavior="error")


def test_names(tmp_path: Path) -> None:
    """Numbers begin anew in each folder, as in pyarrow. Existing names are passed over, or replaced."""
    data = {"x": np.arange(6), "part": np.array([0, 0, 1, 1, 1, 1])}
    options: dict[str, Any] = {"partition_by": ["part"], "basename_template": "f-{i}.parquet", "max_rows_per_file": 2}
    expected = ["part=0/f-0.parquet", "part=1/f-0.parquet", "part=1/f-1.parquet"]
    fastpq.write_dataset(data, tmp_path / "a", **options)
    hive = ds.partitioning(pa.schema([("part", "int64")]), flavor="hive")
    ds.write_dataset(
        pa.table(data), tmp_path / "theirs", format="parquet", partitioning=hive, basename_template="f-{i}.parquet",
        max_rows_per_file=2, max_rows_per_group=2)
    assert below(tmp_path / "a") == below(tmp_path / "theirs") == expected
    fastpq.write_dataset(data, tmp_path / "a", existing_data_behavior="overwrite_or_ignore", **options)
    assert below(tmp_path / "a") == expected
    fastpq.write_dataset(data, tmp_path / "a", **options)
    assert below(tmp_path / "a") == sorted(
        [*expected, "part=0/f-1.parquet", "part=1/f-2.parquet", "part=1/f-3.parquet"])
    assert values(tmp_path / "a") == sorted([*range(6)] * 2)
    for wrong in ("f.parquet", "a/{i}"):
        with pytest.raises(ValueError, match="basename_template"):
            fastpq.write_dataset(data, tmp_path / "b", basename_template=wrong)


def test_a_file_that_comes_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    def stream() -> Any:
        yield rows(1)
        fastpq.write_table(rows(9), tmp_path / "f-0.parquet")

    with pytest.raises(FileExistsError):
        fastpq.write_dataset(stream(), tmp_path, basename_template="f-{i}.parquet")
    assert values(tmp_path) == [9]


def test_wrong_behavior(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="existing_data_behavior must be"):
        fastpq.write_dataset(rows(1), tmp_path, existing_data_behavior="replace")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="partitioning must be"):
        fastpq.write_dataset(rows(1), tmp_path, partitioning="flat")  # type: ignore[arg-type]


@linux_only
@pytest.mark.parametrize("as_stream", [False, True])
def test_partitions_are_replaced(tmp_path: Path, as_stream: bool) -> None:
    root = tmp_path / "d"
    for part in (0, 1, 2):
        fastpq.write_dataset(rows(part, part + 10, part=part), root, partition_by=["part"])
    (root / "part=1" / "_note.txt").write_text("kept")
    os.chmod(root / "part=1", 0o750)
    data = {"x": np.array([100, 101]), "part": np.array([1, 3])}
    paths = fastpq.write_dataset(
        iter([data]) if as_stream else data, root, partition_by=["part"], existing_data_behavior="delete_matching")
    expected = [0, 2, 10, 12, 100, 101]
    assert values(root) == expected
    assert others(root) == [expected] * 3
    assert all(map(os.path.exists, paths))
    assert (root / "part=1" / "_note.txt").read_text() == "kept"
    assert os.stat(root / "part=1").st_mode & 0o777 == 0o750
    assert os.listdir(tmp_path) == ["d"]


@linux_only
@pytest.mark.parametrize("behavior", ["overwrite", "delete_matching"])
def test_datasets_are_replaced(tmp_path: Path, behavior: Any) -> None:
    """Without partitions both replace all files. Other columns and partitions are welcome then."""
    root = tmp_path / "d"
    fastpq.write_dataset({"x": ["text"], "part": [0]}, root, partition_by=["part"], write_metadata_file=True)
    fastpq.write_dataset(rows(1, 2), root, existing_data_behavior=behavior)
    assert others(root) == [values(root)] * 3 == [[1, 2]] * 3
    assert os.listdir(tmp_path) == ["d"]
    assert below(root)[:2] == ["_common_metadata", "_metadata"]      # written again, for the new file
    assert len(below(root)) == 3
    assert pq.read_metadata(root / "_metadata").num_rows == 2
    fastpq.write_dataset(rows(3, part=1), root, existing_data_behavior="overwrite", partition_by=["part"])
    assert values(root) == [3]
    fastpq.write_dataset(rows(4), tmp_path / "new" / "d", existing_data_behavior=behavior)
    assert values(tmp_path / "new" / "d") == [4]


@linux_only
def test_hidden_files_of_others_stay(tmp_path: Path) -> None:
    root = tmp_path / "d"
    (path,) = fastpq.write_dataset(rows(1), root, write_metadata_file=True)
    (root / ".git" / "refs").mkdir(parents=True)
    kept = {".git/config": "x", ".git/refs/main": "y", "_notes.md": "z", ".gitignore": "*", "_drafts/a.parquet": "no table"}
    gone = {f".{Path(path).name}.crc": "c", "_SUCCESS": "", f".new.parquet.{'0a' * 8}.tmp": "half"}
    (root / "_drafts").mkdir()
    for name, text in (kept | gone).items():
        (root / name).write_text(text)
    fastpq.write_dataset(rows(2), root, existing_data_behavior="overwrite")
    assert values(root) == [2]
    assert {name: (root / name).read_text() for name in kept} == kept
    assert not [name for name in gone if (root / name).exists()]


@linux_only
def test_metadata_file_follows(tmp_path: Path) -> None:
    fastpq.write_dataset(rows(1, part=1), tmp_path / "d", partition_by=["part"], write_metadata_file=True)
    fastpq.write_dataset(rows(2, 3, part=1), tmp_path / "d", partition_by=["part"], existing_data_behavior="delete_matching")
    assert fastpq.read_metadata(tmp_path / "d" / "_metadata").num_rows == 2
    assert ds.parquet_dataset(tmp_path / "d" / "_metadata", partitioning="hive").to_table()["x"].to_pylist() == [2, 3]


@linux_only
def test_what_is_no_dataset_is_not_replaced(tmp_path: Path) -> None:
    root = tmp_path / "d"
    fastpq.write_dataset(rows(1), root)
    (root / "photo.jpg").write_bytes(b"not a table")
    with pytest.raises(SchemaError, match="not a Parquet file") as caught:
        fastpq.write_dataset(rows(2), root, existing_data_behavior="overwrite")
    assert caught.value.context["path"] == str(root / "photo.jpg")
    assert (root / "photo.jpg").exists()
    assert os.listdir(tmp_path) == ["d"]


@linux_only
def test_errors_leave_the_old_files(tmp_path: Path) -> None:
    root = tmp_path / "d"
    fastpq.write_dataset(rows(1, part=1), root, partition_by=["part"])

    def stream() -> Any:
        yield rows(5, part=1)
        raise RuntimeError("no more")

    behaviors: list[Any] = ["delete_matching", "overwrite"]
    for behavior in behaviors:
        with pytest.raises(RuntimeError):
            fastpq.write_dataset(stream(), root, partition_by=["part"], existing_data_behavior=behavior)
    assert values(root) == [1]
    assert os.listdir(tmp_path) == ["d"]


STEPS = {"open", "os.link", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.chmod", "os.scandir", "shutil.rmtree"}


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Do the work in a child process that is killed at a system call. Return whether the child came to the end."""
    child = os.fork()
    if child == 0:
        left = step

        def hook(event: str, _: Any) -> None:
            nonlocal left
            if event in STEPS:
                if left == 0:
                    os._exit(9)
                left -= 1

        try:
            sys.addaudithook(hook)
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@linux_only
@pytest.mark.parametrize("behavior", ["delete_matching", "overwrite"])
def test_killed_at_every_step(tmp_path: Path, behavior: Any) -> None:
    """Readers see all old or all new files of the folder, wherever the process is killed. The next write tidies up."""
    root = tmp_path / "d"
    old, new = rows(1, 2, 3, part=0), rows(4, 5, part=0)
    options: dict[str, Any] = {"partition_by": ["part"], "threads": 1, "max_rows_per_file": 1}
    seen = set()
    for step in range(0, 1000, 3):
        fastpq.write_dataset(old, root, existing_data_behavior="overwrite", **options)
        assert os.listdir(tmp_path) == ["d"]
        is_done = killed_at(step, lambda: fastpq.write_dataset(new, root, existing_data_behavior=behavior, **options))
        seen.add(tuple(values(root)))
        assert values(root) in ([1, 2, 3], [4, 5])
        if is_done:
            break
    assert seen == {(1, 2, 3), (4, 5)}


@linux_only
def test_stages_of_others_stay(tmp_path: Path) -> None:
    """The stage of a process at work is not removed."""
    stage = tmp_path / ".d.0123456789abcdef.tmp"
    stage.mkdir()
    lock = os.open(stage, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    fastpq.write_dataset(rows(1), tmp_path / "d", existing_data_behavior="overwrite")
    assert stage.exists()
    os.close(lock)
    fastpq.write_dataset(rows(1), tmp_path / "d", existing_data_behavior="overwrite")
    assert not stage.exists()


@linux_only
def test_the_stage_is_inside_where_the_folder_above_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_files, "_can_exchange", lambda beside, root: False)
    fastpq.write_dataset(rows(1, part=1), tmp_path / "d", partition_by=["part"])
    fastpq.write_dataset(rows(2, part=1), tmp_path / "d", partition_by=["part"], existing_data_behavior="delete_matching")
    assert values(tmp_path / "d") == [2]
    assert os.listdir(tmp_path / "d") == ["part=1"]


@linux_only
def test_the_working_directory_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process goes on in the new folder, not in the removed one."""
    fastpq.write_dataset(rows(1), tmp_path / "d")
    monkeypatch.chdir(tmp_path / "d")
    fastpq.write_dataset(rows(2), ".", existing_data_behavior="overwrite")
    assert values(".") == [2]
    fastpq.write_dataset(rows(3), ".")
    fastpq.compact(".")
    assert values(".") == values(tmp_path / "d") == [2, 3]


@linux_only
def test_a_mounted_filesystem_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fastpq.write_dataset(rows(1), tmp_path / "d")
    monkeypatch.setattr("os.path.ismount", lambda path: path == str(tmp_path / "d"))
    with pytest.raises(UnsupportedError, match="mounted"):
        fastpq.write_dataset((pytest.fail("rows are taken") for _ in [0]), tmp_path / "d", existing_data_behavior="overwrite")
    assert values(tmp_path / "d") == [1]


@linux_only
def test_filesystems_without_exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Libc:
        def __init__(self, *_: Any, **__: Any) -> None:
            pass

    fastpq.write_dataset(rows(1), tmp_path / "d")
    monkeypatch.setattr("ctypes.CDLL", Libc)
    with pytest.raises(UnsupportedError, match="one step"):
        fastpq.write_dataset(rows(2), tmp_path / "d", existing_data_behavior="overwrite")
    assert values(tmp_path / "d") == [1]
    assert os.listdir(tmp_path) == ["d"]
    memory = fsspec.filesystem("memory")
    with pytest.raises(UnsupportedError, match="one step"):
        fastpq.write_dataset(rows(2), "/d", filesystem=memory, existing_data_behavior="overwrite")


def test_objects_are_replaced(object_store: Store) -> None:
    filesystem = object_store.filesystem()
    root = f"{object_store.new_bucket(filesystem)}/set"
    for part in (0, 1):
        fastpq.write_dataset(rows(part, part=part), root, filesystem=filesystem, partition_by=["part"])
    (path,) = fastpq.write_dataset(
        rows(7, 8, part=1), root, filesystem=filesystem, partition_by=["part"], existing_data_behavior="delete_matching")
    assert values(root, filesystem=filesystem) == [0, 7, 8]
    assert fastpq.read_table(path, filesystem=filesystem).num_rows == 2
    fastpq.write_dataset(rows(9), root, filesystem=filesystem, existing_data_behavior="overwrite")
    assert values(root, filesystem=filesystem) == [9]
    with pytest.raises(FileExistsError):
        fastpq.write_dataset(rows(9), root, filesystem=filesystem, existing_data_behavior="error")


def test_visitor(tmp_path: Path) -> None:
    files: list[Any] = []
    paths = fastpq.write_dataset(
        {"x": np.arange(4), "part": [0, 0, 1, 1]}, tmp_path / "d", partition_by=["part"], file_visitor=files.append)
    assert [file.path for file in files] == paths
    assert [file.size for file in files] == [os.path.getsize(path) for path in paths]
    assert [file.metadata.num_rows for file in files] == [2, 2]
    files.clear()
    keys = fastpq.FileEncryptionProperties(b"0123456789012345")
    fastpq.write_dataset(rows(1), tmp_path / "secret", encryption_properties=keys, file_visitor=files.append)
    assert files[0].metadata is None
    assert files[0].size == os.path.getsize(files[0].path)


@pytest.mark.parametrize("as_stream", [False, True])
def test_bytes_of_files(tmp_path: Path, as_stream: bool) -> None:
    """Files end with full row groups. No row group but the last of all is small."""
    noise = np.random.default_rng(1).random(100_000)
    data = {"x": noise}
    batches = ({"x": noise[start : start + 3000]} for start in range(0, len(noise), 3000))
    options: dict[str, Any] = {"compression": None, "use_dictionary": False, "row_group_size": 5000}
    paths = fastpq.write_dataset(batches if as_stream else data, tmp_path, max_bytes_per_file=130_000, **options)
    footers = [fastpq.read_metadata(path) for path in paths]
    counts = [group.num_rows for footer in footers for group in footer.row_groups]
    assert counts == [5000] * 20
    assert [footer.num_row_groups for footer in footers] == [3] * 6 + [2]       # 40 kB a row group
    assert np.array_equal(np.concatenate([pq.read_table(path)["x"].to_numpy() for path in paths]), noise)


def test_few_bytes(tmp_path: Path) -> None:
    """A limit below the size of a row group makes row groups smaller."""
    noise = np.random.default_rng(1).random(100_000)
    paths = fastpq.write_dataset({"x": noise}, tmp_path, max_bytes_per_file=100_000)
    assert len(paths) in (8, 9)
    assert max(map(os.path.getsize, paths)) < 110_000
    assert fastpq.read_table(tmp_path).num_rows == 100_000
    with pytest.raises(ValueError, match="max_bytes_per_file"):
        fastpq.write_dataset({"x": noise}, tmp_path, max_bytes_per_file=0)


def test_narrower_numbers_are_cast(tmp_path: Path) -> None:
    fastpq.write_dataset({"n": np.arange(2), "f": np.array([0.5, 1.5])}, tmp_path)
    more = {"n": np.arange(3, dtype=np.int32), "f": np.arange(3, dtype=np.float32)}
    (path,) = fastpq.write_dataset(more, tmp_path)
    (other,) = fastpq.write_dataset(iter([more, {"n": np.arange(2, dtype=np.int16), "f": np.arange(2)}]), tmp_path)
    assert pq.read_schema(path).types == pq.read_schema(other).types == [pa.int64(), pa.float64()]
    assert fastpq.read_table(tmp_path).num_rows == 2 + 3 + 5
    with pytest.raises(SchemaError, match="DOUBLE is not the INT64"):
        fastpq.write_dataset({"n": np.arange(2.0), "f": np.arange(2.0)}, tmp_path)
    with pytest.raises(SchemaError, match="INT64 is not the DOUBLE"):        # not all of its values are doubles
        fastpq.write_dataset({"n": np.arange(2), "f": np.arange(2)}, tmp_path)


def test_directories_without_names(tmp_path: Path) -> None:
    data = {"x": np.arange(4), "year": [2024, 2024, 2025, 2025], "country": ["DE", "a/b", "FR", "DE"]}
    fastpq.write_dataset(data, tmp_path / "d", partition_by=["year", "country"], partitioning="directory")
    assert sorted(str(path.parent.relative_to(tmp_path / "d")) for path in (tmp_path / "d").rglob("*.parquet")) == [
        "2024/DE", "2024/a%2Fb", "2025/DE", "2025/FR"]
    dataset = fastpq.ParquetDataset(tmp_path / "d", partitioning=["year", "country"])
    assert dataset.partition_names == ["year", "country"]
    theirs = ds.dataset(tmp_path / "d", partitioning=ds.partitioning(pa.schema([("year", "int32"), ("country", "string")])))
    assert dataset.read().to_pylist() == theirs.to_table().to_pylist()
    assert dataset.read(filters=[("year", "==", 2024), ("country", "==", "DE")])["x"].to_pylist() == [0]
    assert len(fastpq.ParquetDataset(tmp_path / "d", partitioning=["year", "country"], filters=[("year", "==", 2025)]).files) == 2
    fastpq.write_dataset(data, tmp_path / "d", partition_by=["year", "country"], partitioning="directory")
    assert fastpq.read_dataset(tmp_path / "d", partitioning=["year", "country"]).num_rows == 8
    with pytest.raises(SchemaError, match="2 directories"):
        fastpq.ParquetDataset(tmp_path / "d", partitioning=["year"])
    with pytest.raises(ValueError, match="partitioning must be"):
        fastpq.ParquetDataset(tmp_path / "d", partitioning=["year", "year"])
    with pytest.raises(SchemaError, match="common directory"):
        fastpq.ParquetDataset([tmp_path / "d"], partitioning=["year", "country"])
    for value in ("_x", None):
        with pytest.raises(SchemaError, match="readers skip"):
            fastpq.write_dataset({"x": [1], "p": [value]}, tmp_path / "e", partition_by=["p"], partitioning="directory")


def test_directories_of_others(tmp_path: Path) -> None:
    data = pa.table({"x": range(4), "year": [1, 1, 2, 2]})
    ds.write_dataset(data, tmp_path / "d", format="parquet", partitioning=["year"])
    assert fastpq.read_dataset(tmp_path / "d", partitioning=["year"]).to_pylist() == data.to_pylist()
