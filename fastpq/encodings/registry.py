"""Which encodings of values fit which physical types (Encodings.md), and which of them fastpq reads and writes."""

from __future__ import annotations

from fastpq.errors import FormatError, SchemaError, UnsupportedError
from fastpq.format import Encoding
from fastpq.schema.types import Type

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
# of booleans nobody should write them, but they can be read
_DICTIONARIES = {Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY}
# which few readers know yet: written where they are asked for by name
_PREVIEWS = {Encoding.ALP}


def check_readable(encoding: int, physical_type: Type) -> None:
    """Pass for an encoding in which values of a physical type can be read.

    Raises:
        UnsupportedError: it is valid, and not read here.
        FormatError: it is no encoding of such values.
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
    """The encoding of a name, where values of a physical type can be written in it.

    Raises:
        SchemaError: it does not fit the type.
        UnsupportedError: it is valid, and not written here.
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


def automatic_encodings(physical_type: Type) -> list[Encoding]:
    """The encodings that may be chosen for a type without being asked for, but for the dictionary's."""
    left_out = _DICTIONARIES | _PREVIEWS
    return [encoding for encoding, types in FITTING.items() if physical_type in types and encoding not in left_out]
