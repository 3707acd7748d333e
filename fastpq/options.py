"""Tables of options: ReaderProperties, WriterProperties, and the functions that make and read a table.

A table is a dataclass whose fields are made by ``option``: each field is a row, with the name, type, default, unit, level and
text of an option. Signatures, docstrings, keyword types (``fastpq.api.keywords``), Spark's writer options, the
checks of values and the errors of unknown names are made from the rows.
"""

from __future__ import annotations

import inspect
import re
from ast import literal_eval
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, SupportsIndex, TypeVar

from fastpq.common.process_memory import default_allocation

MIB = 1 << 20
LARGEST_INT32 = 0x7FFFFFFF

# Limits of files. Whatever the writer accepts by default, the reader accepts by default.
LARGEST_PAGE = 1 << 30                  # bytes, compressed or uncompressed. A tiny stored page can need this much memory
LARGEST_FOOTER = LARGEST_INT32          # bytes. A footer that claims more bytes than the file has is refused anyway
LARGEST_DICTIONARY = 256 * MIB          # bytes, uncompressed
LARGEST_KEY_VALUES = 64 * MIB           # bytes, serialized key-value metadata
V1_ENCODINGS = frozenset({"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY"})     # what ``compatibility="v1"`` accepts
MOST_COLUMNS = 250_000                  # leaf columns and groups. A parsed column takes some 400 bytes
MOST_ROW_GROUPS = 1_000_000
MOST_ENCRYPTED_ROW_GROUPS = 1 << 15     # AADs hold the ordinal in an INT16 (Encryption.md, 4.4.2)

# Defaults that other modules use too, in bytes if not stated otherwise.
DEFAULT_COALESCE_GAP = 64 * 1024
DEFAULT_COALESCE_SIZE = 16 * MIB
DEFAULT_MAX_ATTEMPTS = 5                # requests
DEFAULT_STATISTICS_TRUNCATION = 64
DEFAULT_BLOOM_FILTER_FPP = 0.01         # false positives per value that is not in the chunk
# Number of bytes at the end of a file that are read first. They hold the footer and often the indexes. A longer footer needs one
# more request. The number comes from the footers of 928 test files, scaled to files of 10 GB with row groups of 128 MB: 80 % of
# them fit into 64 KiB, and 97 % into 256 KiB. With 256 KiB, 17 % of these files would need one request less, but each file would
# cost 192 KiB more. If a request is worth 1 MiB (the default of round_trip_bytes), gain and cost are about equal. For smaller
# files the cost is larger than the gain.
DEFAULT_TAIL_READ = 64 * 1024

OnError = Literal["raise", "null", "skip"]
OnMissingKey = Literal["raise", "null"]
MemoryMap = bool | Literal["keep"]
Compression = str | None | Mapping[str, str | None]
CompressionLevel = int | None | Mapping[str, int]
ColumnSwitch = bool | list[str]
BloomFilterOption = bool | Mapping[str, float | int | None]

# Where an option applies. "file": to a whole file. "column": to every column, or to single columns by name. "dataset": to files
# and datasets (options of readers). "spark": to Spark's data source and jobs alone (fastpq.spark.options).
Level = Literal["file", "column", "dataset", "spark"]

WIDTH = 116             # characters in a line of a generated docstring, without its indentation
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound=type[Any])


