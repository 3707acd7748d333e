"""Data files of a dataset: from folders and globs, with values of hive partitions, seeing through unfinished commits."""

from __future__ import annotations

import datetime
import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Context, Inexact
from decimal import Decimal as Number
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from pyspark.sql import types as st

from fastpq.datasets.hive import DOUBLE_TYPE, infer_partition_type, parse_partitions, partition_value
from fastpq.datasets.records import visible_files, visible_matches
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.io.location import Remote, is_container, locate
from fastpq.io.object_store import find_store, url_of
from fastpq.spark.journal import pending
from fastpq.spark.types import spark_type

_GLOB = re.compile(r"[*?\[]")
# A time zone by its offset, as Spark and Java write offsets: +05:30, GMT+5, UTC-03:00.
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_EXACT = Context(prec=38, traps=[Inexact])


@dataclass(frozen=True)
class ListedFile:
    """A file of a dataset.

    Attributes:
        path: present path or URL; differs from the final path during an unfinished commit.
        size: bytes of the file.
        partition: names and texts of hive partition columns; None is null.
        changed: time of the last change in seconds, where a listing tells it.
    """

    path: str
    size: int
    partition: tuple[tuple[str, str | None], ...] = ()
    changed: float | None = field(default=None, compare=False)

    @property
    def last_change(self) -> float:
        """The time of the last change in seconds; 0 where neither the listing nor the filesystem tells it."""
        if self.changed is not None or "://" in self.path:
            return self.changed or 0.0
        return os.path.getmtime(self.path)


def list_files(paths: Iterable[str], base_path: str | None = None) -> list[ListedFile]:
    """Files of a dataset in order of path, without hidden files (names that begin with ``_`` or ``.``).

    Args:
        paths: files, folders and globs, local or URLs supported by fsspec.
        base_path: folder below which path segments ``name=value`` are partitions; None for the folder of each path.

    Raises:
        FileNotFoundError: a path without a file or folder.
        SchemaError: a URL with a password in it.
    """
    files: dict[str, ListedFile] = {}
    for path in paths:
        found = located(path)
        if isinstance(found, Remote):
            listed = _remote(found, None if base_path is None else located(base_path))
        else:
            listed = _under(found, fixed_folder(found) if base_path is None else local_path(base_path))
        for file in listed:
            files.setdefault(file.path, file)
    return [files[path] for path in sorted(files)]


def located(where: str) -> str | Remote:
    """The absolute path of a local file or folder, or the Remote of a URL.

    Raises:
        SchemaError: the URL holds a password, to be written into plans and logs by Spark. The message hides the URL.
        UnsupportedError: fsspec, or its filesystem for the URL, is not installed.
    """
    if where.startswith("file:") and not where.startswith("file://"):
        where = where.removeprefix("file:")
    if "://" in where and "@" in urlsplit(where).netloc and not is_container(where):
        raise SchemaError(
            f"a {where.split('://')[0]} URL with a user or password in it, which Spark would write into plans and logs: "
            "credentials belong in the executors' environment"
        )
    found = locate(where)
    return found if isinstance(found, Remote) else os.path.abspath(str(found))


def local_path(where: str) -> str:
    """The absolute path of a local file or folder.

    Raises:
        UnsupportedError: a URL of a remote filesystem.
    """
    found = located(where)
    if isinstance(found, Remote):
        scheme = where.split("://")[0]
        raise UnsupportedError(f"a path on the filesystems of driver and executors is needed here, and no {scheme}:// (mount it)")
    return found


def store_of(where: str) -> Remote | None:
    """The folder of a dataset in an object store; None for a local path.

    Raises:
        UnsupportedError: a URL of another filesystem.
    """
    found = located(where)
    if not isinstance(found, Remote):
        return None
    if find_store(found.filesystem) is None:
        scheme = where.split("://")[0]
        raise UnsupportedError(
            f"writing to {scheme}:// from Spark: local and mounted folders, s3:// and s3a://, abfss:// and az://, gs:// only"
        )
    return Remote(found.filesystem, found.path.rstrip("/"), found.name)


def _remote(place: Remote, base: str | Remote | None) -> Iterator[ListedFile]:
    """Files on an fsspec filesystem: below a folder, matching a glob, or a single file."""
    filesystem, path, store = place.filesystem, place.path, find_store(place.filesystem)
    filesystem.invalidate_cache()       # of a driver that lists again and again
    if filesystem.isdir(path):
        found, root = visible_files(filesystem, path), path
    elif _GLOB.search(path):
        found, root = visible_matches(filesystem, path), fixed_folder(path)
    else:
        found, root = {path: filesystem.info(path)}, os.path.dirname(path)
    top = base.path if isinstance(base, Remote) else root
    for name, about in sorted(found.items()):
        relative = os.path.relpath(name, root)
        parts = relative.split("/")
        if about["type"] == "file" and not any(_hidden(part) and "=" not in part for part in parts):
            partitions = parse_partitions(os.path.relpath(name, top))
            changed = None if store is None else store.changed(about)
            time = None if changed is None else changed.timestamp()
            yield ListedFile(url_of(filesystem, name), int(about["size"]), tuple(partitions.items()), time)


