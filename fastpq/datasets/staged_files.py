"""Replaces the files in a dataset's folders in one step. Readers see the old or the new files, even after a crash.

Local files are written to a stage, which is a hidden folder beside the dataset. Linux then exchanges a new folder and an old
folder (``renameat2`` with ``RENAME_EXCHANGE``), and the old files are removed. In an object store, a commit record
(fastpq.datasets.records) lets the new files appear and the old ones vanish for the readers of fastpq.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import glob
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fastpq.datasets.discovery import NO_DATA, is_hidden
from fastpq.datasets.placement import Placement
from fastpq.datasets.records import FOLDER, NOTES, abandon_job, base_of, commit_uploads, relative
from fastpq.encryption.keys.store import PREFIX, SUFFIX
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.format.stored_footer import ENCRYPTED_MAGIC, MAGIC
from fastpq.io.location import Remote
from fastpq.io.multipart import PendingSink
from fastpq.io.new_file import TOKEN_PATTERN, make_directories, new_token, sync_folder, temporary_path
from fastpq.io.object_store import find_store, store_at

OWN_HIDDEN_FILES = ("_metadata", "_common_metadata", "_SUCCESS")
TEMPORARY = re.compile(rf"\..*\.{TOKEN_PATTERN}\.tmp")     # names that end as TEMPORARY_SUFFIX says
CHECKSUMS = (".crc", ".md5", ".sha256")     # suffixes of files that belong to a data file, and go with it
_AT_FDCWD: Final = -100                     # fcntl.h: paths are relative to the working directory
_RENAME_EXCHANGE: Final = 2                 # linux/fs.h


class StagedFolders(Placement):
    """New local files that replace all data files in their folders at the end.

    Every folder is exchanged in one step. A crash leaves each folder as it was, or with the new files alone. Notes and other
    files without data (NO_DATA) stay in the folder. A stage that a crash left behind is removed by the next StagedFolders.

    Args:
        root: the dataset's folder.
        is_whole: whether the whole dataset is replaced. Otherwise only folders that get a new file are replaced.

    Raises:
        UnsupportedError: the operating system or the filesystem cannot exchange folders.
        OSError: the stage cannot be made.
    """

    def __init__(self, root: str, is_whole: bool) -> None:
        super().__init__(os.path.realpath(root), durable=True)
        self._is_whole = is_whole
        self._names: dict[str, list[str]] = {"": []} if is_whole else {}      # new file names, by folder
        self._stage = StageFolder(os.path.realpath(root), is_whole)

    def make_folders(self, folders: Iterable[str]) -> None:
        make_directories(*map(self._staged, folders), durable=False)

    def free_name(self, folder: str, name: str) -> bool:
        return True

    def target(self, folder: str, name: str) -> tuple[Any, str]:
        staged = self._staged(folder)
        # external key material is written beside the final path
        make_directories(staged, self._directory(folder), durable=False)
        self._names.setdefault(folder, []).append(name)
        return os.path.join(staged, name), self._path(folder, name)

    def finish(self) -> None:
        folders = [""] if self._is_whole else sorted(self._names)
        for folder in folders:
            check_replaceable(self._directory(folder))
        for folder in folders:
            os.makedirs(self._staged(folder), exist_ok=True)
            self._keep_other_files(folder)
        self._bring_key_material()
        for folder in folders:
            exchange_folders(self._staged(folder), self._directory(folder))
        self._names.clear()

    def abandon(self) -> None:
        self._stage.remove()
        for folder, names in self._names.items():
            for name in names:
                remove_key_material(self._path(folder, name))

    def _staged(self, folder: str) -> str:
        return os.path.join(self._stage.new, *folder.split("/")) if folder else self._stage.new

    def _keep_other_files(self, folder: str) -> None:
        """Link old files without data, and hidden files that others made, into the new folder."""
        old, new = self._directory(folder), self._staged(folder)
        for path in files_below(old):
            if is_kept(os.path.relpath(path, old).replace(os.sep, "/")):
                place = os.path.join(new, os.path.relpath(path, old))
                make_directories(os.path.dirname(place), durable=False)
                os.link(path, place, follow_symlinks=False)

    def _bring_key_material(self) -> None:
        """Move the key material of new files, which stands beside their final paths, into the stage."""
        for folder, names in self._names.items():
            for name in names:
                material = PREFIX + name + SUFFIX
                with contextlib.suppress(FileNotFoundError):
                    os.rename(self._path(folder, material), os.path.join(self._staged(folder), material))


class StageFolder:
    """A hidden folder in which a new state of a dataset is made. A lock shows other processes that its owner is at work.

    Args:
        root: the dataset's folder.
        is_whole: whether the dataset's folder itself will be exchanged, so that the stage cannot be inside it.

    Attributes:
        new: the new folder, with the structure of the dataset.
    """

    def __init__(self, root: str, is_whole: bool) -> None:
        beside = os.path.dirname(root)
        if is_whole and os.path.ismount(root):
            raise UnsupportedError("a folder on which a filesystem is mounted cannot be replaced in one step", path=root)
        make_directories(root if os.path.isdir(root) else beside, durable=False)
        is_inside = not is_whole and os.path.isdir(root) and not _can_exchange(beside, root)
        base = os.path.join(root, "stage") if is_inside else root
        for earlier in glob.glob(temporary_path(glob.escape(base), TOKEN_PATTERN), include_hidden=True):
            if os.path.isdir(earlier) and (lock := _locked(earlier)) is not None:
                shutil.rmtree(earlier, ignore_errors=True)
                os.close(lock)
        self._path = temporary_path(base, new_token())
        os.mkdir(self._path, 0o700)
        self._lock = _locked(self._path)
        self.new = os.path.join(self._path, "new")
        try:
            os.mkdir(self.new)
            self._try_exchange()
        except BaseException:
            self.remove()
            raise

    def _try_exchange(self) -> None:
        """Exchange two empty folders, so that a filesystem that cannot do this is noticed before anything is written."""
        places = [os.path.join(self._path, name) for name in ("one", "other")]
        for place in places:
            os.mkdir(place)
        _exchange(*places)
        for place in places:
            os.rmdir(place)

    def remove(self) -> None:
        """Remove the stage with all that is in it."""
        shutil.rmtree(self._path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _can_exchange(beside: str, root: str) -> bool:
    """Return whether a folder beside the dataset can be exchanged with one inside it."""
    return os.access(beside, os.W_OK) and os.stat(beside).st_dev == os.stat(root).st_dev


def _locked(folder: str) -> int | None:
    """Lock a folder and return the descriptor that holds the lock. None if another process holds it, or on Windows."""
    try:
        import fcntl
    except ImportError:
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def exchange_folders(new: str, old: str) -> None:
    """Put a new folder in the place of an old one in one step. The old folder is at the new one's path afterwards.

    The new folder gets the old one's permissions, and all its names are on disk before.

    Args:
        new: the new folder. Its files are on disk already.
        old: the old folder, which may be missing.

    Raises:
        OSError: the folders cannot be exchanged. The old folder is in its place.
        UnsupportedError: the filesystem cannot exchange folders.
    """
    for folder, _, _ in os.walk(new):
        sync_folder(folder)
    if os.path.isdir(old):
        copy_owner(old, new)
        working_directory = _directory_below(old)
        _exchange(new, old)
        if working_directory is not None:
            with contextlib.suppress(FileNotFoundError):        # the new folder lacks a folder of the old one
                os.chdir(working_directory)
    else:
        make_directories(os.path.dirname(old))
        os.rename(new, old)
    sync_folder(os.path.dirname(old))


def copy_owner(folder: str, copy: str) -> None:
    """Give a folder the owner, group and permissions of another, as far as this process may."""
    status = os.stat(folder)
    with contextlib.suppress(OSError):      # only the superuser may give files away
        os.chown(copy, status.st_uid, status.st_gid)
    shutil.copymode(folder, copy)


def _directory_below(folder: str) -> str | None:
    """Return the path of this process's working directory if it is a folder or below it, and None otherwise."""
    try:
        directory, folder = os.getcwd(), os.path.realpath(folder)
    except FileNotFoundError:
        return None
    return directory if os.path.commonpath([directory, folder]) == folder else None


