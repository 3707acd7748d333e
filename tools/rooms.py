"""The order of the rooms of fastpq: a module imports from its own room and from rooms below, and from no room above.

Imports for values, for types, inside functions, of Cython and of lazily loaded modules all count.
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

# From the top down; ARCHITECTURE.md says what each is for. The first is the public face, fastpq itself.
ORDER = (
    "fastpq", "cli", "spark", "datasets", "api", "rewriting", "recovery", "read", "write", "filters", "file_reference", "convert",
    "arrow", "variant", "column", "index", "stats", "arrays", "metadata", "encryption", "encodings", "codecs", "schema", "format",
    "io", "options", "common", "errors", "version",
)
FACE = ("fastpq", "fastpq.types", "fastpq.memory")

CYTHON_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(fastpq[\w.]*)[ \t]+)?c?import[ \t]+(?:\(([^)]*)\)|(.*))$", re.MULTILINE)
LAZY = re.compile(r'LazyModule\("(fastpq[\w.]*)"\)')


def modules() -> dict[str, list[Path]]:
    """Files of each module: its source, and its declarations and stub."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sorted((ROOT / "fastpq").rglob("*")):
        if path.suffix in SUFFIXES:
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)].append(path)
    return found


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Module and name of each import of fastpq in a file; the name is empty where a module is imported whole."""
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
    """Each module of fastpq with each other module that it imports."""
    for module, paths in files.items():
        for origin, name in {pair for path in paths for pair in imports(path)}:
            target = f"{origin}.{name}" if f"{origin}.{name}" in files else origin
            if target in files and target != module:
                yield module, target


def room_of(module: str) -> str:
    """The folder of a module, or the module itself where it stands beside the folders."""
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


def main() -> int:
    """Print what breaks the order; 1 if anything does."""
    faults = upward(modules())
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
