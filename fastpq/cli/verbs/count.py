"""Count rows, all or those that match a condition.

Section: Look at values
"""

from __future__ import annotations

from typing import Any, TypedDict

import click

from fastpq.cli.row_output import where_option
from fastpq.cli.verb import Session, verb


class RowCount(TypedDict):
    """A number of rows.

    Attributes:
        rows: row count over all files.
    """

    rows: int


@verb(
    examples=[
        ("fastpq count items.parquet", "The row count, from the footer."),
        ("fastpq count 'folder/*.parquet' --where \"price >= 99\"", "Matching rows in many files."),
    ],
    facts=RowCount,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@where_option
def command(session: Session, files: tuple[str, ...], filters: Any) -> None:
    """Count rows. Statistics and indexes answer where they can."""
    count = session.open_rows(files).count(filters)
    session.emit(RowCount(rows=count), lambda: session.screen.line(str(count)))
