"""Driver side of scans and writes for the JVM: answers of planning as JSON, from the planning of the Python source."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import types as st

from fastpq.filters.predicate import And
from fastpq.spark.footers import Footers
from fastpq.spark.handover import MOST_DIGITS, Handover
from fastpq.spark.jvm.aggregates import Question as AggregateQuestion
from fastpq.spark.jvm.aggregates import answered, is_collated, largest_digits
from fastpq.spark.jvm.column_statistics import column_statistics
from fastpq.spark.jvm.conditions import PushedCondition, condition_of, known_columns
from fastpq.spark.jvm.expressions import aggregate_of, columns_in, largest
from fastpq.spark.jvm.lookups import is_lookup, lookup_rows
from fastpq.spark.jvm.parts import PartialAggregates, part_limit
from fastpq.spark.jvm.survivors import UNKNOWN, Survivor, enough, survivors
from fastpq.spark.jvm.writing import begun, ended, target
from fastpq.spark.listing import ListedFile, list_files
from fastpq.spark.options import ReadOptions, plain_name, read_options
from fastpq.spark.reader import DatasetPart, partition_types, plan_scan, schema_of_files

# Options and the settings of the session that stand for missing ones.
_SETTINGS = {
    "maxPartitionBytes": "spark.sql.files.maxPartitionBytes",
    "ignoreMissingFiles": "spark.sql.files.ignoreMissingFiles",
    "mergeSchema": "spark.sql.parquet.mergeSchema",
    "minPartitions": "cores",
    "lookupRows": "spark.fastpq.lookupRows",
}
# Least share of bytes reported to Spark's planner, however few rows conditions seem to keep. Spark copies tables of up to 10 MiB
# to all executors: an estimate that is wrong makes that 80 MiB.
LEAST_SHARE = 1 / 8
LEAST_ROWS_OF_A_PART = 64       # of a sum computed in tasks
_UNITS = {"b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a question of the JVM.

    Args:
        question: ``ask`` (schema, filters, aggregates, lookup, plan, target, write, commit or abort),
            ``options``, ``session``, and more for each.

    Raises:
        ParquetError: as the Python source does.
    """
    if question["ask"] == "write":
        return begun(question, _struct(question["schema"]))
    if question["ask"] in ("commit", "abort"):
        return ended(question)
    if question["ask"] == "target":
        return target(question)
    options = _read_options(question)
    match question["ask"]:
        case "schema":
            return _schema(options)
        case "filters":
            return _filters(question, options)
        case "plan":
            return _plan(question, options)
        case "lookup":
            return {"rows": _lookup(question, options)}
        case "aggregates":
            return _aggregates(question, options)
    raise ValueError(f"the question {question['ask']!r}: the jar and fastpq are of different versions")


def _read_options(question: Mapping[str, Any]) -> ReadOptions:
    given, session = dict(question["options"]), question["session"]
    known = set(map(plain_name, given))
    for option, setting in _SETTINGS.items():
        value = session.get(setting)
        if value is not None and option.lower() not in known:
            given[option] = str(_bytes_of(value) if option == "maxPartitionBytes" else value)
    if "timezone" not in known and str(session.get("spark.sql.timestampType")).upper() != "TIMESTAMP_NTZ":
        given["timeZone"] = session.get("spark.sql.session.timeZone") or "UTC"
    return read_options(given)


def _bytes_of(text: str) -> int:
    """Bytes of Spark's text: ``134217728b``, ``128m``."""
    digits = text.rstrip("bBkKmMgG")
    return int(digits) * _UNITS.get(text[len(digits) :].lower(), 1)


def _schema(options: ReadOptions) -> dict[str, Any]:
    files = list_files(options.paths, options.base_path)
    schema = schema_of_files(files, options, Footers(options.service))
    return {"schema": schema.jsonValue(), "files": _as_question(files)}


def _as_question(files: Sequence[ListedFile]) -> list[Any]:
    """Files in the form that questions have them in."""
    return [[file.path, file.size, [list(pair) for pair in file.partition]] for file in files]


def _files_of(question: Mapping[str, Any], options: ReadOptions) -> list[ListedFile]:
    listed = question.get("files")
    if listed is None:
        return list_files(options.paths, options.base_path)
    return [ListedFile(path, size, tuple((name, text) for name, text in partition)) for path, size, partition in listed]


