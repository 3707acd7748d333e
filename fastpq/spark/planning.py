"""Partitions of a scan: files and row groups packed into tasks by bytes; pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastpq.spark.listing import ListedFile

FILE_OPEN_BYTES = 4 << 20       # cost of opening a file, in bytes read instead (spark.sql.files.openCostInBytes)


@dataclass(frozen=True)
class Split:
    """Part of a file read by one task.

    Attributes:
        file: the file.
        row_groups: numbers of row groups; None for all.
        size: approximate bytes of the row groups.
    """

    file: ListedFile
    row_groups: tuple[int, ...] | None
    size: int


def plan_partitions(
    files: Sequence[ListedFile], row_group_sizes: Callable[[ListedFile], list[int]], max_bytes: int, min_partitions: int = 1
) -> list[tuple[Split, ...]]:
    """Splits of each partition of a scan, at most max_bytes each unless a single row group has more.

    Args:
        files: files of the dataset.
        row_group_sizes: returns the bytes of each row group of a file; called only for files larger than a partition.
        max_bytes: most bytes of a partition.
        min_partitions: partitions wanted; partitions get smaller than max_bytes to reach the number.
    """
    cost = sum(file.size + FILE_OPEN_BYTES for file in files)
    target = max(1, min(max_bytes, max(FILE_OPEN_BYTES, cost // max(min_partitions, 1))))
    splits = [split for file in files for split in _splits(file, row_group_sizes, target)]
    partitions: list[list[Split]] = []
    filled = 0
    for split in sorted(splits, key=lambda split: -split.size):
        if not partitions or filled + split.size > target:
            partitions.append([])
            filled = 0
        partitions[-1].append(split)
        filled += split.size + FILE_OPEN_BYTES
    return [tuple(partition) for partition in partitions]


def _splits(file: ListedFile, row_group_sizes: Callable[[ListedFile], list[int]], target: int) -> list[Split]:
    if file.size <= target:
        return [Split(file, None, file.size)]
    splits: list[Split] = []
    chosen: list[int] = []
    filled = 0
    for number, size in enumerate(row_group_sizes(file)):
        if chosen and filled + size > target:
            splits.append(Split(file, tuple(chosen), filled))
            chosen, filled = [], 0
        chosen.append(number)
        filled += size
    return [*splits, Split(file, tuple(chosen), filled)] if chosen else splits
