"""The rooms of fastpq: imports go downwards only, a name has one meaning, and files, functions and circles have bounds.

A module imports from its own room and from rooms below. Imports for values, for types, inside functions, of Cython and of lazily
loaded modules all count. No two modules define the same public class or function, and no two modules have the same name.
A circle is a group of modules of one room that import each other, directly or through others of the group.
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
    "fastpq", "cli", "advice", "spark", "adapters", "catalogs", "datasets", "aio", "api", "verify", "picture", "rewriting",
    "recovery", "read", "write", "filters", "file_reference", "convert", "arrow", "variant", "column", "index", "stats", "arrays",
    "metadata", "encryption", "encodings", "codecs", "schema", "format", "io", "options", "common", "errors", "version",
)
# Modules beside the rooms that only pass on public names from several rooms, or call kernels for tests.
FACE = ("fastpq", "fastpq.__main__", "fastpq._kernel_calls", "fastpq.types", "fastpq.memory")

# Names that many files may define: each encoding, codec and serialization gives these functions, and a table holds them. Each
# verb has a ``command``, and each program a ``main``.
INTERFACES = frozenset({"encode", "decode", "compressor", "decompress_into", "command", "main"})
# The structs of this module have the names of parquet.thrift, as the public classes that show them do. Modules of VERBS are named
# by verb. The folders of fastpq.spark may have the names of rooms ("write"), and its options are public as fastpq.spark.options.
THRIFT, SPARK, VERBS = "fastpq.format.parquet", "fastpq.spark", "fastpq.cli.verbs"
SPARK_OPTIONS = "fastpq.spark.options"
# The modules of fastpq.spark import the core from this module alone. It may import public modules, which stand above all rooms,
# and few internal ones.
SPARK_CORE = "fastpq.spark.core"
PUBLIC = {*FACE, "fastpq.encryption", "fastpq.errors", "fastpq.options", "fastpq.variant", "fastpq.version"}
MOST_INTERNAL_MODULES = 10      # that SPARK_CORE imports
JAVA_FOLDER = "fastpq/spark/jvm/java"
JAVA_DEFINITION = re.compile(
    r"^ *(?:(?:public|protected|private|static|final|abstract|sealed) +)*(?:class|interface|enum|record) +(\w+)", re.MULTILINE
)
DEFINITION = re.compile(r"^(?:cdef |cpdef )?(?:class|def|struct) (\w+)", re.MULTILINE)

# Most lines of code in a file: docstrings, comments and blank lines do not count. A public class whose many documented methods
# belong together may have more.
MOST_LINES = 400
TWICE = ("decrypt_dataset", "encrypt_dataset")      # functions of one machine, and the same as jobs of Spark
LARGE_CLASSES = {"fastpq/api/file.py": 440, "fastpq/datasets/dataset.py": 490}      # ParquetFile, ParquetDataset
MOST_FUNCTION_LINES = 60    # of a function in Python, without its docstring
MOST_CIRCLES = 0            # in the package

DOCSTRING = re.compile(r'^[ \t]*[rR]?""".*?"""', re.MULTILINE | re.DOTALL)
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
        may_look_up = module in FACE or (module == SPARK_CORE and target in FACE)
        if not may_look_up and not unknown and place[room_of(target)] < place[room_of(module)]:
            found.append(f"{module} imports {target}: {room_of(target)} stands above {room_of(module)}")
    return found


def beside_core(files: Mapping[str, list[Path]]) -> list[str]:
    """Describe imports of the core by modules of fastpq.spark other than SPARK_CORE, and too many internal ones in SPARK_CORE."""
    internal_modules = set()
    lines = []
    for module, target in sorted(set(edges(files))):
        if room_of(module) != "spark" or room_of(target) == "spark":
            continue
        if module == SPARK_CORE:
            internal_modules |= {target} - PUBLIC
        elif not module.startswith(f"{SPARK}.example"):     # a program of a user
            lines.append(f"{module} imports {target}: import from {SPARK_CORE}")
    if len(internal_modules) > MOST_INTERNAL_MODULES:
        lines.append(f"{SPARK_CORE} imports {len(internal_modules)} internal modules, {MOST_INTERNAL_MODULES} are allowed")
    return lines


def circles(files: Mapping[str, list[Path]]) -> list[list[str]]:
    """Return the circles, each as a sorted list of modules."""
    imported: defaultdict[str, set[str]] = defaultdict(set)
    for module, target in edges(files):
        if room_of(module) == room_of(target) and not {module, target} & {*FACE}:
            imported[module].add(target)
    reached = {module: _reached(module, imported) for module in imported}
    groups = {frozenset(other for other in reached[module] if module in reached.get(other, ())) for module in reached}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def _reached(module: str, imported: Mapping[str, set[str]]) -> set[str]:
    """Return the modules that a module imports, directly or through others."""
    reached: set[str] = set()
    pending = [module]
    while pending:
        targets = imported.get(pending.pop(), set()) - reached
        reached |= targets
        pending += targets
    return reached


def entangled(files: Mapping[str, list[Path]]) -> list[str]:
    """Describe circles, if there are more than MOST_CIRCLES."""
    lines = [f"a circle of {len(group)} modules: {', '.join(group)}" for group in circles(files)]
    return lines if len(lines) > MOST_CIRCLES else []


def definitions(module: str, paths: list[Path]) -> set[str]:
    """Public classes and functions of a module, and its own name."""
    if module in FACE or module == THRIFT:
        return set()
    sources = [path for path in paths if path.suffix in (".py", ".pyx")]
    names = {name for path in sources for name in DEFINITION.findall(path.read_text())} - INTERFACES
    found = {name for name in names if not name.startswith("_")}
    own_name = module.rpartition(".")[2]
    is_spark_folder = module.startswith(SPARK) and any(path.name == "__init__.py" for path in paths)
    is_exempt = module.startswith(VERBS) or module == SPARK_OPTIONS or is_spark_folder or own_name == "__main__"
    return found if is_exempt else found | {f"module {own_name}"}


def java_definitions() -> Iterator[tuple[str, str]]:
    """Name and file of each class in the jar for Spark, the nested ones too."""
    for path in sorted((ROOT / JAVA_FOLDER).glob("*.java")):
        for name in JAVA_DEFINITION.findall(path.read_text()):
            yield name, path.name


def ambiguous(files: Mapping[str, list[Path]]) -> list[str]:
    """Names with two meanings, in Python or in Java."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module, paths in files.items():
        for name in definitions(module, paths):
            places[name].append(module)
    for name, file in java_definitions():
        places[name].append(file)
    for name in TWICE:
        places.pop(name, None)
    return [f"{name} stands in {' and '.join(sorted(where))}" for name, where in sorted(places.items()) if len(where) > 1]


