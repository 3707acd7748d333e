"""Parse and check data source options: Spark's text by name becomes ReadOptions or WriteOptions.

The tables are ReadOptions, WriteOptions and EncryptionOptions, with WriterProperties and with ServiceOptions (``keyservice``).
Parsing, errors, keyword types (``option_keywords``), docstrings of jobs and the tables in docs/pages/spark.md are made from their
rows.

Where Spark's own sources have the same option, fastpq uses its name. Case does not matter. Encryption options have parquet-java's
names (``parquet.encryption.footer.key``), so that the same options serve Spark's native source and fastpq. Only the key service
client differs: ``kms.client`` names a Python class.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, TypeVar

from fastpq.spark.core import (
    Option,
    SchemaError,
    WriterProperties,
    documented,
    option,
    options_of,
    spark_name,
    with_options_listed,
)
from fastpq.spark.keyservice import DEFAULT_CACHE_LIFETIME_SECONDS, Encryption, ServiceOptions, parse_key_place, parse_timeout
from fastpq.spark.refusals import refuse_key, refuse_secrets
from fastpq.spark.scan.filter_trees import decode_filters

DEFAULT_MAX_PARTITION_BYTES = 128 << 20     # as spark.sql.files.maxPartitionBytes
DEFAULT_BATCH_ROWS = 100_000
DEFAULT_ROW_GROUP_BYTES = 128 << 20         # uncompressed, like parquet-java's parquet.block.size
DEFAULT_MAX_OPEN_FILES = 32                 # per task
DEFAULT_ORPHAN_SECONDS = 24 * 3600.0

_PREFIX = "parquet.encryption."
_CONFIGURATION_PREFIX = "kms.conf."
_ADDED_BY_SPARK = "__"          # start of names that Spark adds, such as __partition_columns
_PARQUET_JAVA = "parquet."      # start of options such as parquet.compression, which Spark reads
CLIENT_OPTION = ("kms.conf.NAME", "Option NAME of the client itself.")

F = TypeVar("F", bound=Callable[..., Any])


@documented
@dataclass(frozen=True)
class ReadOptions:
    """Read options. ``paths`` are files, folders or globs. ``service`` is None if only plaintext files can be read."""

    paths: tuple[str, ...]
    base_path: str | None = option(
        None,
        "Folder below which directories named ``column=value`` are partitions. Without it each path is such a folder.",
        level="spark",
    )
    max_partition_bytes: int = option(
        DEFAULT_MAX_PARTITION_BYTES,
        "Largest number of file bytes in a Spark partition, unless a single row group has more.",
        unit="bytes",
        level="spark",
    )
    min_partitions: int = option(
        1,
        "Number of partitions to aim for. Partitions get smaller than ``maxPartitionBytes`` to reach it. "
        "``fastpq.spark.read`` aims for one on each core.",
        level="spark",
    )
    batch_rows: int = option(DEFAULT_BATCH_ROWS, "Largest number of rows in an Arrow batch.", level="spark")
    merge_schema: bool = option(
        False, "Take the schema that has the columns of all files, and not the schema of the first file.", level="spark"
    )
    filters: Any = option(
        None, "Row conditions as JSON, which ``fastpq.spark.read`` writes. Only matching rows are read.", level="spark"
    )
    push_filters: bool = option(
        False,
        "Take filters from Spark's plans. This needs ``spark.sql.python.filterPushdown.enabled``, and is the default with it.",
        level="spark",
    )
    ignore_missing_files: bool = option(
        False, "Pass over files that were deleted between planning and reading.", level="spark"
    )
    on_missing_key: str = option(
        "raise",
        "``null``: columns whose keys the reader lacks are null, and filters that reach fastpq are refused on them. ``raise``: "
        "reading such a column is an error.",
        level="spark",
    )
    max_files_per_trigger: int | None = option(
        None,
        "Largest number of files in a batch of a stream, with Trigger.AvailableNow too. Without it a batch takes all files.",
        least=0,
        level="spark",
    )
    time_zone: str | None = option(
        None,
        "Time zone of timestamps in the names of directories. Without it ``fastpq.spark.register`` takes that of the session.",
        level="spark",
    )
    service: ServiceOptions | None = None
    stream_log: str | None = option(
        None,
        "Folder below which a stream keeps the log of its files. Without it the log is below the first path.",
        level="spark",
        spark="checkpointLocation",
    )


@documented
@dataclass(frozen=True)
class WriteOptions:
    """Write options.

    ``path`` is the dataset's folder. ``properties`` are fields of WriterProperties. ``encryption`` names the columns to encrypt
    and their master keys, and is None for plaintext files.
    """

    path: str
    partition_by: tuple[str, ...] = option(
        (),
        "Names of the columns that become directories, separated by commas, in place of ``df.write.partitionBy``.",
        level="spark",
    )
    dynamic_overwrite: bool | None = option(
        None,
        "``static``: overwriting replaces all partitions. ``dynamic``: it replaces only the partitions that get new rows.",
        level="spark",
        spark="partitionOverwriteMode",
    )
    properties: Mapping[str, Any] = field(default_factory=dict)
    max_open_files: int = option(
        DEFAULT_MAX_OPEN_FILES,
        "Largest number of open files in one task. At the limit, the largest file is finished first.",
        level="spark",
    )
    orphan_seconds: float = option(
        DEFAULT_ORPHAN_SECONDS,
        "Age at which a write removes what other jobs have left behind, since their last change.",
        unit="seconds",
        level="spark",
    )
    stream_id: str | None = option(
        None,
        "Text that tells a stream from all other streams that write to the folder. Without it ``checkpointLocation`` does.",
        level="spark",
    )
    encryption: Encryption | None = None
    service: ServiceOptions | None = None


@documented
@dataclass(frozen=True, kw_only=True)
class EncryptionOptions:
    """Options for encryption, with the names and the texts of parquet-java's key tools."""

    footer_key: str | None = option(
        None, "Name of the master key for footers.", level="spark", spark=f"{_PREFIX}footer.key"
    )
    column_keys: tuple[tuple[str, tuple[str, ...]], ...] = option(
        (),
        'Names of master keys, each with its columns: ``"key:column,column;key:column"``.',
        level="spark",
        spark=f"{_PREFIX}column.keys",
    )
    uniform_key: str | None = option(
        None,
        "Name of one master key for footers and all columns, in place of the two above.",
        level="spark",
        spark=f"{_PREFIX}uniform.key",
    )
    encryption_algorithm: str = option(
        "AES_GCM_V1", '``"AES_GCM_V1"`` or ``"AES_GCM_CTR_V1"``.', level="spark", spark=f"{_PREFIX}algorithm"
    )
    unlisted: str | None = option(
        None,
        "What happens to columns without a key of their own: ``footer_key``, ``plaintext`` or ``raise``. Without it they get the "
        "footer key. With plaintext footers it has to be set.",
        level="spark",
        spark=f"{_PREFIX}unlisted",
    )
    plaintext_columns: tuple[str, ...] = option(
        (),
        "Columns that stay unencrypted, whatever ``unlisted`` says, separated by commas.",
        level="spark",
        spark=f"{_PREFIX}plaintext.columns",
    )
    complete_columns: bool | None = option(
        None,
        "parquet-java's name for it: ``true`` means ``footer_key``, ``false`` means ``plaintext``.",
        level="spark",
        spark=f"{_PREFIX}complete.columns",
    )
    plaintext_footer: bool = option(
        False, "Leave footers readable, and sign them.", level="spark", spark=f"{_PREFIX}plaintext.footer"
    )
    double_wrapping: bool = option(
        True,
        "Wrap data keys with key encryption keys, and only these with master keys.",
        level="spark",
        spark=f"{_PREFIX}double.wrapping",
    )
    internal_key_material: bool = option(
        True,
        "Keep key material in the files, and not beside them.",
        level="spark",
        spark=f"{_PREFIX}key.material.store.internally",
    )
    data_key_length_bits: int = option(
        128, "Length of data keys: 128, 192 or 256.", unit="bits", level="spark", spark=f"{_PREFIX}data.key.length.bits"
    )
    kek_length_bits: int | None = option(
        None,
        "Length of key encryption keys: 128, 192 or 256. Without it they are as long as data keys.",
        unit="bits",
        level="spark",
        spark=f"{_PREFIX}kek.length.bits",
    )


