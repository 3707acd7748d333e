"""Places of files: a path or URL names a local file, or a file on an fsspec filesystem."""

from __future__ import annotations

import importlib
import os
import posixpath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from fastpq.errors import UnsupportedError

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
        return _locate_url(where)
    filesystem, path = getattr(where, "fs", None), getattr(where, "path", None)
    if hasattr(filesystem, "cat_file") and isinstance(path, str):
        return Remote(filesystem, path, _without_secrets(path), getattr(where, "listed_size", None))
    if isinstance(where, str | os.PathLike):
        return os.fsdecode(where)
    return None


def _locate_url(url: str) -> Remote:
    name = _without_secrets(url)
    try:
        core = importlib.import_module("fsspec.core")
    except ImportError:
        raise UnsupportedError(f"opening {name} needs the package fsspec (pip install fastpq[remote])") from None
    try:
        filesystem, path = core.url_to_fs(url, **(_http_options() if url.startswith(("http://", "https://")) else {}))
    except (ImportError, ValueError) as error:  # no package for the scheme; an unknown scheme
        extra = " (pip install fastpq[s3])" if url.startswith(("s3://", "s3a://")) else ""
        raise UnsupportedError(f"opening {name}: {error}{extra}") from error
    return Remote(filesystem, path, name)


def _http_options() -> dict[str, Any]:
    """Options of the filesystem for HTTP: a connection and each part of an answer have a time, a whole answer has none."""
    try:
        aiohttp = importlib.import_module("aiohttp")
    except ImportError:     # the error of the filesystem names the package
        return {}
    return {"client_kwargs": {"timeout": aiohttp.ClientTimeout(None, sock_connect=STALL_SECONDS, sock_read=STALL_SECONDS)}}


def _without_secrets(url: str) -> str:
    if "://" not in url:
        return url
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