def _exchange(one: str, other: str) -> None:
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        raise UnsupportedError("folders can be replaced in one step only on Linux: write to a new folder", path=other)
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        number = ctypes.get_errno()
        if number in (errno.EINVAL, errno.ENOSYS):
            raise UnsupportedError("the filesystem cannot exchange two folders in one step: write to a new folder", path=other)
        raise OSError(number, os.strerror(number), other)


def check_replaceable(folder: str) -> None:
    """Refuse a folder that has files other than those of a dataset, since all its files will be removed.

    Raises:
        SchemaError: a file is neither a Parquet file nor one that readers of datasets skip.
    """
    for path in files_below(folder):
        parts = os.path.relpath(path, folder).split(os.sep)
        if any(map(is_hidden, parts)) or path.lower().endswith(NO_DATA):
            continue
        with open(path, "rb") as file:
            if file.read(4) not in (MAGIC, ENCRYPTED_MAGIC):
                raise SchemaError("a file in the folder to replace is not a Parquet file: move it, or write elsewhere", path=path)


def is_kept(path: str) -> bool:
    """Return whether a file stays when all files in a dataset are replaced.

    Files without data stay, for example notes, and hidden files too, for example those in ``.git``. Files that belong to the old
    data files go with them: checksums, wrapped keys, ``_metadata``, the marker ``_SUCCESS`` and unfinished files.

    Args:
        path: the file's path below the dataset's folder, with slashes.
    """
    *_, name = parts = path.split("/")
    is_own = name.lower().endswith(CHECKSUMS) or _is_key_material(name) or name in OWN_HIDDEN_FILES
    if is_own or any(map(TEMPORARY.fullmatch, parts)):
        return False
    return name.lower().endswith(NO_DATA) or any(map(is_hidden, parts))


