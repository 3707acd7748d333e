"""advise_dataset: advice on a dataset, which is measured on sample files, and a recipe with steps."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np

from fastpq.advice.advice_report import Advice, AdviceReport, Caution, Topic, Use, names_of
from fastpq.advice.dataset_lookups import DatasetLookupAdvisor
from fastpq.advice.dataset_sample import MOST_KINDS, DatasetFiles, FileKind, first_error, joined_file, sample_of, type_name
from fastpq.advice.recipe_steps import RecipeStep, recipe_of
from fastpq.advice.single_file import advise_file
from fastpq.common.display import of_bytes
from fastpq.datasets.consolidation import small_row_groups
from fastpq.datasets.small_files import DEFAULT_TARGET_SIZE, LEAST_PART
from fastpq.errors import FormatError
from fastpq.options import DEFAULT_PROPERTIES, ReaderProperties

TYPES = "files with another type"
UNRELATED = "No column is in all files, so that they look like different tables. Ask for advice on each file by itself."
FILES, GROUPS = "files to open", "row groups"


class _Trial(NamedTuple):
    """What was found out about files that are alike.

    Attributes:
        kind: the files.
        sampled_files: how many files were tried.
        old_size: their stored bytes.
        new_size: their stored bytes after they were joined. If they are not joined, it is ``old_size``.
        report: advice on the joined file.
    """

    kind: FileKind
    sampled_files: int
    old_size: int
    new_size: int
    report: AdviceReport

    @property
    def growth(self) -> float:
        """Stored bytes in all these files, divided by those in the sample."""
        return self.kind.size / max(self.old_size, 1)


def advise_dataset(
    where: Any, use: Use, *, key: str | None, sample_rows: int, properties: ReaderProperties | None, keys: Any
) -> AdviceReport:
    """Return advice on a dataset. Arguments and errors are those of ``advise``.

    Raises:
        UnsupportedError: a file is encrypted.
    """
    dataset = DatasetFiles.of(where, keys)
    try:
        return _advise(dataset, use, key, sample_rows, properties)
    except FormatError as error:        # it names a copy in memory, and places in that copy
        if (file_error := first_error(dataset, properties)) is None:
            error.context["path"] = dataset.name
            raise
        raise file_error from None


def _advise(
    dataset: DatasetFiles, use: Use, key: str | None, sample_rows: int, properties: ReaderProperties | None
) -> AdviceReport:
    """Return advice on a dataset whose footers were read."""
    drift, cautions = type_drift(dataset)
    advice, steps = [each for each, _ in drift], [step for _, step in drift]
    codecs = _codecs_of(dataset)
    trials = [
        _tried(kind, "scan" if use == "lookup" else use, sample_rows, properties, codecs) for kind in dataset.kinds()[:MOST_KINDS]
    ]
    joining = list(_joining(dataset, trials))
    sampled_files = sum(trial.sampled_files for trial in trials)
    if use == "lookup":
        steps += [RecipeStep("compact")] if joining else []
        advisor = DatasetLookupAdvisor(dataset, key, sample_rows, steps)
        key = advisor.key
        advice += [*joining, *advisor.advice()]
        steps += advisor.steps
    else:
        advice += joining
        changes, own_steps, options = _changes(dataset, trials)
        advice += changes
        steps += own_steps
        if joining:
            steps.append(RecipeStep("compact", options))
    for trial in trials:
        cautions += [caution for caution in trial.report.cautions if caution not in cautions]
    return AdviceReport(
        path=dataset.name,
        use=use,
        size=dataset.size,
        num_rows=dataset.num_rows,
        sample_rows=sum(trial.report.sample_rows for trial in trials),
        advice=tuple(advice),
        cautions=tuple(cautions),
        recipe=recipe_of(steps) if advice else {},
        key=key if use == "lookup" else None,
        is_measured=use != "gpu",
        num_files=len(dataset.files),
        sampled_files=sampled_files,
    )


def _codecs_of(dataset: DatasetFiles) -> frozenset[int]:
    """Return the codecs in each file's first row group, as numbers."""
    groups = (file.footer.row_group(0) for file in dataset.files if file.footer.num_row_groups)
    return frozenset(group.column(index).codec for group in groups for index in range(group.num_columns))


def _tried(
    kind: FileKind, use: Use, sample_rows: int, properties: ReaderProperties | None, codecs: frozenset[int]
) -> _Trial:
    """Try changes on files that are alike. Files that would be joined are joined first, because that is what they become."""
    if kind.is_joined:
        files = sample_of(kind.files)
        data: Any = joined_file(files)
        new_size = len(data)
    else:
        files = [kind.middle_file]
        data = files[0].file.where
        new_size = files[0].size
    source = BytesIO(data) if isinstance(data, bytes) else data
    report = advise_file(source, use, sample_rows=sample_rows, properties=properties, other_codecs=codecs)
    return _Trial(kind, len(files), sum(file.size for file in files), new_size, report)