def _filters(question: Mapping[str, Any], options: ReadOptions) -> dict[str, Any]:
    """For each condition: exact (Spark need not apply it), pruning (it saves reading), or no; all exact for a lookup."""
    table = _struct(question["table"])
    columns = known_columns(table)
    files = _files_of(question, options)
    partition = partition_types(files, table, options.time_zone)
    found = [condition_of(tree, columns) for tree in question["filters"]]
    verdicts = ["no" if condition is None else _verdict(condition, partition) for condition in found]
    trees = [condition.tree for condition in found if condition is not None]
    is_whole = question.get("whole") and "no" not in verdicts and "pruning" in verdicts
    if is_whole and is_lookup(trees, files, table, partition, options):
        return {"verdicts": ["exact"] * len(verdicts), "lookup": True}
    return {"verdicts": verdicts, "lookup": False}


def _verdict(condition: PushedCondition, partition: Mapping[str, st.DataType]) -> str:
    """Folders decide, except for floating-point numbers: Spark applies conditions on these again."""
    settled = {name for name, type_ in partition.items() if not isinstance(type_, st.FloatType | st.DoubleType)}
    return "exact" if condition.columns <= settled else "pruning"


def _plan(question: Mapping[str, Any], options: ReadOptions) -> dict[str, Any]:
    table = _struct(question["table"])
    files, footers = _files_of(question, options), Footers(options.service)
    partition = partition_types(files, table, options.time_zone)
    aggregates = _partial_aggregates(question, table) if "aggregates" in question else None
    schema = _struct(question["schema"]) if aggregates is None else _needed(aggregates, table)
    conditions = _conditions(question, table)
    is_worth = len(files) <= options.planning_footers
    found = survivors(files, conditions, partition, options.time_zone, footers if is_worth else None)
    limit = question.get("limit")
    if limit is not None and options.filters is None and not options.ignore_missing_files and not question.get("lookup"):
        found = enough(found, limit)
    left = [survivor.file for survivor in found]
    complete = footers.complete(left, schema) if is_worth and aggregates is None else frozenset[str]()
    complete &= {part.name for part in schema.fields if part.nullable}
    if "complete" in question:      # of the scan's first plan: Spark's code tests these columns for no nulls
        complete = frozenset(question["complete"])
    pruning = And(*conditions) if conditions else None
    groups = {survivor.file.path: survivor.row_groups for survivor in found if survivor.row_groups is not None}
    part = DatasetPart(left, groups, partition, limit)
    planned = plan_scan(files, schema, options, footers, pruning, Handover(complete=complete), part)
    plan = planned[0].plan if planned else None
    if plan is not None and question.get("lookup"):     # Spark does not apply the conditions again
        plan = replace(plan, filters=pruning, pruning=None)
    answer = {
        "plan": "" if plan is None else _pickled((plan, aggregates)),
        "tasks": [_pickled(task.splits) for task in planned],
        "complete": sorted(complete),
        "files": _as_question(files) if question.get("files") is None else None,
    }
    if aggregates is not None:
        size = len(planned) * _width(aggregates.schema)
        return answer | {"partition": [], "bytes": size, "rows": len(planned), "columns": {}}
    rows = [survivor.rows for survivor in found]
    has_statistics = question.get("statistics") and is_worth
    # with statistics of columns, Spark estimates for itself how many rows its filters leave
    shares = (1.0 if has_statistics else max(survivor.share, LEAST_SHARE) for survivor in found)
    size = int(sum(survivor.size * share for survivor, share in zip(found, shares, strict=True)))
    return answer | {
        "partition": [part.name for part in schema.fields if part.name in partition],
        "bytes": max(1, size * _width(schema) // max(1, _width(table))),
        "rows": UNKNOWN if UNKNOWN in rows or not is_worth else sum(rows),
        "columns": column_statistics(left, footers, schema) if has_statistics else {},
    }


def _lookup(question: Mapping[str, Any], options: ReadOptions) -> list[list[Any]] | None:
    """The rows of a lookup; None where tasks have to read them."""
    table, files = _struct(question["table"]), _files_of(question, options)
    partition = partition_types(files, table, options.time_zone)
    return lookup_rows(_conditions(question, table), files, _struct(question["schema"]), partition, options)


def _aggregates(question: Mapping[str, Any], options: ReadOptions) -> dict[str, Any]:
    """Rows of the aggregates that the footers tell exactly, and the types of the rows, or of the rows of parts.

    ``rows`` is None where footers do not tell them or where there are too many; ``types`` is None where tasks compute no parts.
    """
    table, files, footers = _struct(question["table"]), _files_of(question, options), Footers(options.service)
    partition = partition_types(files, table, options.time_zone)
    found = survivors(files, _conditions(question, table), partition, options.time_zone, None)
    asked = None if question.get("lookup") else _partial_aggregates(question, table)
    if asked is None or not set(asked.groups) <= partition.keys() or any(is_collated(partition[name]) for name in asked.groups):
        return {"rows": None, "types": None}
    known = AggregateQuestion(asked.groups, asked.aggregates, table, partition, options.time_zone)
    is_worth = len(found) <= options.planning_footers
    rows = answered(known, found, footers) if is_worth and options.filters is None else None
    has_parts = rows is not None or (
        bool(found)
        and all(aggregate.has_parts for aggregate in asked.aggregates)
        and _takes_few_parts(known, found, footers if is_worth else None)
    )
    return {"rows": rows, "types": [part.dataType.json() for part in asked.schema.fields] if has_parts else None}


def _takes_few_parts(asked: AggregateQuestion, found: Sequence[Survivor], footers: Footers | None) -> bool:
    """Whether the parts of all sums are far less than the rows: Spark adds parts in the type of what is summed."""
    sums = [one for one in asked.aggregates if one.kind == "sum" and not isinstance(one.type, st.DoubleType)]
    if not sums:
        return True
    names = {name for one in sums for name in columns_in(one.tree)}
    bounds = None if footers is None else largest_digits(names, asked, found, footers)
    columns = {part.name: part.dataType for part in asked.table.fields}
    return bounds is not None and all(
        largest(one.tree, columns, bounds) * LEAST_ROWS_OF_A_PART <= part_limit(one.type) for one in sums
    )


def _partial_aggregates(question: Mapping[str, Any], table: st.StructType) -> PartialAggregates | None:
    """The aggregates of a question; None where one has a column or an expression that planning does not know."""
    if "averages" not in question:
        raise ValueError("aggregates in another form: the jar and fastpq are of different versions")
    columns = {part.name: part.dataType for part in table.fields}
    found = [aggregate_of(asked, columns, question["averages"]) for asked in question["aggregates"]]
    groups: tuple[str, ...] = tuple(question["groups"])
    if not set(groups) <= columns.keys():
        return None
    aggregates = tuple(aggregate for aggregate in found if aggregate is not None)
    parts = [(name, columns[name]) for name in groups] + [(str(number), one.type) for number, one in enumerate(aggregates)]
    schema = st.StructType([st.StructField(name, type_) for name, type_ in parts])
    return PartialAggregates(groups, aggregates, schema) if len(aggregates) == len(found) else None


def _needed(asked: PartialAggregates, table: st.StructType) -> st.StructType:
    """The columns of a dataset that aggregates need."""
    names = {name for aggregate in asked.aggregates for name in columns_in(aggregate.tree)}
    return st.StructType([part for part in table.fields if part.name in names])


def _conditions(question: Mapping[str, Any], table: st.StructType) -> list[Any]:
    found = [condition_of(entry["tree"], known_columns(table)) for entry in question["conditions"]]
    return [condition.tree for condition in found if condition is not None]


def _width(schema: st.StructType) -> int:
    """Bytes of a row as Spark's planner reckons, for the share of columns among all."""
    return 8 + sum(_type_width(part.dataType) for part in schema.fields)


def _type_width(type_: st.DataType) -> int:
    match type_:
        case st.BooleanType() | st.ByteType():
            return 1
        case st.ShortType():
            return 2
        case st.IntegerType() | st.FloatType() | st.DateType():
            return 4
        case st.DecimalType():
            return 8 if type_.precision <= MOST_DIGITS else 16
        case st.StringType():
            return 20
        case st.BinaryType():
            return 100
        case st.StructType():
            return sum(_type_width(part.dataType) for part in type_.fields)
        case st.ArrayType():
            return _type_width(type_.elementType)
        case st.MapType():
            return _type_width(type_.keyType) + _type_width(type_.valueType)
    return 8


def _struct(text: str) -> st.StructType:
    return st.StructType.fromJson(json.loads(text))


def _pickled(value: Any) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()
