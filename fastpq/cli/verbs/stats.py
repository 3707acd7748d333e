"""Read columns and print statistics of their values.

Section: Look at values
"""

from __future__ import annotations

from typing import Any

import click

from fastpq.cli.cell_values import bound_cell
from fastpq.cli.row_output import columns_option, where_option
from fastpq.cli.value_summary import ColumnSummary, SummaryOfValues, ValueSummary
from fastpq.cli.verb import Session, verb

BATCH_ROWS = 65_536


@verb(
    examples=[
        ("fastpq stats items.parquet", "All columns, from the values themselves."),
        ("fastpq stats items.parquet -c price --where \"name == 'a'\"", "One column in some rows."),
    ],
    facts=SummaryOfValues,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@columns_option
@where_option
def command(session: Session, files: tuple[str, ...], columns: list[str] | None, filters: Any) -> None:
    """Read columns and print statistics, computed from the values. A --where may leave out rows by the statistics in the file."""
    rows = session.open_rows(files)
    summaries: dict[str, ValueSummary] = {}
    num_rows = 0
    with session.progress("reading") as bar:
        for table in rows.iter_batches(BATCH_ROWS, columns, filters=filters, progress=bar):
            num_rows += table.num_rows
            for name, column in table.items():
                summaries.setdefault(name, ValueSummary(name)).add(column)
    facts = SummaryOfValues(rows=num_rows, columns=[each.facts() for each in summaries.values()])
    session.emit(facts, lambda: _show(session, facts))


def _show(session: Session, facts: SummaryOfValues) -> None:
    from fastpq.cli.text_table import number, print_facts, text

    session.screen.line(f"{facts['rows']:,} rows")
    print_facts(session.screen, facts["columns"], [
        (text("column"), lambda each: each["column"]),
        (number("values"), lambda each: f"{each['values']:,}"),
        (number("nulls"), lambda each: f"{each['nulls']:,}" if each["nulls"] else ""),
        (number("distinct"), _distinct),
        (text("min"), lambda each: bound_cell(each["min"])),
        (text("max"), lambda each: bound_cell(each["max"])),
        (number("mean", 7), lambda each: _rounded(each["mean"])),
        (number("deviation", 6), lambda each: _rounded(each["deviation"])),
        (number("length", 5), lambda each: _rounded(each["mean_length"])),
    ])


def _distinct(each: ColumnSummary) -> str:
    return "" if each["distinct"] is None else f"{each['distinct']:,}" + ("+" if each["distinct_is_a_minimum"] else "")


def _rounded(value: float | str | None) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:.6g}"
