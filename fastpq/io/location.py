"""Where a file is. A path or URL names a local file, or a file on an fsspec filesystem."""

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

# An Azure URL with container and account.
_CONTAINER = re.compile(r"(abfss?|az)://[a-z0-9$-]+@[a-z0-9.-]+(/|$)")
# Packages that have fsspec's filesystems, by protocol.
PACKAGES = {
    "s3": "s3fs", "s3a": "s3fs", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs", "gs": "gcsfs", "gcs": "gcsfs",
    "http": "aiohttp", "https": "aiohttp",
}
STALL_SECONDS = 30.0        # seconds that HTTP waits for a connection, or for an answer's next byte


class Remote(NamedTuple):
    """A path on an fsspec filesystem.

    Attributes:
        filesystem: an ``fsspec.AbstractFileSystem``.
        path: path in the filesystem's own form.
        name: name for messages. User name, password and query are left out, because they may be secrets.
        listed_size: file size in bytes when the directory was listed. None if unknown.
    """

    filesystem: Any
    path: str
    name: str
    listed_size: int | None = None

    def beside(self, relative: str) -> Remote:
        """Return the place that a path names. The path is relative to this file's directory."""
        directory, slash, _ = self.path.rpartition("/")
        path = posixpath.normpath(f"{directory}{slash}{relative}") if "://" not in directory else f"{directory}{slash}{relative}"
        return Remote(self.filesystem, path, f"{self.name.rpartition('/')[0]}/{relative}")


@dataclass(frozen=True, slots=True)
class RemotePath:
    """A path on an fsspec filesystem, in the form that ParquetFile and ParquetWriter accept.

    Attributes:
        fs: an ``fsspec.AbstractFileSystem``.
        path: path in the filesystem's own form.
        listed_size: file size in bytes when the directory was listed. None if it was not listed.
        name: name for messages. None takes the path.
    """

    fs: Any
    path: str
    listed_size: int | None = None
    name: str | None = None


def placed(
    where: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None, timeout: float | None = None
) -> Any:
    """Combine a path with its filesystem, or a URL with its options, into a place that ``locate`` accepts.

    Args:
        where: a path or a URL, or several. If there is no other argument, it may be anything.
        filesystem: an fsspec or pyarrow.fs filesystem, or a store of obstore, that has the paths.
        storage_options: options for the fsspec filesystem behind the URLs.
        timeout: how many seconds HTTP and S3 wait for a byte. Local files have no timeout.

    Returns:
        A local path or a RemotePath, or a list of these. If there is no other argument, ``where`` itself.

    Raises:
        ValueError: options are given together with a filesystem, or for a local path. Or the timeout is not positive.
        TypeError: an argument has a wrong type.
        SchemaError: ``where`` has no path.
        UnsupportedError: fsspec or a package is not installed, or the filesystem has no known timeout option.
    """
    if filesystem is None and storage_options is None and timeout is None:
        return where
    if isinstance(where, list | tuple | Iterator) and not hasattr(where, "read"):
        return [placed(one, filesystem, storage_options, timeout) for one in where]
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise TypeError(f"storage_options must be a mapping of names to values, not a {type(storage_options).__name__}")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float)):
        raise TypeError(f"timeout must be a number of seconds, not {timeout!r}")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout must be a positive number of seconds, not {timeout!r}")
    if not isinstance(where, str | os.PathLike) or hasattr(where, "fs"):
        raise SchemaError(f"filesystem, storage_options and timeout go with a path or a URL, not with a {type(where).__name__}")
    path = os.fsdecode(where)
    if filesystem is not None:
        if storage_options or timeout is not None:
            raise ValueError("storage_options and timeout make a filesystem, and this one has its own")
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
    """Combine several places with their filesystem, or the URLs among them with their options, as ``placed`` does.

    Args:
        places: paths and URLs. Buffers and file objects stay as they are. If there is no filesystem, and some places are remote
            URLs, local paths stay as they are too.
        filesystem, storage_options, timeout: as in ``placed``.

    Raises:
        ValueError, TypeError, SchemaError, UnsupportedError: as in ``placed``.
    """
    if filesystem is None and storage_options is None and timeout is None:
        return list(places)
    has_path = [isinstance(place, str | os.PathLike) for place in places]
    is_remote = [isinstance(place, str) and "://" in place and not place.startswith("file://") for place in places]
    takes_options = is_remote if filesystem is None and any(is_remote) else has_path
    if not any(takes_options):
        placed(places[0] if places else None, filesystem, storage_options, timeout)     # raises the error
    options = filesystem, storage_options, timeout
    return [placed(place, *options) if takes else place for place, takes in zip(places, takes_options, strict=True)]


