"""Docstrings that document an argument or an attribute which the code does not have, as a rename leaves them behind.

python -m tools.documented_names           print each such name; fail if there is one
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "fastpq"
SECTION = re.compile(r"^( *)(Args|Attributes):$")
NAMES = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*):(?: |$)")

# Base classes without attributes of their own.
PLAIN_BASES = frozenset({"NamedTuple", "Protocol", "TypedDict", "ABC"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def documented(docstring: str, section: str) -> Iterator[str]:
    """Yield the names that a section of a docstring documents, without stars."""
    indentation: int | None = None      # of the section's entries, while inside it
    for line in docstring.splitlines():
        heading = SECTION.match(line)
        depth = len(line) - len(line.lstrip())
        if heading:
            indentation = len(heading[1]) + 4 if heading[2] == section else None
        elif line and indentation is not None and depth < indentation:
            indentation = None
        elif depth == indentation and (names := NAMES.match(line.strip())):
            yield from (name.strip("* ") for name in names[1].split(","))


def arguments_of(function: Function) -> set[str]:
    """Return the names of a function's arguments."""
    arguments = function.args
    stars = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *stars)}


def attributes_of(class_: ast.ClassDef) -> set[str]:
    """Return the names of a class's attributes: fields, methods, properties, and what its methods assign."""
    names = {node.name for node in class_.body if isinstance(node, Function)}
    for node in ast.walk(class_):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.attr if isinstance(node, ast.Attribute) else node.id)
    return names


def existing_names(node: Function | ast.ClassDef) -> dict[str, set[str]]:
    """Return the names that a docstring may document, by section. A section that cannot be checked is left out."""
    if isinstance(node, Function):
        return {"Args": arguments_of(node)}
    sections = {}
    makers = [each for each in node.body if isinstance(each, Function) and each.name in ("__init__", "__new__")]
    if makers:
        sections["Args"] = set[str]().union(*map(arguments_of, makers))
    if all(ast.unparse(base) in PLAIN_BASES for base in node.bases):        # other base classes may have attributes
        sections["Attributes"] = attributes_of(node)
    return sections


def wrong_names(path: Path) -> Iterator[str]:
    """Yield a message for each documented name in a Python file that its function or class does not have."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, Function | ast.ClassDef):
            docstring = ast.get_docstring(node) or ""
            for section, names in existing_names(node).items():
                for name in documented(docstring, section):
                    if name not in names:
                        yield f"{path}:{node.lineno}: {node.name} has no {name!r}, which its docstring documents"


def messages() -> list[str]:
    """Return a message for each wrong name in the package."""
    return [message for path in sorted(PACKAGE.rglob("*.py")) for message in wrong_names(path)]


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    lines = messages()
    print(*lines, sep="\n", end="\n" if lines else "")
    sys.exit(1 if lines else 0)
