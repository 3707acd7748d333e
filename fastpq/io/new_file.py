"""NewFile: a local file that takes its place all at once. Until then it has no name or a hidden one. Also durable directories."""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import glob
import io
import os
import stat
import weakref
from collections.abc import Iterator

NAME_MAX = 255                  # bytes. Every common filesystem allows file names that are this long
TEMPORARY_SUFFIX = ".{}.tmp"    # end of a temporary name. A random token makes the name unique
TOKEN_BYTES = 8                 # random bytes in a token. The token has two hexadecimal digits for each byte
TOKEN_PATTERN = TOKEN_BYTES * "[0-9a-f][0-9a-f]"

# Errors from filesystems that cannot sync a directory, and for directories that may be written but not read.
UNSYNCED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF, errno.ENOSYS, errno.EACCES})


def new_token() -> str:
    """Return random hexadecimal digits for a temporary name, from the operating system's generator."""
    return os.urandom(TOKEN_BYTES).hex()     # like secrets.token_hex, without the 3 MB of OpenSSL that the module secrets loads


class NewFile:
    """A new local file that nobody sees until ``place`` gives it its path. An old file stays there until then.

    Other processes always see either the old file or the whole new file, even if a signal ends this process. A durable file is on
    disk, with its name, when it takes its place. A power failure therefore leaves the old file or the whole new file. For other
    files the operating system chooses when to write to disk, and a power failure may leave a part of a new file. Bytes that
    replace an old file are always on disk before they replace it.

    Linux has files without a name (O_TMPFILE). There the file gets a name only in ``persist`` or ``place``, and a process that a
    signal ends leaves nothing behind. On other systems the file has a hidden temporary name beside its path. A process that a
    signal ends leaves this file behind, and temporary_files finds it.

    The new file keeps the owner, group and permissions that the replaced file has, as far as this process may set them. If it
    cannot keep the group, the new group gets only the permissions that all others have.

    Attributes:
        file: the open file. It has no buffer, because a forked child would write the buffer a second time.

    Args:
        path: path for the file.
        mode: permissions for a file that replaces no other file. None takes the default permissions, which the umask reduces.
        replaces: whether the file may replace an old file.
        follow_links: whether a symbolic link is followed. Otherwise the file replaces the link.
        durable: whether bytes and name are put on disk.

    Raises:
        FileExistsError: there is an old file that may not be replaced.
        OSError: the file cannot be made.
    """

    def __init__(
        self, path: str, *, mode: int | None = None, replaces: bool = True, follow_links: bool = True, durable: bool = True
    ) -> None:
        if not replaces and os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        folder, name = os.path.split(path)
        self._target = os.path.realpath(path) if follow_links else os.path.join(os.path.realpath(folder), name)
        self._replaces, self._durable = replaces, durable
        old = _status_of(self._target)
        self._is_replacement = old is not None
        requested_mode = stat.S_IMODE(old.st_mode) if old is not None else 0o666 if mode is None else mode
        self._temporary: str | None = None
        descriptor = _unnamed(os.path.dirname(self._target), requested_mode)
        if descriptor is None:
            self._temporary = self._new_name()
            descriptor = _named(self._temporary, requested_mode, path)
        self._is_listed = False     # whether the temporary name is on disk
        self.file = os.fdopen(descriptor, "wb", buffering=0)
        self._cleanup = weakref.finalize(self, _remove, self.file, self._temporary, os.getpid())
        if old is not None:
            _take_after(descriptor, old)

    def start_writing(self, start: int, end: int) -> None:
        """Start to write a part of the file to disk, if ``place`` will wait until all of it is there. This is only a hint."""
        if self._durable or self._is_replacement:
            from fastpq.io.disk_writing import start_writing  # small files never need it

            start_writing(self.file.fileno(), start, end - start)

    def persist(self) -> None:
        """Give the file a hidden name, by which temporary_files finds it. If durable, the written bytes are on disk afterwards.

        Raises:
            OSError: the file or its directory cannot be synced.
        """
        if self._durable:
            os.fsync(self.file.fileno())
        if self._temporary is None:
            self._name()
        if self._durable and not self._is_listed:
            sync_folder(os.path.dirname(self._target))
            self._is_listed = True

    def place(self) -> None:
        """Put the file in its place. If durable, its bytes and its name are on disk. Bytes that replace an old file always are.

        If the directory cannot be synced or closed after the rename, no error is raised, because the new file is in its place.

        Raises:
            FileExistsError: there is a file that may not be replaced.
            OSError: the file cannot be synced or renamed. The old file is still there.
        """
        has_name = self._temporary is not None
        is_synced = self._durable or self._is_replacement or (has_name and os.path.lexists(self._target))
        if is_synced:
            os.fsync(self.file.fileno())
        elif not has_name:     # some filesystems report write errors when a descriptor is closed
            os.close(os.dup(self.file.fileno()))
        if has_name:
            self.file.close()       # reports write errors too
        with _synced(os.path.dirname(self._target)) if self._durable else contextlib.nullcontext():
            # an unnamed file can take a free path directly. If there is or was an old file, it needs a name and a rename
            if self._temporary is None and ((self._is_replacement and self._replaces) or not self._take_free_place()):
                if not is_synced:       # the old file has come since this one began
                    os.fsync(self.file.fileno())
                self._name()
            if self._temporary is not None:
                self._rename(self._temporary)
            self._cleanup.detach()
        with contextlib.suppress(OSError):      # write errors were reported, and the file is in its place
            self.file.close()

    def discard(self) -> None:
        """Remove the file. Does nothing after ``place``."""
        self._cleanup()

    @property
    def path(self) -> str:
        """A path by which this process can open the unfinished file."""
        return _path_of(self.file.fileno()) if self._temporary is None else self._temporary

    def _new_name(self) -> str:
        return temporary_path(self._target, new_token())

    def _take_free_place(self) -> bool:
        """Give an unnamed file its path. Return False if an old file must be replaced."""
        try:
            _link(self.file, self._target)
        except FileExistsError:
            if not self._replaces:
                raise
            return False
        return True

    def _name(self) -> None:
        """Give an unnamed file a hidden name."""
        name = self._new_name()
        old_cleanup = self._cleanup
        # before the link, so that Ctrl-C after it leaves no file behind
        self._cleanup = weakref.finalize(self, _remove, self.file, name, os.getpid())
        old_cleanup.detach()
        _link(self.file, name)
        self._temporary = name

    def _rename(self, temporary: str) -> None:
        if not self._replaces:      # a rename would replace a file that was made meanwhile
            os.link(temporary, self._target)
            os.unlink(temporary)
            return
        os.replace(temporary, self._target)


