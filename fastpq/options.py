"""Options of readers and writers: frozen dataclasses, with a named default for each option."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from textwrap import dedent, indent
from typing import Any, Literal, TypeVar

from fastpq.common.process_memory import default_allocation

MIB = 1 << 20

# Defaults of ReaderProperties; sizes in bytes.
DEFAULT_VERIFY_CHECKSUMS = True
DEFAULT_VERIFY_DECIMALS = True
DEFAULT_VERIFY_TIMES = True
DEFAULT_MAX_FOOTER_SIZE = 256 * MIB
DEFAULT_MAX_ROW_GROUPS = 1_000_000
DEFAULT_MAX_COLUMNS = 250_000
DEFAULT_MAX_METADATA_SIZE = 64 * MIB
DEFAULT_MAX_PAGE_SIZE = 1 << 30
DEFAULT_MAX_DICTIONARY_SIZE = 256 * MIB
DEFAULT_COALESCE_GAP = 64 * 1024
DEFAULT_COALESCE_SIZE = 16 * MIB
DEFAULT_ROUND_TRIP_BYTES = MIB
DEFAULT_PREFETCH = True
DEFAULT_MAX_ATTEMPTS = 5
DEFAULT_ALLOW_OUTSIDE_FILES = False
DEFAULT_TAIL_READ = 64 * 1024         # bytes at the end of a file, read first for footer and indexes

# Defaults of WriterProperties; sizes in bytes, except row group size and data page rows, in rows.
DEFAULT_COMPRESSION = "snappy"
DEFAULT_ENCODING: Literal["auto"] | None = None
DEFAULT_ROW_GROUP_SIZE = 1 << 20
DEFAULT_ROW_GROUP_BYTES = 512 * MIB
DEFAULT_DATA_PAGE_SIZE = MIB
DEFAULT_DATA_PAGE_ROWS = 20_000
DEFAULT_DATA_PAGE_VERSION: Literal["1.0", "2.0"] = "1.0"
DEFAULT_DICTIONARY_PAGE_SIZE = MIB
DEFAULT_STATISTICS_TRUNCATION = 64
DEFAULT_FLOAT_ORDER: Literal["type", "total"] = "type"
DEFAULT_BLOOM_FILTER_FPP = 0.01
DEFAULT_ARROW_SCHEMA: bool | None = None

OnError = Literal["raise", "null", "skip"]
MemoryMap = bool | Literal["keep"]
Compression = str | None | Mapping[str, str | None]
CompressionLevel = int | None | Mapping[str, int]
ColumnSwitch = bool | list[str]
BloomFilterOption = bool | Mapping[str, float | int | None]
F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS_ENTRY = re.compile(r"^( *)\*\*options: any of the fields of WriterProperties:\n", re.MULTILINE)


_MAY_BE_ZERO = {"coalesce_gap", "round_trip_bytes"}     # options with the least value 0; 1 for all other numbers


def check_switch(name: str, value: object) -> None:
    """Refuse anything but True and False: a text, even ``"False"``, would count as true."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {value!r}")


def check_options(properties: Any) -> None:
    """Refuse values of wrong types for the switches, numbers, lists and mappings of a dataclass, and numbers too small."""
    for option in fields(properties):
        value = getattr(properties, option.name)
        if option.type == "bool":
            check_switch(option.name, value)
        elif option.type == "int" or (option.type == "int | None" and value is not None):
            least = int(option.name not in _MAY_BE_ZERO)
            if isinstance(value, bool) or not hasattr(value, "__index__"):
                raise TypeError(f"{option.name} is a whole number, not {value!r}")
            if value < least:
                raise ValueError(f"{option.name} must be at least {least}, not {value}")
        elif option.type == "ColumnSwitch" and isinstance(value, str):
            raise TypeError(f"{option.name} takes a list of columns, not the one text {value!r}")
        elif str(option.type).startswith("Mapping[") and not isinstance(value, Mapping):
            raise TypeError(f"{option.name} is a mapping, not {value!r}")


