"""Change: what one piece of advice changes in a file's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fastpq.advice.advice_report import Topic
from fastpq.advice.present_settings import FileStructure
from fastpq.advice.writing_settings import FileSettings
from fastpq.options import DEFAULT_PROPERTIES


@dataclass(frozen=True, slots=True)
class Change:
    """A change of settings.

    Attributes:
        topic: what the change is about.
        text: what is wrong, and what to do.
        of_file: FileSettings attributes with their new values.
        of_columns: ColumnSettings attributes with their new values, by dotted path.
    """

    topic: Topic
    text: str
    of_file: Mapping[str, Any] = field(default_factory=dict)
    of_columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def apply(self, settings: FileSettings) -> FileSettings:
        """Return the settings with the change."""
        columns = {**settings.columns}
        for name, values in self.of_columns.items():
            columns[name] = replace(columns[name], **values)
        return replace(settings, columns=columns, **self.of_file)


def structural_changes(structure: FileStructure) -> list[Change]:
    """Return changes of row groups and pages that are too small."""
    defaults = DEFAULT_PROPERTIES
    changes = []
    if structure.has_small_groups:
        text = (
            f"The row groups are small: {len(structure.facts.rows):,} for {int(structure.facts.rows.sum()):,} rows. Each costs "
            "an entry in the footer, a dictionary and a request. Write larger ones."
        )
        changes.append(Change("row groups", text, {"row_group_rows": defaults.row_group_size}))
    if structure.has_small_pages:
        text = "The pages are small. Each costs a header and an entry in the indexes. Write pages of the default size."
        pages = {"page_rows": defaults.data_page_rows, "page_bytes": defaults.data_page_size}
        changes.append(Change("pages", text, pages))
    return changes