def plain_name(name: str) -> str:
    """Return an option's name in the form used for comparison: lower case, without prefix and underscores."""
    return name.lower().removeprefix(_PREFIX).replace("_", "")


def rows_by_spark_name(*tables: type[Any]) -> dict[str, Option]:
    """Return the options of some tables by their names in Spark. Fields that no option sets are left out."""
    return {spark_name(row): row for table in tables for row in options_of(table).values() if row.text}


def lists_options(*tables: type[Any]) -> Callable[[F], F]:
    """Return a decorator that lists the options of some tables in a docstring, below its entry ``**options``."""
    texts = {name: row.documentation for name, row in rows_by_spark_name(*tables).items() if name not in NO_KEYWORDS}

    def decorate(function: F) -> F:
        if function.__doc__ is not None:
            function.__doc__ = with_options_listed(function.__doc__, {**texts, CLIENT_OPTION[0]: CLIENT_OPTION[1]})
        return function

    return decorate


def _plain_rows(table: type[Any]) -> dict[str, Option]:
    return {plain_name(name): row for name, row in rows_by_spark_name(table).items()}


# Options of reads that ``fastpq.spark.read`` has as arguments, or that only streams have.
NO_KEYWORDS = ("filters", "maxFilesPerTrigger", "checkpointLocation")
_READING, _WRITING = _plain_rows(ReadOptions), _plain_rows(WriteOptions)
_ENCRYPTION, _SERVICE = _plain_rows(EncryptionOptions), _plain_rows(ServiceOptions)
_PROPERTIES = _plain_rows(WriterProperties)
_PATHS = {"path", "paths"}
_STREAM_NAMES = {"checkpointlocation", "queryname"}     # options of Spark's that come with a stream's writes
# Options of Spark's own file source that fastpq's Python source lacks. Spark acts on them, and workers pass over them.
_OF_SPARK = {
    "recursivefilelookup", "pathglobfilter", "modifiedafter", "modifiedbefore", "ignorecorruptfiles", "maxrecordsperfile",
    "serialization.format", "cleansource", "sourcearchivedir", "latestfirst", "maxbytespertrigger", "maxfileage", "filenameonly",
    "maxcachedfiles", "discardcachedinputratio", "retention", "datetimerebasemode", "int96rebasemode", "returningbatch",
}
_WITHDRAWN = {"planningfooters", "lookuprows"}      # options of earlier versions that only changed speed. Tables may have them
_INSTEAD = {        # what to use in the place of options that Spark's own file source has no place for
    "partitionby": "df.write.partitionBy(...), or partitioned by (...) in SQL",
    "filters": "df.where(...), or fastpq.spark.read with filters",
    "paths": "load([path, path])",
}
_JAR_READS = {"path", "batchrows", "onmissingkey"}      # with the jar, Spark acts on the other options of reads