@dataclass(frozen=True, slots=True)
class SortingColumn:
    """A column in the sort order of rows (parquet.thrift, ``SortingColumn``); NaNs are the largest values.

    Attributes:
        path: its dotted path.
        descending: the largest value first.
        nulls_first: nulls before all values, in either direction.
    """

    path: str
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderProperties:
    """Bounds and checks of a reader; sizes in bytes.

    Attributes:
        verify_checksums: check the CRC-32 of every page, if stored.
        verify_decimals: refuse decimals of more digits than the precision of their column.
        verify_times: refuse times of day that are negative, or 24 hours or more.
        max_footer_size: largest serialized footer.
        max_row_groups: most row groups of a file.
        max_columns: most columns of a file, groups of nested columns included.
        max_metadata_size: largest serialized key-value metadata of a footer.
        max_page_size: largest page, compressed or not.
        max_dictionary_size: largest uncompressed dictionary page.
        max_allocation: most bytes of memory for the values of one read, with the pages kept by text and binary values. Tables of
            ``iter_batches`` count their kept pages as long as the tables are in use. None for three quarters of the memory that
            the process may use at the time of the read, by the machine, control groups and resource limits.
        coalesce_gap: most bytes between two ranges read together.
        coalesce_size: most bytes of ranges read together; also about the size of the parts in which remote files are read ahead.
        round_trip_bytes: for remote files, most bytes read in vain to save a round trip: columns read together with the columns
            of filters, and pages read without asking bloom filters and dictionary pages first.
        prefetch: for remote files, read the next bytes while earlier bytes are decoded.
        max_attempts: for remote files, most requests for the same bytes, after answers of overloaded servers (status 429, 500,
            502, 503, 504), and after answers that broke off, came short, or stalled for ``fastpq.io.location.STALL_SECONDS``.
            Filesystems for S3, Google and Azure have attempts of their own.
        allow_outside_files: read column chunks in files outside of the file's directory, if the file's metadata name other files.
            The author of the metadata then chooses the files read.
    """

    verify_checksums: bool = DEFAULT_VERIFY_CHECKSUMS
    verify_decimals: bool = DEFAULT_VERIFY_DECIMALS
    verify_times: bool = DEFAULT_VERIFY_TIMES
    max_footer_size: int = DEFAULT_MAX_FOOTER_SIZE
    max_row_groups: int = DEFAULT_MAX_ROW_GROUPS
    max_columns: int = DEFAULT_MAX_COLUMNS
    max_metadata_size: int = DEFAULT_MAX_METADATA_SIZE
    max_page_size: int = DEFAULT_MAX_PAGE_SIZE
    max_dictionary_size: int = DEFAULT_MAX_DICTIONARY_SIZE
    max_allocation: int | None = None
    coalesce_gap: int = DEFAULT_COALESCE_GAP
    coalesce_size: int = DEFAULT_COALESCE_SIZE
    round_trip_bytes: int = DEFAULT_ROUND_TRIP_BYTES
    prefetch: bool = DEFAULT_PREFETCH
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    allow_outside_files: bool = DEFAULT_ALLOW_OUTSIDE_FILES

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def allocation_limit(self) -> int:
        """The bytes of ``max_allocation``, or of its default at this time."""
        return self.max_allocation or default_allocation()


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterProperties:
    """Options of a written file; mappings and lists name columns by dotted path.

    Attributes:
        compression: codec (``"snappy"``, ``"zstd"``, ``"gzip"``, ``"brotli"``, ``"lz4"``, ``"lzo"``; None or ``"none"`` for
            uncompressed), or a mapping from columns to codecs. Default ``"snappy"``.
        compression_level: level of the codec, or a mapping from columns to levels; None for the codec's own default. Default
            ``None``.
        column_encoding: mapping from columns to encodings, by the names of Encodings.md; goes before ``use_dictionary`` and
            ``encoding``. Default ``{}``.
        encoding: ``"auto"`` chooses an encoding for each column by a sample of its first rows, among those that pyarrow, DuckDB,
            Polars and Spark all read for the column's type; ``column_encoding`` names any other. None takes a dictionary if the
            chunk becomes smaller, else PLAIN. Default ``None``.
        use_dictionary: dictionary encoding for every column, for none, or for a list of columns. Default ``True``.
        row_group_size: most rows in a row group. Default ``1048576``.
        row_group_bytes: most uncompressed bytes in a row group. Default ``536870912``.
        data_page_size: target size of an uncompressed data page, in bytes. Default ``1048576``.
        data_page_rows: most rows in a data page. Default ``20000``.
        data_page_version: ``"1.0"`` or ``"2.0"``. Default ``"1.0"``.
        dictionary_page_size: most bytes in a dictionary page; with a larger dictionary the chunk falls back to PLAIN. Default
            ``1048576``.
        write_statistics: min, max and null count for every column, for none, or for a list of columns. Default ``True``.
        statistics_truncation: most bytes in a bound of a BYTE_ARRAY column. Default ``64``.
        write_page_checksum: write the CRC-32 of every page. Default ``True``.
        write_page_index: write an OffsetIndex for every column, and a ColumnIndex for columns with statistics and an order.
            Default ``True``.
        float_order: order of the bounds of floats: ``"type"``, known to every reader, or ``"total"``, IEEE 754 total order, with
            zeros of either sign distinct and bounds for NaNs; readers without total order ignore the bounds. Default
            ``"type"``.
        bloom_filter: mapping from columns to True, or to ``fpp`` (false positive rate, 0.01 unless given) and ``ndv`` (number of
            distinct values; None sizes the filter by the values). Default ``{}``.
        sorting_columns: columns of the sort order present in the rows of each row group, as names, as SortingColumn or as
            pyarrow's SortingColumn; the order is checked and recorded. Default ``()``.
        sort_by: columns to sort the rows of each row group by before writing; the order is recorded. Default ``()``.
        arrow_schema: keep in the footer (ARROW:schema) Arrow types without a Parquet equivalent: timezones, dictionaries,
            layouts, durations, extension types; as pyarrow does. None does so for data with such types: Arrow data, DataFrames,
            tables of files with an ARROW:schema, and timedelta64 arrays. Default ``None``.
        key_value_metadata: mapping from text to text, stored in the footer. Default ``{}``.
        checkpoint_every: number of row groups between checkpoints. A checkpoint is a footer of the row groups so far, and makes
            an unfinished file readable (``fastpq.recover_table``). None writes the last footer alone. Default ``None``.
        durable: whether a local file and its name are on disk when the file takes its place. False leaves the time to the
            operating system, unless the file replaces another one: many small files are written faster, and a power failure soon
            after may leave a part of a new file. Processes see no part of a file in either case. Without effect on remote files
            and file objects. Default ``False``.
    """

    compression: Compression = DEFAULT_COMPRESSION
    compression_level: CompressionLevel = None
    column_encoding: Mapping[str, str] = field(default_factory=dict)
    encoding: Literal["auto"] | None = DEFAULT_ENCODING
    use_dictionary: ColumnSwitch = True
    row_group_size: int = DEFAULT_ROW_GROUP_SIZE
    row_group_bytes: int = DEFAULT_ROW_GROUP_BYTES
    data_page_size: int = DEFAULT_DATA_PAGE_SIZE
    data_page_rows: int = DEFAULT_DATA_PAGE_ROWS
    data_page_version: Literal["1.0", "2.0"] = DEFAULT_DATA_PAGE_VERSION
    dictionary_page_size: int = DEFAULT_DICTIONARY_PAGE_SIZE
    write_statistics: ColumnSwitch = True
    statistics_truncation: int = DEFAULT_STATISTICS_TRUNCATION
    write_page_checksum: bool = True
    write_page_index: bool = True
    float_order: Literal["type", "total"] = DEFAULT_FLOAT_ORDER
    bloom_filter: Mapping[str, BloomFilterOption] = field(default_factory=dict)
    sorting_columns: Sequence[str | SortingColumn] = ()
    sort_by: Sequence[str | SortingColumn] = ()
    arrow_schema: bool | None = DEFAULT_ARROW_SCHEMA
    key_value_metadata: Mapping[str, str] = field(default_factory=dict)
    checkpoint_every: int | None = None
    durable: bool = False

    def __post_init__(self) -> None:
        check_options(self)
        if self.encoding not in (None, "auto"):
            raise ValueError(f'encoding must be "auto" or None, not {self.encoding!r}; column_encoding names encodings')
        if self.data_page_version not in ("1.0", "2.0"):
            raise ValueError(f'data_page_version must be "1.0" or "2.0", not {self.data_page_version!r}')


