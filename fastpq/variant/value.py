"""Variant: one value in Variant encoding, with conversions from and to Python objects and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from fastpq.variant.decode import decode
from fastpq.variant.encode import Encoder, collect_names, sorted_names
from fastpq.variant.json_input import from_json
from fastpq.variant.json_output import json_of
from fastpq.variant.wire import check


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant in its binary encoding (VariantEncoding.md).

    Attributes:
        metadata: the encoded dictionary of field names.
        value: the encoded value.
    """

    metadata: bytes
    value: bytes

    @classmethod
    def from_python(cls, value: Any, *, sort: bool = True) -> Self:
        """Encode Python objects, with the types listed in ``fastpq.schema.variant_kinds``.

        Args:
            value: None, bool, int, float, str, bytes, Decimal, dates and times, UUID, NumPy scalars, ``Primitive``, and
                lists and dicts of these.
            sort: whether to sort the dictionary of names; otherwise names are in the order of their first occurrence.

        Raises:
            SchemaError: a value without a variant type.
            LimitError: more than MAX_DEPTH levels, or more than 2^31 - 1 bytes.
        """
        names: set[str] = set()
        collect_names(value, names)
        encoder = Encoder(sorted_names(names) if sort else _as_met(value))
        encoder.add(value)
        return cls(encoder.metadata(), encoder.take())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Encode a JSON document, with the number types of Spark's ``parse_json``.

        Args:
            text: a JSON document.

        Raises:
            SchemaError: the text is no JSON, an object has a name twice, or a number is beyond the range of a double.
            LimitError: more than MAX_DEPTH levels, or more than 2^31 - 1 bytes.
        """
        return cls.from_python(from_json(text))

    def to_python(self, *, typed: bool = False) -> Any:
        """Decode to Python objects, of the types listed in ``fastpq.schema.variant_kinds``.

        Args:
            typed: whether to return every primitive as a ``Primitive``.

        Raises:
            FormatError: the bytes break VariantEncoding.md.
            LimitError: more than MAX_DEPTH levels.
        """
        return decode(self.metadata, self.value, typed)

    def to_json(self) -> str:
        """Decode to JSON text, in the forms listed in ``fastpq.schema.variant_kinds``. Raises as to_python."""
        return json_of(self.metadata, self.value)

    def check(self) -> None:
        """Check metadata and value against all rules of VariantEncoding.md, including rules not needed for decoding.

        Raises:
            FormatError: a rule is broken; the message says how.
            LimitError: more than MAX_DEPTH levels.
        """
        check(self.metadata, self.value)


def _as_met(value: Any) -> list[str]:
    """The field names of a value, in the order of their first occurrence."""
    if isinstance(value, Mapping):
        inner = [name for part in value.values() for name in _as_met(part)]
        return list(dict.fromkeys([*value, *inner]))
    if isinstance(value, list | tuple):
        return list(dict.fromkeys(name for part in value for name in _as_met(part)))
    return []