def read_options(options: Mapping[str, str], *, push_filters: bool = False, through_spark: bool = False) -> ReadOptions:
    """Parse and check read options.

    Args:
        options: texts by name.
        push_filters: the default for ``pushFilters``.
        through_spark: the options come through Spark's own file source, which acts on those about files.

    Raises:
        SchemaError: there is no path, an unknown name, a wrong value, or a secret.
    """
    texts = _checked(options, _JAR_READS if through_spark else _PATHS | _READING.keys(), through_spark)
    paths = tuple(json.loads(texts["paths"])) if "paths" in texts else ()
    if "path" in texts:
        paths = (texts["path"], *paths)
    if not paths:
        raise SchemaError("which files? Give a path: spark.read.format('fastpq').load(path)")
    values = {"push_filters": push_filters, **_values(_READING, texts)}
    values["max_files_per_trigger"] = values.get("max_files_per_trigger") or None
    return ReadOptions(paths, service=_service(texts), **values)


def write_options(options: Mapping[str, str], *, through_spark: bool = False) -> WriteOptions:
    """Parse and check write options. The arguments and errors are those of read_options."""
    own_names = {"path"} if through_spark else {"path"} | _STREAM_NAMES | _WRITING.keys()
    texts = _checked(options, own_names | _PROPERTIES.keys(), through_spark)
    if "path" not in texts:
        raise SchemaError("where to? Give a path: df.write.format('fastpq').save(path)")
    properties: dict[str, Any] = {"row_group_bytes": DEFAULT_ROW_GROUP_BYTES, "durable": True}     # commits remove old files
    for name, row in _PROPERTIES.items():
        if name in texts:
            properties[row.name] = _json_or_text(texts[name])
    encryption, service = _encryption(texts), _service(texts)
    if encryption is not None and service is None:
        raise SchemaError("encryption needs the option kms.client: 'package.module:Class' of a KMS client, or 'keyring'")
    values = _values(_WRITING, texts)
    values["stream_id"] = texts.get("streamid") or texts.get("checkpointlocation")
    return WriteOptions(texts["path"], properties=properties, encryption=encryption, service=service, **values)


