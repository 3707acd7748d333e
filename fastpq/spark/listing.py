"""Which files a dataset has: folders, globs, hive partitions in paths, and commits that a driver did not finish."""

from __future__ import annotations

import datetime
import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from pyspark.sql import types as st

from fastpq.errors import SchemaError, UnsupportedError
from fastpq.location import Remote, locate
from fastpq.spark.journal import pending

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_GLOB = re.compile(r"[*?\[]")
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MAX_INT32 = 1 << 31


@dataclass(frozen=True)
class DataFile:
    """A file of a dataset.

    Attributes:
        path: where it is now.
        size: its bytes.
        partition: texts of its hive partition columns, None for null.
    """

    path: str
    size: int
    partition: tuple[tuple[str, str | None], ...] = ()


def list_files(paths: Iterable[str], base_path: str | None = None) -> list[DataFile]:
    """The files of a dataset, by path; names that begin with ``_`` or ``.`` are left out.

    Args:
        paths: local files, folders and globs.
        base_path: the folder from which on partitions are taken from paths; None for each path's own folder.

    Raises:
        FileNotFoundError: a path without a file or folder.
        UnsupportedError: a path that is not on a (mounted) filesystem.
    """
    files: dict[str, DataFile] = {}
    for path in paths:
        where = local_path(path)
        base = local_path(base_path) if base_path is not None else _base_of(where)
        for file in _under(where, base):
            files.setdefault(file.path, file)
    return [files[path] for path in sorted(files)]


def local_path(where: str) -> str:
    """The path of a local file or folder.

    Raises:
        UnsupportedError: it is elsewhere.
    """
    if where.startswith("file:") and not where.startswith("file://"):
        where = where.removeprefix("file:")
    located = locate(where)
    if isinstance(located, Remote) or located is None:
        raise UnsupportedError(f"a dataset at {where.split('://')[0]}://: paths on executors' filesystems only (mount it)")
    return os.path.abspath(located)


def _base_of(path: str) -> str:
    """The part of a path before its first glob."""
    if _GLOB.search(path) and not os.path.exists(path):
        parts = path.split(os.sep)
        first = next(number for number, part in enumerate(parts) if _GLOB.search(part))
        return os.sep.join(parts[:first])
    return path if os.path.isdir(path) else os.path.dirname(path)


def _under(path: str, base: str) -> Iterator[DataFile]:
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


def _data_file(path: str, named: str, base: str) -> DataFile:
    relative = os.path.relpath(os.path.dirname(named), base)
    parts = [part.partition("=") for part in relative.split(os.sep) if "=" in part]
    values = tuple((unquote(name), None if text == HIVE_NULL else unquote(text)) for name, _, text in parts)
    return DataFile(path, os.path.getsize(path), values)


def _hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def partition_folder(values: Mapping[str, Any]) -> str:
    """The folder of a partition, relative to the dataset: ``name=value/...``, escaped as Hive does."""
    return os.path.join(*(f"{quote(name, safe=' ')}={_partition_text(value)}" for name, value in values.items()))


def _partition_text(value: Any) -> str:
    if value is None or value == "":
        return HIVE_NULL
    if isinstance(value, bool):
        return str(value).lower()
    return quote(str(value), safe=" +-.,@$&()!~;")


def partition_fields(files: Iterable[DataFile]) -> list[st.StructField]:
    """Names and types of the partition columns, by the texts of all files: int, bigint, double, date or string.

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
    return [st.StructField(name, _type_of(values), True) for name, values in texts.items()]


def _type_of(texts: list[str]) -> st.DataType:
    if texts and all(_INTEGER.fullmatch(text) for text in texts):
        largest = max(abs(int(text)) for text in texts)
        if largest < 1 << 63:
            return st.IntegerType() if largest < _MAX_INT32 else st.LongType()
    if texts and all(map(_is_float, texts)):
        return st.DoubleType()
    if texts and all(map(_is_date, texts)):
        return st.DateType()
    return st.StringType()


def _is_float(text: str) -> bool:
    return bool(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", text))


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def partition_value(text: str | None, type_: st.DataType, name: str) -> Any:
    """The text of a partition as a value of a type.

    Raises:
        SchemaError: it is no such value.
    """
    if text is None:
        return None
    try:
        match type_:
            case st.ByteType() | st.ShortType() | st.IntegerType() | st.LongType():
                return int(text)
            case st.FloatType() | st.DoubleType():
                return float(text)
            case st.DateType():
                return datetime.date.fromisoformat(text)
            case st.BooleanType():
                return {"true": True, "false": False}[text]
            case st.StringType():
                return text
    except (ValueError, KeyError):
        raise SchemaError(f"the partition {text!r} is no {type_.simpleString()}", column=name) from None
    raise UnsupportedError(f"partition columns of type {type_.simpleString()}", column=name)
