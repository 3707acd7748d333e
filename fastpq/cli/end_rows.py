"""The verbs ``head`` and ``tail``: the first and the last rows of files and datasets, with and without a condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from fastpq.cli.row_output import RowTarget, columns_option, missing_key_option, target_options, where_option, write_rows
from fastpq.cli.verb import Session, Verb, verb

if TYPE_CHECKING:
    from fastpq.arrays.table import Table
    from fastpq.cli.places import OpenRows

EndOfRows: TypeAlias = "Callable[[OpenRows, int, list[str] | None, Any], Table]"


def first_matching_rows(rows: OpenRows, count: int, columns: list[str] | None, filters: Any) -> Table:
    """Return the first rows that match filters. Row groups behind them are not read."""
    from fastpq.arrays.table import Table

    if filters is None:
        return rows.head(count, columns)
    tables, missing = [], count
    for table in rows.iter_batches(max(1, min(count, 65_536)), columns, filters=filters):
        tables.append(table.slice(0, missing))
        missing -= tables[-1].num_rows
        if missing <= 0:
            break
    if not tables:
        return rows.read(columns, filters=filters)
    return tables[0] if len(tables) == 1 else Table.concat(tables)


def last_matching_rows(rows: OpenRows, count: int, columns: list[str] | None, filters: Any) -> Table:
    """Return the last rows that match filters. A file is read from its last row group backwards."""
    from fastpq.arrays.table import Table
    from fastpq.datasets.dataset import ParquetDataset

    if filters is None:
        return rows.tail(count, columns)
    if isinstance(rows, ParquetDataset):
        return rows.tail(count, columns, filters=filters)
    tables, missing = [rows.read(columns, row_groups=[], filters=filters)], count
    for group in reversed(range(rows.num_row_groups)):
        if missing <= 0:
            break
        table = rows.read(columns, row_groups=[group], filters=filters)
        tables.append(table.slice(max(0, table.num_rows - missing)))
        missing -= tables[-1].num_rows
    return Table.concat(tables[:0:-1]) if len(tables) > 1 else tables[0]


def verb_of_end(name: str, end: str, read: EndOfRows) -> Verb:
    """Return the verb that prints the rows at one end.

    Args:
        name: the verb, for its examples.
        end: ``first`` or ``last``.
        read: returns the rows.
    """

    @verb(
        examples=[
            (f"fastpq {name} items.parquet", "Ten rows."),
            (f"fastpq {name} -n 3 -c id,price items.parquet", "Three rows of two columns."),
            (
                f'fastpq {name} items.parquet --where "price < 2.5" --format jsonl',
                f"The {end} rows that match, as JSON lines.",
            ),
        ],
    )
    @click.argument("files", nargs=-1, required=True, metavar="FILE...")
    @click.option("-n", "count", type=click.IntRange(0), default=10, show_default=True, metavar="N", help="How many rows.")
    @columns_option
    @missing_key_option
    @where_option
    @target_options("table")
    def command(
        session: Session, files: tuple[str, ...], count: int, columns: list[str] | None, filters: Any, target: RowTarget
    ) -> None:
        write_rows(session.screen, [read(session.open_rows(files), count, columns, filters)], target)

    command.help = f"Print the {end} rows of a file or a dataset. Only the pages that hold them are read."
    return command
