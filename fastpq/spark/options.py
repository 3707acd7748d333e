"""Options of the data source, parsed and checked: text by name from Spark becomes ReadOptions or WriteOptions.

Options bear the names of Spark's own sources where one exists; case does not matter. Options of encryption bear the names of
parquet-java (``parquet.encryption.footer.key``): one set of options serves Spark's native source and fastpq. Only the client of
the key service differs: ``kms.client`` names a Python class.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

from fastpq.errors import SchemaError
from fastpq.options import WriterProperties
from fastpq.spark.filters import decode_filters
from fastpq.spark.keyservice import DEFAULT_CACHE_LIFETIME_SECONDS, Encryption, ServiceOptions
from fastpq.spark.refusals import refuse_key, refuse_secrets

DEFAULT_MAX_PARTITION_BYTES = 128 << 20     # as spark.sql.files.maxPartitionBytes
DEFAULT_BATCH_ROWS = 100_000
DEFAULT_PLANNING_FOOTERS = 64               # files
DEFAULT_LOOKUP_ROWS = 1_000
DEFAULT_ROW_GROUP_BYTES = 128 << 20         # uncompressed; as parquet.block.size of parquet-java
DEFAULT_MAX_OPEN_FILES = 32                 # of one task
DEFAULT_ORPHAN_SECONDS = 24 * 3600.0

_PREFIX = "parquet.encryption."
_CONFIGURATION_PREFIX = "kms.conf."
_READ = {
    "path", "paths", "basepath", "maxpartitionbytes", "minpartitions", "batchrows", "mergeschema", "filters", "pushfilters",
    "ignoremissingfiles", "maxfilespertrigger", "planningfooters", "lookuprows", "timezone",
    "checkpointlocation",
}
_WRITE = {
    "path", "partitionby", "partitionoverwritemode", "maxopenfiles", "orphanseconds", "checkpointlocation",
    "streamid", "queryname",
}
_SERVICE = {"kms.client", "kms.token.file", "kms.trusted.keys", "allowplaintextfiles"}
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
    """Options of a read.

    Attributes:
        paths: files, folders or globs.
        base_path: folder below which path segments ``name=value`` are partitions.
        max_partition_bytes: most bytes of files in one Spark partition, unless a single row group has more.
        min_partitions: partitions wanted; partitions get smaller than max_partition_bytes to reach the number.
        batch_rows: rows of an Arrow batch.
        merge_schema: merge the schemas of all files, instead of taking the first file's.
        filters: conditions on rows as in fastpq.filters.predicate; None for all rows.
        push_filters: take filters from Spark's plans; needs spark.sql.python.filterPushdown.enabled.
        ignore_missing_files: skip files deleted between planning and reading.
        max_files_per_trigger: most files in a batch of a stream; None for all present files.
        planning_footers: most files of a scan without filters for which planning reads all footers: Spark then takes less time
            for columns without nulls (fastpq.spark.handover).
        lookup_rows: most rows that planning for the JVM reads itself where conditions leave no more; 0 for none.
        time_zone: time zone of timestamps in the names of folders; None reads them as timestamps without a time zone.
        service: options of the key service; None reads plaintext files only.
        stream_log: folder below which a stream keeps the log of its files; None for the first of the paths.
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
    lookup_rows: int = DEFAULT_LOOKUP_ROWS
    time_zone: str | None = None
    service: ServiceOptions | None = None
    stream_log: str | None = None


@dataclass(frozen=True)
class WriteOptions:
    """Options of a write.

    Attributes:
        path: folder of the dataset.
        partition_by: names of the columns to store as folders.
        dynamic_overwrite: overwriting replaces only the partitions written to, not the whole dataset; None where the option
            ``partitionOverwriteMode`` is missing.
        properties: fields of WriterProperties.
        max_open_files: most open files of one task; at the limit the largest file is finished first.
        orphan_seconds: age without changes after which leftovers of other jobs are removed.
        stream_id: identifies a stream among all streams writing to the folder.
        encryption: columns to encrypt and their master keys; None writes plaintext.
        service: options of the key service.
    """

    path: str
    partition_by: tuple[str, ...] = ()
    dynamic_overwrite: bool | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    max_open_files: int = DEFAULT_MAX_OPEN_FILES
    orphan_seconds: float = DEFAULT_ORPHAN_SECONDS
    stream_id: str | None = None
    encryption: Encryption | None = None
    service: ServiceOptions | None = None


