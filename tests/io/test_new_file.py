"""Files that take their place as a whole: nothing left behind, names on disk, owner and permissions kept."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.encryption.keys.keyring import Keyring
from fastpq.errors import SchemaError
from fastpq.io.new_file import TEMPORARY_SUFFIX, make_directories, temporary_files
from fastpq.io.sink import FileSink
from fastpq.io.sink_opening import open_sink
from fastpq.spark.tables.journal import replace_json

UNNAMED = hasattr(os, "O_TMPFILE")
linux = pytest.mark.skipif(not UNNAMED, reason="unnamed files are of Linux")


@pytest.fixture(params=["unnamed", "named"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Files without a name where there are any, and files with a hidden name."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    elif not UNNAMED:
        pytest.skip("unnamed files are of Linux")
    return str(request.param)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_appears_on_commit(way: str, tmp_path: Path) -> None:
    for text in (b"new", b"newer"):
        sink = open_sink(tmp_path / "out")
        sink.write(text)
        hidden = [name for name in names(tmp_path) if name != "out"]
        assert len(hidden) == (way == "named")
        sink.commit()
        assert names(tmp_path) == ["out"]
        assert (tmp_path / "out").read_bytes() == text


def test_bytes_that_shall_persist_have_a_name(way: str, tmp_path: Path) -> None:
    sink = open_sink(tmp_path / "out")
    sink.write(b"half")
    for _ in range(2):
        sink.persist()
        (left,) = temporary_files(str(tmp_path / "out"))
        assert Path(left).read_bytes() == b"half"
    sink.write(b"whole")
    sink.commit()
    assert names(tmp_path) == ["out"]
    sink = open_sink(tmp_path / "out")
    sink.persist()
    sink.abort()
    assert names(tmp_path) == ["out"]


WRITER = """
import signal, sys, time
import numpy as np
import fastpq
signal.signal(signal.SIGHUP, signal.SIG_DFL)        # ignored below nohup
writer = fastpq.ParquetWriter(sys.argv[1], row_group_size=1000, checkpoint_every=1 if len(sys.argv) > 2 else None)
writer.write_table({"a": np.arange(2000)})
print("written", flush=True)
time.sleep(60)
"""


def ended(by: int, *arguments: str) -> None:
    """Run WRITER and end it by a signal in mid-write."""
    child = subprocess.Popen([sys.executable, "-c", WRITER, *arguments], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "written\n"
    child.send_signal(by)
    child.communicate()
    assert child.returncode == -by


@linux
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_leaves_no_temporary_file(by: int, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    ended(by, str(path))
    assert names(tmp_path) == []
    ended(by, str(path), "with checkpoints")
    (left,) = fastpq.unfinished_files(path)
    assert names(tmp_path) == [Path(left).name]
    assert fastpq.recover_table(left).table.num_rows == 2000


@linux
def test_a_file_that_cannot_be_opened_by_its_descriptor_gets_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = os.stat

    def without_proc(path: Any, **options: Any) -> os.stat_result:
        if str(path).startswith("/proc"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return status(path, **options)

    monkeypatch.setattr(os, "stat", without_proc)
    with open_sink(tmp_path / "out") as sink:
        sink.write(b"x")
        assert len(temporary_files(str(tmp_path / "out"))) == 1
    assert names(tmp_path) == ["out"]


def test_unfinished_files_of_a_dataset(tmp_path: Path) -> None:
    fastpq.write_dataset({"year": np.array([1, 1, 2]), "x": np.arange(3)}, tmp_path, partition_by=["year"])
    made = [tmp_path / f".half{TEMPORARY_SUFFIX.format('0' * 16)}"]
    for number, folder in enumerate(("year=1", "year=2/deep", ".hidden")):
        (tmp_path / folder).mkdir(exist_ok=True)
        made.append(tmp_path / folder / f".part-{number}.parquet{TEMPORARY_SUFFIX.format(16 * str(number))}")
    for number, path in enumerate(made):
        path.touch()
        os.utime(path, (number, number))
    (tmp_path / "year=1" / ".other.tmp").touch()
    assert fastpq.unfinished_files(tmp_path) == [str(path) for path in made]
    assert fastpq.unfinished_files(str(tmp_path) + "/") == [str(path) for path in made]
    assert fastpq.unfinished_files(tmp_path / "half") == [str(made[0])]
    assert fastpq.read_dataset(tmp_path).num_rows == 3


# ---- names on disk


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the directories synced so far."""
    seen: list[str] = []
    sync = os.fsync

    def told(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            seen.append(os.path.realpath(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", told)
    return seen


@linux
def test_directories_are_synced(way: str, tmp_path: Path, synced: list[str]) -> None:
    with fastpq.ParquetWriter(tmp_path / "file", row_group_size=10, checkpoint_every=1, durable=True) as writer:
        writer.write_table({"a": np.arange(10)})
        assert synced == [str(tmp_path)]        # the checkpoint has a name, and the name is on disk
    assert synced == [str(tmp_path)] * 2
    synced.clear()
    fastpq.write_dataset({"p": ["a"], "x": [1]}, tmp_path / "new" / "root", partition_by=["p"], durable=True)
    new = [tmp_path, tmp_path / "new", tmp_path / "new" / "root", tmp_path / "new" / "root" / "p=a"]
    assert synced == [str(path) for path in new]
    synced.clear()
    rows = {"p": ["a", "a", "b", "b"], "q": [1, 2, 1, 2], "x": [1, 2, 3, 4]}
    files = fastpq.write_dataset(rows, tmp_path / "many", partition_by=["p", "q"], durable=True)
    root = tmp_path / "many"        # the names of all partitions are on disk before the first file
    assert synced == [str(path) for path in (tmp_path, root, root / "p=a", root / "p=b", *(Path(file).parent for file in files))]
    synced.clear()
    Keyring.create(tmp_path / "new" / "keyring", "secret", scrypt_log_n=10)
    assert synced == [str(tmp_path / "new")]
    synced.clear()
    replace_json(str(tmp_path / "new" / "commit.json"), {"a": 1})
    assert synced == [str(tmp_path / "new")]


@linux
@pytest.mark.parametrize("durable", [True, False])
def test_files_without_durability_are_synced_only_before_they_replace_others(
    durable: bool, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(is_folder(descriptor)))

    def check(files: int, folders: int, *, replaced: int = 0) -> None:
        assert (synced.count(False), synced.count(True)) == ((files, folders) if durable else (replaced, 0))
        synced.clear()

    path = tmp_path / "file"
    for number in range(2):     # a new file, and one in place of another
        fastpq.write_table({"a": [number]}, path, durable=durable)
        check(1, 1, replaced=number)
        assert fastpq.read_table(path)["a"].to_pylist() == [number]
    with fastpq.ParquetWriter(path, row_group_size=10, checkpoint_every=1, durable=durable) as writer:
        writer.write_table({"a": np.arange(10)})
        check(1, 1)
        assert len(temporary_files(str(path))) == 1     # the end of the process leaves the checkpoint in either case
        assert fastpq.read_table(path)["a"].to_pylist() == [1]
    check(1, 1, replaced=1)
    assert names(tmp_path) == ["file"]
    with fastpq.ParquetWriter(tmp_path / "other", durable=durable) as writer:
        writer.write_table({"a": [1]})
        (tmp_path / "other").write_text("an old file, younger than the writer")
    check(1, 1, replaced=1)
    (tmp_path / "other").unlink()
    rows = {"p": ["a", "b"], "x": [1, 2]}
    root = tmp_path / "root"
    fastpq.write_dataset(rows, root, partition_by=["p"], durable=durable)
    check(2, 4)     # parent and root hold the names of new directories
    fastpq.write_dataset(iter([rows]), root, partition_by=["p"], properties=fastpq.WriterProperties(durable=durable))
    check(2, 2)
    assert sorted(fastpq.read_table(root)["x"].to_pylist()) == [1, 1, 2, 2]


@linux
def test_files_that_metadata_name_are_on_disk_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    sync = os.fsync

    def told(descriptor: int) -> None:
        synced.append("folder" if is_folder(descriptor) else "file")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", told)
    for asked in (True, None):
        fastpq.write_dataset({"x": [1]}, tmp_path / "root", write_metadata_file=asked)
        assert synced.count("file") == 3        # the rows, _metadata and _common_metadata
        synced.clear()
    fastpq.write_dataset({"x": [1]}, tmp_path / "root", write_metadata_file=False)
    assert not synced


def test_durability_is_true_or_false(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="durable must be True or False"):
        fastpq.write_table({"a": [1]}, tmp_path / "file", durable="no")     # type: ignore[arg-type]
    file = io.BytesIO()
    fastpq.write_table({"a": [1]}, file, durable=False)     # without effect
    assert fastpq.read_table(file.getvalue())["a"].to_pylist() == [1]


def failing(number: int, monkeypatch: pytest.MonkeyPatch, name: str, is_met: Callable[[int], bool]) -> None:
    """Let a function of os fail for the descriptors that meet a condition; a failing close closes all the same."""
    real = getattr(os, name)

    def fail(descriptor: int) -> None:
        met = is_met(descriptor)
        if name == "close" or not met:
            real(descriptor)
        if met:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, name, fail)


def is_folder(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


@pytest.mark.parametrize("name", ["fsync", "close"])
def test_errors_after_the_rename_are_no_errors_of_the_write(
    name: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = open_sink(tmp_path / "out")
    sink.write(b"new")
    failing(errno.EIO, monkeypatch, name, is_folder)
    sink.commit()
    assert (tmp_path / "out").read_bytes() == b"new"
    assert names(tmp_path) == ["out"]


@linux
def test_errors_of_writing_that_are_told_at_a_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = open_sink(tmp_path / "out", durable=False)
    sink.write(b"new")
    failing(errno.EDQUOT, monkeypatch, "close", lambda descriptor: not is_folder(descriptor))
    with pytest.raises(OSError, match=r"quota.*out"):
        sink.commit()
    assert names(tmp_path) == []


@pytest.mark.parametrize("step", ["write", "persist", "commit"])
def test_errors_of_the_operating_system_name_the_path(
    step: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out"
    sink = open_sink(path)
    if step == "write":     # a size that the process may not write
        resource = pytest.importorskip("resource")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
        try:
            with pytest.raises(OSError, match="too large") as caught:
                sink.write(bytes(1 << 21))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        sink.abort()
    else:
        sink.write(b"new")
        with monkeypatch.context() as patched:
            failing(errno.ENOSPC, patched, "fsync", lambda descriptor: not is_folder(descriptor))
            with pytest.raises(OSError, match="No space left") as caught:
                sink.persist() if step == "persist" else sink.commit()
        sink.abort()
    assert caught.value.filename == str(path)
    assert names(tmp_path) == []


@pytest.mark.skipif(os.name == "nt", reason="directories of Windows are not synced")
def test_a_folder_that_cannot_be_synced(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        failing(errno.EIO, patched, "fsync", is_folder)
        sink = open_sink(tmp_path / "out")
        with pytest.raises(OSError, match="Input/output error: .*" + re.escape(str(tmp_path))):
            sink.persist()
        sink.abort()
        with pytest.raises(OSError, match="Input/output error: .*" + re.escape(str(tmp_path))):
            make_directories(str(tmp_path / "folder"))
    with monkeypatch.context() as patched:      # a filesystem without the call
        failing(errno.EINVAL, patched, "fsync", is_folder)
        make_directories(str(tmp_path / "other" / "folder"))
        with open_sink(tmp_path / "other" / "out") as sink:
            sink.persist()
    assert names(tmp_path) == ["folder", "other"]


# ---- full disks and files that may not be replaced


def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(errno.ENOSPC, monkeypatch, "fsync", lambda descriptor: not is_folder(descriptor))


def test_a_keyring_on_a_full_disk_leaves_nothing(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keyring"
    with monkeypatch.context() as patched:
        full_disk(patched)
        with pytest.raises(OSError, match="No space left"):
            Keyring.create(path, "secret", scrypt_log_n=10)
    assert names(tmp_path) == []
    keyring = Keyring.create(path, "secret", scrypt_log_n=10)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    with monkeypatch.context() as patched:
        full_disk(patched)
        with pytest.raises(OSError, match="No space left"):
            keyring.create_key("k")
    assert path.read_bytes() == before
    with pytest.raises(FileExistsError):
        Keyring.create(path, "secret", scrypt_log_n=10)
    assert names(tmp_path) == ["keyring"]


def test_a_file_made_meanwhile_is_not_replaced(way: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = FileSink(str(path), replaces=False)
    sink.write(b"ours")
    path.write_bytes(b"theirs")
    with pytest.raises(FileExistsError):
        sink.commit()
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["out"]
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        FileSink(str(tmp_path / "link"), replaces=False)


# ---- owner, group and permissions


needs_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="a test for the superuser")


@needs_root
def test_owner_and_group_are_kept(way: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.touch()
    os.chown(path, 1234, 2345)
    path.chmod(0o640)
    with open_sink(path) as sink:
        sink.write(b"new")
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 2345, 0o640)


@needs_root
@pytest.mark.parametrize(("groups", "expected"), [([2345], (99, 2345, 0o664)), ([], (99, 99, 0o644))])
def test_owner_and_group_without_permission(groups: list[int], expected: tuple[int, int, int]) -> None:
    """The group is kept by its members; the permissions of a group that is lost go to no other group."""
    script = f"""
        import os, sys
        from fastpq.io.sink_opening import open_sink
        os.setgroups({groups})
        os.setgid(99)
        os.setuid(99)
        with open_sink(sys.argv[1]) as sink:
            sink.write(b"new")
    """
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:     # open to the other user
        os.chmod(folder, 0o777)
        path = Path(folder) / "out"
        path.touch()
        os.chown(path, 1234, 2345)
        path.chmod(0o664)
        command = [sys.executable, "-c", textwrap.dedent(script), str(path)]
        subprocess.run(command, check=True, cwd=Path(__file__).parents[2])
        status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == expected


# ---- file objects that lie


class Liar:
    """A file object that takes all bytes and returns another number."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def write(self, data: Any) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "error"),
    [(0, OSError), (-1, SchemaError), (4, SchemaError), (1 << 70, SchemaError), ("3", SchemaError), (True, SchemaError),
     (2.0, SchemaError), (None, BlockingIOError)],
)
def test_file_objects_that_lie_about_a_write(answer: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="file object"):
        sink = open_sink(Liar(answer))
        sink.write(b"abc")
        sink.persist()


def test_numbers_of_numpy_are_numbers() -> None:
    class Half:
        taken = b""

        def write(self, data: Any) -> Any:
            self.taken += bytes(data[:2])
            return np.int64(min(2, len(data)))

    target = Half()
    with open_sink(target) as sink:
        sink.write(b"abcde")
    assert target.taken == b"abcde"


def test_listing_follows_no_links(tmp_path: Path) -> None:
    """Links to the folder itself would have no end."""
    hidden = tmp_path / "data" / f".out.parquet{TEMPORARY_SUFFIX.format('0' * 16)}"
    hidden.parent.mkdir()
    hidden.touch()
    for name in "ab":
        (tmp_path / name).symlink_to(tmp_path)
    assert temporary_files(str(tmp_path)) == [str(hidden)]


def test_a_directory_that_another_job_makes_and_removes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "jobs" / "folder"
    real, calls = os.mkdir, []

    def mkdir(path: str) -> None:
        calls.append(path)
        if len(calls) == 1:     # there at the time of the call, and removed behind it
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        real(path)

    monkeypatch.setattr(os, "mkdir", mkdir)
    make_directories(str(target))
    assert target.is_dir()
    target.rmdir()
    target.write_bytes(b"")
    with pytest.raises(FileExistsError):
        make_directories(str(target))
