"""Outcomes of statements in a form that can be compared: schema and rows with floats as bits, plain values, or classes of errors."""

from __future__ import annotations

import re
import struct
import warnings
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.types import VariantVal

from tests.spark.native_statements.scene import Action, Place, Refused, Scene

NUMBERED = re.compile(r"#\d+")  # of an expression in a plan or in the name of a column
UNIQUE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Failure(tuple[str, str | None]):
    """The class and the condition of an error."""

    __slots__ = ()


def outcomes_of_scene(place: Place, scene: Scene) -> dict[str, Any]:
    """Run a scene's statements in a database of their own, and return the outcomes by the names of the statements."""
    place.sql("create database {database} location '{folder}/warehouse'")
    place.spark.catalog.setCurrentDatabase(place.database)
    start = None if scene.before is None else _outcome(place, scene.before)
    if isinstance(start, Failure):
        outcomes: dict[str, Any] = dict.fromkeys(scene.statements, ("before all statements", *start))
    else:
        outcomes = {name: _outcome(place, statement) for name, statement in scene.statements.items()}
    place.spark.catalog.clearCache()
    place.sql("drop database {database} cascade")
    return outcomes


def _outcome(place: Place, statement: Action | Refused) -> Any:
    """Run a statement and return its outcome. An error is an outcome too."""
    action = statement.action if isinstance(statement, Refused) else statement
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")     # PySpark warns of what it does in place of Arrow, for both sources
            return _plain(place.sql(action) if isinstance(action, str) else action(place), place)
    except Exception as error:
        return _failure(error)


def _failure(error: Exception) -> Failure:
    """Return the class of an error, by its name in Java if Spark raised it, and the first condition among its causes."""
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if cause is None:
        return Failure((type(error).__name__, getattr(error, "getCondition", lambda: None)()))
    name = cause.getClass().getSimpleName()
    while cause is not None:
        if _has_condition(cause) and cause.getCondition() is not None:
            return Failure((name, cause.getCondition()))
        cause = cause.getCause()
    return Failure((name, None))


def _has_condition(cause: Any) -> bool:
    return any(method.getName() == "getCondition" for method in cause.getClass().getMethods())


def _plain(value: Any, place: Place) -> Any:
    match value:
        case DataFrame():
            rows = [_plain(row, place) for row in value.collect()]
            return {"schema": _clean(value.schema.json(), place), "rows": sorted(rows, key=repr)}
        case Row():
            items = [_plain(item, place) for item in value]
            names = getattr(value, "__fields__", None)
            return items if names is None else dict(zip((_clean(name, place) for name in names), items, strict=True))
        case float():
            return struct.pack("<d", value).hex()
        case str():
            return _clean(value, place)
        case Mapping():
            return sorted(((_plain(key, place), _plain(item, place)) for key, item in value.items()), key=repr)
        case list() | tuple():
            return [_plain(item, place) for item in value]
        case VariantVal():
            return ("variant", bytes(value.value), bytes(value.metadata))
    return value


def _clean(text: str, place: Place) -> str:
    """Replace what differs between any two runs: folders, databases, names of sources, and unique parts of file names."""
    for name, part in (("FOLDER", place.folder), ("FILES", place.files), ("DATABASE", place.database)):
        text = text.replace(part, name)
    text = re.sub(rf"(?<![.\w]){re.escape(place.source)}(?![.\w])", "SOURCE", text, flags=re.IGNORECASE)  # no endings of files
    return NUMBERED.sub("", UNIQUE.sub("UNIQUE", text))
