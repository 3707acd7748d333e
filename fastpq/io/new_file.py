"""NewFile: a local file that takes its place as a whole, and until then has no name or a hidden one; directories on disk."""

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

NAME_MAX = 255                  # bytes; longest file name allowed by every common filesystem
TEMPORARY_SUFFIX = ".{}.tmp"    # end of a temporary name; the random token makes the name unique
TOKEN_BYTES = 8                 # random bytes of a token, in hexadecimal digits
TOKEN_PATTERN = TOKEN_BYTES * "[0-9a-f][0-9a-f]"

# Errors of filesystems that cannot sync a directory, and of directories that may be written but not read.
UNSYNCED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF, errno.ENOSYS, errno.EACCES})


def new_token() -> str:
    """Random hexadecimal digits for a temporary name, of the operating system's generator."""
    return os.urandom(TOKEN_BYTES).hex()     # as secrets.token_hex, without the 3 MB of OpenSSL behind the module secrets


class NewFile:
    """A new local file, invisible until ``place`` gives it its path at once; the old file stays until then.

    A durable file is on disk, with its name, when it takes its place: a power failure leaves the old file or the whole new one.
    Without, the operating system chooses the time, and a power failure may leave a part of a new file; bytes that replace an old
    file are on disk before. Processes see the old file or the whole new one in either case, also after the end of this process
    by any signal.

    Where the operating system has unnamed files (O_TMPFILE, Linux), the file has no name until ``persist`` or ``place``: the end
    of the process, by any signal, leaves nothing. Elsewhere the file has a hidden temporary name beside its path, and a process
    ended by a signal leaves this file (temporary_files finds it).

    The new file keeps owner, group and permissions of the replaced file, as far as this process may set them. Where the group
    cannot be kept, the group gets the permissions of others.

    Attributes:
        file: the open file, unbuffered: a forked child would write a buffer a second time.

    Args:
        path: path of the file.
        mode: permissions of a file without predecessor; None for the umask's.
        replaces: whether an old file may be replaced.
        follow_links: whether a symbolic link is followed; else the link is replaced by the file.
        durable: whether bytes and name are put on disk.

    Raises:
        FileExistsError: there is an old file, and it may not be replaced.
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
        asked = stat.S_IMODE(old.st_mode) if old is not None else 0o666 if mode is None else mode
        self._temporary: str | None = None
        descriptor = _unnamed(os.path.dirname(self._target), asked)
        if descriptor is None:
            self._temporary = self._new_name()
            descriptor = _named(self._temporary, asked, path)
        self._is_listed = False     # whether the temporary name is on disk
        self.file = os.fdopen(descriptor, "wb", buffering=0)
        self._cleanup = weakref.finalize(self, _remove, self.file, self._temporary, os.getpid())
        if old is not None:
            _take_after(descriptor, old)

    def persist(self) -> None:
        """Put the bytes written so far, on disk if durable, under a hidden name that temporary_files finds.

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
        """Put the file in its place; bytes and name are on disk, if durable, and the bytes before they replace an old file.

        Errors in syncing and closing the directory after the rename are no errors of the write: the new file is in its place.

        Raises:
            FileExistsError: there is a file, and it may not be replaced.
            OSError: the file cannot be synced or renamed; the old file is still there.
        """
        named = self._temporary is not None
        is_synced = self._durable or self._is_replacement or (named and os.path.lexists(self._target))
        if is_synced:
            os.fsync(self.file.fileno())
        elif not named:     # some filesystems report errors of writing where a descriptor is closed
            os.close(os.dup(self.file.fileno()))
        if named:
            self.file.close()       # reports errors of writing, too
        with _synced(os.path.dirname(self._target)) if self._durable else contextlib.nullcontext():
            # a name for the rename, where there is or was an old file
            if self._temporary is None and ((self._is_replacement and self._replaces) or not self._take_free_place()):
                if not is_synced:       # the old file is younger than this one
                    os.fsync(self.file.fileno())
                self._name()
            if self._temporary is not None:
                self._rename(self._temporary)
            self._cleanup.detach()
        with contextlib.suppress(OSError):      # errors of writing were reported, and the file is in its place
            self.file.close()

    def discard(self) -> None:
        """Remove the file, without effect after ``place``."""
        self._cleanup()

    @property
    def path(self) -> str:
        """A path by which this process opens the unfinished file."""
        return _path_of(self.file.fileno()) if self._temporary is None else self._temporary

    def _new_name(self) -> str:
        return temporary_path(self._target, new_token())

    def _take_free_place(self) -> bool:
        """Give an unnamed file its path; False if there is an old file to replace."""
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
        _link(self.file, name)
        self._temporary = name
        self._cleanup.detach()
        self._cleanup = weakref.finalize(self, _remove, self.file, name, os.getpid())

    def _rename(self, temporary: str) -> None:
        if not self._replaces:      # a rename would replace a file made meanwhile
            os.link(temporary, self._target)
            os.unlink(temporary)
            return
        os.replace(temporary, self._target)


