"""Options of the data source: text by name, as Spark hands them over, made into frozen values.

Names are Spark's where Spark has one, in any case. Those of encryption are parquet-java's (``parquet.encryption.footer.key``),
so that one set of options serves Spark's native source and this one; the client alone differs: ``kms.client`` is Python.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from fastpq.errors import SchemaError
from fastpq.options import WriterProperties
from fastpq.spark.filters import decode_filters
from fastpq.spark.keyservice import DEFAULT_CACHE_LIFETIME_SECONDS, Encryption, ServiceOptions, refuse_secrets

DEFAULT_MAX_PARTITION_BYTES = 128 << 20
DEFAULT_BATCH_ROWS = 100_000
DEFAULT_PLANNING_FOOTERS = 64
DEFAULT_ROW_GROUP_BYTES = 128 << 20
DEFAULT_MAX_OPEN_FILES = 32
DEFAULT_ORPHAN_SECONDS = 24 * 3600.0

_PREFIX = "parquet.encryption."
_CONFIGURATION_PREFIX = "kms.conf."
_READ = {
    "path", "paths", "basepath", "maxpartitionbytes", "minpartitions", "batchrows", "mergeschema", "filters", "pushfilters",
    "ignoremissingfiles", "maxfilespertrigger", "planningfooters", "columnarrays",
}  # fmt: skip
_WRITE = {
    "path", "partitionby", "partitionoverwritemode", "maxopenfiles", "orphanseconds", "checkpointlocation",
    "streamid", "queryname",
}  # fmt: skip
_SERVICE = {"kms.client", "kms.token.file", "allowplaintextfiles"}
_PROPERTIES = {name.name.replace("_", "").lower(): name.name for name in fields(WriterProperties)}
_FLAGS = {
    "complete.columns": "complete_columns",
    "plaintext.footer": "plaintext_footer",
    "double.wrapping": "double_wrapping",
    "key.material.store.internally": "internal_key_material",
}
_NUMBERS = {"data.key.length.bits": "data_key_length_bits", "kek.length.bits": "kek_length_bits"}
_ENCRYPTION = {"footer.key", "column.keys", "uniform.key", "algorithm", *_FLAGS, *_NUMBERS}
_CONNECTION = {"kms.instance.id", "kms.instance.url", "cache.lifetime.seconds"}


@dataclass(frozen=True)
class ReadOptions:
    """How a dataset is read.

    Attributes:
        paths: files, folders or globs.
        base_path: from which folder on hive partitions are taken from paths.
        max_partition_bytes: most bytes of files in one Spark partition, unless a single row group has more.
        min_partitions: smaller partitions are planned where this many could not be reached otherwise.
        batch_rows: rows of an Arrow batch.
        merge_schema: the schema is that of all files, instead of the first.
        filters: which rows, as fastpq.filters.predicate has them; None for all.
        push_filters: take filters from Spark's plans; where spark.sql.python.filterPushdown.enabled is on.
        ignore_missing_files: pass over files that vanished between planning and reading.
        max_files_per_trigger: of a stream; None for all that there are.
        planning_footers: a scan of at most so many files without filters reads all their footers while it is planned: columns
            without nulls and small integers take Spark less time (fastpq.spark.handover).
        column_arrays: a scan of columns of fixed width alone hands them over in arrays, which aggregates and filters in compiled
            code take less time of; a Python UDF on its columns takes many times as much, for it carries the arrays along.
        service: the key service; None reads plaintext files only.
    """

    paths: tuple[str, ...]
    base_path: str | None = None
    max_partition_bytes: int = DEFAULT_MAX_PARTITION_BYTES
    min_partitions: int = 1
    batch_rows: int = DEFAULT_BATCH_ROWS
    merge_schema: bool = False
    filters: Any = None
    push_filters: bool = False
    ignore_missing_files: bool = False
    max_files_per_trigger: int | None = None
    planning_footers: int = DEFAULT_PLANNING_FOOTERS
    column_arrays: bool = False
    service: ServiceOptions | None = None


@dataclass(frozen=True)
class WriteOptions:
    """How a dataset is written.

    Attributes:
        path: its folder.
        partition_by: names of the columns that become folders.
        dynamic_overwrite: overwriting replaces the partitions that are written, not the whole dataset.
        properties: fields of WriterProperties.
        max_open_files: of one task; beyond it the largest is finished.
        orphan_seconds: leftovers of other jobs are removed when they have not changed for so long.
        stream_id: names a stream among those that write to the folder.
        encryption: what is encrypted; None writes plaintext.
        service: the key service.
    """

    path: str
    partition_by: tuple[str, ...] = ()
    dynamic_overwrite: bool = False
    properties: Mapping[str, Any] = field(default_factory=dict)
    max_open_files: int = DEFAULT_MAX_OPEN_FILES
    orphan_seconds: float = DEFAULT_ORPHAN_SECONDS
    stream_id: str | None = None
    encryption: Encryption | None = None
    service: ServiceOptions | None = None


def read_options(options: Mapping[str, str], *, push_filters: bool = False) -> ReadOptions:
    """Options of a read.

    Raises:
        SchemaError: no path, an unknown name, a value that does not fit, or a secret.
    """
    given = _checked(options, _READ)
    paths = tuple(json.loads(given["paths"])) if "paths" in given else ()
    if "path" in given:
        paths = (given["path"], *paths)
    if not paths:
        raise SchemaError("which files? Give a path: spark.read.format('fastpq').load(path)")
    limit = _integer(given, "maxfilespertrigger", 0)
    return ReadOptions(
        paths,
        given.get("basepath"),
        _integer(given, "maxpartitionbytes", DEFAULT_MAX_PARTITION_BYTES, 1),
        _integer(given, "minpartitions", 1, 1),
        _integer(given, "batchrows", DEFAULT_BATCH_ROWS, 1),
        _flag(given, "mergeschema", False),
        decode_filters(given["filters"]) if "filters" in given else None,
        _flag(given, "pushfilters", push_filters),
        _flag(given, "ignoremissingfiles", False),
        limit or None,
        _integer(given, "planningfooters", DEFAULT_PLANNING_FOOTERS),
        _flag(given, "columnarrays", False),
        _service(given),
    )


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Options of a write; raises as read_options does."""
    given = _checked(options, _WRITE | set(_PROPERTIES))
    if "path" not in given:
        raise SchemaError("where to? Give a path: df.write.format('fastpq').save(path)")
    names = [name.strip() for name in given.get("partitionby", "").split(",")]
    mode = given.get("partitionoverwritemode", "static").lower()
    if mode not in ("static", "dynamic"):
        raise SchemaError(f"partitionOverwriteMode is static or dynamic, not {mode!r}")
    properties: dict[str, Any] = {"row_group_bytes": DEFAULT_ROW_GROUP_BYTES}
    for option, name in _PROPERTIES.items():
        if option in given:
            properties[name] = _json_or_text(given[option])
    encryption, service = _encryption(given), _service(given)
    if encryption is not None and service is None:
        raise SchemaError("encryption needs the option kms.client: 'package.module:Class' of a KMS client, or 'keyring'")
    return WriteOptions(
        given["path"],
        tuple(name for name in names if name),
        mode == "dynamic",
        properties,
        _integer(given, "maxopenfiles", DEFAULT_MAX_OPEN_FILES, 1),
        _number(given, "orphanseconds", DEFAULT_ORPHAN_SECONDS),
        given.get("streamid") or given.get("checkpointlocation"),
        encryption,
        service,
    )