def fixed_folder(path: str) -> str:
    """The folder before the first glob in a path; without a glob, the path's own folder."""
    if _GLOB.search(path) and not os.path.exists(path):
        parts = path.split(os.sep)
        first = next(number for number, part in enumerate(parts) if _GLOB.search(part))
        return os.sep.join(parts[:first])
    return path if os.path.isdir(path) else os.path.dirname(path)


def folder_of_stream(path: str) -> str:
    """The fixed folder of a stream's path, also before the path exists: then the path is taken for a folder."""
    return fixed_folder(path) if os.path.exists(path) or _GLOB.search(path) else path


def is_there(path: str) -> bool:
    """Whether a path is a file or a folder, or may match some."""
    location = located(path)
    if isinstance(location, Remote):
        location.filesystem.invalidate_cache()
        return bool(_GLOB.search(location.path)) or bool(location.filesystem.exists(location.path))
    return os.path.exists(location) or any(not _hidden(os.path.basename(found)) for found in glob.glob(location))


def _under(path: str, base: str) -> Iterator[ListedFile]:
    roots = [path]
    if not os.path.exists(path):
        roots = sorted(glob.glob(path)) if _GLOB.search(path) else []
        roots = [root for root in roots if not _hidden(os.path.basename(root))]
        if not roots:
            raise FileNotFoundError(f"there is no file or folder {path}")
    for root in roots:
        if not os.path.isdir(root):
            yield _data_file(root, root, base)
            continue
        moves, removed = pending(root)
        for found in _walk(root):
            if found not in removed:
                yield _data_file(found, found, base)
        for source, target in moves.items():
            yield _data_file(source, target, base)


def _walk(root: str) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not _hidden(name) or "=" in name)
        yield from (os.path.join(folder, name) for name in sorted(names) if not _hidden(name))


def _data_file(path: str, named: str, base: str) -> ListedFile:
    relative = os.path.relpath(named, base).replace(os.sep, "/")
    return ListedFile(path, os.path.getsize(path), tuple(parse_partitions(relative).items()))


def _hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def partition_fields(files: Iterable[ListedFile], zone: str | None) -> list[st.StructField]:
    """Names and Spark types of the partition columns, inferred from the values in all paths as Spark infers.

    Args:
        files: files of the dataset.
        zone: time zone of timestamps in paths; None for timestamps without a time zone.

    Raises:
        SchemaError: files with different partition columns.
    """
    texts: dict[str, list[str]] = {}
    names: tuple[str, ...] | None = None
    for file in files:
        own = tuple(name for name, _ in file.partition)
        if names is not None and own != names:
            raise SchemaError(f"files with the partition columns {list(own)} and {list(names)}", path=file.path)
        names = own
        for name, text in file.partition:
            texts.setdefault(name, [])
            if text is not None:
                texts[name].append(text)
    return [st.StructField(name, _type_of(values, zone), True) for name, values in texts.items()]


def _type_of(texts: list[str], zone: str | None) -> st.DataType:
    """The type inferred by fastpq.datasets; of timestamps as in Spark, if a time zone gives their instants."""
    inferred = spark_type(infer_partition_type(texts))
    return st.TimestampType() if zone is not None and isinstance(inferred, st.TimestampNTZType) else inferred


def spark_partition_value(text: str | None, type_: st.DataType, name: str, zone: str | None) -> Any:
    """The value of a partition column from its text in a path.

    Args:
        text: the text; None for null.
        type_: type of the column.
        name: name of the column.
        zone: time zone of timestamps in texts.

    Raises:
        SchemaError: the text is no value of the type.
        UnsupportedError: the type is unsupported for partition columns, or timestamps without a time zone.
    """
    if text is None or isinstance(type_, st.StringType):
        return text
    try:
        match type_:
            case st.ByteType() | st.ShortType() | st.IntegerType() | st.LongType():
                return int(text)
            case st.BooleanType():
                return {"true": True, "false": False}[text.lower()]
            case st.DecimalType():
                return Number(text).quantize(Number(1).scaleb(-type_.scale), context=_EXACT)
            case st.FloatType():        # the 32-bit number nearest to the text
                with np.errstate(over="ignore"):
                    return float(np.float32(partition_value(text, DOUBLE_TYPE, name)))
            case st.DoubleType():
                return partition_value(text, DOUBLE_TYPE, name)
            case st.DateType():
                return datetime.date.fromisoformat(text)
            case st.TimestampNTZType():
                return datetime.datetime.fromisoformat(text)
            case st.TimestampType() if zone is not None:
                return datetime.datetime.fromisoformat(text).replace(tzinfo=time_zone(zone))
    except (ValueError, ArithmeticError, KeyError):
        raise SchemaError(f"the partition {text!r} is no {type_.simpleString()}", column=name) from None
    if isinstance(type_, st.TimestampType):
        raise UnsupportedError("timestamps in paths without a time zone: set the option timeZone", column=name)
    raise UnsupportedError(f"partition columns of type {type_.simpleString()}", column=name)


def time_zone(name: str) -> datetime.tzinfo:
    """The time zone of a name or an offset, as in ``spark.sql.session.timeZone``.

    Raises:
        SchemaError: an unknown time zone.
    """
    if match := _OFFSET.fullmatch(name):
        offset = datetime.timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        return datetime.timezone(-offset if match[1] == "-" else offset)
    try:
        return ZoneInfo("UTC" if name == "Z" else name)
    except (ZoneInfoNotFoundError, ValueError):
        raise SchemaError(f"the time zone {name!r} is unknown here") from None
