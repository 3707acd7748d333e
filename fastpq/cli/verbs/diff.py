"""Compare two files: schema, metadata, layout and values.

Section: Check and compare
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import click

from fastpq.cli.amounts import count_text
from fastpq.cli.cell_values import value_text
from fastpq.cli.failures import DIFFERENT
from fastpq.cli.places import name_of_place
from fastpq.cli.row_output import columns_option, where_option
from fastpq.cli.schema_contract import SchemaDifference, broken_clauses
from fastpq.cli.terminal import Part, Styled
from fastpq.cli.value_comparison import ValueComparison, ValueFacts
from fastpq.cli.verb import Session, verb

if TYPE_CHECKING:
    from fastpq.api.file import ParquetFile
    from fastpq.cli.places import OpenRows

PARTS = ("schema", "metadata", "layout", "values")


class FactDifference(TypedDict):
    """One fact that differs.

    Attributes:
        name: what differs.
        one: in the first file.
        other: in the second file.
    """

    name: str
    one: str | None
    other: str | None


class DiffFacts(TypedDict):
    """How two files differ.

    Attributes:
        one: the first file.
        other: the second file.
        equal: whether the exit code is 0.
        schema: drift of the schema. The contract is the first file.
        metadata: differences in writer and key-value metadata.
        layout: differences in row groups, codecs, encodings and sizes.
        values: drift of the values, or null if they were not compared.
    """

    one: str
    other: str
    equal: bool
    schema: list[SchemaDifference]
    metadata: list[FactDifference]
    layout: list[FactDifference]
    values: ValueFacts | None


@verb(
    examples=[
        ("fastpq diff items.parquet items.parquet", "Nothing differs: exit code 0."),
        ("fastpq diff items.parquet changed.parquet", "What differs, with the first values. Exit code 1."),
        (
            "fastpq diff items.parquet changed.parquet --key id --tolerance 1e-9",
            "Rows belong together by key, and numbers may differ a little.",
        ),
        ("fastpq diff items.parquet changed.parquet --only schema", "The schema alone, without reading values."),
    ],
    facts=DiffFacts,
)
@click.argument("one", metavar="ONE")
@click.argument("other", metavar="OTHER")
@click.option("--key", metavar="NAMES", help="Columns that identify a row, with commas between them.")
@click.option(
    "--tolerance", type=click.FloatRange(0), default=0.0, metavar="X", help="Numbers that differ by at most X are equal."
)
@click.option("--ignore-order", is_flag=True, help="Compare the rows as a set in which rows may repeat.")
@click.option("--only", multiple=True, type=click.Choice(PARTS), help="Compare this part. May be repeated.")
@click.option("--strict", is_flag=True, help="Metadata and layout count for the exit code too.")
@click.option(
    "--most", type=click.IntRange(0), default=10, show_default=True, metavar="N", help="Differing values that are shown."
)
@columns_option
@where_option
def command(session: Session, one: str, other: str, **options: Any) -> None:
    """Compare two files, or two folders.

    Schema and values decide the exit code: 1 if they differ. Metadata and layout are shown. X is relative to the larger number,
    and absolute below 1. With a key or without order both files are read into memory.
    """
    from fastpq.api.file import ParquetFile
    from fastpq.cli.failures import CommandFailure

    if options["ignore_order"] and (options["key"] or options["tolerance"]):
        raise CommandFailure("--ignore-order cannot stand with --key or --tolerance", hint="--key ignores the order already")
    parts = {*(options["only"] or PARTS)}
    first, second = session.open_rows([one]), session.open_rows([other])
    facts = DiffFacts(
        one=name_of_place(one),
        other=name_of_place(other),
        equal=True,
        schema=_schema_drift(first, second) if "schema" in parts else [],
        metadata=[],
        layout=[],
        values=None,
    )
    if isinstance(first, ParquetFile) and isinstance(second, ParquetFile):
        facts["metadata"] = _differences(_metadata(first), _metadata(second)) if "metadata" in parts else []
        facts["layout"] = _differences(_layout(first), _layout(second)) if "layout" in parts else []
    if "values" in parts:
        facts["values"] = _value_drift(first, second, options)
    counts = _value_counts(facts["values"])
    facts["equal"] = not facts["schema"] and not counts and not (options["strict"] and (facts["metadata"] or facts["layout"]))
    session.exit_code = 0 if facts["equal"] else DIFFERENT
    session.emit(facts, lambda: _show(session, facts))


def _schema_drift(one: OpenRows, other: OpenRows) -> list[SchemaDifference]:
    from fastpq.cli.verbs.schema import schema_facts

    first, second = schema_facts(one.schema, "")["columns"], schema_facts(other.schema, "")["columns"]
    return broken_clauses({"columns": first}, second)


def _metadata(file: ParquetFile) -> dict[str, str | None]:
    metadata = file.metadata
    facts = {f"key-value {key}": value for key, value in metadata.key_value_metadata.items()}
    return {"written by": metadata.created_by, "version": str(metadata.version), **facts}


def _layout(file: ParquetFile) -> dict[str, str | None]:
    from fastpq.cli.column_facts import column_facts, encodings_text

    facts: dict[str, str | None] = {"row groups": ", ".join(map(str, file.metadata.row_counts[:20]))}
    for column in file.schema.columns:
        each = column_facts(file.metadata, column)
        facts[f"{column.name}: codec"] = "+".join(each["codecs"])
        facts[f"{column.name}: encodings"] = encodings_text(each)
        facts[f"{column.name}: stored bytes"] = str(each["stored_bytes"])
        facts[f"{column.name}: encrypted"] = str(each["encrypted"]).lower()
    return facts


def _differences(one: dict[str, str | None], other: dict[str, str | None]) -> list[FactDifference]:
    return [
        FactDifference(name=name, one=one.get(name), other=other.get(name))
        for name in dict.fromkeys([*one, *other])
        if one.get(name) != other.get(name)
    ]


def _value_drift(one: OpenRows, other: OpenRows, options: dict[str, Any]) -> ValueFacts:
    """Compare the columns that both files have, or those that the user names."""
    names = options["columns"] or [name for name in one.schema.names if name in {*other.schema.names}]
    filters = options["filters"]
    comparison = ValueComparison(names, options["tolerance"], options["most"])
    if options["key"]:
        key = options["key"].split(",")
        comparison = ValueComparison(list(dict.fromkeys([*key, *names])), options["tolerance"], options["most"])
        comparison.compare_by_key(one, other, filters, key)
    elif options["ignore_order"]:
        comparison.compare_without_order(one, other, filters)
    else:
        comparison.compare_in_order(one, other, filters)
    return comparison.facts


def _value_counts(values: ValueFacts | None) -> int:
    return 0 if values is None else values["differing_rows"] + values["only_in_one"] + values["only_in_other"]


def _show(session: Session, facts: DiffFacts) -> None:
    screen = session.screen
    for each in facts["schema"]:
        parts: list[Part] = [Styled("schema    ", "label"), Styled(each["column"], "strong"), f": {each['problem']}"]
        screen.line(*parts, f" ({each['contract_value'] or 'none'}, {each['file_value'] or 'none'})")
    for title in ("metadata", "layout"):
        for fact in facts[title]:
            screen.line(
                Styled(title.ljust(10), "label"),
                Styled(fact["name"], "strong"),
                f": {_short(fact['one'])}, {_short(fact['other'])}",
            )
    if facts["values"] is not None:
        _show_values(session, facts["values"])
    screen.line(Styled("equal", "good") if facts["equal"] else Styled("different", "error"))


def _short(text: str | None) -> str:
    from fastpq.cli.terminal import shortened

    return "none" if text is None else shortened(text, 60)


def _show_values(session: Session, values: ValueFacts) -> None:
    if not _value_counts(values):
        return
    screen = session.screen
    lines = [
        (values["differing_rows"], "row differs", "rows differ"),
        (values["only_in_one"], "row only in the first file", "rows only in the first file"),
        (values["only_in_other"], "row only in the second file", "rows only in the second file"),
    ]
    for count, noun, plural in lines:
        if count:
            screen.line(Styled("values    ", "label"), count_text(count, noun, plural))
    for title, rows in (
        ("only in the first", values["first_only_in_one"]),
        ("only in the second", values["first_only_in_other"]),
    ):
        for row in rows:
            screen.line("  ", Styled(f"{title}: ", "dim"), value_text(row))
    if values["first"]:
        from fastpq.cli.text_table import print_table, text

        rows = [
            [value_text(each["row"]), each["column"] + each["path"], value_text(each["one"]), value_text(each["other"])]
            for each in values["first"]
        ]
        print_table(screen, [text("row"), text("column"), text("first file"), text("second file")], rows, indent=2)
        counts = ", ".join(f"{name} {count:,}" for name, count in values["columns"].items())
        screen.line("  ", Styled(f"differing values: {counts}", "dim"))
