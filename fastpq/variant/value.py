"""Variant: one value in the Variant encoding, with conversions from and to Python objects and JSON."""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from fastpq.errors import LimitError, SchemaError
from fastpq.schema.variant_kinds import MAX_DIGITS
from fastpq.variant.decode import decode
from fastpq.variant.encode import Encoder, collect_names, sorted_names
from fastpq.variant.json_output import json_of
from fastpq.variant.wire import check

_LONGEST_INTEGER = MAX_DIGITS + 1       # characters in an integer of JSON, including its sign


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant in its binary encoding (VariantEncoding.md).

    Attributes:
        metadata: the encoded field name dictionary.
        value: the encoded value.
    """

    metadata: bytes
    value: bytes

    @classmethod
    def from_python(cls, value: Any, *, sort: bool = True) -> Self:
        """Encode Python objects, with the types that ``fastpq.schema.variant_kinds`` lists.

        Args:
            value: None, bool, int, float, str, bytes, Decimal, dates and times, UUID, NumPy scalars, ``Primitive``, and
                lists and dicts with such values.
            sort: whether to sort the name dictionary. Otherwise the names are in the order in which they first occur.

        Raises:
            SchemaError: variants have no type for a value.
            LimitError: the value has more than MAX_DEPTH levels, or more than 2^31 - 1 bytes.
        """
        names: set[str] = set()
        collect_names(value, names)
        encoder = Encoder(sorted_names(names) if sort else _names_in_order(value))
        encoder.add(value)
        return cls(encoder.metadata(), encoder.take())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Encode a JSON document. Numbers get the types that Spark's ``parse_json`` chooses.

        Args:
            text: a JSON document.

        Raises:
            SchemaError: the text is not JSON, an object has a name twice, or a number is too large for a double.
            LimitError: the value has more than MAX_DEPTH levels, or more than 2^31 - 1 bytes.
        """
        return cls.from_python(from_json(text))

    def to_python(self, *, typed: bool = False) -> Any:
        """Decode to Python objects, with the types that ``fastpq.schema.variant_kinds`` lists.

        Args:
            typed: whether to return every primitive as a ``Primitive``.

        Raises:
            FormatError: the bytes break VariantEncoding.md.
            LimitError: the value has more than MAX_DEPTH levels.
        """
        return decode(self.metadata, self.value, typed)

    def to_json(self) -> str:
        """Decode to JSON text, in the forms that ``fastpq.schema.variant_kinds`` lists. Errors are the same as in to_python."""
        return json_of(self.metadata, self.value)

    def check(self) -> None:
        """Check metadata and value against all rules in VariantEncoding.md, even those that decoding does not need.

        Raises:
            FormatError: a rule is broken. The message says which one.
            LimitError: the value has more than MAX_DEPTH levels.
        """
        check(self.metadata, self.value)


def _names_in_order(value: Any) -> list[str]:
    """Return a value's field names, in the order in which they first occur."""
    if isinstance(value, Mapping):
        inner = [name for part in value.values() for name in _names_in_order(part)]
        return list(dict.fromkeys([*value, *inner]))
    if isinstance(value, list | tuple):
        return list(dict.fromkeys(name for part in value for name in _names_in_order(part)))
    return []


def from_json(text: str) -> Any:
    """Convert a JSON document to Python objects.

    An integer with at most 38 digits becomes an int. A number that has a fraction, has no exponent, and needs at most 38 digits
    becomes a decimal.Decimal. Any other number becomes a float.

    Args:
        text: a JSON document (RFC 8259).

    Raises:
        SchemaError: the text is not JSON, an object has a name twice, or a number is too large for a double.
        LimitError: the document is nested too deep for the interpreter's stack. The encoder checks MAX_DEPTH.
    """
    try:
        return json.loads(
            text, parse_int=_integer, parse_float=_number, parse_constant=_refuse, object_pairs_hook=_object
        )
    except json.JSONDecodeError as error:
        raise SchemaError(f"the text is not JSON: {error}") from error
    except RecursionError as error:
        raise LimitError("the JSON text is nested too deep for the interpreter's stack") from error


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= _LONGEST_INTEGER and len(text.lstrip("-")) <= MAX_DIGITS else _double(text)


def _number(text: str) -> decimal.Decimal | float:
    if "e" in text or "E" in text:
        return _double(text)
    digits = text.lstrip("-").replace(".", "").lstrip("0")
    scale = len(text) - text.index(".") - 1
    return decimal.Decimal(text) if max(len(digits), scale) <= MAX_DIGITS else _double(text)


def _double(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise SchemaError(f"the number {text[:40]} is too large for a double")
    return value


def _refuse(text: str) -> Any:
    raise SchemaError(f"{text} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        repeated_name = next(name for name in values if names.count(name) > 1)
        raise SchemaError(f"an object has the name {repeated_name!r} twice")
    return values