def temporary_path(target: str, token: str) -> str:
    """Return the hidden path beside a target, with a token in its name."""
    directory, base = os.path.split(target)
    short_base = os.fsencode(base)[: NAME_MAX - len(TEMPORARY_SUFFIX.format(TOKEN_BYTES * "00")) - 1]
    return os.path.join(directory, f".{os.fsdecode(short_base)}{TEMPORARY_SUFFIX.format(token)}")


def temporary_files(target: str) -> list[str]:
    """Return the temporary files for a target, oldest first. Their writers are at work, or were killed.

    Args:
        target: a file path, or a directory. For a directory, all temporary files below it are returned, at any depth. Links to
            directories are not followed.
    """
    target = os.path.realpath(target)
    if os.path.isdir(target):
        pattern = f".*{TEMPORARY_SUFFIX.format(TOKEN_PATTERN)}"
        walk = os.walk(target)
        paths = [os.path.join(folder, name) for folder, _, names in walk for name in fnmatch.filter(names, pattern)]
    else:
        paths = glob.glob(temporary_path(glob.escape(target), TOKEN_PATTERN), include_hidden=True)
    return [path for _, path in sorted((_changed(path), path) for path in paths)]


def make_directories(*paths: str, durable: bool = True) -> None:
    """Make directories and their missing parents. If durable, all of them survive a power failure.

    A directory that gets new names is synced once, after all names are there.

    Raises:
        OSError: a directory cannot be made, or its parent cannot be synced.
    """
    folders: dict[str, None] = {}       # directories with new names, outermost first
    for path in paths:
        _make_directory(os.path.abspath(path), folders)
    if durable:
        for folder in folders:
            sync_folder(folder)


