"""Expressions of pyarrow.compute, taken apart by their serialized form.

The form is an Arrow IPC file. Entries of its schema's metadata are the parts, depth first; its only record batch has a column for
each value, and a struct for the options of each function.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fastpq.arrow.ipc_schema import IpcSchema
from fastpq.errors import UnsupportedError
from fastpq.filters.expressions import Call, Given, Part, Path, refused

_MAGIC = b"ARROW1\0\0"
_NAMES = {
    "and_kleene": "and", "or_kleene": "or", "invert": "not", "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=",
    "greater": ">", "greater_equal": ">=", "is_valid": "is valid", "is_nan": "is nan",
}
_MATCHING = {0: "match", 1: "skip"}     # null_matching_behavior of is_in


class _Open(NamedTuple):
    """A call before its end."""

    name: str
    args: list[Part]
    options: list[Any]


def part_of_arrow(expression: Any) -> Part:
    """The parts of an expression.

    Raises:
        UnsupportedError: a part or a form unknown to fastpq.
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
    return _part(((key.decode(), value.decode()) for key, value in entries), batch)


def _part(entries: Iterator[tuple[str, str]], batch: Any) -> Part:
    calls: list[_Open] = []
    while True:
        kind, value = next(entries)
        part: Part
        match kind:
            case "literal":
                part = _given([batch.column(int(value))[0]], only=True)
            case "field_ref":
                part = Path((value,))
            case "nested_field_ref":
                part = Path(tuple(name for _, name in (next(entries) for _ in range(int(value)))))
            case "call":
                calls.append(_Open(value, [], []))
                continue
            case "options" if calls:
                calls[-1].options.append(batch.column(int(value))[0])
                continue
            case "end" if calls:
                call = calls.pop()
                part = _call(call.name, call.args, call.options)
            case _:
                raise UnsupportedError(f"a filter with a part of kind {kind}")
        if not calls:
            return part
        calls[-1].args.append(part)


def _call(name: str, args: list[Part], options: list[Any]) -> Part:
    given = options[0] if options else {}
    if name in _NAMES and not options:
        return Call(_NAMES[name], tuple(args))
    call = Call(name, tuple(args))
    match name:
        case "is_null":
            return Call("is null or nan" if options and given["nan_is_null"].as_py() else "is null", tuple(args))
        case "is_in" if options and given["null_matching_behavior"].as_py() in _MATCHING:
            return Call("in", (*args, _given(given["value_set"].values)), _MATCHING[given["null_matching_behavior"].as_py()])
        case "starts_with" if options and not given["ignore_case"].as_py():
            return Call("starts with", (*args, Given(given["pattern"].as_py())))
        case "cast":
            raise refused(call, "give the value in the type of the column")
    raise refused(call)


def _given(scalars: Iterable[Any], only: bool = False) -> Given:
    """Scalars of one type as values: moments as datetime64, times and durations as timedelta64, with all their digits.

    Args:
        scalars: of pyarrow.
        only: whether the one scalar is the value, and no list.
    """
    values, aware = [], None
    for scalar in scalars:
        kind = str(scalar.type)
        if kind.startswith("timestamp["):
            aware = scalar.type.tz is not None
        try:
            values.append(_value(scalar, kind))
        except (OverflowError, ValueError) as error:        # pyarrow.ArrowInvalid is a ValueError
            raise refused(scalar.type, f"a value that is no object of Python: {error}") from error
    return Given(values[0] if only else values, aware)


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
