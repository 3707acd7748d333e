"""The tree into which expressions from pyarrow and Polars are taken apart: function calls, columns and literal values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastpq.errors import UnsupportedError

# Comparisons, each with the comparison that holds when the sides are exchanged.
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="} | {op: op for op in ("==", "!=", "== or both null", "!= or one null")}
UNTRANSLATABLE = "a function without a translation"      # name of a call in the place of a part that has no translation
_LONGEST = 200          # characters of a part in a message


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """A column, or a field of a struct."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.names)


@dataclass(frozen=True, slots=True)
class LiteralValue:
    """A value, or the list of values for ``in``. None stands for null.

    Attributes:
        value: the value or the list.
        aware: whether moments have a time zone. None for values that are not moments.
    """

    value: Any
    aware: bool | None = None

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function call, whose arguments are other parts.

    Attributes:
        name: ``and``, ``or``, ``not``, a comparison, a test, or the name of a function that has no translation.
        args: arguments of the call.
        option: how ``in`` treats nulls: ``"match"``, ``"skip"`` or ``"propagate"``. Empty for other calls.
    """

    name: str
    args: tuple[ExpressionPart, ...]
    option: str = ""

    def __str__(self) -> str:
        if len(self.args) == 2 and self.name in FLIPPED:
            return f"{self.args[0]} {self.name} {self.args[1]}"
        return f"{self.name}({', '.join(map(str, self.args))})"


ExpressionPart = ColumnPath | LiteralValue | FunctionCall


def untranslatable(part: Any, reason: str = "") -> UnsupportedError:
    """Return the error for a part that has no exact translation."""
    text = str(part)
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return UnsupportedError(f"the part {text} of the filter has no exact translation{reason and ': '}{reason}")
