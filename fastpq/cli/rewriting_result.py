"""The results that verbs print after they have made a file from other files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from fastpq.cli.amounts import count_text, size_text
from fastpq.cli.places import STANDARD_STREAM, is_url, source_of, target_of
from fastpq.cli.terminal import Styled
from fastpq.cli.verb import Session

if TYPE_CHECKING:
    from fastpq.encryption.properties import FileDecryptionProperties
    from fastpq.rewriting.report import RewritingReport


class RewritingFacts(TypedDict):
    """A new file that was made from others.

    Attributes:
        file: the new file, or the folder that was changed.
        size: bytes, or null for a stream, a URL or a folder.
        left_out: broken indexes and metadata that are not in the new file, one sentence each.
        copied_pages: pages that were copied without decoding, or null if they were not counted.
        decoded_pages: pages that were decoded, or null.
        deleted_rows: rows that the new file does not have, or null.
    """

    file: str
    size: int | None
    left_out: list[str]
    copied_pages: int | None
    decoded_pages: int | None
    deleted_rows: int | None


def any_encrypted(session: Session, places: Sequence[Any]) -> bool:
    """Return whether at least one of the files at some places is encrypted. No keys are needed for this."""
    from fastpq.api.encryption_inspection import inspect_encryption

    inspections = (inspect_encryption(place, **session.reader_options) for place in places)
    return any(file.algorithm is not None for inspection in inspections for file in inspection.files)


def keys_if_encrypted(session: Session, place: str) -> FileDecryptionProperties | None:
    """Return the keys for a file, or None if the file is plaintext."""
    if place != STANDARD_STREAM and not any_encrypted(session, [place]):
        return None
    return session.keys.decryption_of(place)


def make_file(
    session: Session, source: str, output: str, what: str, function: Callable[..., RewritingReport], *, deletes: bool = False
) -> None:
    """Make a file from another one, and print what was done. The keys of an encrypted source are used for the new file too.

    Args:
        session: the call of the command.
        source, output: the places of both files.
        what: the work, for the progress bar.
        function: makes the file, for example a partial of ``sort_file``. It is called with source, target and common options.
        deletes: as for ``show_report``.
    """
    keys = keys_if_encrypted(session, source)
    with session.progress(what) as bar:
        report = function(
            source_of(source), target_of(output), decryption_properties=keys, progress=bar, **session.reader_options)
    show_report(session, report, output, deletes=deletes)


def show_report(session: Session, report: RewritingReport, output: str, *, deletes: bool = False) -> None:
    """Print what a rewriting function did, and what it left out.

    Text goes to standard error: one line about the new file, and one line for each part that was left out.

    Args:
        session: the call of the command.
        report: what the function returned.
        output: the new file.
        deletes: whether the verb deletes rows, so that their number is shown.
    """
    left_out = [str(each) for each in (*report.dropped_indexes, *report.dropped_metadata)]
    show_result(session, output, left_out, report, deletes=deletes)


def show_result(
    session: Session,
    output: str,
    left_out: list[str],
    report: RewritingReport | None = None,
    *,
    deletes: bool = False,
    says_json: bool = True,
) -> None:
    """Print the new file, its size, and what was left out.

    With ``--json`` and without ``says_json``, nothing is printed, because the verb prints facts of its own.
    """
    is_file = output != STANDARD_STREAM and not is_url(output) and os.path.isfile(output)
    size = os.path.getsize(output) if is_file else None
    if session.as_json and not says_json:
        return
    if session.as_json and output != STANDARD_STREAM:
        session.screen.json(_facts(output, size, left_out, report, deletes=deletes))
        return
    facts = ["written" if size is None else size_text(size)]
    if report is not None and deletes:
        facts.append(f"{count_text(report.deleted_rows, 'row')} deleted")
    session.note(f"{output}: {', '.join(facts)}")
    for each in left_out:
        session.note("  ", Styled("! ", "warning"), f"left out: {each}")


def _facts(
    output: str, size: int | None, left_out: list[str], report: RewritingReport | None, *, deletes: bool
) -> RewritingFacts:
    return RewritingFacts(
        file=output,
        size=size,
        left_out=left_out,
        copied_pages=None if report is None else report.copied_pages,
        decoded_pages=None if report is None else report.decoded_pages,
        deleted_rows=report.deleted_rows if report is not None and deletes else None,
    )