def files_below(folder: str) -> Iterator[str]:
    """Yield the paths of all files below a folder."""
    for directory, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(directory, name)


def remove_key_material(path: str) -> None:
    """Remove the external key material of a local file, if there is any."""
    folder, name = os.path.split(path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, PREFIX + name + SUFFIX))


def _is_key_material(path: str) -> bool:
    return os.path.basename(path).startswith(PREFIX)


class StagedUploads(Placement):
    """New objects in a store that replace all objects in their folders at the end, by one commit record.

    Args:
        place: the dataset's folder.
        is_whole: whether the whole dataset is replaced. Otherwise only folders that get a new file are replaced.

    Raises:
        UnsupportedError: the filesystem is not that of S3, Azure or Google's store.
    """

    def __init__(self, place: Remote, is_whole: bool) -> None:
        if find_store(place.filesystem) is None:
            raise UnsupportedError(
                "files can be replaced in one step in local folders, S3, Azure and Google's store, but not here", path=place.name)
        super().__init__(place)
        self._is_whole = is_whole
        self._sinks: list[PendingSink] = []
        self._folders: set[str] = {""} if is_whole else set()

    def free_name(self, folder: str, name: str) -> bool:
        # an object with the path of an old one would replace it before the commit
        return not self._place.filesystem.exists(self._path(folder, name))

    def target(self, folder: str, name: str) -> tuple[Any, str]:
        path = self._path(folder, name)
        sink = PendingSink(Remote(self._place.filesystem, path, path))
        self._sinks.append(sink)
        self._folders.add(folder)
        return sink, path

    def finish(self) -> None:
        filesystem, own = self._place.filesystem, self._place.path.rstrip("/")
        root = base_of(own)
        prefixes = [relative(root, self._directory(folder)) + "/" for folder in self._folders]
        all_prefixes = ("",) if self._is_whole and root == own else tuple(prefixes)

        def old_files(files: Mapping[str, Mapping[str, Any]]) -> list[str]:
            return self._old_files(files, root, all_prefixes)

        job = f"write-{uuid.uuid4().hex}"
        base = Remote(filesystem, root, root)
        uploads = [sink.upload for sink in self._sinks if sink.upload is not None]
        try:
            commit_uploads(base, job, uploads, old_files)
        except BaseException:
            abandon_job(base, job)
            raise
        self._sinks.clear()

    def _old_files(self, files: Mapping[str, Mapping[str, Any]], root: str, prefixes: tuple[str, ...]) -> list[str]:
        """Return the names of the files to remove, relative to the root. Prefixes are the folders that are replaced."""
        names = [name for name in files if name.startswith(prefixes)]
        return [name for name in names if not name.startswith((f"{FOLDER}/", f"{NOTES}/")) and not is_kept(name)]

    def abandon(self) -> None:
        for sink in self._sinks:
            if sink.upload is not None:
                store_at(self._place.filesystem).abort(sink.upload.path, sink.upload.upload_id)
            else:
                sink.abort()

    @property
    def _place(self) -> Remote:
        assert isinstance(self._root, Remote)
        return self._root