def _on_filesystem(path: str, filesystem: Any) -> str | RemotePath:
    """Return the place for a path on a filesystem or in a store. On a local filesystem it is the path itself."""
    if type(filesystem).__module__.partition(".")[0] == "pyarrow" and hasattr(filesystem, "open_input_file"):
        kind: str = filesystem.type_name
        path = path.removeprefix(f"{kind}://") if kind != "local" else path.removeprefix("file://")
        if kind == "local":
            return path
        inner = getattr(getattr(filesystem, "handler", None), "fs", None)
        if hasattr(inner, "cat_file"):      # an fsspec filesystem in pyarrow's wrapper
            return _on_filesystem(path, inner)
        try:
            wrapper = importlib.import_module("fsspec.implementations.arrow").ArrowFSWrapper
        except ImportError:
            raise UnsupportedError("a filesystem of pyarrow needs the package fsspec (pip install fsspec)") from None
        return RemotePath(wrapper(filesystem), path)
    if hasattr(filesystem, "get_ranges_async") and not isinstance(filesystem, type):      # a store of obstore
        return RemotePath(importlib.import_module("fastpq.io.obstore_requests").StoreFilesystem(filesystem), path)
    if not hasattr(filesystem, "cat_file") or isinstance(filesystem, type):
        raise TypeError(f"filesystem must be one of fsspec, pyarrow.fs or obstore.store, not {type(filesystem).__name__}")
    inside: str = filesystem._strip_protocol(path)
    if {"file", "local"} & protocols(filesystem):
        return inside
    return RemotePath(filesystem, inside, None, _without_secrets(path))


def protocols(filesystem: Any) -> set[str]:
    """Return an fsspec filesystem's protocols."""
    protocol = filesystem.protocol
    return {protocol} if isinstance(protocol, str) else set(protocol)


def is_of_arrow(filesystem: Any) -> bool:
    """Return whether a filesystem is fsspec's wrapper around a pyarrow filesystem."""
    return hasattr(getattr(filesystem, "fs", None), "open_input_file")


def locate(where: Any) -> str | Remote | None:
    """Return the place that a path or URL names, local or remote.

    Args:
        where: a str or PathLike, which is a URL if it begins with ``scheme://``. Or an object that has an fsspec filesystem
            ``fs`` and a ``path``, as ``fsspec.open`` and ``UPath`` return it.

    Returns:
        A local path (also for ``file://``), or a Remote. None if ``where`` is another object.

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
    except (ImportError, ValueError) as error:  # the package for the scheme is missing, or the scheme is unknown
        package = PACKAGES.get(url.partition("://")[0]) if isinstance(error, ImportError) else None
        raise UnsupportedError(f"opening {name}: {error}{f' (pip install {package})' if package else ''}") from error
    return Remote(filesystem, path, name)


def refused_options(name: str, options: Any, error: Exception) -> UnsupportedError:
    """Return the error for filesystem options that the filesystem's package refuses. It hides the options' values.

    Args:
        name: the file's name, without secrets.
        options: the filesystem's options.
        error: the package's error. Option values are hidden in its text too.
    """
    reason = str(error)
    if secrets := [text for text in _texts(options) if text in reason]:
        for text in sorted(secrets, key=len, reverse=True):
            reason = reason.replace(text, HIDDEN)
        error.args = (reason,)
    return UnsupportedError(f"the package for {name} refuses its storage_options: {type(error).__name__}: {reason}")


def _texts(options: Any) -> Iterator[str]:
    """Yield the option values that are texts, including nested values."""
    if isinstance(options, Mapping):
        for value in options.values():
            yield from _texts(value)
    elif isinstance(options, str) and options:
        yield options


def _with_timeout(url: str, options: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
    """Return a filesystem's options, and add how long it waits for a connection and for each part of an answer.

    For HTTP, a limit is always added.
    """
    protocol = url.partition("://")[0]
    if protocol in ("http", "https"):
        try:
            aiohttp = importlib.import_module("aiohttp")
        except ImportError:     # the filesystem's own error names the package
            return dict(options)
        waits = aiohttp.ClientTimeout(None, sock_connect=seconds or STALL_SECONDS, sock_read=seconds or STALL_SECONDS)
        return {**options, "client_kwargs": {"timeout": waits} | dict(options.get("client_kwargs") or {})}
    if seconds is None:
        return dict(options)
    if protocol in ("s3", "s3a"):
        waits = {"connect_timeout": seconds, "read_timeout": seconds}
        return {**options, "config_kwargs": waits | dict(options.get("config_kwargs") or {})}
    raise UnsupportedError(f"timeout is for HTTP and S3; storage_options takes the option of the filesystem for {protocol}://")


def is_container(url: str) -> bool:
    """Return whether a URL has a container before the ``@``, as Azure's URLs do, and not a user name."""
    return _CONTAINER.match(url) is not None


def _without_secrets(url: str) -> str:
    if "://" not in url:
        return url
    if is_container(url):
        return url.partition("?")[0]
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
