"""Compare every claim of files with their bytes, and show violations.

Section: Check and compare
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import click

from fastpq.cli.amounts import count_text, size_text
from fastpq.cli.failures import DIFFERENT, KEYS, UNSUPPORTED, command_words, failure_of
from fastpq.cli.places import name_of_place, source_of
from fastpq.cli.terminal import Part, Styled
from fastpq.cli.verb import Session, verb
from fastpq.errors import KeyAccessError

if TYPE_CHECKING:
    from fastpq.verify.file_check import VerificationReport

MOST_VIOLATIONS = 1000
SHOWN_COLUMNS = 3       # of those that have the same case


class ViolationFacts(TypedDict):
    """One sentence of the specification that the file breaks.

    Attributes:
        part: the part of the file that is wrong.
        message: what is wrong.
        section: the section of the specification.
        row_group: index of the row group, or null.
        column: dotted path, or null.
        page: number of the data page in its column chunk, or null.
        offset: offset in the file, or null.
        readers: what other readers do, if it is known that they differ, or null.
        harmless: whether no reader is known that uses the wrong number.
    """

    part: str
    message: str
    section: str
    row_group: int | None
    column: str | None
    page: int | None
    offset: int | None
    readers: str | None
    harmless: bool


class ReaderDifferenceFacts(TypedDict):
    """Something legal that readers understand differently.

    Attributes:
        case: what the file has.
        readers: what other readers do.
        fastpq: what fastpq does.
        row_group: index of the first row group with the case, or null.
        column: dotted path, or null.
    """

    case: str
    readers: str
    fastpq: str
    row_group: int | None
    column: str | None


class UncheckedFacts(TypedDict):
    """A part of the file that was not checked.

    Attributes:
        part: the part.
        reason: why it was not checked.
        row_group: index of the row group, or null.
        column: dotted path, or null.
        needs_key: whether a key is missing.
    """

    part: str
    reason: str
    row_group: int | None
    column: str | None
    needs_key: bool


class VerificationFacts(TypedDict):
    """What a verification found in one file.

    Attributes:
        file: the file.
        bytes: size of the file.
        sound: whether there is no violation, except for harmless ones.
        complete: whether nothing was left out.
        quick: whether pages were not decoded.
        rows: rows by the footer.
        column_chunks: column chunks that were walked.
        pages: data pages that were walked.
        violation_count: number of violations that do harm.
        harmless_count: number of harmless violations.
        violations: the violations. ``--most`` may cut the list.
        differences: legal cases that readers understand differently.
        unchecked: parts that were not checked.
    """

    file: str
    bytes: int
    sound: bool
    complete: bool
    quick: bool
    rows: int
    column_chunks: int
    pages: int
    violation_count: int
    harmless_count: int
    violations: list[ViolationFacts]
    differences: list[ReaderDifferenceFacts]
    unchecked: list[UncheckedFacts]


@verb(
    examples=[
        ("fastpq verify items.parquet", "Everything is right: exit code 0."),
        ("fastpq verify damaged.parquet", "Where a bit was flipped. Exit code 1."),
        ("fastpq verify --quick folder", "Many files, without decoding pages."),
    ],
    facts=VerificationFacts,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--quick", is_flag=True, help="Decode no pages: headers, checksums, tags, indexes and the footer alone.")
@click.option(
    "--most", type=click.IntRange(0), default=MOST_VIOLATIONS, show_default=True, metavar="N",
    help="Violations of a file that are shown. The others are counted.",
)
def command(session: Session, files: tuple[str, ...], quick: bool, most: int) -> None:
    """Compare offsets, sizes, counts, checksums, tags, indexes, bloom filters, statistics, levels and values with each other.

    The exit code is 1 if a file has a violation that is not harmless. It is 4 if a column was left out because its key is
    missing, and 5 if something else was left out.
    """
    all_facts = []
    places = session.files(files)
    for number, place in enumerate(places):
        try:
            facts = _verify(session, place, quick, most)
        except KeyAccessError as error:
            if len(places) == 1:
                raise
            facts = _unopened(name_of_place(place), quick, error)
        all_facts.append(facts)
        session.emit(facts, lambda facts=facts, number=number: _show(session, facts, number))  # type: ignore[misc]
    unchecked = [part for facts in all_facts for part in facts["unchecked"]]
    if any(facts["violation_count"] for facts in all_facts):
        session.exit_code = DIFFERENT
    elif unchecked:
        session.exit_code = KEYS if any(part["needs_key"] for part in unchecked) else UNSUPPORTED


def _verify(session: Session, place: str, quick: bool, most: int) -> VerificationFacts:
    from fastpq.verify.file_check import verify_file

    with session.progress("verifying") as bar:
        report = verify_file(
            source_of(place), quick=quick, most_violations=most, progress=bar,
            decryption_properties=session.keys.decryption_of(place), **session.reader_options,
        )
    return _facts(name_of_place(place), report)


def _unopened(name: str, quick: bool, error: KeyAccessError) -> VerificationFacts:
    """Return the facts about a file whose footer is encrypted, and has no key."""
    message = failure_of(error).message
    reason = UncheckedFacts(part="footer", reason=message, row_group=None, column=None, needs_key=True)
    return VerificationFacts(
        file=name, bytes=0, sound=False, complete=False, quick=quick, rows=0, column_chunks=0, pages=0, violation_count=0,
        harmless_count=0, violations=[], differences=[], unchecked=[reason],
    )


def _facts(name: str, report: VerificationReport) -> VerificationFacts:
    return VerificationFacts(
        file=name,
        bytes=report.size,
        sound=report.is_sound,
        complete=report.is_complete,
        quick=report.is_quick,
        rows=report.num_rows,
        column_chunks=report.num_chunks,
        pages=report.num_pages,
        violation_count=report.num_violations,
        harmless_count=report.num_harmless,
        violations=[
            ViolationFacts(
                part=each.part, message=each.message, section=each.section, row_group=each.place.row_group,
                column=each.place.column, page=each.place.page, offset=each.place.offset, readers=each.readers,
                harmless=each.is_harmless,
            )
            for each in report.violations
        ],
        differences=[
            ReaderDifferenceFacts(
                case=each.case, readers=each.readers, fastpq=each.fastpq, row_group=each.place.row_group, column=each.place.column
            )
            for each in report.differences
        ],
        unchecked=[
            UncheckedFacts(
                part=each.part, reason=command_words(each.reason), row_group=each.place.row_group, column=each.place.column,
                needs_key=each.needs_key,
            )
            for each in report.unchecked
        ],
    )


def _show(session: Session, facts: VerificationFacts, number: int) -> None:
    screen = session.screen
    session.headline(facts["file"], number)
    if not facts["bytes"] and facts["unchecked"]:
        screen.line("  ", Styled("! ", "warning"), f"not checked: {facts['unchecked'][0]['reason']}")
        return
    amounts = [
        size_text(facts["bytes"]), count_text(facts["rows"], "row"), count_text(facts["column_chunks"], "column chunk"),
        count_text(facts["pages"], "page"),
    ]
    screen.line("  ", Styled(", ".join([*amounts, *(["not decoded"] if facts["quick"] else [])]), "dim"))
    _show_violations(session, facts)
    for case, readers, own in dict.fromkeys((each["case"], each["readers"], each["fastpq"]) for each in facts["differences"]):
        columns = [each["column"] for each in facts["differences"] if each["case"] == case and each["column"]]
        parts: list[Part] = [Styled("readers differ ", "label"), Styled(case, "strong")]
        parts += [f" in {', '.join(columns[:SHOWN_COLUMNS])}"] if columns else []
        parts += [f" and {len(columns) - SHOWN_COLUMNS} more columns"] if len(columns) > SHOWN_COLUMNS else []
        screen.line("  ", *parts)
        screen.paragraph(f"{readers}; fastpq: {own}", indent=4)
    for part in facts["unchecked"]:
        place = f" of {part['column']}" if part["column"] else ""
        screen.line("  ", Styled("! ", "warning"), f"not checked: {part['part']}{place}: {part['reason']}")
    if facts["violation_count"]:
        screen.line("  ", Styled(count_text(facts["violation_count"], "violation"), "error"))
    elif facts["sound"]:
        screen.line("  ", Styled("no violation" if facts["complete"] else "no violation in what was checked", "good"))


def _show_violations(session: Session, facts: VerificationFacts) -> None:
    screen = session.screen
    for each in facts["violations"]:
        names = ("column", "row_group", "page", "offset")
        place = ", ".join(f"{name.replace('_', ' ')} {each[name]}" for name in names if each[name] is not None)  # type: ignore[literal-required]
        part: list[Part] = [Styled("harmless ", "dim"), each["part"]] if each["harmless"] else [Styled(each["part"], "strong")]
        screen.line("  ", *part, f"  {place}" if place else "")
        screen.paragraph(f"{each['message']}  [{each['section']}]", indent=4)
    for readers in dict.fromkeys(each["readers"] for each in facts["violations"] if each["readers"]):
        screen.facts([("readers differ", readers)], indent=2)
    hidden = facts["violation_count"] + facts["harmless_count"] - len(facts["violations"])
    if hidden:
        screen.line("  ", Styled(f"and {count_text(hidden, 'violation')} more: --most N shows them", "dim"))
