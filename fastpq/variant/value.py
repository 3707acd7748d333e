"""One variant: its two byte strings, from and to Python objects and JSON."""

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
        metadata: the dictionary of names.
        value: the value.
    """

    metadata: bytes
    value: bytes

    @classmethod
    def from_python(cls, value: Any, *, sort: bool = True) -> Self:
        """Encode Python objects, as ``fastpq.schema.variant_kinds`` shows.

        Args:
            value: None, bool, int, float, str, bytes, Decimal, dates and times, UUID, NumPy scalars, ``Primitive``, and
                lists and dicts of them.
            sort: whether the dictionary is sorted; else names come in the order in which they are met.

        Raises:
            SchemaError: a value that no variant holds.
            LimitError: more than MAX_DEPTH levels, or more than 2^31 - 1 bytes.
        """
        names: set[str] = set()
        collect_names(value, names)
        encoder = Encoder(sorted_names(names) if sort else _as_met(value))
        encoder.add(value)
        return cls(encoder.metadata(), encoder.take())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Encode a JSON document; numbers are read as Spark's ``parse_json`` does.

        Args:
            text: a JSON document.

        Raises:
            SchemaError: it is no JSON, has a name twice in an object, or a number that a double does not hold.
            LimitError: more than MAX_DEPTH levels, or more than 2^31 - 1 bytes.
        """
        return cls.from_python(from_json(text))

    def to_python(self, *, typed: bool = False) -> Any:
        """Decode to Python objects, as ``fastpq.schema.variant_kinds`` shows.

        Args:
            typed: every primitive as a ``Primitive``.

        Raises:
            FormatError: the bytes break VariantEncoding.md.
            LimitError: more than MAX_DEPTH levels.
        """
        return decode(self.metadata, self.value, typed)

    def to_json(self) -> str:
        """Decode to JSON, as ``fastpq.schema.variant_kinds`` shows. Raises as to_python."""
        return json_of(self.metadata, self.value)

    def check(self) -> None:
        """Check that both are as VariantEncoding.md says, also in what readers can do without.

        Raises:
            FormatError: what is wrong.
            LimitError: more than MAX_DEPTH levels.
        """
        check(self.metadata, self.value)


def _as_met(value: Any) -> list[str]:
    """Names in the order in which a value has them."""
    if isinstance(value, Mapping):
        inner = [name for part in value.values() for name in _as_met(part)]
        return list(dict.fromkeys([*value, *inner]))
    if isinstance(value, list | tuple):
        return list(dict.fromkeys(name for part in value for name in _as_met(part)))
    return []