def options_as_text(options: Mapping[str, object]) -> dict[str, str]:
    """Return options with their values as text in Spark's spelling: ``True`` becomes ``"true"``."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


def service_of(options: Mapping[str, str]) -> ServiceOptions | None:
    """Return the key service that a job's options name, or None. Raises the same errors as read_options."""
    return _service(_checked(options, set()))


def encryption_of(options: Mapping[str, str]) -> Encryption | None:
    """Return the encryption that a job's options request, or None. Raises the same errors as read_options."""
    return _encryption(_checked(options, set()))


def _checked(options: Mapping[str, str], own_names: Collection[str], through_spark: bool = False) -> dict[str, str]:
    """Return options by lower-case name, encryption options without prefix. Secrets and unknown names are refused.

    Args:
        options: texts by name.
        own_names: plain names of the allowed options. Those for keys and encryption are always allowed.
        through_spark: as for read_options.
    """
    if through_spark:
        if others := sorted({plain_name(name) for name in options} & _INSTEAD.keys()):
            raise SchemaError(f"with the jar there is no option {others[0]!r}: use {_INSTEAD[others[0]]}")
        options = {
            name: value for name, value in options.items() if plain_name(name) in own_names or not _is_passed_over(name)
        }
    refuse_secrets(options, own_names)      # known options have paths and names as values, which may look like keys
    texts: dict[str, str] = {}
    for name, value in options.items():
        if name.lower().startswith(_CONFIGURATION_PREFIX):      # the client's own names keep their case
            texts[_CONFIGURATION_PREFIX + name[len(_CONFIGURATION_PREFIX) :]] = value
            continue
        lower_name, plain = name.lower().removeprefix(_PREFIX), plain_name(name)
        if plain in own_names:
            lower_name = plain
        elif lower_name not in _SERVICE.keys() | _ENCRYPTION.keys():
            raise _unknown_option(name, own_names)
        texts[lower_name] = value
    return texts


def _unknown_option(name: str, own_names: Collection[str]) -> SchemaError:
    """Return the error for an unknown option. It names the option with the nearest name, or else all options."""
    spellings = {plain_name(spelling): spelling for spelling in rows_by_spark_name(ReadOptions, WriteOptions, WriterProperties)}
    known_names = {spellings.get(plain, plain) for plain in own_names} | rows_by_spark_name(ServiceOptions).keys()
    all_spellings = {plain_name(spelling): spelling for spelling in {*known_names, *rows_by_spark_name(EncryptionOptions)}}
    if near := get_close_matches(plain_name(name), all_spellings, 1, 0.8):
        return SchemaError(f"there is no option {name!r}: did you mean {all_spellings[near[0]]}?")
    return SchemaError(f"there is no option {name!r}; known are {', '.join(sorted(known_names))} and {_PREFIX}*")


def _is_passed_over(name: str) -> bool:
    """Whether Spark or parquet-java acts on an option, or none does. Encryption never passes over a name that it lacks."""
    is_of_parquet_java = name.lower().startswith(_PARQUET_JAVA) and not name.lower().startswith(_PREFIX)
    # a table has options for reads and for writes, and may have those that only change how the Python source works
    others = {"path", *_READING, *_WRITING, *_PROPERTIES, *_STREAM_NAMES, *_OF_SPARK, *_WITHDRAWN}
    return name.startswith(_ADDED_BY_SPARK) or is_of_parquet_java or plain_name(name) in others


