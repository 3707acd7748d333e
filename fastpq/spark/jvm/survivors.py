"""Files and row groups of a scan not ruled out by its conditions: by partition folders, and by statistics of footers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql import types as st

from fastpq.errors import KeyAccessError, SchemaError, UnsupportedError
from fastpq.filters.evidence import chunk_bounds, claims_of
from fastpq.filters.predicate import And, Bounds, Condition, Outcome, Predicate, bind_filters, leaves
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.read.pruning import GroupPruning
from fastpq.schema.types import Type
from fastpq.spark.batches import columns_by_name, folded, partition_values
from fastpq.spark.calendars import Calendar, old_column
from fastpq.spark.filters import and_together, columns_of
from fastpq.spark.footers import MOST_CHUNKS, Footers
from fastpq.spark.jvm.selectivity import expected_share
from fastpq.spark.listing import ListedFile

UNKNOWN = -1        # rows, where a footer was not read


@dataclass(frozen=True)
class Survivor:
    """A file of a scan with its row groups not ruled out by conditions.

    Attributes:
        file: the file.
        row_groups: numbers of the row groups that are left; None for all.
        rows: rows of these row groups; UNKNOWN without the footer.
        size: bytes of these row groups.
        share: estimated share of these rows that the conditions keep.
    """

    file: ListedFile
    row_groups: tuple[int, ...] | None
    rows: int
    size: int
    share: float = 1.0


def survivors(
    files: Sequence[ListedFile],
    conditions: Sequence[Any],
    types: Mapping[str, st.DataType],
    zone: str | None,
    footers: Footers | None,
) -> list[Survivor]:
    """The files and row groups that may hold rows for which all conditions hold.

    A file whose footer cannot be read is left: the task that reads the file raises the error.

    Args:
        files: files of the dataset.
        conditions: trees of conditions by the dataset's names of columns.
        types: types of the partition columns.
        zone: time zone of timestamps in paths.
        footers: footers of the files; None prunes by folders alone.
    """
    left = [file for file in files if _may_hold(conditions, partition_values(file, types, zone))]
    if footers is None or not left:
        return [Survivor(file, None, UNKNOWN, file.size) for file in left]
    found = footers.readable(left)
    chunks = sum(footer.num_row_groups for footer in found if footer is not None) * len(conditions)
    useful = conditions if chunks <= MOST_CHUNKS else ()
    pairs = zip(left, found, strict=True)
    judged = [survivor_of(file, footer, useful, partition_values(file, types, zone)) for file, footer in pairs]
    return [survivor for survivor in judged if survivor.row_groups != ()]


def enough(found: Sequence[Survivor], limit: int) -> list[Survivor]:
    """The first survivors with at least ``limit`` rows together; all of them where rows are unknown."""
    if any(survivor.rows == UNKNOWN for survivor in found):
        return list(found)
    chosen: list[Survivor] = []
    rows = 0
    for survivor in found:
        if rows >= limit:
            break
        chosen.append(survivor)
        rows += survivor.rows
    return chosen


def _may_hold(conditions: Sequence[Any], constants: Mapping[str, Any]) -> bool:
    return all(and_together(tree, constants) is not False for tree in conditions)


def survivor_of(
    file: ListedFile, footer: FileMetaData | None, conditions: Sequence[Any], constants: Mapping[str, Any]
) -> Survivor:
    """What conditions leave of a file, by its statistics.

    Args:
        file: the file.
        footer: its footer; None where it cannot be read.
        conditions: as for survivors.
        constants: values of the file's partition columns.
    """
    if footer is None:
        return Survivor(file, None, UNKNOWN, file.size)
    predicate = _predicate(footer, conditions, constants)
    if predicate is None:
        return Survivor(file, None, footer.num_rows, file.size)
    if predicate is False:
        return Survivor(file, (), 0, 0)
    chosen = [number for number in range(footer.num_row_groups) if _may_match(footer, number, predicate)]
    groups = [footer.row_group(number) for number in chosen]
    rows = sum(group.num_rows for group in groups)
    kept = sum(footer.row_group(number).num_rows * expected_share(footer, predicate, number) for number in chosen)
    share = kept / rows if rows else 1.0
    if len(chosen) == footer.num_row_groups:
        return Survivor(file, None, rows, file.size, share)
    size = sum(group.total_compressed_size or group.total_byte_size for group in groups)
    return Survivor(file, tuple(chosen), rows, size, share)


def _predicate(
    footer: FileMetaData, conditions: Sequence[Any], constants: Mapping[str, Any]
) -> Predicate | Literal[False] | None:
    """The conditions that fit the types of the file, as one; None for none, False where one holds for no row of the file."""
    try:
        nodes = columns_by_name(footer.schema, {name for tree in conditions for name in columns_of(tree)} - constants.keys())
    except SchemaError:     # of names that differ in case alone: the task raises it
        return None
    bound = []
    hybrid = Calendar(footer).is_hybrid
    for tree in conditions:
        if hybrid and old_column(tree) is not None:     # the statistics are in another calendar
            continue
        simple = folded(tree, nodes, constants)
        if simple is False:
            return False
        found = None if simple is True else _bound(simple, footer)
        if found is not None:
            bound.append(found)
    return And(*bound) if bound else None


def _bound(tree: Any, footer: FileMetaData) -> Predicate | None:
    try:
        found = bind_filters(tree, footer.schema)
    except (SchemaError, UnsupportedError):     # of a value that does not fit the type in this file; Spark filters again
        return None
    return None if any(leaf.column.type.physical == Type.INT96 for leaf in leaves(found)) else found


def _may_match(footer: FileMetaData, number: int, predicate: Predicate) -> bool:
    group = footer.row_group(number)

    def bounds(leaf: Condition) -> tuple[Bounds, str | None]:
        try:
            claims = claims_of(footer, leaf.column, group.column(leaf.column.index), group.num_rows)
        except KeyAccessError:      # a reader without the column's key may read other columns
            return Bounds(), None
        return chunk_bounds(claims)

    pruning = GroupPruning.start(0, predicate, number, group.num_rows)
    pruning.by_statistics(bounds)
    return pruning.outcome is not Outcome.NONE
