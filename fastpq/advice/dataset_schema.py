"""type_drift: columns whose type differs between files in a dataset."""

from __future__ import annotations

from collections import Counter, defaultdict

from fastpq.advice.advice_report import Advice, Caution, names_of
from fastpq.advice.dataset_sample import DatasetFiles, type_name
from fastpq.advice.recipe_steps import RecipeStep, recipe_of

TYPES = "files with another type"
UNRELATED = "No column is in all files, so that they look like different tables. Ask for advice on each file by itself."


def type_drift(dataset: DatasetFiles) -> tuple[list[tuple[Advice, RecipeStep]], list[Caution]]:
    """Return advice to widen columns whose types differ, the steps for it, and cautions about other differences."""
    types: dict[str, Counter[str]] = defaultdict(Counter)
    for file in dataset.files:
        for column in file.footer.schema.columns:
            types[column.name][type_name(column.type)] += 1
    changes: list[tuple[Advice, RecipeStep]] = []
    cautions: list[Caution] = []
    for name, counts in types.items():
        if name in dataset.wider_types:
            changes.append(_widening(dataset, name, counts))
        elif len(counts) > 1:
            text = f"{name} is {' and '.join(sorted(counts))} in different files, and no type holds all its values unchanged."
            cautions.append(Caution("schema", text, (name,)))
    missing = tuple(name for name, counts in types.items() if counts.total() < len(dataset.files))
    if len(missing) == len(types) and missing:
        cautions.append(Caution("schema", UNRELATED, ()))
    elif missing:
        text = f"{names_of(missing)}: some files lack the column. Readers that take the schema from one file do not see it."
        cautions.append(Caution("schema", text, missing))
    return changes, cautions


def _widening(dataset: DatasetFiles, name: str, counts: Counter[str]) -> tuple[Advice, RecipeStep]:
    target = dataset.wider_types[name]
    files = tuple(
        dataset.relative_path(file)
        for file in dataset.files
        for column in file.footer.schema.columns
        if column.name == name and type_name(column.type) != target
    )
    texts = ", ".join(f"{count:,} files have {kind}" for kind, count in counts.most_common())
    text = f"{texts}. Filters convert values, files are not joined, and some readers refuse the dataset. Widen it to {target}."
    step = RecipeStep("evolve", {"types": {name: target}}, files)
    return Advice("schema", text, (name,), TYPES, len(files), 0, None, recipe_of([step])), step