def options_as_text(options: Mapping[str, object]) -> dict[str, str]:
    """Options of Python as Spark has them."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


def service_of(options: Mapping[str, str]) -> ServiceOptions | None:
    """The key service that options name, of jobs; raises as read_options does."""
    return _service(_checked(options, set()))


def encryption_of(options: Mapping[str, str]) -> Encryption | None:
    """What options say of encryption, of jobs; raises as read_options does."""
    return _encryption(_checked(options, set()))


def _checked(options: Mapping[str, str], known: set[str]) -> dict[str, str]:
    """Options by folded name; those of encryption without their prefix."""
    refuse_secrets(options)
    given: dict[str, str] = {}
    for name, value in options.items():
        if name.lower().startswith(_CONFIGURATION_PREFIX):      # the client's own names keep their case
            given[_CONFIGURATION_PREFIX + name[len(_CONFIGURATION_PREFIX) :]] = value
            continue
        folded, plain = name.lower().removeprefix(_PREFIX), plain_name(name)
        if plain in known:
            folded = plain
        elif folded not in _SERVICE | _ENCRYPTION | _CONNECTION:
            raise SchemaError(f"there is no option {name!r}; known are {', '.join(sorted(known | _SERVICE))} and {_PREFIX}*")
        given[folded] = value
    return given


def plain_name(name: str) -> str:
    """An option's name, of which case and underscores do not matter."""
    return name.lower().removeprefix(_PREFIX).replace("_", "")


