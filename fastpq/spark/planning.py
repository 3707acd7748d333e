"""Partitions of a scan: files and row groups packed into tasks by bytes; pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    files: Sequence[ListedFile],
    row_group_sizes: Callable[[ListedFile], list[int]],
    max_bytes: int,
    min_partitions: int = 1,
    parts: Mapping[str, Sequence[int]] | None = None,
) -> list[tuple[Split, ...]]:
    """Splits of each partition of a scan, at most max_bytes each unless a single row group has more.

    Args:
        files: files of the dataset.
        row_group_sizes: returns the bytes of each row group of a file; called only for files larger than a partition, and for
            files read in part.
        max_bytes: most bytes of a partition.
        min_partitions: partitions wanted; partitions get smaller than max_bytes to reach the number.
        parts: by path, the row groups to read of a file; other files are read whole.
    """
    known = parts or {}
    sizes = [_size(file, row_group_sizes, known.get(file.path)) for file in files]
    cost = sum(size + FILE_OPEN_BYTES for size in sizes)
    target = max(1, min(max_bytes, max(FILE_OPEN_BYTES, cost // max(min_partitions, 1))))
    splits = [
        split
        for file, size in zip(files, sizes, strict=True)
        for split in _splits(file, size, row_group_sizes, target, known.get(file.path))
    ]
    partitions: list[list[Split]] = []
    filled = 0
    for split in sorted(splits, key=lambda split: -split.size):
        if not partitions or filled + split.size > target:
            partitions.append([])
            filled = 0
        partitions[-1].append(split)
        filled += split.size + FILE_OPEN_BYTES
    return [tuple(partition) for partition in partitions]


def _size(file: ListedFile, row_group_sizes: Callable[[ListedFile], list[int]], part: Sequence[int] | None) -> int:
    if part is None:
        return file.size
    sizes = row_group_sizes(file)
    return sum(sizes[number] for number in part)


def _splits(
    file: ListedFile, size: int, row_group_sizes: Callable[[ListedFile], list[int]], target: int, part: Sequence[int] | None
) -> list[Split]:
    if size <= target:
        return [Split(file, None if part is None else tuple(part), size)]
    splits: list[Split] = []
    chosen: list[int] = []
    filled = 0
    sizes = row_group_sizes(file)
    for number in range(len(sizes)) if part is None else part:
        if chosen and filled + sizes[number] > target:
            splits.append(Split(file, tuple(chosen), filled))
            chosen, filled = [], 0
        chosen.append(number)
        filled += sizes[number]
    return [*splits, Split(file, tuple(chosen), filled)] if chosen else splits
