"""Print rows, all or those that match a condition.

Section: Look at values
"""

from __future__ import annotations

from typing import Any

import click

from fastpq.cli.row_output import (
    RowTarget,
    columns_option,
    missing_key_option,
    target_options,
    where_option,
    with_empty_table,
    write_rows,
)
from fastpq.cli.verb import Session, verb

BATCH_ROWS = 16_384


@verb(
    examples=[
        ("fastpq cat items.parquet", "All rows as CSV, in bounded memory."),
        ("fastpq cat items.parquet -w \"name == 'a' and price < 2.5\" -f jsonl", "Matching rows as JSON lines."),
        ("fastpq cat items.parquet -o items.npz", "Arrays for numpy.load. Other endings: .csv, .jsonl, .arrow."),
    ],
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@columns_option
@missing_key_option
@where_option
@target_options("csv")
def command(session: Session, files: tuple[str, ...], columns: list[str] | None, filters: Any, target: RowTarget) -> None:
    """Print the rows of a file or a dataset.

    Row groups and pages that the condition rules out are not read. In CSV a null is an empty field, and lists and structs are
    JSON. In JSON, bytes are base64, and decimals, times and NaN are text.
    """
    rows = session.open_rows(files)
    with session.progress("writing") as bar:
        progress = bar if target.output is not None else None
        tables = rows.iter_batches(BATCH_ROWS, columns, filters=filters, progress=progress)
        write_rows(session.screen, with_empty_table(tables, lambda: rows.head(0, columns)), target)
