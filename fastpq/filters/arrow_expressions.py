"""Takes pyarrow.compute expressions apart, by their serialized form.

The form is an Arrow IPC file. The entries of its schema metadata are the expression's parts, depth first. Its only record batch
has a column for each value, and a struct for each function's options.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fastpq.arrow.ipc_schema import IpcSchema
from fastpq.errors import UnsupportedError
from fastpq.filters.expression_tree import UNTRANSLATABLE, ColumnPath, ExpressionPart, FunctionCall, LiteralValue, untranslatable

_MAGIC = b"ARROW1\0\0"
_NAMES = {
    "and_kleene": "and", "or_kleene": "or", "invert": "not", "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=",
    "greater": ">", "greater_equal": ">=", "is_valid": "is valid", "is_nan": "is nan",
}
_MATCHING = {0: "match", 1: "skip"}     # by null_matching_behavior, an option of is_in


class _Open(NamedTuple):
    """A call whose end has not been read yet."""

    name: str
    args: list[ExpressionPart]
    options: list[Any]


def part_of_arrow(expression: Any, *, keeps_unknown: bool = False) -> ExpressionPart:
    """Return an expression as a tree of parts.

    Args:
        expression: the expression.
        keeps_unknown: return calls that fastpq does not know as calls that have no translation.

    Raises:
        UnsupportedError: fastpq does not know a part, or the serialized form.
    """
    import pyarrow

    try:
        _, (buffer, *_) = expression.__reduce__()
    except pyarrow.ArrowException as error:
        reason = f"the filter {expression} has no serialized form ({error}): name columns by their names"
        raise UnsupportedError(reason) from error
    data = bytes(buffer)
    if not data.startswith(_MAGIC):
        raise UnsupportedError(f"the filter {expression} has a form of another version of pyarrow: give a list of conditions")
    entries = IpcSchema(base64.b64encode(data[len(_MAGIC) :]).decode()).entries
    batch = pyarrow.ipc.open_file(buffer).get_batch(0)
    return _part(((key.decode(), value.decode()) for key, value in entries), batch, keeps_unknown)


def _part(entries: Iterator[tuple[str, str]], batch: Any, keeps_unknown: bool) -> ExpressionPart:
    calls: list[_Open] = []
    while True:
        kind, value = next(entries)
        part: ExpressionPart
        match kind:
            case "literal":
                part = _literal([batch.column(int(value))[0]], only=True)
            case "field_ref":
                part = ColumnPath((value,))
            case "nested_field_ref":
                part = ColumnPath(tuple(name for _, name in (next(entries) for _ in range(int(value)))))
            case "call":
                calls.append(_Open(value, [], []))
                continue
            case "options" if calls:
                calls[-1].options.append(batch.column(int(value))[0])
                continue
            case "end" if calls:
                call = calls.pop()
                try:
                    part = _call(call.name, call.args, call.options)
                except UnsupportedError:
                    if not keeps_unknown:
                        raise
                    part = FunctionCall(UNTRANSLATABLE, tuple(call.args))
            case _:
                raise UnsupportedError(f"a filter with a part of kind {kind}")
        if not calls:
            return part
        calls[-1].args.append(part)


def _call(name: str, args: list[ExpressionPart], options: list[Any]) -> ExpressionPart:
    settings = options[0] if options else {}
    if name in _NAMES and not options:
        return FunctionCall(_NAMES[name], tuple(args))
    call = FunctionCall(name, tuple(args))
    match name:
        case "is_null":
            return FunctionCall("is null or nan" if options and settings["nan_is_null"].as_py() else "is null", tuple(args))
        case "is_in" if options and (null_matching := _MATCHING.get(settings["null_matching_behavior"].as_py())):
            return FunctionCall("in", (*args, _literal(settings["value_set"].values)), null_matching)
        case "starts_with" if options and not settings["ignore_case"].as_py():
            return FunctionCall("starts with", (*args, LiteralValue(settings["pattern"].as_py())))
        case "cast":
            raise untranslatable(call, "give the value in the type of the column")
    raise untranslatable(call)


def _literal(scalars: Iterable[Any], only: bool = False) -> LiteralValue:
    """Convert scalars of one type to values: moments to datetime64, times and durations to timedelta64, with all their digits.

    Args:
        scalars: pyarrow scalars.
        only: whether there is one scalar, which is the value itself and not a list.
    """
    values, aware = [], None
    for scalar in scalars:
        kind = str(scalar.type)
        if kind.startswith("timestamp["):
            aware = scalar.type.tz is not None
        try:
            values.append(_value(scalar, kind))
        except (OverflowError, ValueError) as error:        # pyarrow.ArrowInvalid is a ValueError
            raise untranslatable(scalar.type, f"no Python object can hold the value: {error}") from error
    return LiteralValue(values[0] if only else values, aware)


def _value(scalar: Any, kind: str) -> Any:
    if not scalar.is_valid:
        return None
    if kind.startswith("timestamp["):
        return np.datetime64(scalar.value, scalar.type.unit)
    if kind.startswith("date"):
        return np.datetime64(scalar.value, "D" if kind.startswith("date32") else "ms")
    if kind.startswith(("time", "duration")):
        return np.timedelta64(scalar.value, scalar.type.unit)
    return np.float32(scalar.as_py()) if kind == "float" else scalar.as_py()
