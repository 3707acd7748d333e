"""The registry of verbs: names and summaries come from the files' first lines, so that ``--help`` imports no verb.

The first line of a verb's docstring is its summary. A line ``Section: NAME`` puts the verb into a section of ``fastpq --help``.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache
from typing import NamedTuple

from fastpq.cli import verbs
from fastpq.cli.verb import Verb, VerbGroup

# Sections of ``fastpq --help``, in their order. A verb with another section comes last.
SECTIONS = ("Look at a file", "Look at values", "Check and compare", "Make files", "Keys", "This machine")


class VerbSummary(NamedTuple):
    """One verb as ``fastpq --help`` shows it.

    Attributes:
        name: what the user types.
        summary: one sentence.
        section: heading above the verb.
    """

    name: str
    summary: str
    section: str


@lru_cache(maxsize=1)
def summaries() -> tuple[VerbSummary, ...]:
    """Return all verbs by section, and by name within a section."""
    names = [module.name for module in pkgutil.iter_modules(verbs.__path__)]
    places = {section: place for place, section in enumerate(SECTIONS)}
    return tuple(sorted(map(_summary, names), key=lambda each: (places.get(each.section, len(places)), each.name)))


def load(name: str) -> Verb | VerbGroup | None:
    """Return the command of a verb, or None if there is no such verb."""
    module_name = name.replace("-", "_")
    if module_name not in {each.name.replace("-", "_") for each in summaries()}:
        return None
    command = importlib.import_module(f"{verbs.__name__}.{module_name}").command
    assert isinstance(command, Verb | VerbGroup)
    command.name = name
    return command


def _summary(module_name: str) -> VerbSummary:
    doc = _docstring(module_name)
    lines = doc.strip().splitlines() or [""]
    section = next((line.partition(":")[2].strip() for line in lines if line.startswith("Section:")), "")
    return VerbSummary(module_name.replace("_", "-"), lines[0].rstrip("."), section)


def _docstring(module_name: str) -> str:
    """Return a module's docstring without importing the module. A module without source is imported."""
    for folder in verbs.__path__:
        try:
            with open(f"{folder}/{module_name}.py", encoding="utf-8") as file:
                text = file.read(2048)
        except OSError:
            continue
        if text.startswith('"""'):
            return text[3:].partition('"""')[0]
    return importlib.import_module(f"{verbs.__name__}.{module_name}").__doc__ or ""
