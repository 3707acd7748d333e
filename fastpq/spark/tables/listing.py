"""List a dataset's data files from folders and globs, with their hive partition values. Unfinished commits count as finished."""

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

from fastpq.spark.core import (
    DOUBLE_TYPE,
    Remote,
    SchemaError,
    UnsupportedError,
    find_store,
    infer_partition_type,
    is_container,
    locate,
    parse_partitions,
    partition_value,
    url_of,
    visible_files,
    visible_matches,
)
from fastpq.spark.tables.journal import pending
from fastpq.spark.tables.spark_types import spark_type

_GLOB = re.compile(r"[*?\[]")
# A time zone offset as Spark and Java write it: +05:30, GMT+5, UTC-03:00.
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_EXACT = Context(prec=38, traps=[Inexact])


@dataclass(frozen=True)
class ListedFile:
    """A file in a dataset.

    Attributes:
        path: present path or URL. It differs from the final path during an unfinished commit.
        size: file size in bytes.
        partition: names and texts of hive partition columns. None means null.
        change_time: time of the last change in seconds, if the listing contains it.
    """

    path: str
    size: int
    partition: tuple[tuple[str, str | None], ...] = ()
    change_time: float | None = field(default=None, compare=False)

    @property
    def last_change(self) -> float:
        """The time of the last change in seconds. 0 if neither the listing nor the filesystem gives it."""
        if self.change_time is not None or "://" in self.path:
            return self.change_time or 0.0
        return os.path.getmtime(self.path)


def list_files(paths: Iterable[str], base_path: str | None = None) -> list[ListedFile]:
    """Return a dataset's files, sorted by path. Hidden files (their names begin with ``_`` or ``.``) are left out.

    Args:
        paths: files, folders and globs. They are local paths or URLs that fsspec supports.
        base_path: folder below which path segments ``name=value`` are partitions. None takes each path's own folder.

    Raises:
        FileNotFoundError: there is no file or folder at a path.
        SchemaError: a URL contains a password.
    """
    files: dict[str, ListedFile] = {}
    for path in paths:
        place = located(path)
        if isinstance(place, Remote):
            matches = _remote(place, None if base_path is None else located(base_path))
        else:
            matches = _under(place, fixed_folder(place) if base_path is None else local_path(base_path))
        for file in matches:
            files.setdefault(file.path, file)
    return [files[path] for path in sorted(files)]


def located(where: str) -> str | Remote:
    """Return the absolute path for a local file or folder, or the Remote for a URL.

    Raises:
        SchemaError: the URL contains a password, which Spark would write into plans and logs. The message hides the URL.
        UnsupportedError: fsspec, or its filesystem for the URL, is not installed.
    """
    if where.startswith("file:") and not where.startswith("file://"):
        where = where.removeprefix("file:")
    if "://" in where and "@" in urlsplit(where).netloc and not is_container(where):
        raise SchemaError(
            f"a {where.split('://')[0]} URL with a user or password in it, which Spark would write into plans and logs: "
            "credentials belong in the executors' environment"
        )
    place = locate(where)
    return place if isinstance(place, Remote) else os.path.abspath(str(place))


def local_path(where: str) -> str:
    """Return the absolute path of a local file or folder.

    Raises:
        UnsupportedError: the URL is on a remote filesystem.
    """
    place = located(where)
    if isinstance(place, Remote):
        scheme = where.split("://")[0]
        raise UnsupportedError(f"a path on the filesystems of driver and executors is needed here, and no {scheme}:// (mount it)")
    return place


def store_of(where: str) -> Remote | None:
    """Return a dataset's folder in an object store. None for a local path.

    Raises:
        UnsupportedError: the URL is on another filesystem.
    """
    place = located(where)
    if not isinstance(place, Remote):
        return None
    if find_store(place.filesystem) is None:
        scheme = where.split("://")[0]
        raise UnsupportedError(
            f"writing to {scheme}:// from Spark: local and mounted folders, s3:// and s3a://, abfss:// and az://, gs:// only"
        )
    return Remote(place.filesystem, place.path.rstrip("/"), place.name)


