"""Names that are bare participles: the share of ``found``, ``wanted``, ``given`` ... among assigned names and arguments.

A participle alone does not say what a thing is. With its noun it does: ``found`` may be ``matches`` or ``matching_rows``, and
``wanted`` may be ``requested_columns``. A truth value may be an adjective (``nested``), or begin with ``is_`` or ``has_``.

python -m tools.names                      the share of each room, and its most frequent participles
python -m tools.names --check              fail if the share of the package is above its bound
python -m tools.names fastpq/read ...      each place in the given files and folders
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.prose import BOUNDS, PACKAGE, run, sources, sources_of

REGULAR = re.compile(r"[a-z]+ed")
IRREGULAR = frozenset({
    "begun", "bought", "broken", "brought", "built", "caught", "chosen", "cut", "dealt", "done", "drawn", "driven", "fallen",
    "fed", "felt", "forgotten", "found", "given", "gone", "grown", "heard", "held", "hidden", "hung", "kept", "known", "laid",
    "led", "left", "lent", "lit", "lost", "made", "meant", "met", "overridden", "paid", "proven", "put", "said", "seen",
    "sent", "shown", "shut", "sold", "sought", "spent", "spoken", "spread", "stolen", "stuck", "swept", "taken", "taught",
    "thought", "thrown", "told", "torn", "understood", "undone", "unknown", "unseen", "withdrawn", "won", "written",
})
# Nouns and verbs that end like a participle.
NOUNS = frozenset({"embed", "exceed", "feed", "need", "seed", "shed", "shred", "speed"})
# Adjectives of the format and of Python, used for truth values: ``closed`` as in io, ``nested`` as in a nested column.
ADJECTIVES = frozenset({"closed", "encrypted", "masked", "nested", "ordered", "required", "shredded", "signed", "unsigned"})

# A ratchet, as in tools/prose.py.
MOST = {"spark": 0.003, "the other rooms": 0.004}


def assigned_names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each assigned name and each argument in a Python file, with its line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg) and node.arg not in ("self", "cls"):
            yield node.lineno, node.arg


def is_bare_participle(name: str) -> bool:
    """Whether a name is one participle, and nothing else."""
    word = name.strip("_")
    return (word in IRREGULAR or REGULAR.fullmatch(word) is not None) and word not in NOUNS | ADJECTIVES


def participles(paths: Iterable[Path]) -> tuple[Counter[str], int]:
    """Count the bare participles and all names in some files; Python alone, since Cython and C have no parser here."""
    names = [name for path in paths if path.suffix == ".py" for _, name in assigned_names(path)]
    return Counter(name for name in names if is_bare_participle(name)), len(names)


def share_of(paths: Iterable[Path]) -> float:
    """Return the share of bare participles among the names of some files."""
    counts, names = participles(paths)
    return counts.total() / max(names, 1)


def excesses() -> list[str]:
    """Describe each share that is above its bound."""
    shares = {group: share_of(sources_of(group)) for group in BOUNDS}
    return [
        f"{group}: bare participles are {share:.2%} of the names, the bound is {MOST[group]:.2%}"
        for group, share in shares.items()
        if share > MOST[group]
    ]


def show_rooms() -> None:
    """Print the share of each room, and its most frequent participles."""
    rooms = sorted({path.relative_to(PACKAGE).parts[0] for path in sources([PACKAGE])})
    places = {room: sources([PACKAGE / room]) for room in rooms} | {group: sources_of(group) for group in BOUNDS}
    for room, paths in places.items():
        counts, _ = participles(paths)
        frequent = ", ".join(f"{name} {count}" for name, count in counts.most_common(8))
        print(f"{share_of(paths):6.2%}  {room:16} {frequent}")


def show_places(paths: Iterable[Path]) -> None:
    """Print the place of each bare participle in some files."""
    for path in paths:
        for line, name in assigned_names(path) if path.suffix == ".py" else ():
            if is_bare_participle(name):
                print(f"{path}:{line}: {name}")


if __name__ == "__main__":
    sys.exit(run(__doc__, excesses, show_places, show_rooms))