def read_options(options: Mapping[str, str], *, push_filters: bool = False) -> ReadOptions:
    """Parse and check the options of a read.

    Raises:
        SchemaError: no path, an unknown name, a wrong value, or a secret.
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
        _integer(given, "lookuprows", DEFAULT_LOOKUP_ROWS),
        given.get("timezone"),
        _service(given),
        given.get("checkpointlocation"),
    )


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Parse and check the options of a write; raises the errors of read_options."""
    given = _checked(options, _WRITE | set(_PROPERTIES))
    if "path" not in given:
        raise SchemaError("where to? Give a path: df.write.format('fastpq').save(path)")
    names = [name.strip() for name in given.get("partitionby", "").split(",")]
    mode = given.get("partitionoverwritemode")
    if mode is not None and mode.lower() not in ("static", "dynamic"):
        raise SchemaError(f"partitionOverwriteMode is static or dynamic, not {mode!r}")
    properties: dict[str, Any] = {"row_group_bytes": DEFAULT_ROW_GROUP_BYTES, "durable": True}     # commits remove old files
    for option, name in _PROPERTIES.items():
        if option in given:
            properties[name] = _json_or_text(given[option])
    encryption, service = _encryption(given), _service(given)
    if encryption is not None and service is None:
        raise SchemaError("encryption needs the option kms.client: 'package.module:Class' of a KMS client, or 'keyring'")
    return WriteOptions(
        given["path"],
        tuple(name for name in names if name),
        None if mode is None else mode.lower() == "dynamic",
        properties,
        _integer(given, "maxopenfiles", DEFAULT_MAX_OPEN_FILES, 1),
        _number(given, "orphanseconds", DEFAULT_ORPHAN_SECONDS),
        given.get("streamid") or given.get("checkpointlocation"),
        encryption,
        service,
    )


def options_as_text(options: Mapping[str, object]) -> dict[str, str]:
    """Options with values as text in Spark's spelling: ``True`` becomes ``"true"``."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


def service_of(options: Mapping[str, str]) -> ServiceOptions | None:
    """The key service named in the options of a job; raises the errors of read_options."""
    return _service(_checked(options, set()))


def encryption_of(options: Mapping[str, str]) -> Encryption | None:
    """Encryption asked for in the options of a job, or None; raises the errors of read_options."""
    return _encryption(_checked(options, set()))


def _checked(options: Mapping[str, str], known: set[str]) -> dict[str, str]:
    """Options by name in lower case, options of encryption without the prefix; refuses secrets and unknown names."""
    refuse_secrets(options, known)      # values of the known options are paths and names, and may look like keys
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
    """An option's name in the form for comparison: lower case, without prefix and underscores."""
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
        _trusted_keys(given["kms.trusted.keys"]) if "kms.trusted.keys" in given else None,
    )


def _trusted_keys(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise SchemaError("kms.trusted.keys is 'key,key': names of master keys")
    for name in names:
        refuse_key(name)
    return names


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
        return _possible(Encryption(uniform, (), {**extra, "uniform_encryption": True}))
    assert footer is not None
    columns = _column_keys(given.get("column.keys", ""))
    refuse_key(footer)
    if not columns:
        raise SchemaError(
            f"{_PREFIX}footer.key alone encrypts no column. Name columns in {_PREFIX}column.keys: 'key:column;key:column'. "
            f"Or encrypt all columns under one master key: {_PREFIX}uniform.key in place of {_PREFIX}footer.key"
        )
    return _possible(Encryption(footer, columns, extra))


def _possible(encryption: Encryption) -> Encryption:
    """The same encryption, after the checks of EncryptionConfiguration, whose errors get the names of the options."""
    try:
        encryption.resolved(timedelta(seconds=DEFAULT_CACHE_LIFETIME_SECONDS))
    except (ValueError, TypeError) as error:
        text = str(error)
        named = {**_FLAGS, **_NUMBERS, "algorithm": "encryption_algorithm", "uniform.key": "uniform_encryption"}
        for option, name in named.items():
            text = re.sub(rf"\b{name}\b", _PREFIX + option, text)
        raise SchemaError(text) from None
    return encryption


def _column_keys(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Column paths of each master key, from ``key:column,column;key:column``, the text of parquet-java's option."""
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
    """The value of a writer option: JSON (numbers, lists, mappings) parsed, anything else as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
