"""Print random rows.

Section: Look at values
"""

from __future__ import annotations

import click

from fastpq.cli.row_output import RowTarget, columns_option, missing_key_option, target_options, write_rows
from fastpq.cli.verb import Session, verb


@verb(
    examples=[
        ("fastpq sample items.parquet", "Ten random rows."),
        ("fastpq sample -n 1000 --seed 7 items.parquet -o sample.csv", "The same 1,000 rows at each call, in a file."),
    ],
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-n", "count", type=click.IntRange(0), default=10, show_default=True, metavar="N", help="How many rows.")
@click.option("--seed", type=int, default=None, metavar="N", help="Equal seeds give equal rows.")
@columns_option
@missing_key_option
@target_options("table")
def command(
    session: Session, files: tuple[str, ...], count: int, seed: int | None, columns: list[str] | None, target: RowTarget
) -> None:
    """Print random rows in file order, each at most once and with equal chances. If there are fewer rows than N, print all."""
    rows = session.open_rows(files)
    write_rows(session.screen, [rows.sample(min(count, rows.num_rows), columns, seed=seed)], target)