class Option(NamedTuple):
    """A row in a table of options.

    Attributes:
        name: the keyword.
        type: the annotation, as text.
        default: the default value.
        text: what the option does, one or more sentences.
        unit: unit for a number, or an empty text.
        level: where the option applies.
        least, most: bounds for a number.
        hint: a text that ends the error message for a wrong value, or an empty text.
        spark: the name in Spark. If it is an empty text, ``spark_name`` makes the name in Spark from the keyword.
    """

    name: str
    type: str
    default: Any
    text: str = ""
    unit: str = ""
    level: Level = "file"
    least: int = 1
    most: int | None = None
    hint: str = ""
    spark: str = ""

    @property
    def choices(self) -> tuple[Any, ...] | None:
        """The values that a ``Literal`` type allows. One of them may be None. For any other type, the result is None."""
        literal = re.fullmatch(r"Literal\[(.*)\]( \| None)?", self.type)
        if literal is None:
            return None
        return (*literal_eval(f"({literal[1]},)"), *([None] if literal[2] else []))

    @property
    def has_default(self) -> bool:
        """Whether the documentation shows the default. It does not show empty defaults of Spark's options.

        The text of such an option says what happens without the option.
        """
        return self.level != "spark" or self.default not in (MISSING, None, (), "")

    @property
    def documentation(self) -> str:
        """The text with the unit and the default value."""
        unit = f" Unit: {self.unit}." if self.unit else ""
        if not self.has_default:
            return f"{self.text}{unit}"
        default = f'"{self.default}"' if isinstance(self.default, str) else repr(self.default)
        return f"{self.text}{unit} Default ``{default}``."

    def check(self, value: Any) -> None:
        """Refuse a value with a wrong type, and a number that exceeds its bounds.

        Raises:
            TypeError: the value has another type than the option.
            ValueError: a number is out of bounds, or the option's ``Literal`` does not list the value.
        """
        if self.type == "bool":
            check_switch(self.name, value)
        elif self.type == "int" or (self.type == "int | None" and value is not None):
            if isinstance(value, bool) or not hasattr(value, "__index__"):
                raise TypeError(f"{self.name} must be a whole number, not {value!r}")
            if self.most is not None and not self.least <= value <= self.most:
                raise ValueError(f"{self.name} must be between {self.least} and {self.most}, not {value}")
            if value < self.least:
                raise ValueError(f"{self.name} must be at least {self.least}, not {value}")
        elif self.type in ("Compression", "CompressionLevel"):
            kind, noun = (str, "the name of a codec") if self.type == "Compression" else (SupportsIndex, "a whole number")
            for each in value.values() if isinstance(value, Mapping) else [value]:
                if each is not None and (isinstance(each, bool) or not isinstance(each, kind)):
                    raise TypeError(f"{self.name} must be {noun}, None, or a mapping from columns to these, not {each!r}")
        elif self.type == "ColumnSwitch" and isinstance(value, str):
            raise TypeError(f"{self.name} must be a list of columns, not the text {value!r}")
        elif self.type.startswith("Mapping[") and not isinstance(value, Mapping):
            raise TypeError(f"{self.name} must be a mapping, not {value!r}")
        elif self.type.startswith("Literal[") and value not in (choices := self.choices or ()):
            values = " or ".join(f'"{choice}"' if isinstance(choice, str) else repr(choice) for choice in choices)
            raise ValueError(f"{self.name} must be {values}, not {value!r}{self.hint and f'; {self.hint}'}")


_ROWS: dict[type[Any], dict[str, Option]] = {}      # rows by name, for each table


def option(
    default: Any,
    text: str,
    *,
    unit: str = "",
    level: Level = "file",
    least: int = 1,
    most: int | None = None,
    hint: str = "",
    spark: str = "",
) -> Any:
    """Return the dataclass field for one option. The arguments are the attributes that ``Option`` has.

    An option with the default ``dataclasses.MISSING`` is required.
    """
    row = {"text": text, "unit": unit, "level": level, "least": least, "most": most, "hint": hint, "spark": spark}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=row)
    return field(default=default, metadata=row)


def options_of(table: type[Any]) -> Mapping[str, Option]:
    """Return the rows of a table by name. The row for a field that is not made by ``option`` has a name, a type and a default."""
    rows = _ROWS.get(table)
    if rows is None:
        rows = _ROWS[table] = {}
        for each in fields(table):
            default = each.default if each.default_factory is MISSING else each.default_factory()
            rows[each.name] = Option(each.name, str(each.type), default, **each.metadata)
    return rows


def check_switch(name: str, value: object) -> None:
    """Refuse anything but True and False, because a text counts as true, even ``"False"``."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")


def check_options(values: Any) -> None:
    """Check each value of a dataclass by its row."""
    for name, row in options_of(type(values)).items():
        value = getattr(values, name)
        if value is not row.default:
            row.check(value)


def documented(table: T) -> T:
    """Add the rows to a table's docstring, as its attributes. Rows without a text are left to the docstring itself."""
    if table.__doc__ is not None:
        rows = [row for row in options_of(table).values() if row.text]
        items = "\n".join(f"    {line}" for row in rows for line in _lines(f"{row.name}: {row.documentation}", "    "))
        table.__doc__ = f"{inspect.cleandoc(table.__doc__)}\n\nAttributes:\n{items}\n"
    return table


