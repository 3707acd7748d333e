"""Which encodings fastpq reads and writes; the only place that knows what is not here yet."""

from __future__ import annotations

from fastpq.errors import FormatError, UnsupportedError
from fastpq.format import Encoding
from fastpq.types import Type

_EVERY_TYPE = frozenset(Type)
_NO_BOOLEANS = _EVERY_TYPE - {Type.BOOLEAN}

WRITABLE: dict[str, frozenset[Type]] = {
    "PLAIN": _EVERY_TYPE,
    "PLAIN_DICTIONARY": _NO_BOOLEANS,
    "RLE_DICTIONARY": _NO_BOOLEANS,
    "RLE": frozenset({Type.BOOLEAN}),
}
READABLE = {Encoding.PLAIN, Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY, Encoding.RLE}


def check_readable(encoding: int) -> None:
    """Pass for an encoding of values that the page loop decodes.

    Raises:
        UnsupportedError: it is valid, and not read here.
        FormatError: no such encoding of values exists.
    """
    if encoding in READABLE:
        return
    if encoding == Encoding.BIT_PACKED:
        raise FormatError("values in encoding BIT_PACKED, which is for levels alone")
    try:
        name = Encoding(encoding).name
    except ValueError:
        raise UnsupportedError(f"encoding {encoding}, which is not in the specification") from None
    raise UnsupportedError(f"reading encoding {name}")


def check_writable(name: str, physical_type: Type) -> None:
    """Pass for an encoding, by the specification's name, that can be written for a physical type.

    Raises:
        UnsupportedError: it is valid, and not written here.
        ValueError: no encoding has the name, or it does not fit the type.
    """
    if name in WRITABLE:
        if physical_type not in WRITABLE[name]:
            raise ValueError(f"encoding {name} does not fit {physical_type.name}")
        return
    if name not in Encoding.__members__:
        raise ValueError(f"no encoding is named {name!r}; there are {', '.join(Encoding.__members__)}")
    raise UnsupportedError(f"writing encoding {name}")
