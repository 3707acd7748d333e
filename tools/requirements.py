"""Print the requirements of extras in pyproject.toml, one a line: ``python tools/requirements.py demo test``.

``build`` stands for the requirements of the build, ``library`` for the requirements of fastpq itself. tools/setup.sh installs
the packages while fastpq compiles; ``pip install '.[demo]'`` would compile first and install afterwards.
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
    """Requirements of the named lists; ``fastpq[name]`` is replaced by the requirements of its list."""
    for name in names:
        for requirement in lists[name]:
            if extras := EXTRAS_OF_EXTRAS.fullmatch(requirement):
                yield from requirements(extras[1].split(","), lists)
            else:
                yield requirement


def of(names: Iterable[str]) -> list[str]:
    """The requirements of some extras, each once; ``build`` and ``library`` as above."""
    described = tomllib.loads(PYPROJECT.read_text())
    lists = {
        "build": described["build-system"]["requires"],
        "library": described["project"]["dependencies"],
        **described["project"]["optional-dependencies"],
    }
    return list(dict.fromkeys(requirements(names, lists)))


def main() -> None:
    print("\n".join(of(sys.argv[1:])))


if __name__ == "__main__":
    main()
