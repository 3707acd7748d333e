"""Extensions for the API reference: values of constants, lists of options, and tables in docstrings."""

from __future__ import annotations

import inspect
import pydoc
import re
from collections.abc import Iterator
from typing import Any

import griffe

PREFIX = "DEFAULT_"
LISTING = {"documented", "lists_options", "takes_options"}       # decorators that list options in docstrings
BORDER = re.compile(r"=+( +=+)+")     # of a table in reStructuredText, "simple tables"


class NamedDefaults(griffe.Extension):
    """Replaces ``size: int = DEFAULT_SIZE`` by ``size: int = 64 * 1024``."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Before the parameters of dataclasses are made of their attributes."""
        self._replace(pkg)

    def _replace(self, object_: griffe.Object) -> None:
        for member in object_.members.values():
            if member.is_alias:
                continue
            if isinstance(member, griffe.Function):
                for parameter in member.parameters:
                    parameter.default = _value(parameter.default, member)
            elif isinstance(member, griffe.Attribute) and object_.is_class:
                member.value = _value(member.value, member)
            if isinstance(member, griffe.Class | griffe.Module):
                self._replace(member)


def _value(default: Any, where: griffe.Object) -> Any:
    """Return the value of a constant, alone or as the default of a dataclass's field, and anything else unchanged."""
    if isinstance(default, griffe.ExprCall):
        if str(default.function) == "option":       # a row of a table of options
            return _value(default.arguments[0], where)
        for argument in default.arguments:
            if isinstance(argument, griffe.ExprKeyword) and argument.name == "default":
                argument.value = _value(argument.value, where)
        return default
    if not isinstance(default, griffe.ExprName) or not default.name.startswith(PREFIX):
        return default
    constant = where.module.modules_collection[where.module.resolve(default.name)]
    return constant.final_target.value if constant.is_alias else constant.value


class Docstrings(griffe.Extension):
    """Lists options as ``help`` does, and writes the tables of docstrings in Markdown."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Rewrite every docstring of a package."""
        for object_ in _with_docstrings(pkg):
            docstring = object_.docstring
            if docstring is not None:
                if _lists_options(object_):
                    docstring.value = inspect.cleandoc(pydoc.locate(object_.path).__doc__)
                if "====" in docstring.value:
                    docstring.value = in_markdown(docstring.value)


def _lists_options(object_: griffe.Object) -> bool:
    decorators = object_.decorators if isinstance(object_, griffe.Class | griffe.Function) else []
    return any(re.split(r"\W", str(decorator.value))[0] in LISTING for decorator in decorators)


def _with_docstrings(object_: griffe.Object) -> Iterator[griffe.Object]:
    yield object_
    for member in object_.members.values():
        if isinstance(member, griffe.Object):
            yield from _with_docstrings(member)


def in_markdown(text: str) -> str:
    """Text whose tables are Markdown; a row without a first cell continues the row above it."""
    lines: list[str] = []
    rows: list[list[str]] = []
    spans: list[slice] = []
    borders = 0
    for line in text.splitlines():
        if BORDER.fullmatch(line.strip()):
            borders += 1
            if borders == 1:
                starts = [found.start() for found in re.finditer("=+", line)]
                spans = [slice(start, end) for start, end in zip(starts, [*starts[1:], None], strict=True)]
            elif borders == 3:
                lines += _table(rows)
                rows, borders = [], 0
        elif borders:
            cells = [line[span].strip().replace("|", "\\|") for span in spans]
            if cells[0]:
                rows.append(cells)
            else:
                rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells, strict=True)]
        else:
            lines.append(line)
    return "\n".join(lines)


def _table(rows: list[list[str]]) -> list[str]:
    head, *body = rows
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *body)]
