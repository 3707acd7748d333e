"""Contracts: which columns a file must have, for checks in continuous integration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from fastpq.cli.failures import USAGE, CommandFailure

LARGEST_CONTRACT = 1 << 24  # bytes
CHECKED_MEMBERS = ("type", "repetition", "field_id")


class SchemaDifference(TypedDict):
    """One clause of a contract that a file breaks.

    Attributes:
        column: dotted path.
        problem: what is wrong.
        contract_value: what the contract says, or null.
        file_value: what the file has, or null.
    """

    column: str
    problem: str
    contract_value: str | None
    file_value: str | None


def read_contract(path: str) -> dict[str, Any]:
    """Read a contract.

    Raises:
        CommandFailure: the file is not a contract.
    """
    import json

    with open(path, "rb") as file:
        data = file.read(LARGEST_CONTRACT)
    try:
        contract = json.loads(data)
    except ValueError as error:
        raise CommandFailure(f"{path!r} is not JSON: {error}", USAGE) from error
    columns = contract.get("columns") if isinstance(contract, dict) else None
    if not isinstance(columns, list) or not all(
        isinstance(each, dict) and isinstance(each.get("column"), str) for each in columns
    ):
        raise CommandFailure(f"{path!r} is not a contract", USAGE, "fastpq schema FILE --json prints one")
    if contract.get("extra", "forbid") not in ("allow", "forbid"):
        raise CommandFailure(f'{path!r}: extra must be "allow" or "forbid"', USAGE)
    members: dict[str, Any] = contract
    return members


def broken_clauses(contract: Mapping[str, Any], columns: Sequence[Mapping[str, Any]]) -> list[SchemaDifference]:
    """Return what breaks a contract.

    Args:
        contract: the contract. A column's clause needs ``column``, and may have ``type``, ``repetition`` and ``field_id``.
        columns: the leaf columns of the file.
    """
    actual_columns = {each["column"]: each for each in columns}
    clauses = {each["column"]: each for each in contract["columns"]}
    differences = []
    for name, clause in clauses.items():
        if name not in actual_columns:
            differences.append(
                SchemaDifference(column=name, problem="the column is missing", contract_value=clause.get("type"), file_value=None)
            )
            continue
        for member in CHECKED_MEMBERS:
            clause_value, actual = clause.get(member), actual_columns[name][member]
            if member in clause and clause_value != actual:
                problem = f"another {member.replace('_', ' ')}"
                differences.append(
                    SchemaDifference(column=name, problem=problem, contract_value=_text(clause_value), file_value=_text(actual))
                )
    if contract.get("extra", "forbid") == "forbid":
        for name, each in actual_columns.items():
            if name not in clauses:
                differences.append(
                    SchemaDifference(
                        column=name, problem="the contract does not list it", contract_value=None, file_value=each["type"]
                    )
                )
    return differences


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