def _make_directory(path: str, folders: dict[str, None]) -> None:
    """Make a directory and its missing parents, and add the directories that get new names to ``folders``."""
    parent = os.path.dirname(path)
    if os.path.isdir(path):
        return
    try:
        os.mkdir(path)
    except FileNotFoundError:
        if parent == path:
            raise
        _make_directory(parent, folders)
        _make_directory(path, folders)
    except FileExistsError:     # another process has made it, and perhaps has not synced its name yet
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:       # the other process has removed it again, as jobs do with their folders
            _make_directory(path, folders)
            return
        if not stat.S_ISDIR(mode) and not os.path.isdir(path):
            raise
    folders[parent] = None


def sync_folder(path: str) -> None:
    """Put the names in a directory on disk, if the filesystem can.

    Raises:
        OSError: the directory cannot be synced, though the filesystem can sync directories.
    """
    if os.name == "nt":     # Windows has no call for this
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in UNSYNCED:
            raise OSError(error.errno, error.strerror, path) from error


def _changed(path: str) -> float:
    """Return a file's modification time. 0 if the file was removed meanwhile."""
    try:
        return os.path.getmtime(path)
    except FileNotFoundError:
        return 0.0


def _status_of(path: str) -> os.stat_result | None:
    """Return an existing file's status. None if there is no file, or only a symbolic link."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return status


def _unnamed(directory: str, mode: int) -> int | None:
    """Make a file without a name, and return its descriptor.

    None if the operating system, the filesystem or /proc does not allow it.
    """
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        descriptor = os.open(directory, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, mode)
    except OSError:     # no support, or no permission. A file with a name will work, or will raise the error
        return None
    try:
        actual_mode: int | None = stat.S_IMODE(os.stat(_path_of(descriptor)).st_mode)
    except OSError:     # no /proc
        actual_mode = None
    # Linux before 6.0 ignores the umask on filesystems without access control lists
    if actual_mode is None or mode == 0o666 == actual_mode:
        os.close(descriptor)
        return None
    return descriptor


def _named(temporary: str, mode: int, path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        return os.open(temporary, flags, mode)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from None  # the caller does not know the temporary name


def _path_of(descriptor: int) -> str:
    """Return a path by which this process can open a file again, even if the file has no name (Linux)."""
    return f"/proc/self/fd/{descriptor}"


def _link(file: io.FileIO, path: str) -> None:
    # src_dir_fd makes Python follow the link in /proc. The descriptor itself is not used, because the path is absolute
    os.link(_path_of(file.fileno()), path, src_dir_fd=file.fileno(), follow_symlinks=True)


def _take_after(descriptor: int, old: os.stat_result) -> None:
    """Give a new file the old file's owner, group and permissions."""
    if not hasattr(os, "fchown"):
        return
    own, mode = os.fstat(descriptor), stat.S_IMODE(old.st_mode)
    is_owner = (own.st_uid, own.st_gid) == (old.st_uid, old.st_gid)
    if not is_owner:
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except OSError:
            try:
                os.fchown(descriptor, -1, old.st_gid)
            except OSError:
                mode = mode & ~0o070 | (mode & 0o007) << 3      # the new file has another group
    if not is_owner or mode != stat.S_IMODE(own.st_mode):   # the umask, or chown, has reduced the requested mode
        os.fchmod(descriptor, mode)


def _remove(file: io.FileIO, path: str | None, owner: int) -> None:
    if os.getpid() != owner:  # a forked child has a copy of the sink, but does not own the file
        return
    with contextlib.suppress(OSError):      # the bytes are given up anyway
        file.close()
    if path is not None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


@contextlib.contextmanager
def _synced(directory: str) -> Iterator[None]:
    """Make the rename inside the ``with`` block survive a power failure, if the system and the filesystem can.

    Raises:
        OSError: the directory cannot be opened. Nothing was renamed yet.
    """
    if os.name == "nt":
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    except BaseException:
        os.close(descriptor)
        raise
    # the rename is done, and only its durability is in doubt
    with contextlib.suppress(OSError):
        os.fsync(descriptor)
    with contextlib.suppress(OSError):
        os.close(descriptor)
