"""Walk through a file in the terminal: values, pages, indexes, bytes.

Section: Look at a file
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from fastpq.cli.failures import UNSUPPORTED, USAGE, CommandFailure
from fastpq.cli.places import STANDARD_STREAM, is_folder, is_glob
from fastpq.cli.terminal import escape_text, shortened
from fastpq.cli.verb import Session, verb
from fastpq.errors import KeyAccessError

if TYPE_CHECKING:
    from fastpq.cli.browser.browsed_file import BrowsedFile


@verb(
    examples=[
        ("fastpq browse items.parquet", "Enter opens what the cursor is on, Escape goes back, ? lists the keys."),
        ("fastpq browse secret.parquet", "What opens without a key. The key options are those of all verbs."),
    ],
)
@click.argument("file", metavar="FILE")
def command(session: Session, file: str) -> None:
    """Walk through a file in the terminal: schema, columns, row groups, pages, values, dictionaries, indexes, keys, bytes.

    The last line shows the keys that do something. Only the rows in view are read. Broken parts and missing keys show an error in
    their place. Values and row groups can be filtered by a condition in the language of --where.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        hint = f"fastpq inspect {file} prints the file on one screen" if file != STANDARD_STREAM else "name a file"
        raise CommandFailure("browse needs a terminal for its input and its output", USAGE, hint)
    with _opening(file):
        try:
            from fastpq.cli.browser.browser_app import BrowserApp
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("textual", "rich"):
                raise
            raise CommandFailure("browse needs the package textual", UNSUPPORTED, "pip install textual") from None
        from fastpq.cli.browser.file_sheets import file_sheet

        viewed_file = browsed_file(session, file)
    app = BrowserApp(partial(file_sheet, viewed_file), viewed_file.name)
    app.run()
    if not app.jobs.is_busy:
        viewed_file.close()
    session.exit_code = app.return_code or 0


@contextmanager
def _opening(place: str) -> Iterator[None]:
    """Show a line while textual is imported and the footer is read, and take it away afterwards."""
    line = shortened(f"opening {escape_text(place)}…", shutil.get_terminal_size().columns - 1)
    sys.stdout.write(line)
    sys.stdout.flush()
    try:
        yield
    finally:
        sys.stdout.write("\r\x1b[K")
        sys.stdout.flush()


def browsed_file(session: Session, place: str) -> BrowsedFile:
    """Open a file. A file whose encrypted footer has no key is opened without its footer."""
    from fastpq.cli.browser.browsed_file import BrowsedFile

    if place == STANDARD_STREAM:
        raise CommandFailure("browse reads keys from standard input, and cannot read a file from it", USAGE, "name a file")
    if is_folder(place) or is_glob(place):
        raise CommandFailure(f"browse shows one file, and {place!r} may be several", USAGE, "name one file")
    properties = session.reader_options.get("properties")
    try:
        return BrowsedFile(session.open(place), place, place, properties)
    except KeyAccessError:
        if not session.keys.is_empty:
            raise
        return BrowsedFile(None, place, place, properties)