def _values(rows: Mapping[str, Option], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the options that have a text, by their names in the table.

    Args:
        rows: the table's rows, by plain name.
        texts: texts by lower-case name.
    """
    return {row.name: _value(row, texts[name]) for name, row in rows.items() if name in texts}


def _value(row: Option, text: str) -> Any:
    """Parse an option's text by the type of its row.

    Raises:
        SchemaError: the text is not a value of this type, or a number is too small.
    """
    name = spark_name(row)
    if name in _PARSERS:
        return _PARSERS[name](text)
    match row.type.partition(" ")[0]:
        case "bool":
            if text.lower() not in ("true", "false"):
                raise SchemaError(f"the option {name} is true or false")
            return text.lower() == "true"
        case "int":
            number = _number(name, text)
            if number != int(number) or number < row.least:
                raise SchemaError(f"the option {name} is a whole number of at least {row.least}")
            return int(number)
        case "float":
            return _number(name, text)
    return text


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise SchemaError(f"the option {name} is a number")
    return number


def _service(texts: Mapping[str, str]) -> ServiceOptions | None:
    if "kms.client" not in texts:
        return None
    length = len(_CONFIGURATION_PREFIX)
    return ServiceOptions(
        configuration=tuple(
            sorted((name[length:], value) for name, value in texts.items() if name.startswith(_CONFIGURATION_PREFIX))
        ),
        allow_ctr=texts.get("algorithm", "").upper() == "AES_GCM_CTR_V1",
        **_values(_SERVICE, texts),
    )


def _trusted_keys(text: str) -> tuple[str, ...]:
    names = _names(text)
    if not names:
        raise SchemaError("kms.trusted.keys is 'key,key': names of master keys")
    for name in names:
        refuse_key(name)
    return names


def _encryption(texts: Mapping[str, str]) -> Encryption | None:
    uniform, footer = texts.get("uniform.key"), texts.get("footer.key")
    if uniform is None and footer is None:
        if beside := sorted(_ENCRYPTION.keys() & texts.keys()):
            raise SchemaError(f"{_PREFIX}{beside[0]} needs {_PREFIX}footer.key or {_PREFIX}uniform.key")
        return None
    if uniform is not None and (footer is not None or "column.keys" in texts):
        raise SchemaError("uniform.key stands for footer.key and column.keys: give it, or these")
    values = _values(_ENCRYPTION, texts)
    columns = values.pop("column_keys", ())
    others = {name: value for name, value in values.items() if name not in ("footer_key", "uniform_key")}
    if uniform is not None:
        return _possible(Encryption(uniform, (), {**others, "uniform_encryption": True}))
    assert footer is not None
    refuse_key(footer)
    if not columns:
        raise SchemaError(
            f"{_PREFIX}footer.key alone encrypts no column. Name columns in {_PREFIX}column.keys: 'key:column;key:column'. "
            f"Or encrypt all columns under one master key: {_PREFIX}uniform.key in place of {_PREFIX}footer.key"
        )
    return _possible(Encryption(footer, columns, others))


def _possible(encryption: Encryption) -> Encryption:
    """Return the same encryption after EncryptionConfiguration has checked it. Its errors are given the option names."""
    try:
        encryption.resolved(timedelta(seconds=DEFAULT_CACHE_LIFETIME_SECONDS))
    except (ValueError, TypeError) as error:
        text = str(error)
        names = {row.name: name for name, row in rows_by_spark_name(EncryptionOptions).items()}
        for field_name, name in {**names, "uniform_encryption": names["uniform_key"]}.items():
            text = re.sub(rf"\b{field_name}\b", name, text)
        raise SchemaError(text) from None
    return encryption


def _column_keys(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Parse each master key's column paths from parquet-java's option text ``key:column,column;key:column``."""
    column_keys: list[tuple[str, tuple[str, ...]]] = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        identifier, colon, columns = part.rpartition(":")       # AWS key identifiers contain colons
        names = _names(columns)
        if not colon or not identifier or not names:
            raise SchemaError(f"{_PREFIX}column.keys is 'key:column,column;key:column'; a part has no key, or no column")
        column_keys.append((identifier.strip(), names))
    return tuple(column_keys)


def _names(text: str) -> tuple[str, ...]:
    """Return the names in a text that separates them by commas."""
    return tuple(name for name in (part.strip() for part in text.split(",")) if name)


def _is_dynamic(text: str) -> bool:
    if text.lower() not in ("static", "dynamic"):
        raise SchemaError(f"partitionOverwriteMode is static or dynamic, not {text!r}")
    return text.lower() == "dynamic"


def _on_missing_key(text: str) -> str:
    if text.lower() not in ("raise", "null"):
        raise SchemaError(f"onMissingKey is raise or null, not {text!r}")
    return text.lower()


def _json_or_text(text: str) -> Any:
    """Return a writer option's value. JSON (numbers, lists, mappings) is parsed, and anything else stays text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


# Parsers for options whose texts have their own form, by the names in Spark.
_PARSERS: dict[str, Callable[[str], Any]] = {
    "filters": decode_filters,
    "onMissingKey": _on_missing_key,
    "partitionBy": _names,
    "partitionOverwriteMode": _is_dynamic,
    "kms.audit.hash.key": parse_key_place,
    "kms.timeout": parse_timeout,
    "kms.trusted.keys": _trusted_keys,
    f"{_PREFIX}column.keys": _column_keys,
    f"{_PREFIX}plaintext.columns": _names,
    f"{_PREFIX}algorithm": str.upper,
}
