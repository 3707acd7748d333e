"""Parsing of JSON text to Python objects for variants, with the number types of Spark's ``parse_json``."""

from __future__ import annotations

import decimal
import json
import math
from typing import Any

from fastpq.errors import LimitError, SchemaError
from fastpq.schema.variant_kinds import MAX_DEPTH, MAX_DIGITS

_LONGEST_INTEGER = MAX_DIGITS + 1       # characters of an integer, with a sign


def from_json(text: str) -> Any:
    """Parse a JSON document to Python objects.

    An integer of at most 38 digits becomes an int. A number with a fraction, without an exponent and exact in 38 digits becomes
    a decimal.Decimal. Any other number becomes a float.

    Args:
        text: a JSON document (RFC 8259).

    Raises:
        SchemaError: the text is no JSON; an object has a name twice; a number is beyond the range of a double.
        LimitError: the document is nested deeper than MAX_DEPTH or than the interpreter's stack.
    """
    try:
        return json.loads(
            text, parse_int=_integer, parse_float=_number, parse_constant=_refuse, object_pairs_hook=_object
        )
    except json.JSONDecodeError as error:
        raise SchemaError(f"no JSON: {error}") from error
    except RecursionError as error:
        raise LimitError(f"JSON nested deeper than MAX_DEPTH ({MAX_DEPTH}) or the interpreter's stack") from error


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
        raise SchemaError(f"the number {text[:40]} is beyond what a double holds")
    return value


def _refuse(text: str) -> Any:
    raise SchemaError(f"{text} is no JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise SchemaError(f"an object that has the name {twice!r} twice")
    return found
