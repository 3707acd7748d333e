"""Expressions of pyarrow.compute, taken apart by their serialized form.

The form is an Arrow IPC file. Entries of its schema's metadata are the parts, depth first; its only record batch has a column for
each value, and a struct for the options of each function.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

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
    part = _next(entries, batch)
    if part is None:
        raise UnsupportedError("a filter without an end")
    return part


def _next(entries: Iterator[tuple[str, str]], batch: Any, options: list[Any] | None = None) -> Part | None:
    """The next part; None at the end of a function, or behind its options."""
    kind, value = next(entries)
    match kind:
        case "literal":
            return Given(_value(batch.column(int(value))[0]))
        case "field_ref":
            return Path((value,))
        case "nested_field_ref":
            return Path(tuple(name for _, name in (next(entries) for _ in range(int(value)))))
        case "call":
            return _call(value, entries, batch)
        case "options" if options is not None:
            options.append(batch.column(int(value))[0])
            return None
        case "end":
            return None
    raise UnsupportedError(f"a filter with a part of kind {kind}")


def _call(name: str, entries: Iterator[tuple[str, str]], batch: Any) -> Part:
    args: list[Part] = []
    options: list[Any] = []
    while (part := _next(entries, batch, options)) is not None:
        args.append(part)
    if options:
        next(entries)       # the end
    given = options[0] if options else {}
    if name in _NAMES and not options:
        return Call(_NAMES[name], tuple(args))
    call = Call(name, tuple(args))
    match name:
        case "is_null":
            return Call("is null or nan" if given["nan_is_null"].as_py() else "is null", tuple(args))
        case "is_in" if given["null_matching_behavior"].as_py() in _MATCHING:
            values = [_value(value) for value in given["value_set"].values]
            return Call("in", (*args, Given(values)), _MATCHING[given["null_matching_behavior"].as_py()])
        case "starts_with" if not given["ignore_case"].as_py():
            return Call("starts with", (*args, Given(given["pattern"].as_py())))
        case "cast":
            raise refused(call, "give the value in the type of the column")
    raise refused(call)


def _value(scalar: Any) -> Any:
    """A value as a Python object, moments of all digits as datetime64."""
    kind = scalar.type
    if scalar.is_valid and str(kind).startswith("timestamp[ns"):
        return np.datetime64(scalar.value, "ns")
    if scalar.is_valid and str(kind) == "float":
        return np.float32(scalar.as_py())
    return scalar.as_py()