def _remote(place: Remote, base: str | Remote | None) -> Iterator[ListedFile]:
    """Yield files on an fsspec filesystem. The place is a folder, a glob or a single file."""
    filesystem, path, store = place.filesystem, place.path, find_store(place.filesystem)
    filesystem.invalidate_cache()       # otherwise a driver that lists repeatedly sees old listings
    if filesystem.isdir(path):
        entries, root = visible_files(filesystem, path), path
    elif _GLOB.search(path):
        entries, root = visible_matches(filesystem, path), fixed_folder(path)
    else:
        entries, root = {path: filesystem.info(path)}, os.path.dirname(path)
    top = base.path if isinstance(base, Remote) else root
    for name, about in sorted(entries.items()):
        relative = os.path.relpath(name, root)
        parts = relative.split("/")
        if about["type"] == "file" and not any(_hidden(part) and "=" not in part for part in parts):
            partitions = parse_partitions(os.path.relpath(name, top))
            change_time = None if store is None else store.changed(about)
            seconds = None if change_time is None else change_time.timestamp()
            yield ListedFile(url_of(filesystem, name), int(about["size"]), tuple(partitions.items()), seconds)


def fixed_folder(path: str) -> str:
    """Return the folder before a path's first glob. Without a glob, the path itself if it is a folder, else its parent folder."""
    if _GLOB.search(path) and not os.path.exists(path):
        parts = path.split(os.sep)
        first = next(number for number, part in enumerate(parts) if _GLOB.search(part))
        return os.sep.join(parts[:first])
    return path if os.path.isdir(path) else os.path.dirname(path)


def folder_of_stream(path: str) -> str:
    """Return the fixed folder of a stream's path. A path that does not exist yet is taken as a folder."""
    return fixed_folder(path) if os.path.exists(path) or _GLOB.search(path) else path


def is_there(path: str) -> bool:
    """Whether a path is a file or a folder, or a glob that may match some."""
    location = located(path)
    if isinstance(location, Remote):
        location.filesystem.invalidate_cache()
        return bool(_GLOB.search(location.path)) or bool(location.filesystem.exists(location.path))
    return os.path.exists(location) or any(not _hidden(os.path.basename(match)) for match in glob.glob(location))


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
        moves, removals = pending(root)
        for file in _walk(root):
            if file not in removals:
                yield _data_file(file, file, base)
        for source, target in moves.items():
            yield _data_file(source, target, base)


def _walk(root: str) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not _hidden(name) or "=" in name)
        yield from (os.path.join(folder, name) for name in sorted(names) if not _hidden(name))


def _data_file(path: str, final_path: str, base: str) -> ListedFile:
    relative = os.path.relpath(final_path, base).replace(os.sep, "/")
    return ListedFile(path, os.path.getsize(path), tuple(parse_partitions(relative).items()))


def _hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def partition_fields(files: Iterable[ListedFile], zone: str | None) -> list[st.StructField]:
    """Return names and Spark types of the partition columns. They are inferred from the values in all paths, as in Spark.

    Args:
        files: the dataset's files.
        zone: time zone for timestamps in paths. With None, timestamps have no time zone.

    Raises:
        SchemaError: the files have different partition columns.
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
    """Return the type that fastpq.datasets infers. With a time zone, timestamps are instants, as in Spark."""
    type_ = spark_type(infer_partition_type(texts))
    return st.TimestampType() if zone is not None and isinstance(type_, st.TimestampNTZType) else type_


def spark_partition_value(text: str | None, type_: st.DataType, name: str, zone: str | None) -> Any:
    """Parse a partition value from its text in a path.

    Args:
        text: the text. None means null.
        type_: column type.
        name: column name.
        zone: time zone for timestamps in texts.

    Raises:
        SchemaError: the text is not a value of this type.
        UnsupportedError: partition columns cannot have this type, or a timestamp needs a time zone and there is none.
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
    """Return the time zone for a name or an offset, written as in ``spark.sql.session.timeZone``.

    Raises:
        SchemaError: the time zone is unknown.
    """
    if match := _OFFSET.fullmatch(name):
        offset = datetime.timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        return datetime.timezone(-offset if match[1] == "-" else offset)
    try:
        return ZoneInfo("UTC" if name == "Z" else name)
    except (ZoneInfoNotFoundError, ValueError):
        raise SchemaError(f"the time zone {name!r} is unknown here") from None
