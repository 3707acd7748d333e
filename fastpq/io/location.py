"""Places of files: a path or URL names a local file, or a file on an fsspec filesystem."""

from __future__ import annotations

import importlib
import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from fastpq.errors import HIDDEN, SchemaError, UnsupportedError

# A URL of Azure: container, account.
_CONTAINER = re.compile(r"(abfss?|az)://[a-z0-9$-]+@[a-z0-9.-]+(/|$)")
# Packages with fsspec's filesystems, by protocol.
PACKAGES = {
    "s3": "s3fs", "s3a": "s3fs", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs", "gs": "gcsfs", "gcs": "gcsfs",
    "http": "aiohttp", "https": "aiohttp",
}
STALL_SECONDS = 30.0        # most seconds without a byte, of an answer or a connection over HTTP


class Remote(NamedTuple):
    """A path on an fsspec filesystem.

    Attributes:
        filesystem: an ``fsspec.AbstractFileSystem``.
        path: path in the filesystem's own form.
        name: name for messages, without user name, password and query: these may be secrets.
        listed_size: bytes of the file when its directory was listed; None where unknown.
    """

    filesystem: Any
    path: str
    name: str
    listed_size: int | None = None

    def beside(self, relative: str) -> Remote:
        """The place of a path relative to the directory of this path."""
        directory, slash, _ = self.path.rpartition("/")
        path = posixpath.normpath(f"{directory}{slash}{relative}") if "://" not in directory else f"{directory}{slash}{relative}"
        return Remote(self.filesystem, path, f"{self.name.rpartition('/')[0]}/{relative}")


@dataclass(frozen=True, slots=True)
class RemotePath:
    """A path on an fsspec filesystem, in the form accepted by ParquetFile and ParquetWriter.

    Attributes:
        fs: an ``fsspec.AbstractFileSystem``.
        path: path in the filesystem's own form.
        listed_size: bytes of the file when its directory was listed; None for a file that was not listed.
        name: name for messages; None for the path.
    """

    fs: Any
    path: str
    listed_size: int | None = None
    name: str | None = None


def placed(
    where: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None, timeout: float | None = None
) -> Any:
    """A place, or a list of places, for ``locate``: paths on a filesystem, or URLs opened with options.

    Args:
        where: a path or a URL, or several; anything where no further argument is given.
        filesystem: a filesystem of fsspec or of pyarrow.fs, on which the paths are.
        storage_options: options of the fsspec filesystem of URLs.
        timeout: most seconds without a byte, of URLs of HTTP and S3; local files have none.

    Returns:
        A local path or a RemotePath, or a list of these; where itself without a further argument.

    Raises:
        ValueError: options beside a filesystem, or options for a local path.
        TypeError: arguments of other types.
        SchemaError: something that has no path.
        UnsupportedError: fsspec or a package is not installed; or a filesystem without a known timeout.
    """
    if filesystem is None and storage_options is None and timeout is None:
        return where
    if isinstance(where, list | tuple | Iterator) and not hasattr(where, "read"):
        return [placed(one, filesystem, storage_options, timeout) for one in where]
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise TypeError(f"storage_options is a mapping of names to values, not a {type(storage_options).__name__}")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float)):
        raise TypeError(f"timeout is a number of seconds, not {timeout!r}")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout must be a positive number of seconds, not {timeout!r}")
    if not isinstance(where, str | os.PathLike) or hasattr(where, "fs"):
        raise SchemaError(f"filesystem, storage_options and timeout go with a path or a URL, not with a {type(where).__name__}")
    path = os.fsdecode(where)
    if filesystem is not None:
        if storage_options or timeout is not None:
            raise ValueError("storage_options and timeout make a filesystem; the given filesystem has its own")
        return _on_filesystem(path, filesystem)
    if "://" in path and not path.startswith("file://"):
        remote = _locate_url(path, storage_options or {}, timeout)
        return RemotePath(remote.filesystem, remote.path, None, remote.name)
    if storage_options:
        raise ValueError(f"storage_options are for URLs of fsspec's filesystems, and {path} is a local path")
    return path


def placed_each(
    places: Sequence[Any], filesystem: Any, storage_options: Mapping[str, Any] | None, timeout: float | None
) -> list[Any]:
    """Several places for ``locate``, of one filesystem or with options for the URLs among them.

    Args:
        places: paths and URLs; buffers and file objects stay. Without a filesystem, local paths beside a URL stay, too.
        filesystem, storage_options, timeout: as for ``placed``.

    Raises:
        ValueError, TypeError, SchemaError, UnsupportedError: as ``placed``.
    """
    if filesystem is None and storage_options is None and timeout is None:
        return list(places)
    named = [isinstance(place, str | os.PathLike) for place in places]
    remote = [isinstance(place, str) and "://" in place and not place.startswith("file://") for place in places]
    chosen = remote if filesystem is None and any(remote) else named
    if not any(chosen):
        placed(places[0] if places else None, filesystem, storage_options, timeout)     # refuses
    given = filesystem, storage_options, timeout
    return [placed(place, *given) if one else place for place, one in zip(places, chosen, strict=True)]


