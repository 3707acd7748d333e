"""What verbs share that change the keys of all files in a folder: checks of the arguments, and the result."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import click

from fastpq.cli.amounts import count_text
from fastpq.cli.failures import USAGE, CommandFailure
from fastpq.cli.places import is_folder, is_glob, is_url
from fastpq.cli.rewriting_result import RewritingFacts
from fastpq.cli.terminal import Styled
from fastpq.cli.verb import Session

if TYPE_CHECKING:
    from fastpq.datasets.key_change_report import KeyChangeReport


class KeyChangeFacts(TypedDict):
    """Files whose keys were changed.

    Attributes:
        folder: the folder.
        changed_files: files that were changed, or would be with --dry-run.
        unchanged_files: the other files.
        is_dry_run: whether nothing was changed.
        is_resumed: whether an interrupted job was finished.
        left_out: broken indexes and metadata that are not in the new files, one sentence each.
    """

    folder: str
    changed_files: list[str]
    unchanged_files: list[str]
    is_dry_run: bool
    is_resumed: bool
    left_out: list[str]


class FileOrFolderFacts(RewritingFacts):
    """A new file that was made from another, or a folder whose files were changed.

    Attributes:
        file: the new file, or the folder.
        size: bytes, or null for a stream, a URL or a folder.
        left_out: broken indexes and metadata that are not in the new files, one sentence each.
        copied_pages: pages that were copied without decoding, or null if they were not counted.
        decoded_pages: pages that were decoded, or null.
        deleted_rows: null, because no rows are deleted.
        changed_files: only for a folder: files that were changed, or would be with --dry-run.
        unchanged_files: only for a folder: the other files.
        is_dry_run: only for a folder: whether nothing was changed.
        is_resumed: only for a folder: whether an interrupted job was finished.
    """

    changed_files: NotRequired[list[str]]
    unchanged_files: NotRequired[list[str]]
    is_dry_run: NotRequired[bool]
    is_resumed: NotRequired[bool]


trusted_keys_option = click.option(
    "--trusted-keys", metavar="IDS", help="Master keys that files may name, with commas between them. Files name them themselves."
)


def check_folder(folder: str) -> None:
    """Refuse a place that does not exist or is not a folder."""
    if not is_glob(folder) and not is_url(folder) and not os.path.exists(folder):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
    if is_glob(folder) or not is_folder(folder):
        raise CommandFailure(f"{folder!r} is not a folder", USAGE, "fastpq encrypt and decrypt take one file too")


def check_one_target(source: str, output: str | None, *, dry_run: bool) -> bool:
    """Return whether a source is a folder. Refuse options that do not fit.

    Args:
        source: the place of a file or a folder.
        output: the new file, or None.
        dry_run: whether --dry-run is there.
    """
    if is_folder(source) or is_glob(source):
        check_folder(source)
        if output is not None:
            raise CommandFailure("a folder is changed itself, and takes no --output", USAGE, "copy the folder first to keep it")
        return True
    if output is None:
        raise CommandFailure("a file needs --output", USAGE, "-o FILE names the new file, which may be the old one")
    if dry_run:
        raise CommandFailure("--dry-run is for folders", USAGE)
    return False


def split_names(text: str | None) -> list[str] | None:
    """Return the names in a text with commas between them."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def show_key_changes(session: Session, folder: str, report: KeyChangeReport, *, dry_run: bool) -> None:
    """Print what was done with the files of a folder, as KeyChangeFacts or as text."""
    left_out = _left_out(report)
    facts = KeyChangeFacts(
        folder=folder, changed_files=list(report.changed_files), unchanged_files=list(report.unchanged_files),
        is_dry_run=dry_run, is_resumed=report.is_resumed, left_out=left_out)
    session.emit(facts, lambda: _show(session, folder, report, left_out, dry_run=dry_run))


def show_folder(session: Session, folder: str, report: KeyChangeReport, *, dry_run: bool) -> None:
    """Print what was done with the files of a folder, as FileOrFolderFacts or as text."""
    left_out = _left_out(report)
    facts = FileOrFolderFacts(
        file=folder, size=None, left_out=left_out, copied_pages=None, decoded_pages=None, deleted_rows=None,
        changed_files=list(report.changed_files), unchanged_files=list(report.unchanged_files), is_dry_run=dry_run,
        is_resumed=report.is_resumed)
    session.emit(facts, lambda: _show(session, folder, report, left_out, dry_run=dry_run))


def folder_options(session: Session, *, dry_run: bool, bar: Any) -> dict[str, Any]:
    """Return the options that all functions for folders take."""
    allows_plaintext_files = session.keys.allows_plaintext_files
    return {"dry_run": dry_run, "allow_plaintext_files": allows_plaintext_files, "progress": bar, **session.reader_options}


def _left_out(report: KeyChangeReport) -> list[str]:
    return [f"{file.path}: {part}" for file in report.files for part in file.left_out]


def _show(session: Session, folder: str, report: KeyChangeReport, left_out: list[str], *, dry_run: bool) -> None:
    text = f"{count_text(len(report.changed_files), 'file')} {'would be changed' if dry_run else 'changed'}"
    end = ", after an interrupted call" if report.is_resumed else ""
    session.note(f"{folder}: {text}, {len(report.unchanged_files):,} unchanged{end}")
    if dry_run:
        for file in report.files:
            session.screen.line(f"{file.path}: {file.reason}")
    for part in left_out:
        session.note("  ", Styled("! ", "warning"), f"left out: {part}")
