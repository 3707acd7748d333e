"""Advice and AdviceReport: what ``advise`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fastpq.common.display import LINE_WIDTH, Cell, Grid, Heading, Share, View, counted, of_bytes, shorten, to_html, to_text

Use = Literal["scan", "lookup", "web", "archive", "gpu"]
Topic = Literal[
    "compression", "encoding", "row groups", "pages", "bloom filter", "sorting", "statistics", "page index", "footer",
    "files", "schema",
]
OnMissingKey = Literal["raise", "skip"]
MOST_NAMES = 3      # columns that a line shows


@dataclass(frozen=True, slots=True)
class Advice:
    """One change that is worth making, with what it was measured to save.

    Attributes:
        topic: what the change is about.
        text: what is wrong, and what to do, in one or two sentences.
        columns: dotted paths of the columns that the change is about. Empty for the whole file.
        unit: what ``before`` and ``after`` count: ``"stored bytes"``, ``"bytes for one lookup"``, or ``"column chunks"`` that
            Spark misreads. For a dataset also ``"files to open"``, ``"row groups"`` and ``"files with another type"``.
        before, after: the measure for the whole file or dataset, without this change and with it.
        decoding_seconds: processor seconds to decode these columns in the sample, without the change and with it. None
            if the use does not ask for them.
        recipe: options with which ``fastpq rewrite --recipe`` makes this change alone, and keeps the rest as it is. For a dataset
            it has ``steps``. Empty if columns were not read.
    """

    topic: Topic
    text: str
    columns: tuple[str, ...]
    unit: str
    before: int
    after: int
    decoding_seconds: tuple[float, float] | None
    recipe: Mapping[str, Any]

    @property
    def gain(self) -> int:
        """How much of ``unit`` the change saves."""
        return self.before - self.after

    def __str__(self) -> str:
        names = f" [{names_of(self.columns)}]" if self.columns else ""
        return f"{self.topic}{names}: {self.text} {self.measure}"

    def amount(self, number: int) -> str:
        """Return a number as a text with its unit.

        Args:
            number: ``before``, ``after`` or ``gain``.
        """
        return of_bytes(number) if "bytes" in self.unit else f"{number:,}"

    @property
    def measure(self) -> str:
        """The measured numbers, as a text."""
        texts = [f"{self.unit}: {self.amount(self.before)} -> {self.amount(self.after)}"]
        if self.decoding_seconds is not None:
            one, other = self.decoding_seconds
            texts.append(f"decoding: {one * 1e3:.1f} -> {other * 1e3:.1f} ms")
        return f"({'; '.join(texts)})"


@dataclass(frozen=True, slots=True)
class Caution:
    """Something about a file's safety that a person should decide. No recipe changes it.

    Attributes:
        topic: ``"personal data"``, ``"algorithm"``, ``"AAD prefix"``, ``"footer"``, or ``"schema"`` for a dataset.
        text: what it is, and what helps.
        columns: dotted paths of the columns.
    """

    topic: str
    text: str
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.topic}: {self.text}"


@dataclass(frozen=True, slots=True)
class AdviceReport:
    """What ``advise`` found out about a file or a dataset.

    Attributes:
        path: the file, or the dataset.
        use: what the file is for.
        size: its size in bytes.
        num_rows: its rows.
        sample_rows: rows on which the changes were tried.
        advice: changes worth making, the largest gain first. Each was measured on top of those that were found before it.
        cautions: what concerns safety.
        recipe: all options that ``fastpq rewrite --recipe`` needs to make the changes and to keep the rest of the file as it is.
            Empty if there is no advice, or if columns were not read: how they are written is not known.
        key: the column by which a lookup looks. None for other uses, and if no column looks like a key.
        is_measured: whether gains were measured for the use. For ``"gpu"`` the rules are published ones, and only bytes are
            measured.
        num_files: how many files there are.
        sampled_files: how many files the changes were tried on.
        unread_columns: dotted paths of columns that were not looked at, because their keys, or keys of other parts of the same
            nested column, are missing. The report says nothing about them.
    """

    path: str
    use: Use
    size: int
    num_rows: int
    sample_rows: int
    advice: tuple[Advice, ...]
    cautions: tuple[Caution, ...]
    recipe: Mapping[str, Any]
    key: str | None = None
    is_measured: bool = True
    num_files: int = 1
    sampled_files: int = 1
    unread_columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [*map(str, self.advice), *map(str, self.cautions)] or [f"{self._nothing} for {self.use}"]
        return "\n".join([*lines, *self._unread])

    @property
    def _nothing(self) -> str:
        return "nothing to change in what was read" if self.unread_columns else "nothing to change"

    @property
    def _unread(self) -> list[str]:
        return [f"not looked at, because keys are missing: {names_of(self.unread_columns)}"] if self.unread_columns else []

    def __repr__(self) -> str:
        return to_text(self._view())

    def _repr_html_(self) -> str:
        return to_html(self._view())

    def _view(self) -> View:
        """Return the display: one row for each change, then the cautions."""
        facts = [f"for {self.use}", of_bytes(self.size), counted(self.num_rows, "row")]
        if self.num_files > 1:
            facts.append(f"{self.num_files:,} files, {self.sampled_files:,} of them tried")
        facts.append(counted(len(self.advice), "change") if self.advice else self._nothing)
        if not self.is_measured:
            facts.append("by published rules, not measured on a GPU")
        headings = [
            Heading("topic"), Heading("columns"), Heading("change", is_prose=True), Heading("measure"),
            Heading("before", is_number=True), Heading("after", is_number=True), Heading("gain"),
        ]
        rows: list[tuple[Cell, ...]] = [
            (each.topic, names_of(each.columns), each.text, each.unit, each.amount(each.before), each.amount(each.after),
             Share(each.amount(each.gain), min(1.0, max(0.0, each.gain / max(each.before, 1)))))
            for each in self.advice
        ]
        return View(
            "AdviceReport", facts, Grid(headings, rows) if rows else None, [*map(str, self.cautions), *self._unread],
            note=shorten(self.path, LINE_WIDTH)
        )


def names_of(columns: tuple[str, ...]) -> str:
    """Return the first names of some columns, and how many more there are."""
    rest = len(columns) - MOST_NAMES
    return ", ".join(columns[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
