"""How comments and docstrings read: the share of "of" among their words, and semicolons in a thousand words.

Stacked "of" and chains of clauses are the marks of sentences that have to be read twice. No word is forbidden: the two numbers
show a direction, and a reader who understands at once is the aim (design.md, section 9).

python -m tools.prose                      both numbers for each room
python -m tools.prose --check              fail if a number is above its bound
python -m tools.prose fastpq/read ...      the numbers of each file, and the lines that raise them
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "fastpq"
SUFFIXES = (".py", ".pyx", ".pxd", ".h", ".java")

WORD = re.compile(r"[A-Za-z']+")
# Prose of Cython: docstrings, and comments to the end of a line. Prose of C and Java: comments of both kinds.
CYTHON = re.compile(r'"""(.*?)"""|(?:^|\s)#(?!include|define|if|endif|else)([^\n]*)', re.DOTALL)
C = re.compile(r"/\*(.*?)\*/|(?:^|\s)//([^\n]*)", re.DOTALL)
COMMENTS = {".pyx": CYTHON, ".pxd": CYTHON, ".h": C, ".java": C}


class Measure(NamedTuple):
    """Counts over some text."""

    words: int = 0
    of: int = 0
    semicolons: int = 0

    @property
    def of_share(self) -> float:
        """Share of "of" among the words."""
        return self.of / max(self.words, 1)

    @property
    def semicolon_rate(self) -> float:
        """Semicolons in 1,000 words."""
        return 1000 * self.semicolons / max(self.words, 1)

    def __str__(self) -> str:
        return f"{self.words:7,} words  {self.of_share:5.1%} of  {self.semicolon_rate:5.1f} semicolons in 1,000"


class Bound(NamedTuple):
    """Largest values of both numbers."""

    of_share: float
    semicolon_rate: float


# A ratchet: whoever brings a number down lowers its bound in the same commit.
BOUNDS = {
    "spark": Bound(0.021, 2.5),
    "the other rooms": Bound(0.02, 2.0),
}


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments and docstrings of a file, each with its first line number."""
    source = path.read_text()
    if path.suffix == ".py":
        yield from _python_texts(source)
        return
    for match in COMMENTS[path.suffix].finditer(source):
        yield source.count("\n", 0, match.start()) + 1, next(filter(None, match.groups()), "")


def _python_texts(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            yield getattr(node.body[0], "lineno", 1), ast.get_docstring(node, clean=False) or ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def measure(text: str) -> Measure:
    """Count the words, "of" and semicolons of a text."""
    words = [word.lower() for word in WORD.findall(text)]
    return Measure(len(words), words.count("of"), text.count(";"))


def measure_files(paths: Iterable[Path]) -> Measure:
    """Add up the counts of the comments and docstrings in some files."""
    counts = [measure(text) for path in paths for _, text in texts(path)]
    return Measure(*(sum(column) for column in zip(*counts, strict=True))) if counts else Measure()


def sources(places: Iterable[Path]) -> list[Path]:
    """List the Python, Cython, C and Java files among some files and below some folders."""
    paths = (path for place in places for path in ([place] if place.is_file() else sorted(place.rglob("*"))))
    return [path for path in paths if path.suffix in SUFFIXES]


def sources_of(group: str) -> list[Path]:
    """List the files to which a bound applies."""
    spark = PACKAGE / "spark"
    if group == "spark":
        return sources([spark])
    return [path for path in sources([PACKAGE]) if not path.is_relative_to(spark)]


def excesses() -> list[str]:
    """Describe each number that is above its bound."""
    messages = []
    for group, bound in BOUNDS.items():
        measured = measure_files(sources_of(group))
        if measured.of_share > bound.of_share:
            messages.append(f'{group}: "of" is {measured.of_share:.2%} of the words, the bound is {bound.of_share:.2%}')
        if measured.semicolon_rate > bound.semicolon_rate:
            rates = f"{measured.semicolon_rate:.1f} semicolons in 1,000 words, the bound is {bound.semicolon_rate}"
            messages.append(f"{group}: {rates}")
    return messages


def show_lines(paths: Iterable[Path]) -> None:
    """Print the numbers of each file, and its lines with a semicolon or with two "of"."""
    for path in paths:
        print(f"{measure_files([path])}  {path}")
        for first, text in texts(path):
            for number, line in enumerate(text.splitlines(), first):
                if measure(line).semicolons or measure(line).of > 1:
                    print(f"  {number}: {line.strip()}")


def show_rooms() -> None:
    """Print the numbers of each room."""
    for room in sorted({path.relative_to(PACKAGE).parts[0] for path in sources([PACKAGE])}):
        print(f"{measure_files(sources([PACKAGE / room]))}  fastpq/{room}")
    for group in BOUNDS:
        print(f"{measure_files(sources_of(group))}  {group}")


def run(
    description: str | None,
    excesses: Callable[[], list[str]],
    show_places: Callable[[Iterable[Path]], None],
    show_rooms: Callable[[], None],
) -> int:
    """Run the command of a measure, and return its exit code: 1 if ``--check`` finds a number above its bound.

    Args:
        description: the text of ``--help``.
        excesses: describes each number that is above its bound.
        show_places: prints the measure of some files, and the lines behind it.
        show_rooms: prints the measure of each room.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", type=Path, help="files and folders whose lines are printed")
    parser.add_argument("--check", action="store_true", help="fail above a bound")
    options = parser.parse_args()
    messages = excesses() if options.check else []
    if options.check:
        print(*messages, sep="\n", end="\n" if messages else "")
    elif options.places:
        show_places(sources(options.places))
    else:
        show_rooms()
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(run(__doc__, excesses, show_lines, show_rooms))
