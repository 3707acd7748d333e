"""Checks whether an encoding fits a type before values are read or written in it. Lists the encodings that "auto" may choose."""

from __future__ import annotations

from functools import lru_cache

from fastpq.encodings.encoding_table import READABLE, WRITABLE
from fastpq.errors import FormatError, SchemaError, UnsupportedError
from fastpq.format import Encoding, Type
from fastpq.schema.types import ColumnType, Decimal, Integer

# The encodings that fastpq may choose by itself, the simplest to read first. pyarrow, DuckDB, Polars and Spark read them.
BY_SIMPLICITY = (
    Encoding.PLAIN,
    Encoding.RLE,
    Encoding.RLE_DICTIONARY,
    Encoding.BYTE_STREAM_SPLIT,
    Encoding.DELTA_BINARY_PACKED,
    Encoding.DELTA_LENGTH_BYTE_ARRAY,
    Encoding.DELTA_BYTE_ARRAY,
)


@lru_cache(maxsize=256)
def readable_encodings(physical_type: Type) -> int:
    """Return the encodings that ``check_readable`` accepts for a physical type, as bits: 1 << encoding for each."""
    return sum(1 << encoding for encoding, types in READABLE.items() if physical_type in types)


def specified_encoding(number: int) -> Encoding:
    """Return an encoding by its number in a file.

    Raises:
        UnsupportedError: the specification does not have it.
    """
    try:
        return Encoding(number)
    except ValueError:
        raise UnsupportedError(f"encoding {number}, which is not in the specification") from None


def check_readable(encoding: int, physical_type: Type) -> None:
    """Check that fastpq reads values of a physical type in an encoding.

    Raises:
        UnsupportedError: the encoding is unknown, or fastpq does not read it.
        FormatError: the specification does not allow the encoding for the physical type.
    """
    if encoding == Encoding.BIT_PACKED:
        raise FormatError("values in encoding BIT_PACKED, which is for levels alone")
    name = specified_encoding(encoding).name
    if encoding not in READABLE:
        raise UnsupportedError(f"reading encoding {name}")
    if physical_type not in READABLE[Encoding(encoding)]:
        raise FormatError(f"encoding {name} does not fit {physical_type.name}")


def check_writable(name: str, physical_type: Type) -> Encoding:
    """Return the encoding with this name, if fastpq writes values of a physical type in it.

    Raises:
        SchemaError: the specification does not allow the encoding for the type.
        UnsupportedError: fastpq does not write the encoding.
        ValueError: no encoding has the name.
    """
    if name not in Encoding.__members__:
        raise ValueError(f"no encoding is named {name!r}; there are {', '.join(Encoding.__members__)}")
    encoding = Encoding[name]
    if encoding == Encoding.BIT_PACKED:
        raise SchemaError("encoding BIT_PACKED is for levels alone")
    if encoding not in WRITABLE:
        raise UnsupportedError(f"writing encoding {name}")
    if physical_type not in WRITABLE[encoding]:
        types = ", ".join(sorted(kind.name for kind in WRITABLE[encoding]))
        raise SchemaError(f"encoding {name} does not fit {physical_type.name}; it is for {types}")
    return encoding


def automatic_encodings(column_type: ColumnType, *, is_dictionary: bool = False) -> list[Encoding]:
    """Return the encodings, besides a dictionary, that ``encoding="auto"`` may choose for a column.

    An encoding is left out if pyarrow, DuckDB, Polars or Spark cannot read such a column in it.

    Args:
        column_type: the column type.
        is_dictionary: whether the column is an Arrow dictionary. pyarrow reads such a column as a dictionary again.
    """
    physical, logical = column_type.physical, column_type.logical
    unread = {Encoding.RLE_DICTIONARY}
    if physical is Type.FIXED_LEN_BYTE_ARRAY:
        unread |= {Encoding.DELTA_BYTE_ARRAY, Encoding.BYTE_STREAM_SPLIT}           # Polars reads neither, DuckDB not the second
    if physical is Type.BYTE_ARRAY and is_dictionary:
        unread |= {Encoding.DELTA_BYTE_ARRAY, Encoding.DELTA_LENGTH_BYTE_ARRAY}     # pyarrow cannot read them
    if physical is Type.BYTE_ARRAY and isinstance(logical, Decimal):
        unread |= {Encoding.DELTA_LENGTH_BYTE_ARRAY}                                # DuckDB cannot read it
    if isinstance(logical, Integer) and not logical.signed:
        unread |= {Encoding.BYTE_STREAM_SPLIT}                                      # Spark cannot read it
    return [encoding for encoding in BY_SIMPLICITY if physical in WRITABLE[encoding] and encoding not in unread]