def _on_filesystem(path: str, filesystem: Any) -> str | RemotePath:
    """A path on a filesystem of fsspec or pyarrow; on a local one the path itself."""
    if type(filesystem).__module__.partition(".")[0] == "pyarrow" and hasattr(filesystem, "open_input_file"):
        kind: str = filesystem.type_name
        path = path.removeprefix(f"{kind}://") if kind != "local" else path.removeprefix("file://")
        if kind == "local":
            return path
        inner = getattr(getattr(filesystem, "handler", None), "fs", None)
        if hasattr(inner, "cat_file"):      # fsspec's, in pyarrow's wrapper
            return _on_filesystem(path, inner)
        try:
            wrapper = importlib.import_module("fsspec.implementations.arrow").ArrowFSWrapper
        except ImportError:
            raise UnsupportedError("a filesystem of pyarrow needs the package fsspec (pip install fsspec)") from None
        return RemotePath(wrapper(filesystem), path)
    if not hasattr(filesystem, "cat_file") or isinstance(filesystem, type):
        raise TypeError(f"filesystem is a filesystem of fsspec or of pyarrow.fs, not {type(filesystem).__name__}")
    inside: str = filesystem._strip_protocol(path)
    protocol = filesystem.protocol
    if {"file", "local"} & ({protocol} if isinstance(protocol, str) else set(protocol)):
        return inside
    return RemotePath(filesystem, inside, None, _without_secrets(path))


def is_of_arrow(filesystem: Any) -> bool:
    """Whether a filesystem is fsspec's wrapper of a filesystem of pyarrow."""
    return hasattr(getattr(filesystem, "fs", None), "open_input_file")


def locate(where: Any) -> str | Remote | None:
    """The place named by a path or URL: local or remote.

    Args:
        where: a str or PathLike; ``scheme://`` begins a URL. Or an object with an fsspec filesystem ``fs`` and a ``path``, as
            returned by ``fsspec.open`` and ``UPath``, to give options to a filesystem.

    Returns:
        A local path (also for ``file://``), a Remote, or None for any other object.

    Raises:
        UnsupportedError: fsspec, or its package for the scheme, is not installed.
    """
    if isinstance(where, str) and "://" in where:
        if where.startswith("file://"):
            return unquote(urlsplit(where).path)
        return _locate_url(where, {}, None)
    filesystem, path = getattr(where, "fs", None), getattr(where, "path", None)
    if hasattr(filesystem, "cat_file") and isinstance(path, str):
        name = where.name if isinstance(where, RemotePath) else None
        return Remote(filesystem, path, name or _without_secrets(path), getattr(where, "listed_size", None))
    if isinstance(where, str | os.PathLike):
        return os.fsdecode(where)
    return None


def _locate_url(url: str, options: Mapping[str, Any], timeout: float | None) -> Remote:
    name = _without_secrets(url)
    try:
        core = importlib.import_module("fsspec.core")
    except ImportError:
        raise UnsupportedError(f"opening {name} needs the package fsspec (pip install fsspec)") from None
    try:
        filesystem, path = core.url_to_fs(url, **_with_timeout(url, options, timeout))
    except (TypeError, AttributeError) as error:
        raise refused_options(name, options, error) from error
    except (ImportError, ValueError) as error:  # no package for the scheme; an unknown scheme
        needed = PACKAGES.get(url.partition("://")[0]) if isinstance(error, ImportError) else None
        raise UnsupportedError(f"opening {name}: {error}{f' (pip install {needed})' if needed else ''}") from error
    return Remote(filesystem, path, name)


def refused_options(name: str, options: Any, error: Exception) -> UnsupportedError:
    """The error for options of a filesystem that its package refuses, without the values of the options.

    Args:
        name: name of the file, without secrets.
        options: the options of the filesystem.
        error: the error of the package; it loses its texts if one holds the value of an option.
    """
    told = str(error)
    if hidden := [text for text in _texts(options) if text in told]:
        for text in sorted(hidden, key=len, reverse=True):
            told = told.replace(text, HIDDEN)
        error.args = (told,)
    return UnsupportedError(f"the package for {name} refuses its storage_options: {type(error).__name__}: {told}")


def _texts(options: Any) -> Iterator[str]:
    """The texts among the values of options, nested ones too."""
    if isinstance(options, Mapping):
        for value in options.values():
            yield from _texts(value)
    elif isinstance(options, str) and options:
        yield options


def _with_timeout(url: str, options: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
    """Options of a filesystem with the longest waits for a connection and for each part of an answer; HTTP has some always."""
    protocol = url.partition("://")[0]
    if protocol in ("http", "https"):
        try:
            aiohttp = importlib.import_module("aiohttp")
        except ImportError:     # the error of the filesystem names the package
            return dict(options)
        waits = aiohttp.ClientTimeout(None, sock_connect=seconds or STALL_SECONDS, sock_read=seconds or STALL_SECONDS)
        return {**options, "client_kwargs": {"timeout": waits} | dict(options.get("client_kwargs") or {})}
    if seconds is None:
        return dict(options)
    if protocol in ("s3", "s3a"):
        waits = {"connect_timeout": seconds, "read_timeout": seconds}
        return {**options, "config_kwargs": waits | dict(options.get("config_kwargs") or {})}
    reason = f"timeout is for HTTP and S3; storage_options has the option of the filesystem of {protocol}://"
    raise UnsupportedError(reason)


def is_container(url: str) -> bool:
    """Whether a URL names a container before its ``@``, as those of Azure do, and no user."""
    return _CONTAINER.match(url) is not None


def _without_secrets(url: str) -> str:
    if "://" not in url:
        return url
    if is_container(url):
        return url.partition("?")[0]
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
