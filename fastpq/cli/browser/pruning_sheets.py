"""Sheets about a filter: which row groups it keeps, by what evidence, and what would help to keep fewer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastpq.cli.amounts import share_text, size_text
from fastpq.cli.browser.browsed_file import BrowsedFile
from fastpq.cli.browser.sheet import Fact, FactSheet, RowSheet, Sheet, SheetColumn
from fastpq.cli.pruning_report import PruningFacts, RowGroupPruningFacts, deciding_evidence, pruning_facts
from fastpq.cli.terminal import Part, Styled


class PruningSheet(RowSheet):
    """The row groups under a filter, as ``fastpq why`` lists them.

    Args:
        title: the sheet's name.
        facts: what the filter reads.
    """

    columns = (
        SheetColumn("row group", True),
        SheetColumn(""),
        SheetColumn("rows", True),
        SheetColumn("pages"),
        SheetColumn("bytes read", True),
        SheetColumn("by", widest=60),
        SheetColumn("would help", widest=100),
    )

    def __init__(self, title: str, facts: PruningFacts) -> None:
        super().__init__()
        self.title, self._groups = title, facts["row_groups"]
        share = share_text(facts["bytes_read"], facts["bytes"])
        self.note = (
            f"reads {facts['row_groups_read']:,} of {len(self):,} row groups, "
            f"{size_text(facts['bytes_read'])} of {size_text(facts['bytes'])}" + (f" ({share})" if share else "")
        )

    def __len__(self) -> int:
        return len(self._groups)

    def make_row(self, row: int) -> Sequence[Part]:
        """Return whether a row group is kept, and why."""
        each = self._groups[row]
        evidence = deciding_evidence(each)
        if not each["is_read"]:
            by = "" if evidence is None else f"{evidence['kind']}: {evidence['condition']}"
            return str(each["row_group"]), Styled("dropped", "dim"), f"{each['rows']:,}", "", "", Styled(by, "dim"), ""
        pages = "" if each["pages"] is None else f"{each['pages']:,} of {each['all_pages']:,}"
        by = "no evidence" if evidence is None else f"{evidence['kind']}: {evidence['finding']}"
        size, advice = size_text(each["bytes_read"]), ", or ".join(each["would_help"])
        return str(each["row_group"]), "kept", f"{each['rows']:,}", pages, size, by, advice

    def opens(self, row: int, column: int) -> bool:
        """Each row group has its evidence."""
        return row < len(self)

    def open(self, row: int, column: int) -> Sheet:
        """Return all evidence about a row group."""
        return evidence_sheet(self._groups[row])


class GroupFilterSheet(PruningSheet):
    """The row groups under a filter that the user typed.

    Args:
        viewed_file: the file.
        condition: the condition, in the language of ``--where``.
        make_unfiltered: returns the row groups without a filter.
    """

    can_filter = True

    def __init__(self, viewed_file: BrowsedFile, condition: str, make_unfiltered: Any) -> None:
        from fastpq.cli.where_parser import parse_where

        file, filters = viewed_file.file, parse_where(condition)
        columns = file.readable_columns() if viewed_file.protection.algorithm else None
        super().__init__("row groups", pruning_facts(file, viewed_file.name, filters, columns, counts=False))
        self.condition, self._viewed_file, self._make_unfiltered = condition, viewed_file, make_unfiltered

    def filtered(self, text: str) -> Sheet:
        """Return the row groups under another condition, or without one."""
        return GroupFilterSheet(self._viewed_file, text, self._make_unfiltered) if text else self._make_unfiltered()


def evidence_sheet(group: RowGroupPruningFacts) -> Sheet:
    """Return all that the evidence says about one row group under a filter."""
    facts = [
        Fact("row group", f"{group['row_group']}: {'kept' if group['is_read'] else 'dropped'}"),
        Fact("candidates", f"{group['candidate_rows']:,} of {group['rows']:,} rows"),
        Fact("bytes read", f"{size_text(group['bytes_read'])} of {size_text(group['bytes'])}"),
        *(Fact(each["kind"], f"{each['condition']}: {each['finding']}") for each in group["evidence"]),
        *(Fact("would help", each) for each in group["would_help"]),
    ]
    return FactSheet(f"row group {group['row_group']}", facts)


def probe_sheet(viewed_file: BrowsedFile, column: int, text: str) -> Sheet:
    """Return which row groups and pages a lookup of one value reads, and why.

    Args:
        viewed_file: the file.
        column: leaf column index.
        text: the value, as the user typed it.

    Raises:
        CommandFailure: the text is not a value of the column.
    """
    from fastpq.cli.literals_of_columns import literal_for

    leaf = viewed_file.columns[column]
    facts = pruning_facts(viewed_file.file, viewed_file.name, [(column, "==", literal_for(leaf, text))], [column], counts=False)
    return PruningSheet(f"{leaf.name} == {text}", facts)