DEFAULT_PROPERTIES = WriterProperties()


def with_options(properties: WriterProperties | None, options: Mapping[str, Any]) -> WriterProperties:
    """Properties with some options replaced; None keeps the present value, except for ``compression``.

    Raises:
        TypeError: an option unknown to WriterProperties; the message names near ones, or says what to do for pyarrow's.
    """
    if properties is not None and not isinstance(properties, WriterProperties):
        raise TypeError(f"properties is a WriterProperties, not {type(properties).__name__}")
    known = WriterProperties.__dataclass_fields__
    unknown = sorted(options.keys() - known.keys())
    if unknown:
        from fastpq.common.foreign_options import WRITING, unknown_options

        raise unknown_options(unknown, known, WRITING)
    given = {name: value for name, value in options.items() if value is not None or name == "compression"}
    return replace(properties or DEFAULT_PROPERTIES, **given) if given else properties or DEFAULT_PROPERTIES


def spelled_out(target: F) -> F:
    """Show each field of WriterProperties in the signature and the docstring of a function or class with ``**options``.

    Type checkers know the options by ``Unpack[WriterOptions]``, ``inspect.signature`` and ``help`` by this decorator.
    """
    options = {}
    for option in fields(WriterProperties):
        options[option.name] = option.default if option.default_factory is MISSING else option.default_factory(), option.type
    show_options(target, options)
    target.__doc__ = with_options_listed(target.__doc__)
    return target


def show_options(target: Any, options: Mapping[str, tuple[Any, Any]]) -> None:
    """Put options in the place of ``**options`` in the signature of a function or a class.

    Args:
        target: the function or class.
        options: default and annotation, by name.
    """
    function: Any = target.__init__ if isinstance(target, type) else target     # type: ignore[misc]
    signature = inspect.signature(function)
    named = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    for name, (default, annotation) in options.items():
        named.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    function.__signature__ = signature.replace(parameters=named)


def with_options_listed(docstring: str | None) -> str | None:
    """A docstring with a list of the fields of WriterProperties below its entry ``**options``; None without docstrings."""
    return listed(docstring, WriterProperties.__doc__, _OPTIONS_ENTRY)


def listed(docstring: str | None, attributes: str | None, entry: re.Pattern[str]) -> str | None:
    """A docstring with the list of attributes of another one below an entry; None without docstrings."""
    if docstring is None or attributes is None:
        return None
    _, _, attributes = inspect.cleandoc(attributes).partition("Attributes:\n")
    items = re.sub(r"^(\w+): ", r"- ``\1``: ", dedent(attributes), flags=re.MULTILINE)
    return entry.sub(lambda found: f"{found[0]}\n{indent(items, found[1] + '    ')}\n", docstring)
