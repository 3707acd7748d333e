"""The tables of row groups, and of files, that a filter keeps or drops."""

from __future__ import annotations

from collections import Counter

from fastpq.cli.amounts import count_text, share_text, size_text
from fastpq.cli.pruning_report import PruningFacts, RowGroupPruningFacts, deciding_evidence
from fastpq.cli.terminal import Part, Styled
from fastpq.cli.verb import Session

MOST_ROW_GROUPS = 100
NARROW = 120  # columns below which advice stands under the table


def show_pruning(session: Session, facts: PruningFacts, number_of_file: int, is_whole: bool) -> None:
    """Print one line a row group."""
    from fastpq.cli.text_table import TableColumn, number, print_table, text

    groups = facts["row_groups"]
    session.headline(facts["file"], number_of_file)
    share = share_text(facts["bytes_read"], facts["bytes"])
    session.screen.line(
        f"  reads {facts['row_groups_read']:,} of {len(groups):,} row groups, ",
        f"{size_text(facts['bytes_read'])} of {size_text(facts['bytes'])}" + (f" ({share})" if share else ""),
    )
    session.screen.blank()
    shown_groups = groups if is_whole else groups[:MOST_ROW_GROUPS]
    headings = [
        number("group"),
        TableColumn(""),
        number("rows", 7),
        number("pages", 7),
        number("bytes"),
        number("matches"),
        text("by"),
        text("would help"),
    ]
    rows = [_row(each) for each in shown_groups]
    phrases = Counter(phrase for each in shown_groups for phrase in each["would_help"])
    is_below = session.screen.width < NARROW or max(phrases.values(), default=0) > 1      # a sentence stands there once
    print_table(
        session.screen, headings[:-1] if is_below else headings, [row[:-1] if is_below else row for row in rows], indent=2
    )
    if len(shown_groups) < len(groups):
        session.screen.line("  ", Styled(f"and {len(groups) - len(shown_groups):,} more row groups: --all shows them", "dim"))
    if is_below:
        _show_advice(session, groups)
    whole, part = (sum(test(each) for each in groups) for test in (_matches_wholly, _has_matches))
    for count, meaning in ((whole, "in which every row matches"), (part, "with rows that match")):
        if count:
            line = f"{count_text(count, 'row group')} {meaning}: no index leaves {'it' if count == 1 else 'them'} out"
            session.screen.line("  ", Styled(line, "dim"))


def show_files(session: Session, files: list[PruningFacts], is_whole: bool) -> None:
    """Print one line a file."""
    from fastpq.cli.text_table import TableColumn, number, print_table, text
    from fastpq.datasets.dataset_layout import start_of_names

    read = [each for each in files if each["row_groups_read"]]
    sizes = sum(each["bytes_read"] for each in files), sum(each["bytes"] for each in files)
    session.screen.line(
        f"reads {len(read):,} of {count_text(len(files), 'file')}, {size_text(sizes[0])} of {size_text(sizes[1])} in those opened"
    )
    session.screen.blank()
    start = start_of_names([each["file"] for each in files])
    shown_files = files if is_whole else files[:MOST_ROW_GROUPS]
    headings = [text("file"), TableColumn(""), number("groups", 9), number("bytes"), number("matches"), text("by")]
    print_table(session.screen, headings, [_file_row(each, start) for each in shown_files], indent=2)
    if len(shown_files) < len(files):
        session.screen.line("  ", Styled(f"and {len(files) - len(shown_files):,} more files: --all shows them", "dim"))
    _show_advice(session, [group for each in files for group in each["row_groups"]])


def _file_row(each: PruningFacts, start: int) -> list[Part]:
    """Return the line of a file: what is read of it, and what leaves out most of its row groups."""
    name, groups = each["file"][start:], each["row_groups"]
    if each["left_out"] is not None:
        return [name, Styled("not opened", "dim"), "", "", "", Styled(each["left_out"], "dim")]
    pieces = [deciding_evidence(group) for group in groups if not group["is_read"]]
    reasons = Counter(f"{evidence['kind']}: {evidence['condition']}" for evidence in pieces if evidence is not None)
    by = reasons.most_common(1)[0][0] if reasons else ""
    if not each["row_groups_read"]:
        return [name, Styled("dropped", "dim"), f"0 of {len(groups):,}", "", "", Styled(by, "dim")]
    counts = [group["matches"] for group in groups if group["is_read"]]
    matches: Part = "" if None in counts else f"{sum(count or 0 for count in counts):,}"
    if matches == "0":
        matches = Styled("0, in vain", "warning")
    parts = [f"{each['row_groups_read']:,} of {len(groups):,}", size_text(each["bytes_read"])]
    return [name, "kept", *parts, matches, by]


def _matches_wholly(each: RowGroupPruningFacts) -> bool:
    return each["every_row_matches"]


def _has_matches(each: RowGroupPruningFacts) -> bool:
    """Return whether some rows match, as --count tells."""
    return bool(each["matches"]) and not each["every_row_matches"]


def _show_advice(session: Session, groups: list[RowGroupPruningFacts]) -> None:
    """Print below the table what would have left out row groups or pages."""
    counts = Counter(phrase for each in groups for phrase in each["would_help"])
    if counts:
        session.screen.blank()
        session.screen.line("  ", Styled("would help", "heading"))
        for phrase, count in counts.most_common():
            session.screen.paragraph(f"{phrase} ({count_text(count, 'row group')})", indent=2)


def _row(each: RowGroupPruningFacts) -> list[Part]:
    evidence = deciding_evidence(each)
    by = "" if evidence is None else f"{evidence['kind']}: {evidence['condition']}"
    if evidence is not None and each["is_read"]:
        by = f"{evidence['kind']}: {evidence['finding']}"
    if not each["is_read"]:
        return [str(each["row_group"]), Styled("dropped", "dim"), f"{each['rows']:,}", "", "", "", Styled(by, "dim"), ""]
    is_vain = each["matches"] == 0
    pages = "" if each["pages"] is None else f"{each['pages']:,} of {each['all_pages']:,}"
    matches: Part = "" if each["matches"] is None else Styled("0, in vain", "warning") if is_vain else f"{each['matches']:,}"
    return [
        str(each["row_group"]),
        "kept",
        f"{each['rows']:,}",
        pages,
        size_text(each["bytes_read"]),
        matches,
        by or "no evidence",
        ", or ".join(each["would_help"]),
    ]
