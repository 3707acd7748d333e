"""The rooms of fastpq: imports go downwards only, a name has one meaning, and files and functions have a bound.

A module imports from its own room and from rooms below. Imports for values, for types, inside functions, of Cython and of lazily
loaded modules all count. No two modules define the same public class or function, and no two modules have the same name.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = (".py", ".pyx", ".pxd", ".pyi")

# Rooms from the top down; ARCHITECTURE.md describes each. The first is the public face, fastpq itself.
ORDER = (
    "fastpq", "cli", "spark", "datasets", "api", "rewriting", "recovery", "read", "write", "filters", "file_reference", "convert",
    "arrow", "variant", "column", "index", "stats", "arrays", "metadata", "encryption", "encodings", "codecs", "schema", "format",
    "io", "options", "common", "errors", "version",
)
FACE = ("fastpq", "fastpq.types", "fastpq.memory")

# Names allowed in many files: the functions of an encoding, a codec and a serialization.
INTERFACES = frozenset({"encode", "decode", "compressor", "decompress_into"})
# Structs have the names of parquet.thrift beside the classes of the same names; Spark's interfaces name the modules of its room.
THRIFT, SPARK = "fastpq.format.parquet", "fastpq.spark"
DEFINITION = re.compile(r"^(?:cdef |cpdef )?(?:class|def|struct) (\w+)", re.MULTILINE)

MOST_LINES = 450            # of a file
MOST_FUNCTION_LINES = 60    # of a function in Python, without its docstring

CYTHON_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(fastpq[\w.]*)[ \t]+)?c?import[ \t]+(?:\(([^)]*)\)|(.*))$", re.MULTILINE)
LAZY = re.compile(r'LazyModule\("(fastpq[\w.]*)"\)')


def modules() -> dict[str, list[Path]]:
    """Files of each module: source, declarations and stub."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sorted((ROOT / "fastpq").rglob("*")):
        if path.suffix in SUFFIXES:
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)].append(path)
    return found


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Module and name of each import of fastpq in a file; the name is empty for an import of a whole module."""
    text = path.read_text()
    yield from ((name, "") for name in LAZY.findall(text))
    if path.suffix in (".py", ".pyi"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                yield from ((node.module, alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((alias.name, "") for alias in node.names)
        return
    for origin, inside, line in CYTHON_IMPORT.findall(text):
        names = [name.split()[0] for name in (inside or line.split("#")[0]).split(",") if name.strip()]
        yield from ((origin, name) if origin else (name, "") for name in names)


def edges(files: Mapping[str, list[Path]]) -> Iterator[tuple[str, str]]:
    """Pairs of a module of fastpq and another module imported by the first."""
    for module, paths in files.items():
        for origin, name in {pair for path in paths for pair in imports(path)}:
            target = f"{origin}.{name}" if f"{origin}.{name}" in files else origin
            if target in files and target != module:
                yield module, target


def room_of(module: str) -> str:
    """Room of a module: its folder, or the module itself if beside the folders."""
    return "fastpq" if module in FACE else module.split(".")[1]


def upward(files: Mapping[str, list[Path]]) -> list[str]:
    """Imports from a room above, and rooms without a place in the order."""
    unknown = sorted({room_of(module) for module in files} - set(ORDER))
    found = [f"{room} has no place in the order of rooms" for room in unknown]
    place = {room: number for number, room in enumerate(ORDER)}
    for module, target in sorted(set(edges(files))):
        if module not in FACE and not unknown and place[room_of(target)] < place[room_of(module)]:
            found.append(f"{module} imports {target}: {room_of(target)} stands above {room_of(module)}")
    return found


def definitions(module: str, paths: list[Path]) -> set[str]:
    """Public classes and functions of a module, and its own name."""
    if module in FACE or module == THRIFT:
        return set()
    sources = [path for path in paths if path.suffix in (".py", ".pyx")]
    names = {name for path in sources for name in DEFINITION.findall(path.read_text())} - INTERFACES
    found = {name for name in names if not name.startswith("_")}
    return found if module.startswith(SPARK) else found | {f"module {module.rpartition('.')[2]}"}


def ambiguous(files: Mapping[str, list[Path]]) -> list[str]:
    """Names with two meanings."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module, paths in files.items():
        for name in definitions(module, paths):
            places[name].append(module)
    return [f"{name} stands in {' and '.join(sorted(where))}" for name, where in sorted(places.items()) if len(where) > 1]


def oversized(files: Mapping[str, list[Path]]) -> list[str]:
    """Files and functions above their bounds."""
    found = []
    for path in sorted(path for paths in files.values() for path in paths):
        text = path.read_text()
        lines = text.count("\n")
        if lines > MOST_LINES:
            found.append(f"{path.relative_to(ROOT)} has {lines} lines")
        if path.suffix == ".py":
            functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
            long = [(node.name, _length(node)) for node in functions if _length(node) > MOST_FUNCTION_LINES]
            found += [f"{path.relative_to(ROOT)}: {name} has {length} lines" for name, length in long]
    return found


def _length(function: ast.FunctionDef) -> int:
    doc = ast.get_docstring(function, clean=False)
    return (function.end_lineno or 0) - function.lineno + 1 - (0 if doc is None else doc.count("\n") + 1)


def main() -> int:
    """Print every fault; 1 if there is one."""
    files = modules()
    faults = upward(files) + ambiguous(files) + oversized(files)
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
