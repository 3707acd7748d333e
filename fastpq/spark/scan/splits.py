"""Plan scan partitions: pack files and row groups into tasks by their bytes. The functions are pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastpq.spark.tables.listing import ListedFile

FILE_OPEN_BYTES = 4 << 20       # opening a file costs as much as reading this many bytes (spark.sql.files.openCostInBytes)


@dataclass(frozen=True)
class Split:
    """The part of a file that one task reads.

    Attributes:
        file: the file.
        row_groups: row group numbers. None means all.
        size: approximate row group bytes.
    """

    file: ListedFile
    row_groups: tuple[int, ...] | None
    size: int


def plan_partitions(
    files: Sequence[ListedFile],
    row_group_sizes: Callable[[ListedFile], list[int]],
    max_bytes: int,
    min_partitions: int = 1,
) -> list[tuple[Split, ...]]:
    """Divide a scan into partitions and return each partition's splits.

    Args:
        files: the dataset's files.
        row_group_sizes: returns the bytes of each row group in a file. It is called only for files that are larger than a
            partition.
        max_bytes: maximum bytes in a partition, unless a single row group has more.
        min_partitions: partition count to aim for. Partitions get smaller than max_bytes to reach it.
    """
    cost = sum(file.size + FILE_OPEN_BYTES for file in files)
    target = max(1, min(max_bytes, max(FILE_OPEN_BYTES, cost // max(min_partitions, 1))))
    splits = [split for file in files for split in _splits(file, row_group_sizes, target)]
    partitions: list[list[Split]] = []
    size = 0
    for split in sorted(splits, key=lambda split: -split.size):
        if not partitions or size + split.size > target:
            partitions.append([])
            size = 0
        partitions[-1].append(split)
        size += split.size + FILE_OPEN_BYTES
    return [tuple(partition) for partition in partitions]


def _splits(file: ListedFile, row_group_sizes: Callable[[ListedFile], list[int]], target: int) -> list[Split]:
    if file.size <= target:
        return [Split(file, None, file.size)]
    splits: list[Split] = []
    numbers: list[int] = []
    size = 0
    for number, group_size in enumerate(row_group_sizes(file)):
        if numbers and size + group_size > target:
            splits.append(Split(file, tuple(numbers), size))
            numbers, size = [], 0
        numbers.append(number)
        size += group_size
    return [*splits, Split(file, tuple(numbers), size)] if numbers else splits
