"""Give columns of a file other names, field ids or wider types.

Section: Make files
"""

from __future__ import annotations

from functools import partial

import click

from fastpq.cli.failures import USAGE, CommandFailure
from fastpq.cli.rewriting_result import RewritingFacts, make_file
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import target_option


@verb(
    examples=[
        ("fastpq evolve items.parquet -o renamed.parquet --rename price:cost --field-id id:1", "A new name and a field id."),
        ("fastpq evolve items.parquet -o wide.parquet --type id:int64", "A wider type."),
    ],
    facts=RewritingFacts,
)
@click.argument("source", metavar="FILE")
@target_option
@click.option("--rename", multiple=True, metavar="OLD:NEW", help="A new name for a column. May be repeated.")
@click.option("--type", "types", multiple=True, metavar="NAME:TYPE", help="A wider type, int64 or float64. May be repeated.")
@click.option("--field-id", multiple=True, metavar="NAME:ID", help="A field id for a column, by its old name. May be repeated.")
def command(
    session: Session, source: str, output: str, rename: tuple[str, ...], types: tuple[str, ...], field_id: tuple[str, ...]
) -> None:
    """Copy a file page by page with other names, field ids or wider types of columns. The target may be the source.

    Only columns with wider types are decoded.

    An encrypted file keeps its keys.
    """
    from fastpq.rewriting.evolving import evolve_file

    names, ids = dict(_pair(text) for text in rename), dict(_pair(text) for text in field_id)
    if not all(number.isdecimal() for number in ids.values()):
        raise CommandFailure("a field id is not a number", USAGE)
    work = partial(
        evolve_file,
        names=names,
        field_ids={name: int(number) for name, number in ids.items()},
        types=dict(_pair(text) for text in types),
    )
    make_file(session, source, output, "copying", work)


def _pair(text: str) -> tuple[str, str]:
    """Return the two parts of NAME:VALUE."""
    name, colon, value = text.rpartition(":")
    if not colon or not name or not value:
        raise CommandFailure(f"{text!r} does not have the form NAME:VALUE", USAGE)
    return name, value