def oversized(files: Mapping[str, list[Path]]) -> list[str]:
    """Files and functions above their bounds."""
    found = []
    for path in sorted(path for paths in files.values() for path in paths):
        text = path.read_text()
        name, lines = path.relative_to(ROOT).as_posix(), code_lines(text)
        if lines > LARGE_CLASSES.get(name, MOST_LINES):
            found.append(f"{name} has {lines} lines of code")
        if path.suffix == ".py":
            functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
            long = [(node.name, _length(node)) for node in functions if _length(node) > MOST_FUNCTION_LINES]
            found += [f"{path.relative_to(ROOT)}: {name} has {length} lines" for name, length in long]
    return found


def code_lines(text: str) -> int:
    """Return the number of lines of a Python or Cython source without docstrings, comments and blank lines."""
    lines = (line.strip() for line in DOCSTRING.sub("", text).splitlines())
    return sum(1 for line in lines if line and not line.startswith("#"))


def _length(function: ast.FunctionDef) -> int:
    doc = ast.get_docstring(function, clean=False)
    return (function.end_lineno or 0) - function.lineno + 1 - (0 if doc is None else doc.count("\n") + 1)


def main() -> int:
    """Print every fault; 1 if there is one."""
    files = modules()
    faults = upward(files) + beside_core(files) + entangled(files) + ambiguous(files) + oversized(files)
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
