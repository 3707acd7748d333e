"""The table of reader options: keyword arguments for ParquetFile, and for functions and datasets that open ParquetFiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastpq import encryption
from fastpq.arrays.valid_text import TextChoice
from fastpq.io.location import placed
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.metadata.legacy_calendar import CalendarChoice
from fastpq.options import (
    MemoryMap,
    OnError,
    OnMissingKey,
    ReaderProperties,
    documented,
    option,
    options_of,
    unknown_option_error,
)
from fastpq.read.opener import DecimalLayout, StringLayout
from fastpq.schema.parquet_schema import Int96UnitName


@documented
@dataclass(slots=True, kw_only=True)
class OpeningOptions:
    """Options for opening a file. Rows with the level "dataset" are also options for datasets."""

    memory_map: MemoryMap = option(
        False,
        '``"keep"`` maps a local file, and columns may be views of the map: nobody may truncate or change the file as long as a '
        "column is in use. False and True read the file, so that a later change of the file changes no column.",
        level="dataset",
    )
    threads: int | None = option(
        None, "Number of chunks that are decoded at the same time. None takes one for each core.", level="dataset"
    )
    strings: StringLayout = option(
        "views",
        'Layout of variable-length values: ``"views"`` (no copy; a long column with few different texts holds codes until its '
        'views are requested), ``"offsets"``, or ``"dictionary"`` (codes).',
        level="dataset",
    )
    decimals: DecimalLayout = option(
        "stored",
        'Width in memory of decimals that are stored as INT32 or INT64. ``"stored"``: 4 or 8 bytes. ``"decimal128"``: 16 bytes, '
        "as in Arrow, so that Arrow, Polars and DuckDB get the column without a copy. Its type is then that of an imported "
        "decimal128 column (FIXED_LEN_BYTE_ARRAY). Other decimals have 16 bytes already, and 32 with more than 38 digits.",
        level="dataset",
    )
    coerce_int96_timestamp_unit: Int96UnitName = option(
        "auto",
        'Unit of INT96 timestamps in memory. ``"ms"``, ``"us"``, ``"ns"``: values that do not fit are refused. ``"auto"``: '
        "nanoseconds, or microseconds or milliseconds for a column with values that do not fit. A read has one unit for a "
        "column, in all row groups and batches; a read of other rows may have another one. ``iter_batches`` and filters on INT96 "
        'columns decode these columns twice for this. ``"stored"``: the 12 bytes of each value, which a writer writes unchanged.',
        level="dataset",
    )
    arrow_schema: bool = option(
        True,
        "Give columns the Arrow types of the file's ARROW:schema when they are exported to Arrow (fastpq.arrow.hints).",
        level="dataset",
    )
    invalid_utf8: TextChoice = option(
        "error",
        'Treatment of text that is not UTF-8. ``"error"``: a read of such text fails. ``"replace"``: U+FFFD takes the place of '
        'each wrong sequence in the result. Filters still compare the stored bytes. ``"binary"``: all text columns are read as '
        "columns of bytes.",
        level="dataset",
    )
    legacy_calendar: CalendarChoice = option(
        "rebase",
        "Treatment of old values in files that Spark 2, or a later Spark with ``datetimeRebaseModeInWrite=LEGACY``, wrote in the "
        'Julian calendar. ``"rebase"``: dates before 1582-10-15 keep their year, month and day, as in Spark. Timestamps before '
        '1900 are refused, because their time depends on a time zone. ``"keep"``: the values as they are stored.',
        level="dataset",
    )
    properties: ReaderProperties | None = option(None, "Limits and checks.", level="dataset")
    on_error: OnError = option(
        "raise",
        'Treatment of unreadable values. ``"raise"``: the read fails. ``"null"``: unreadable values become null; in a nested '
        'column the whole row becomes null. ``"skip"``: rows with unreadable values in the requested columns are left out. With '
        '``"null"`` and ``"skip"``, the last checkpoint replaces a missing footer, and ``recovery`` lists the losses.',
        level="dataset",
    )
    on_missing_key: OnMissingKey = option(
        "raise",
        'Treatment of encrypted columns whose keys the reader lacks. ``"raise"``: the read fails. ``"null"``: these columns are '
        "null, and the metadata of the table name them under ``fastpq:missing_keys``. A nested column is null as a whole if one "
        "of its keys is missing. Filters on such columns are refused. A key service that does not answer is still an error, and "
        "so is an altered column.",
        level="dataset",
    )
    filesystem: Any = option(
        None, "Filesystem of the path, from fsspec or pyarrow.fs. None finds it by the URL.", level="dataset"
    )
    storage_options: Mapping[str, Any] | None = option(
        None, "Options for the fsspec filesystem of a URL, as in pandas and Polars.", level="dataset"
    )
    timeout: float | None = option(
        None,
        "Longest time without a byte from a server, for URLs of HTTP (30 seconds by default) and S3.",
        unit="seconds",
        level="dataset",
    )
    decryption_properties: encryption.FileDecryptionProperties | None = option(None, "Keys for encrypted files.")
    metadata: FileMetaData | None = option(
        None,
        "The file's footer, if it was read before (``read_metadata``, ``ParquetFile.metadata``). It is not read and decoded "
        "again. It keeps the keys and ``chunk_order`` with which it was read, so that it excludes decryption_properties.",
    )
    check_metadata: bool = option(
        True,
        "Compare the file's size and last bytes (up to 4 kB) with those of the file from which ``metadata`` was read, and "
        "refuse a file that differs (SchemaError). A file that was rewritten with equal size and equal last bytes is not "
        "noticed. False reads without the comparison.",
        level="dataset",
    )


DEFAULTS: dict[str, Any] = {name: row.default for name, row in options_of(OpeningOptions).items()}
# Options that tell where a file is, together with a path.
PLACING = ("filesystem", "storage_options", "timeout")

_CHOICES: dict[str, tuple[str, ...]] = {
    "on_error": ("raise", "null", "skip"),
    "on_missing_key": ("raise", "null"),
    "strings": ("views", "offsets", "dictionary"),
    "decimals": ("stored", "decimal128"),
    "coerce_int96_timestamp_unit": ("auto", "ms", "us", "ns", "stored"),
    "legacy_calendar": ("rebase", "keep"),
    "invalid_utf8": ("error", "replace", "binary"),
}


def check_choices(settings: Mapping[str, Any]) -> None:
    """Refuse options that are none of their choices.

    Raises:
        ValueError: an option has another value.
    """
    for name, choices in _CHOICES.items():
        if settings[name] not in choices:
            *others, last = [f'"{choice}"' for choice in choices]
            raise ValueError(f"{name} must be {', '.join(others)} or {last}, not {settings[name]!r}")


def unknown(options: Mapping[str, Any]) -> TypeError:
    """Return the error for unknown options."""
    return unknown_option_error(options, OpeningOptions, writes=False)


def taken_place(where: Any, options: dict[str, Any]) -> Any:
    """Combine a path with the options ``PLACING`` into a place, and remove these options from ``options``.

    Raises:
        TypeError: an option is unknown.
    """
    if not options.keys() <= DEFAULTS.keys():
        raise unknown(options)
    return placed(where, *[options.pop(name, None) for name in PLACING])
