"""Table of the encodings of values and their physical types (Encodings.md); checks of an encoding before reading and writing."""

from __future__ import annotations

from functools import lru_cache

from fastpq.errors import FormatError, SchemaError, UnsupportedError
from fastpq.format import Encoding
from fastpq.schema.types import ColumnType, Decimal, Integer, Type

_EVERY_TYPE = frozenset(Type)
_NO_BOOLEANS = _EVERY_TYPE - {Type.BOOLEAN}

FITTING: dict[Encoding, frozenset[Type]] = {
    Encoding.PLAIN: _EVERY_TYPE,
    Encoding.PLAIN_DICTIONARY: _NO_BOOLEANS,
    Encoding.RLE: frozenset({Type.BOOLEAN}),
    Encoding.DELTA_BINARY_PACKED: frozenset({Type.INT32, Type.INT64}),
    Encoding.DELTA_LENGTH_BYTE_ARRAY: frozenset({Type.BYTE_ARRAY}),
    Encoding.DELTA_BYTE_ARRAY: frozenset({Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY}),
    Encoding.RLE_DICTIONARY: _NO_BOOLEANS,
    Encoding.BYTE_STREAM_SPLIT: frozenset({Type.INT32, Type.INT64, Type.FLOAT, Type.DOUBLE, Type.FIXED_LEN_BYTE_ARRAY}),
    Encoding.ALP: frozenset({Type.FLOAT, Type.DOUBLE}),
}
# Dictionary encodings are read for every type; dictionaries of booleans are never written.
_DICTIONARIES = {Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY}
# Encodings unknown to most readers: written only on request by name, never chosen automatically.
_PREVIEWS = {Encoding.ALP}


@lru_cache(maxsize=256)
def readable_encodings(physical_type: Type) -> int:
    """A bit for each encoding that ``check_readable`` accepts for a physical type: 1 << encoding."""
    return sum(1 << known for known, types in FITTING.items() if physical_type in types or known in _DICTIONARIES)


def check_readable(encoding: int, physical_type: Type) -> None:
    """Refuse to read values of a physical type in an encoding unknown to fastpq or unfit for the type.

    Raises:
        UnsupportedError: the encoding is unknown, or valid but not read by fastpq.
        FormatError: the encoding does not fit the physical type.
    """
    if encoding == Encoding.BIT_PACKED:
        raise FormatError("values in encoding BIT_PACKED, which is for levels alone")
    try:
        known = Encoding(encoding)
    except ValueError:
        raise UnsupportedError(f"encoding {encoding}, which is not in the specification") from None
    if known not in FITTING:
        raise UnsupportedError(f"reading encoding {known.name}")
    if physical_type not in FITTING[known] and known not in _DICTIONARIES:
        raise FormatError(f"encoding {known.name} does not fit {physical_type.name}")


def check_writable(name: str, physical_type: Type) -> Encoding:
    """The encoding of a name, for writing values of a physical type.

    Raises:
        SchemaError: the encoding does not fit the type.
        UnsupportedError: the encoding is valid, but not written by fastpq.
        ValueError: no encoding has the name.
    """
    if name not in Encoding.__members__:
        raise ValueError(f"no encoding is named {name!r}; there are {', '.join(Encoding.__members__)}")
    encoding = Encoding[name]
    if encoding == Encoding.BIT_PACKED:
        raise SchemaError("encoding BIT_PACKED is for levels alone")
    if encoding not in FITTING:
        raise UnsupportedError(f"writing encoding {name}")
    if physical_type not in FITTING[encoding]:
        types = ", ".join(sorted(kind.name for kind in FITTING[encoding]))
        raise SchemaError(f"encoding {name} does not fit {physical_type.name}; it is for {types}")
    return encoding


def automatic_encodings(column_type: ColumnType, *, is_dictionary: bool = False) -> list[Encoding]:
    """The encodings chosen from automatically: those that pyarrow, DuckDB, Polars and Spark read. Dictionaries come on top.

    Args:
        column_type: type of the column.
        is_dictionary: whether the column is an Arrow dictionary, which pyarrow reads into a dictionary again.
    """
    physical, logical = column_type.physical, column_type.logical
    unread = _DICTIONARIES | _PREVIEWS
    if physical is Type.FIXED_LEN_BYTE_ARRAY:
        unread |= {Encoding.DELTA_BYTE_ARRAY, Encoding.BYTE_STREAM_SPLIT}           # Polars; DuckDB and Polars
    if physical is Type.BYTE_ARRAY and is_dictionary:
        unread |= {Encoding.DELTA_BYTE_ARRAY, Encoding.DELTA_LENGTH_BYTE_ARRAY}     # pyarrow
    if physical is Type.BYTE_ARRAY and isinstance(logical, Decimal):
        unread |= {Encoding.DELTA_LENGTH_BYTE_ARRAY}                                # DuckDB
    if isinstance(logical, Integer) and not logical.signed:
        unread |= {Encoding.BYTE_STREAM_SPLIT}                                      # Spark
    return [encoding for encoding, types in FITTING.items() if physical in types and encoding not in unread]
