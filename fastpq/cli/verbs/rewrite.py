"""Write a file anew, with other codecs, row groups, order or indexes.

Section: Make files
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from fastpq.cli.failures import USAGE, CommandFailure
from fastpq.cli.places import STANDARD_STREAM, OpenRows, is_folder, is_glob, is_url, target_of
from fastpq.cli.rewriting_result import RewritingFacts, any_encrypted, show_result
from fastpq.cli.row_output import columns_option, where_option, with_empty_table
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import (
    encryption_options,
    naming_source,
    new_encryption,
    plaintext_option,
    property_options,
    read_recipe,
    refuse_plaintext_copy,
    target_option,
    writer_options,
)

BATCH_ROWS = 1 << 20


@verb(
    examples=[
        ("fastpq rewrite items.parquet -o small.parquet --compression zstd --compression-level 9", "Smaller pages."),
        ("fastpq rewrite items.parquet -o sorted.parquet --sort-by user --bloom-filter user", "Lookups by user read less."),
        ("fastpq rewrite folder -o better --recipe steps.json", "The steps of a recipe, made on the files of a folder."),
        ('fastpq rewrite items.parquet -o cheap.parquet --where "price < 10" --columns id,price', "Some rows and columns."),
    ],
    facts=RewritingFacts,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@target_option
@columns_option
@where_option
@property_options
@encryption_options
@plaintext_option
def command(
    session: Session, files: tuple[str, ...], output: str, columns: list[str] | None, filters: Any, plaintext: bool, **values: Any
) -> None:
    """Read rows and write them to a new file. --sort-by sorts within each row group.

    The target may be the source. Key-value metadata of one source are kept, and so are the bytes of its INT96 timestamps.

    A recipe with steps makes a file of a file, and a folder of a folder. A folder that is the target too is replaced in one step.
    """
    from fastpq.api.writer import ParquetWriter
    from fastpq.read.int96 import with_exact_int96

    if values["recipe"] is not None and "steps" in (recipe := read_recipe(values["recipe"])):
        _make_steps(session, files, output, recipe, {**values, "columns": columns, "filters": filters, "plaintext": plaintext})
        return
    options = writer_options(values)
    encryption = new_encryption(values, session.keys, output)
    places = session.files(files)
    refuse_plaintext_copy(STANDARD_STREAM not in places and any_encrypted(session, places), encryption, plaintext)
    rows = _open_rows(session, files, filters)
    batch_rows = min(BATCH_ROWS, options.get("row_group_size", BATCH_ROWS))
    with session.progress("writing") as bar, naming_source(places):
        batches = rows.iter_batches(batch_rows, columns, filters=filters, progress=bar)
        tables = with_empty_table(map(with_exact_int96, batches), lambda: rows.head(0, columns))
        with ParquetWriter(target_of(output), encryption_properties=encryption, **options) as writer:
            for table in tables:
                writer.write_table(table)
    show_result(session, output, [])


def _open_rows(session: Session, files: Sequence[str], filters: Any) -> OpenRows:
    """Open the rows. The INT96 timestamps of one file keep their bytes, unless a filter or an old calendar needs their times."""
    from fastpq.api.file import ParquetFile
    from fastpq.datasets.partition_filters import filtered_columns
    from fastpq.schema.types import Type

    rows = session.open_rows(files)
    if not rows.schema.has_int96 or not isinstance(rows, ParquetFile) or rows.metadata.calendar.is_hybrid:
        return rows
    names = {column.top.element.name for column in rows.schema.columns if column.physical_type is Type.INT96}
    if filters is not None and not names.isdisjoint(filtered_columns(filters)):
        return rows
    return rows._with_stored_int96()


def _make_steps(
    session: Session, files: tuple[str, ...], output: str, recipe: dict[str, Any], values: Mapping[str, Any]
) -> None:
    """Make the steps of a recipe. They keep rows and keys, so that no other option stands beside them."""
    from fastpq.advice.recipe_steps import replay

    context = click.get_current_context()
    others = [name for name in values if name != "recipe" and _is_given(context, name)]
    if others:
        raise CommandFailure(f"a recipe with steps stands alone, without --{others[0].replace('_', '-')}", USAGE)
    if len(files) > 1 or is_glob(files[0]) or is_url(files[0]) or STANDARD_STREAM in (files[0], output):
        raise CommandFailure("the steps of a recipe are made on one local file or folder, and give another", USAGE)
    if not is_folder(files[0]):
        target_of(output)
    with session.progress("making the steps") as bar:
        replay(files[0], output, recipe, progress=bar)
    show_result(session, output, [])


def _is_given(context: click.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source is not click.core.ParameterSource.DEFAULT
