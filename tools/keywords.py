"""Write the stubs of keyword arguments for type checkers and editors, from the tables of options.

``fastpq/api/keywords.pyi`` is for readers and writers. ``fastpq/spark/option_keywords.pyi`` is for Spark's jobs.

python -m tools.keywords            write the stubs
python -m tools.keywords --check    fail if a stub differs from the tables of options
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from fastpq.api import reader_options
from fastpq.options import Option, WriterProperties, options_of
from fastpq.spark import option_keywords

STUB = Path(reader_options.__file__).with_name("keywords.pyi")
SPARK_STUB = Path(option_keywords.__file__).with_suffix(".pyi")
SPARK_HEAD = '''\
"""Keyword arguments of Spark's jobs. ``python -m tools.keywords`` writes this file from the tables of options."""

from typing import Any, TypedDict

TABLES: dict[str, tuple[type[Any], ...]]
NO_KEYWORDS: tuple[str, ...]

def annotations_of(*tables: type[Any]) -> dict[str, str]: ...
'''
HEAD = '''\
"""Keyword arguments of readers and writers. ``python -m tools.keywords`` writes this file from the tables of options."""

'''


def stub() -> str:
    """Return the text of the stub."""
    reader, writer = options_of(reader_options.OpeningOptions), options_of(WriterProperties)
    classes = {
        "DatasetReaderOptions": _types(row for row in reader.values() if row.level == "dataset"),
        "ReaderOptions": _types(row for row in reader.values() if row.level != "dataset"),
        "WriterOptions": _types(writer.values()),
    }
    names = {name for types in classes.values() for type_ in types.values() for name in _names(type_)} | {"TypedDict"}
    origins = {"TypedDict": "typing"} | _origins("fastpq.options") | _origins("fastpq.api.reader_options")
    imports: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(names & origins.keys()):
        imports[origins[name]].append(name)
    standard = [_import(origin, imports[origin]) for origin in sorted(imports) if not origin.startswith("fastpq")]
    own = [_import(origin, imports[origin]) for origin in sorted(imports) if origin.startswith("fastpq")]
    bases = {"ReaderOptions": "DatasetReaderOptions"}
    parts = [f"class {name}({bases.get(name, 'TypedDict')}, total=False):\n{_body(types)}" for name, types in classes.items()]
    return HEAD + "\n\n".join(["\n".join(standard), "\n".join(own), *parts]) + "\n"


def spark_stub() -> str:
    """Return the text of the stub for Spark. Names with a dot are no attributes, so classes that have some are made by calls.

    A class whose tables are some of those of a later class is a base of the later one.
    """
    parts = [SPARK_HEAD]
    for name, tables in option_keywords.TABLES.items():
        own_types = option_keywords.annotations_of(*tables)
        base = ""
        for other, other_tables in option_keywords.TABLES.items():
            if {*other_tables} < {*tables}:
                base, inherited_types = other, option_keywords.annotations_of(*other_tables)
                own_types = {key: type_ for key, type_ in own_types.items() if key not in inherited_types}
        if base and all(key.isidentifier() for key in own_types):
            parts.append(f"class {name}({base}, total=False):\n{_body(own_types)}\n")
            continue
        own_name = f"_{name}" if base else name
        items = "".join(f'        "{key}": {type_},\n' for key, type_ in own_types.items())
        parts.append(f'{own_name} = TypedDict(\n    "{own_name}",\n    {{\n{items}    }},\n    total=False,\n)\n')
        if base:
            parts.append(f"class {name}({own_name}, {base}, total=False): ...\n")
    return "\n".join(parts)


def _types(rows: Iterable[Option]) -> dict[str, str]:
    return {row.name: row.type for row in rows}


def _names(type_: str) -> set[str]:
    """Return the names in an annotation."""
    return {node.id for node in ast.walk(ast.parse(type_)) if isinstance(node, ast.Name)}


def _origins(module: str) -> dict[str, str]:
    """Return where each global name of a module comes from: the module of its import, or the module itself."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            found |= {alias.name: str(node.module) for alias in node.names}
        elif isinstance(node, ast.Assign):
            found |= {target.id: module for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.ClassDef):
            found[node.name] = module
    return found


def _import(origin: str, names: list[str]) -> str:
    line = f"from {origin} import {', '.join(names)}"
    return line if len(line) <= 130 else f"from {origin} import (\n{''.join(f'    {name},{chr(10)}' for name in names)})"


def _body(types: Mapping[str, str]) -> str:
    return "\n".join(f"    {name}: {type_}".replace("'", '"') for name, type_ in types.items())


def main() -> int:
    """Write or check the stubs. Return 1 if one is stale."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    texts = {STUB: stub(), SPARK_STUB: spark_stub()}
    if parser.parse_args().check:
        stale_stubs = [path for path, text in texts.items() if not path.exists() or path.read_text() != text]
        for path in stale_stubs:
            print(f"{path} is stale: python -m tools.keywords writes it")
        return 1 if stale_stubs else 0
    for path, text in texts.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
