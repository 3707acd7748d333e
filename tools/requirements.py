"""Print the requirements of extras in pyproject.toml, one a line: ``python tools/requirements.py demo test``.

``build`` stands for the requirements of the build, ``library`` for those of fastpq itself. Run by tools/setup.sh, so that set-up
installs packages while fastpq compiles: ``pip install '.[demo]'`` would do one after the other.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
EXTRAS_OF_EXTRAS = re.compile(r"fastpq\[(.+)\]")


def requirements(names: Iterable[str], lists: dict[str, list[str]]) -> Iterator[str]:
    """The requirements in lists of these names, with those of ``fastpq[name]`` in its place."""
    for name in names:
        for requirement in lists[name]:
            if extras := EXTRAS_OF_EXTRAS.fullmatch(requirement):
                yield from requirements(extras[1].split(","), lists)
            else:
                yield requirement


def main() -> None:
    described = tomllib.loads(PYPROJECT.read_text())
    lists = {
        "build": described["build-system"]["requires"],
        "library": described["project"]["dependencies"],
        **described["project"]["optional-dependencies"],
    }
    print("\n".join(dict.fromkeys(requirements(sys.argv[1:], lists))))


if __name__ == "__main__":
    main()
