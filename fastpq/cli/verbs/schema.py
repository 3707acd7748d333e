"""Print the schema in six notations, or check it for CI.

Section: Look at a file
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

import click

from fastpq.cli.failures import DIFFERENT
from fastpq.cli.format_names import column_type_text
from fastpq.cli.places import name_of_place
from fastpq.cli.schema_contract import SchemaDifference
from fastpq.cli.terminal import Part, Styled
from fastpq.cli.verb import Session, verb

if TYPE_CHECKING:
    from fastpq.schema.nested_types import Field
    from fastpq.schema.parquet_schema import ParquetSchema

FORMATS = ("parquet", "arrow", "spark", "sql", "polars", "python")


class LeafFacts(TypedDict):
    """One leaf column of a schema.

    Attributes:
        column: dotted path.
        type: physical and logical type.
        repetition: required, optional or repeated.
        max_definition_level: largest definition level.
        max_repetition_level: largest repetition level.
        field_id: the field id, or null.
    """

    column: str
    type: str
    repetition: str
    max_definition_level: int
    max_repetition_level: int
    field_id: int | None


class SchemaFacts(TypedDict):
    """A schema. It is a contract too: ``--check`` takes it.

    Attributes:
        file: the file.
        columns: leaf columns, in order.
        engines: for each top-level column, its type in each engine.
        matches: whether the schema keeps the contract, with ``--check``.
        differences: what breaks the contract, with ``--check``.
    """

    file: str
    columns: list[LeafFacts]
    engines: dict[str, dict[str, str]]
    matches: NotRequired[bool]
    differences: NotRequired[list[SchemaDifference]]


@verb(
    examples=[
        ("fastpq schema items.parquet", "The tree."),
        ("fastpq schema items.parquet --format spark", "DDL for Spark. Others: arrow, sql, polars, python."),
        ("fastpq schema items.parquet --engines", "What Arrow, pandas, Polars, DuckDB and Spark each make of it."),
        ("fastpq schema items.parquet --json > contract.json", "A contract for later files."),
        ("fastpq schema items.parquet --check contract.json", "Exit code 1 if the schema breaks the contract."),
    ],
    facts=SchemaFacts,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "format_name", type=click.Choice(FORMATS), default="parquet", show_default=True, help="Notation.")
@click.option("--engines", is_flag=True, help="Show the types of several engines side by side.")
@click.option("--check", metavar="CONTRACT", help="Compare with a contract: JSON that schema --json printed, or a part of it.")
def command(session: Session, files: tuple[str, ...], format_name: str, engines: bool, check: str | None) -> None:
    """Print the schema of a file.

    A contract lists columns with their types and repetition. "extra": "allow" in it accepts more columns than it lists.
    """
    contract = None
    if check is not None:
        from fastpq.cli.schema_contract import read_contract

        contract = read_contract(check)
    for number, place in enumerate(session.files(files)):
        name = name_of_place(place)
        with session.open(place) as file:
            schema = file.schema
        facts = schema_facts(schema, name)
        if contract is not None:
            from fastpq.cli.schema_contract import broken_clauses

            facts["differences"] = broken_clauses(contract, facts["columns"])
            facts["matches"] = not facts["differences"]
            session.exit_code = max(session.exit_code, 0 if facts["matches"] else DIFFERENT)
        if session.as_json:
            session.screen.json(facts)
        elif contract is not None:
            _show_check(session, facts)
        elif engines:
            session.headline(name, number)
            _show_engines(session, facts)
        else:
            if len(files) > 1 or number:
                session.headline(name, number)
            session.screen.lines(schema_text(schema, format_name, name).splitlines())


def schema_facts(schema: ParquetSchema, name: str) -> SchemaFacts:
    """Return the facts about a schema."""
    from fastpq.cli.type_dialects import ENGINES, pandas_type, type_in

    leaves = [
        LeafFacts(
            column=each.name,
            type=column_type_text(each),
            repetition=each.repetition.name.lower(),
            max_definition_level=each.max_definition_level,
            max_repetition_level=each.max_repetition_level,
            field_id=each.field_id,
        )
        for each in schema.columns
    ]
    engines = {
        field.name: {
            engine: pandas_type(field) if engine == "pandas" else type_in(dialect, field.type)
            for engine, dialect in ENGINES.items()
        }
        for field in fields_of(schema)
    }
    return SchemaFacts(file=name, columns=leaves, engines=engines)


def fields_of(schema: ParquetSchema) -> list[Field]:
    """Return the top-level columns as fields with nested types."""
    from fastpq.schema.shape import shape_field, shape_of

    every_leaf = range(len(schema.columns))
    return [shape_field(shape_of(node, every_leaf)) for node in schema.root.children]


def schema_text(schema: ParquetSchema, format_name: str, file: str) -> str:
    """Return a schema in a notation."""
    if format_name == "parquet":
        return str(schema)
    from fastpq.cli import type_dialects as dialects

    fields = fields_of(schema)
    if format_name == "arrow":
        lines = [
            f"{each.name}: {dialects.type_in(dialects.ARROW, each.type)}{'' if each.nullable else ' not null'}" for each in fields
        ]
        return "\n".join(lines)
    if format_name == "sql":
        table = file.rpartition("/")[2].partition(".")[0] or "data"
        return dialects.sql_ddl(fields, table)
    makers = {"spark": dialects.spark_ddl, "polars": dialects.polars_code, "python": dialects.python_code}
    return makers[format_name](fields)


def _show_engines(session: Session, facts: SchemaFacts) -> None:
    from fastpq.cli.text_table import print_table, text
    from fastpq.cli.type_dialects import ENGINES, REFUSED

    columns = [text("column"), *(text(engine) for engine in ENGINES)]
    rows = [
        [name, *(Styled(each, "warning") if each == REFUSED else each for each in types.values())]
        for name, types in facts["engines"].items()
    ]
    print_table(session.screen, columns, rows)


def _show_check(session: Session, facts: SchemaFacts) -> None:
    if facts["matches"]:
        session.screen.line(Styled("ok", "good"), f"  {facts['file']} keeps the contract")
        return
    session.screen.line(Styled("broken", "error"), f"  {facts['file']}")
    for each in facts["differences"]:
        parts: list[Part] = ["  ", Styled(each["column"], "strong"), f": {each['problem']}"]
        if each["contract_value"] is not None or each["file_value"] is not None:
            parts.append(f" (contract: {each['contract_value'] or 'none'}, file: {each['file_value'] or 'none'})")
        session.screen.line(*parts)