def takes_options(table: type[Any], level: Level | None = None) -> Callable[[F], F]:
    """Return a decorator that shows a table's rows instead of ``**options``, for ``help`` and ``inspect.signature``.

    Type checkers know the options from ``Unpack`` and from the classes in ``fastpq.api.keywords``.

    Args:
        table: the table.
        level: show only rows with this level. None shows all rows.
    """
    rows = [row for row in options_of(table).values() if level in (None, row.level)]

    def decorate(target: F) -> F:
        function: Any = target.__init__ if isinstance(target, type) else target     # type: ignore[misc]
        signature = inspect.signature(function)
        own = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
        keyword_parameters = [
            inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=row.default, annotation=row.type) for row in rows
        ]
        function.__signature__ = signature.replace(parameters=[*own, *keyword_parameters])
        if target.__doc__ is not None:
            target.__doc__ = with_options_listed(target.__doc__, {row.name: row.documentation for row in rows})
        return target

    return decorate


def with_options_listed(docstring: str, texts: Mapping[str, str]) -> str:
    """Return a docstring with a list below its entry ``**options``.

    Args:
        docstring: the docstring, as it stands in the source.
        texts: what each option does, by its name.
    """
    before, entry, after = docstring.partition("**options:")
    indentation = before.rpartition("\n")[2] + "    "
    lines = [line for name, text in texts.items() for line in _lines(f"- ``{name}``: {text}", "    ")]
    summary, _, rest = after.partition("\n")
    items = "\n".join(indentation + line for line in lines)
    return f"{before}{entry}{summary}\n\n{items}\n{rest}"


def _lines(text: str, indentation: str) -> Iterator[str]:
    """Break a text into lines with at most ``WIDTH`` characters. All lines except the first are indented."""
    start = 0
    while len(text) - start > WIDTH:
        end = text.rfind(" ", start, start + WIDTH)
        yield (indentation if start else "") + text[start:end]
        start = end + 1
    yield (indentation if start else "") + text[start:]


def unknown_option_error(names: Collection[str], table: type[Any], *, writes: bool) -> TypeError:
    """Return the error for unknown options. It names similar options, or says what to do for options that other libraries have.

    Args:
        names: the options in a call.
        table: the table with the allowed options.
        writes: whether the call writes. The advice for writing differs from the advice for reading.
    """
    from fastpq.common.foreign_options import READING, WRITING, unknown_options

    names_of_table = options_of(table).keys()
    return unknown_options(sorted(set(names) - names_of_table), names_of_table, WRITING if writes else READING)


