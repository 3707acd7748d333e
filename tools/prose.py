"""Share of empty words in comments and docstrings: what, that, which, those, it, them, such, whatever.

python -m tools.prose                      the share of each room
python -m tools.prose --check              nothing, or a failure above the bound
python -m tools.prose fastpq/read ...      the lines with empty words in the given files and folders
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EMPTY = frozenset({"what", "that", "which", "those", "it", "them", "such", "whatever"})
MOST = 0.02         # largest share of empty words among all words of the package
SUFFIXES = (".py", ".pyx", ".pxd", ".h")

WORD = re.compile(r"[A-Za-z']+")
# Prose of Cython: docstrings, and comments to the end of a line. Prose of C: block comments.
CYTHON = re.compile(r'"""(.*?)"""|(?:^|\s)#(?!include|define|if|endif|else)([^\n]*)', re.DOTALL)
C = re.compile(r"/\*(.*?)\*/", re.DOTALL)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and docstrings of a file, each with its first line number."""
    source = path.read_text()
    if path.suffix == ".py":
        yield from _python_texts(source)
        return
    for match in (C if path.suffix == ".h" else CYTHON).finditer(source):
        yield source.count("\n", 0, match.start()) + 1, next(filter(None, match.groups()), "")


def _python_texts(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            yield getattr(node.body[0], "lineno", 1), ast.get_docstring(node, clean=False) or ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def count(path: Path) -> tuple[int, int]:
    """Number of empty words, and number of all words, in a file."""
    words = [word.lower() for _, text in texts(path) for word in WORD.findall(text)]
    return sum(word in EMPTY for word in words), len(words)


def sources(places: list[Path]) -> list[Path]:
    """Python, Cython and C files among the given files and below the given folders."""
    found = (path for place in places for path in ([place] if place.is_file() else sorted(place.rglob("*"))))
    return [path for path in found if path.suffix in SUFFIXES]


def show_lines(paths: list[Path]) -> None:
    """Print the share of each file, and the lines with empty words."""
    for path in paths:
        share, words = share_of([path])
        print(f"{share:.1%} of {words} words  {path}")
        for first, text in texts(path):
            for number, line in enumerate(text.splitlines(), first):
                if EMPTY & {word.lower() for word in WORD.findall(line)}:
                    print(f"  {number}: {line.strip()}")


def show_rooms() -> None:
    """Print the share of each room."""
    for room in sorted({path.relative_to(ROOT / "fastpq").parts[0] for path in sources([ROOT / "fastpq"])}):
        share, words = share_of(sources([ROOT / "fastpq" / room]))
        print(f"{share:6.1%} of {words:6,} words  fastpq/{room}")
    share, words = share_of(sources([ROOT / "fastpq"]))
    print(f"{share:6.1%} of {words:6,} words  fastpq")


def share_of(paths: list[Path]) -> tuple[float, int]:
    """The share of empty words in some files, and the number of all words."""
    counts = [count(path) for path in paths]
    words = sum(each[1] for each in counts)
    return sum(each[0] for each in counts) / max(words, 1), words


def main() -> int:
    """1 if the check finds a share above the bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", type=Path, help="files and folders whose lines are printed")
    parser.add_argument("--check", action="store_true", help="fail above the bound")
    given = parser.parse_args()
    if given.check:
        share, _ = share_of(sources([ROOT / "fastpq"]))
        if share > MOST:
            print(f"empty words are {share:.1%} of the words in comments and docstrings, {MOST:.0%} are allowed")
        return int(share > MOST)
    if given.places:
        show_lines(sources(given.places))
    else:
        show_rooms()
    return 0


if __name__ == "__main__":
    sys.exit(main())