def temporary_path(target: str, token: str) -> str:
    """The hidden path beside a target for a token."""
    directory, base = os.path.split(target)
    kept = os.fsencode(base)[: NAME_MAX - len(TEMPORARY_SUFFIX.format(TOKEN_BYTES * "00")) - 1]
    return os.path.join(directory, f".{os.fsdecode(kept)}{TEMPORARY_SUFFIX.format(token)}")


def temporary_files(target: str) -> list[str]:
    """Temporary files, oldest first: their writers are at work, or were killed.

    Args:
        target: a path, for the temporary files of this path; or a directory, for all temporary files at any depth below. Links to
            directories are not followed.
    """
    target = os.path.realpath(target)
    if os.path.isdir(target):
        pattern = f".*{TEMPORARY_SUFFIX.format(TOKEN_PATTERN)}"
        walk = os.walk(target)
        found = [os.path.join(folder, name) for folder, _, names in walk for name in fnmatch.filter(names, pattern)]
    else:
        found = glob.glob(temporary_path(glob.escape(target), TOKEN_PATTERN), include_hidden=True)
    return [path for _, path in sorted((_changed(path), path) for path in found)]


def make_directories(*paths: str, durable: bool = True) -> None:
    """Make directories and their missing parents; if durable, all of them survive a power failure.

    A directory with new names is synced once, after all names.

    Raises:
        OSError: a directory cannot be made, or its parent cannot be synced.
    """
    changed: dict[str, None] = {}       # directories with new names, outermost first
    for path in paths:
        _make_directory(os.path.abspath(path), changed)
    if durable:
        for folder in changed:
            sync_folder(folder)


def _make_directory(path: str, changed: dict[str, None]) -> None:
    """Make a directory and its missing parents; adds the directories with new names to changed."""
    parent = os.path.dirname(path)
    if os.path.isdir(path):
        return
    try:
        os.mkdir(path)
    except FileNotFoundError:
        if parent == path:
            raise
        _make_directory(parent, changed)
        _make_directory(path, changed)
    except FileExistsError:     # made meanwhile, perhaps by a process that has not synced the name yet
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:       # and removed by now, as folders of jobs are at their end
            _make_directory(path, changed)
            return
        if not stat.S_ISDIR(mode) and not os.path.isdir(path):
            raise
    changed[parent] = None


def sync_folder(path: str) -> None:
    """Put the names in a directory on disk, where the filesystem can.

    Raises:
        OSError: the directory cannot be synced, though the filesystem can sync directories.
    """
    if os.name == "nt":     # no call for this
        return
    try:
        with _opened(path) as descriptor:
            os.fsync(descriptor)
    except OSError as error:
        if error.errno not in UNSYNCED:
            raise


def _changed(path: str) -> float:
    """Time of the last change; 0 for a file removed meanwhile."""
    try:
        return os.path.getmtime(path)
    except FileNotFoundError:
        return 0.0


def _status_of(path: str) -> os.stat_result | None:
    """Owner, group and permissions of an existing file; None if there is none, or a link that is not followed."""
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
    """Descriptor of a new file without a name; None where operating system, filesystem or /proc do not allow one."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        descriptor = os.open(directory, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, mode)
    except OSError:     # without support, or without permission: making a named file succeeds, or tells the error
        return None
    try:
        given = stat.S_IMODE(os.stat(_path_of(descriptor)).st_mode)
    except OSError:     # no /proc
        given = None
    # Linux before 6.0 ignores the umask on filesystems without access control lists
    if given is None or mode == 0o666 == given:
        os.close(descriptor)
        return None
    return descriptor


def _named(temporary: str, mode: int, path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        return os.open(temporary, flags, mode)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from None  # the caller knows no temporary name


def _path_of(descriptor: int) -> str:
    """A path by which this process opens an open file, also one without a name (Linux)."""
    return f"/proc/self/fd/{descriptor}"


def _link(file: io.FileIO, path: str) -> None:
    # a descriptor as src_dir_fd makes Python follow the link in /proc; the descriptor is unused, since the path is absolute
    os.link(_path_of(file.fileno()), path, src_dir_fd=file.fileno(), follow_symlinks=True)


def _take_after(descriptor: int, old: os.stat_result) -> None:
    """Give a new file owner, group and permissions of the old one."""
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
                mode = mode & ~0o070 | (mode & 0o007) << 3      # the group is another one
    if not is_owner or mode != stat.S_IMODE(own.st_mode):   # the umask has reduced the mode given to open, or chown did
        os.fchmod(descriptor, mode)


def _remove(file: io.FileIO, path: str | None, owner: int) -> None:
    if os.getpid() != owner:  # a forked child owns the sink, not the file
        return
    with contextlib.suppress(OSError):      # the bytes are given up anyway
        file.close()
    if path is not None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


@contextlib.contextmanager
def _opened(directory: str) -> Iterator[int]:
    descriptor = os.open(directory, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _synced(directory: str) -> Iterator[None]:
    """Make a rename in a directory survive a power failure.

    Windows has no call for this, and some filesystems refuse the call.

    Raises:
        OSError: the directory cannot be opened; nothing was renamed yet.
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
    # the rename is done; its durability alone is in doubt
    with contextlib.suppress(OSError):
        os.fsync(descriptor)
    with contextlib.suppress(OSError):
        os.close(descriptor)