@dataclass(frozen=True, slots=True)
class SortingColumn:
    """A column in the sort order (parquet.thrift, ``SortingColumn``). NaNs are the largest values.

    Attributes:
        path: dotted column path.
        descending: whether the largest value comes first.
        nulls_first: whether nulls come before all values, in either direction.
    """

    path: str
    descending: bool = False
    nulls_first: bool = False


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderProperties:
    """Limits and checks for a reader."""

    verify_checksums: bool = option(True, "Check the CRC-32 of every page that has one.")
    verify_decimals: bool = option(True, "Refuse decimals with more digits than the precision of their column.")
    verify_times: bool = option(True, "Refuse times of day that are negative, or that are 24 hours or more.")
    max_footer_size: int = option(LARGEST_FOOTER, "Largest serialized footer.", unit="bytes")
    max_row_groups: int = option(MOST_ROW_GROUPS, "Largest number of row groups in a file.")
    max_columns: int = option(MOST_COLUMNS, "Largest number of columns in a file. Groups of nested columns count too.")
    max_metadata_size: int = option(
        LARGEST_KEY_VALUES, "Largest serialized key-value metadata of a footer.", unit="bytes"
    )
    max_page_size: int = option(LARGEST_PAGE, "Largest page, compressed or uncompressed.", unit="bytes")
    max_dictionary_size: int = option(LARGEST_DICTIONARY, "Largest uncompressed dictionary page.", unit="bytes")
    max_allocation: int | None = option(
        None,
        "Largest memory for the values of one read, including pages that text and binary values keep alive. The pages of a "
        "Table from ``iter_batches`` count as long as the Table is in use. None stands for three quarters of the memory that is "
        "free on the machine and in its control groups, but at least 192 MiB. The limits of the process bound it too.",
        unit="bytes",
    )
    coalesce_gap: int = option(
        DEFAULT_COALESCE_GAP, "Largest gap between two byte ranges that are still read together.", unit="bytes", least=0
    )
    coalesce_size: int = option(
        DEFAULT_COALESCE_SIZE,
        "Largest size of byte ranges that are read together. Remote files are read ahead in parts of about this size.",
        unit="bytes",
    )
    round_trip_bytes: int = option(
        MIB,
        "For remote files: the number of bytes that may be read in vain to save one round trip. Columns are then read together "
        "with the columns of the filters, and pages are read without first asking bloom filters and dictionary pages.",
        unit="bytes",
        least=0,
    )
    prefetch: bool = option(True, "For remote files: read the next bytes while earlier bytes are decoded.")
    max_attempts: int = option(
        DEFAULT_MAX_ATTEMPTS,
        "For remote files: largest number of requests for the same bytes. A request is repeated after the answer of an "
        "overloaded server (status 429, 500, 502, 503, 504), and after an answer that broke off, was too short, or stalled for "
        "``fastpq.io.location.STALL_SECONDS``. Filesystems for S3, Google and Azure repeat requests by their own rules.",
    )
    chunk_order: Literal["path", "position"] | None = option(
        None,
        "What decides which column a chunk belongs to if the chunks of a row group have another order than the schema. "
        "The format asks for the order of the schema, and most readers go by position alone. "
        '``"path"`` takes the path that is stored with the chunk, ``"position"`` its place in the row group. None refuses such '
        "a file, but for a read with ``on_error``, which goes by path.",
    )
    allow_outside_files: bool = option(
        False,
        "Read column chunks from files outside of the file's directory if the metadata name such files. The author of the "
        "metadata then chooses which files are read.",
    )

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def allocation_limit(self) -> int:
        """The value of ``max_allocation``, or its default at this time, in bytes."""
        return self.max_allocation or default_allocation()


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class WriterProperties:
    """Options for writing a file. Mappings and lists name columns by dotted path. A group stands for every leaf below it."""

    compression: Compression = option(
        "snappy",
        'Codec: ``"snappy"``, ``"zstd"``, ``"gzip"``, ``"brotli"``, ``"lz4"``, ``"lzo"``, or None or ``"none"`` for uncompressed '
        "pages. Or a mapping from columns to codecs.",
        level="column",
    )
    compression_level: CompressionLevel = option(
        None, "Level of the codec, or a mapping from columns to levels. None takes the codec's own default.", level="column"
    )
    column_encoding: Mapping[str, str] = option(
        {},
        "Mapping from columns to encodings, by the names of Encodings.md. It has priority over ``use_dictionary`` and "
        "``encoding``.",
        level="column",
    )
    encoding: Literal["auto"] | None = option(
        None,
        '``"auto"`` chooses an encoding for each column from a sample of its first rows. It chooses among the encodings that '
        "the present versions of pyarrow, DuckDB, Polars and Spark all read for the column's type. Use ``column_encoding`` for "
        "any other encoding. With ZSTD, the sample also chooses a level (1 or 3, for text also 5) for each column without a "
        "dictionary, unless ``compression_level`` has one. Text compressed so gets larger pages (4 MiB), unless "
        "``data_page_size`` has another size. None takes a dictionary if the chunk becomes smaller, and PLAIN otherwise, which "
        "every reader reads.",
        hint="column_encoding names encodings",
    )
    compatibility: Literal["v1"] | None = option(
        None,
        '``"v1"`` refuses every option whose files older readers refuse or misread: ``encoding="auto"``, encodings but PLAIN and '
        'dictionaries, V2 data pages, ``float_order="total"``, and chunks without paths. None refuses nothing. The default '
        "values of the other options are the same for both.",
    )
    use_dictionary: ColumnSwitch = option(
        True, "Dictionary encoding for every column (True), for no column (False), or for a list of columns.", level="column"
    )
    row_group_size: int = option(1 << 20, "Largest size of a row group.", unit="rows")
    row_group_bytes: int = option(512 * MIB, "Largest uncompressed size of a row group.", unit="bytes")
    data_page_size: int = option(MIB, "Target size of an uncompressed data page.", unit="bytes", most=LARGEST_INT32)
    data_page_rows: int = option(20_000, "Largest size of a data page.", unit="rows", most=LARGEST_INT32)
    use_content_defined_chunking: bool | Mapping[str, int] = option(
        False,
        "Let the values choose where pages end, so that equal runs of rows become equal pages in every version of a file, and "
        "stores that share equal blocks keep them once. True, or a mapping with ``min_chunk_size`` (256 KiB), "
        "``max_chunk_size`` (1 MiB) and ``norm_level`` (0). ``data_page_size`` and ``data_page_rows`` stay limits. Encrypted "
        "files cannot have it.",
    )
    data_page_version: Literal["1.0", "2.0"] = option("1.0", 'Version of the data pages: ``"1.0"`` or ``"2.0"``.')
    dictionary_page_size: int = option(
        MIB,
        "Largest dictionary page. A chunk that needs a larger dictionary, or one with more than 256 MiB, falls back to PLAIN.",
        unit="bytes",
        most=LARGEST_INT32,
    )
    write_statistics: ColumnSwitch = option(
        True,
        "Minimum, maximum and null count for every column (True), for no column (False), or for a list of columns.",
        level="column",
    )
    statistics_truncation: int = option(
        DEFAULT_STATISTICS_TRUNCATION,
        "Largest size of a minimum or maximum of a BYTE_ARRAY column.",
        unit="bytes",
        most=LARGEST_INT32,
    )
    write_page_checksum: bool = option(True, "Write the CRC-32 of every page.")
    write_page_index: bool = option(
        True,
        "Write an OffsetIndex for every column, and a ColumnIndex for every column that has statistics and an order. With "
        '``encoding="auto"``, a row group whose chunks have one page each gets neither, because the statistics say the same.',
    )
    write_path_in_schema: bool = option(
        True,
        "Write every column's path into the metadata of each of its chunks. The paths make up most of the footer of a wide file. "
        "A reader can take them from the schema. Polars does so, but pyarrow and DuckDB refuse files without paths.",
    )
    float_order: Literal["type", "total"] = option(
        "type",
        'Order of the minima and maxima of floats. Every reader knows ``"type"``. ``"total"`` is the IEEE 754 total order: zeros '
        "with different signs are different, and NaNs have bounds. Readers that do not know the total order ignore the bounds.",
    )
    bloom_filter: Mapping[str, BloomFilterOption] = option(
        {},
        "Mapping from columns to True, or to a mapping with ``fpp`` (false positive rate, 0.01 by default) and ``ndv`` (number "
        "of distinct values; None sizes the filter by the values of the chunk).",
        level="column",
    )
    sorting_columns: Sequence[str | SortingColumn] = option(
        (),
        "Columns by which the rows of each row group are already sorted: names, SortingColumns, or pyarrow's SortingColumns. The "
        "order is checked and recorded.",
    )
    sort_by: Sequence[str | SortingColumn] = option(
        (), "Columns by which the rows of each row group are sorted before they are written. The order is recorded."
    )
    arrow_schema: bool | None = option(
        None,
        "Keep Arrow types that have no equivalent in Parquet in the footer (ARROW:schema), as pyarrow does: time zones, "
        "dictionaries, layouts, durations, extension types. None keeps them for data that have such types: Arrow data, "
        "DataFrames, tables from files with an ARROW:schema, and timedelta64 arrays.",
    )
    field_ids: Mapping[str, int] = option(
        {},
        "Mapping from dotted paths to field ids, for columns and for groups. Without an entry, a column has the id that its "
        "Arrow field (``PARQUET:field_id``) or its file has.",
    )
    key_value_metadata: Mapping[str, str] = option({}, "Mapping from text to text that is stored in the footer.")
    checkpoint_every: int | None = option(
        None,
        "Distance between checkpoints. A checkpoint is a footer for the row groups written so far, so that "
        "``fastpq.recover_table`` can read an unfinished file. None writes only the footer at the end.",
        unit="row groups",
    )
    invalid_utf8: Literal["error", "replace", "binary"] = option(
        "error",
        'Treatment of text that is not UTF-8, which Arrow data may have. ``"error"`` refuses it. ``"replace"`` writes U+FFFD in '
        'the place of each wrong sequence. ``"binary"`` writes the bytes of a text column that has such text in the first table, '
        "as a column of bytes.",
    )
    coerce_timestamps: Literal["ms", "us"] | None = option(
        None,
        "Unit of all timestamps in the file, nested ones too. A timestamp with digits below the unit is an error, unless "
        "``allow_truncated_timestamps`` is True. INT96 timestamps stay as they are. None keeps the unit of each column.",
    )
    allow_truncated_timestamps: bool = option(
        False, "Whether ``coerce_timestamps`` may cut off digits below the unit."
    )
    store_decimal_as_integer: bool | None = option(
        None,
        "Whether decimals of at most 18 digits are stored as INT32 or INT64, nested ones too. Columns whose type the caller gave "
        'keep it. None means True with ``encoding="auto"``, because integers become smaller, except for columns that '
        "``column_encoding`` names. Otherwise it means the type that each column has: integers for decimals of Python, "
        "FIXED_LEN_BYTE_ARRAY for those of Arrow.",
    )
    durable: bool = option(
        False,
        "Whether a local file and its name are on disk when the file takes its place. With False the operating system chooses "
        "the time, unless the file replaces another one. Many small files are then written faster, but after a power failure a "
        "new file may be incomplete. Other processes never see an incomplete file. The option has no effect on remote files and "
        "file objects.",
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.compatibility == "v1":
            _refuse_later_than_v1(self)


def _refuse_later_than_v1(properties: WriterProperties) -> None:
    """Refuse options whose files need a newer reader.

    Raises:
        ValueError: there is such an option.
    """
    old_values = {"encoding": None, "data_page_version": "1.0", "float_order": "type", "write_path_in_schema": True}
    later = [name for name, value in old_values.items() if getattr(properties, name) != value]
    if not V1_ENCODINGS.issuperset(properties.column_encoding.values()):
        later.append("column_encoding")
    if later:
        values = ", ".join(f"{name}={getattr(properties, name)!r}" for name in later)
        raise ValueError(f'compatibility="v1" contradicts {values}: older readers do not read such files')


DEFAULT_PROPERTIES = WriterProperties()


def with_options(properties: WriterProperties | None, options: Mapping[str, Any]) -> WriterProperties:
    """Return properties with some options replaced. None keeps the present value, except for ``compression``.

    Raises:
        TypeError: WriterProperties has no such option. The message names similar options. For an option of another library, it
            says what to do instead.
    """
    if properties is not None and not isinstance(properties, WriterProperties):
        raise TypeError(f"properties must be a WriterProperties, not a {type(properties).__name__}")
    if not options.keys() <= options_of(WriterProperties).keys():
        raise unknown_option_error(options, WriterProperties, writes=True)
    changes = {name: value for name, value in options.items() if value is not None or name == "compression"}
    return replace(properties or DEFAULT_PROPERTIES, **changes) if changes else properties or DEFAULT_PROPERTIES


def spark_name(row: Option) -> str:
    """Return an option's name in Spark, for example ``rowGroupSize`` for ``row_group_size``."""
    if row.spark:
        return row.spark
    first, *others = row.name.split("_")
    return first + "".join(map(str.capitalize, others))


def spark_annotation(row: Option) -> str:
    """Return an option's annotation in Spark. Every option may be a text. A switch or a number may also be a Python value."""
    first = {"CompressionLevel": "int", "ColumnSwitch": "bool"}.get(row.type, row.type.partition(" ")[0])
    return f"{first} | str" if first in ("bool", "int", "float") else "str"