def _joining(dataset: DatasetFiles, trials: Sequence[_Trial]) -> Iterator[Advice]:
    """Yield the advice to join small files and small row groups."""
    if not dataset.groups:
        return
    recipe = recipe_of([RecipeStep("compact")])
    num_files, num_joined = len(dataset.files), dataset.num_joined
    joined = [trial for trial in trials if trial.kind.is_joined]
    old_size, new_size = sum(trial.old_size for trial in joined), sum(trial.new_size for trial in joined)
    evidence = ""
    if old_size:
        count = sum(trial.sampled_files for trial in joined)
        evidence = f" {count:,} of them take {of_bytes(old_size)}, and {of_bytes(new_size)} in one file of their kind."
    if num_joined < num_files:
        median = int(np.median([file.size for file in dataset.files]))
        text = (
            f"The files are small: half of {num_files:,} have at most {of_bytes(median)}. Each costs requests, a footer and row "
            f"groups of its own. Join them.{evidence}"
        )
        yield Advice("files", text, (), FILES, num_files, num_joined, None, recipe)
        return
    before = sum(file.footer.num_row_groups for file in dataset.files)
    after = before - sum(_fewer_groups([file.footer for file in group]) for group in dataset.groups)
    sizes = [count for file in dataset.files for count in file.footer.row_counts]
    text = (
        f"The row groups are unequal: {min(sizes):,} to {max(sizes):,} rows. A small one costs a request, a dictionary and an "
        f"entry in the footer. Join the small ones of each file.{evidence}"
    )
    yield Advice("row groups", text, (), GROUPS, before, after, None, recipe)


def _fewer_groups(footers: Sequence[Any]) -> int:
    """Return how many fewer row groups there are after ``compact`` has joined some files."""
    full = DEFAULT_PROPERTIES.row_group_size
    rows = count = 0
    for footer in footers:
        small = small_row_groups(footer, DEFAULT_TARGET_SIZE // LEAST_PART, full)
        count += len(small)
        rows += sum(footer.row_counts[number] for number in small)
    return count - -(-rows // full)


def _changes(dataset: DatasetFiles, trials: Sequence[_Trial]) -> tuple[list[Advice], list[RecipeStep], dict[str, Any]]:
    """Return what should be written differently, the steps that do it, and options for the files that are joined."""
    merged: dict[tuple[Topic, str], list[tuple[_Trial, Advice]]] = defaultdict(list)
    steps: list[RecipeStep] = []
    options: dict[str, Any] = {}
    for trial in trials:
        for each in trial.report.advice:
            merged[each.topic, each.text].append((trial, each))
        if not trial.report.advice:
            continue
        if trial.kind.is_joined and (not options or trial.kind is trials[0].kind):
            options = {name: value for name, value in trial.report.recipe.items() if name != "sort_by"}
        if not (trial.kind.is_joined and len(trials) == 1):     # otherwise, joining writes them anew
            steps.append(RecipeStep("rewrite", dict(trial.report.recipe), _names(dataset, trial.kind)))
    advice = [_merged(dataset, parts) for parts in merged.values()]
    return sorted(advice, key=lambda each: each.gain, reverse=True), steps, options


def _names(dataset: DatasetFiles, kind: FileKind) -> tuple[str, ...]:
    """Return the paths that a step has to name. There are none if the step is for all files."""
    with_rows = sum(1 for file in dataset.files if file.footer.num_rows)
    return () if len(kind.files) == with_rows else tuple(dataset.relative_path(file) for file in kind.files)


def _merged(dataset: DatasetFiles, parts: Sequence[tuple[_Trial, Advice]]) -> Advice:
    """Merge the same advice on several kinds into one, with the bytes for all their files."""
    first = parts[0][1]
    columns = tuple(dict.fromkeys(name for _, each in parts for name in each.columns))
    times = [each.decoding_seconds for _, each in parts if each.decoding_seconds is not None]
    num_files = sum(len(trial.kind.files) for trial, _ in parts)
    is_about_all = num_files == len(dataset.files)
    text = first.text if is_about_all else f"{first.text} This is about {num_files:,} of {len(dataset.files):,} files."
    steps = [RecipeStep("rewrite", dict(each.recipe), _names(dataset, trial.kind)) for trial, each in parts]
    return replace(
        first,
        text=text,
        columns=columns,
        before=int(sum(each.before * trial.growth for trial, each in parts)),
        after=int(sum(each.after * trial.growth for trial, each in parts)),
        decoding_seconds=(sum(one for one, _ in times), sum(other for _, other in times)) if times else None,
        recipe=recipe_of(steps),
    )


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