def _service(given: Mapping[str, str]) -> ServiceOptions | None:
    if "kms.client" not in given:
        return None
    length = len(_CONFIGURATION_PREFIX)
    return ServiceOptions(
        given["kms.client"],
        given.get("kms.instance.id", ""),
        given.get("kms.instance.url", ""),
        tuple(sorted((name[length:], value) for name, value in given.items() if name.startswith(_CONFIGURATION_PREFIX))),
        given.get("kms.token.file"),
        _number(given, "cache.lifetime.seconds", DEFAULT_CACHE_LIFETIME_SECONDS),
        _flag(given, "allowplaintextfiles", False),
        given.get("algorithm", "").upper() == "AES_GCM_CTR_V1",
    )


def _encryption(given: Mapping[str, str]) -> Encryption | None:
    uniform, footer = given.get("uniform.key"), given.get("footer.key")
    if uniform is None and footer is None:
        if beside := sorted(_ENCRYPTION & given.keys()):
            raise SchemaError(f"{_PREFIX}{beside[0]} needs {_PREFIX}footer.key or {_PREFIX}uniform.key")
        return None
    if uniform is not None and (footer is not None or "column.keys" in given):
        raise SchemaError("uniform.key stands for footer.key and column.keys: give it, or these")
    extra: dict[str, Any] = {name: _flag(given, option, False) for option, name in _FLAGS.items() if option in given}
    extra |= {name: _integer(given, option, 0) for option, name in _NUMBERS.items() if option in given}
    if "algorithm" in given:
        extra["encryption_algorithm"] = given["algorithm"].upper()
    if uniform is not None:
        return Encryption(uniform, (), {**extra, "uniform_encryption": True})
    assert footer is not None
    return Encryption(footer, _column_keys(given.get("column.keys", "")), extra)


def _column_keys(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """``key:column,column;key:column`` taken apart, as parquet-java writes it."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        identifier, colon, columns = part.rpartition(":")       # AWS's identifiers have colons
        names = tuple(name.strip() for name in columns.split(",") if name.strip())
        if not colon or not identifier or not names:
            raise SchemaError(f"{_PREFIX}column.keys is 'key:column,column;key:column'; a part has no key, or no column")
        found.append((identifier.strip(), names))
    return tuple(found)


def _flag(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = str(given.get(name, default)).lower()
    if text not in ("true", "false"):
        raise SchemaError(f"the option {name} is true or false")
    return text == "true"


def _integer(given: Mapping[str, str], name: str, default: int, least: int = 0) -> int:
    number = _number(given, name, default)
    if number != int(number) or number < least:
        raise SchemaError(f"the option {name} is a whole number of at least {least}")
    return int(number)


def _number(given: Mapping[str, str], name: str, default: float) -> float:
    try:
        number = float(given.get(name, default))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise SchemaError(f"the option {name} is a number")
    return number


def _json_or_text(text: str) -> Any:
    """Numbers, lists and mappings are JSON; anything else is text as it stands."""
    try:
        return json.loads(text)
    except ValueError:
        return text
