"""Parts of a dataset: some of its files, with the columns of the whole, for tasks that read them apart."""

from __future__ import annotations

from collections.abc import Sequence

from fastpq.datasets.dataset import ParquetDataset
from fastpq.datasets.keys_of_files import DatasetDecryption


def part_of_dataset(
    dataset: ParquetDataset, numbers: Sequence[int], decryption: DatasetDecryption, *, has_rows: bool = True
) -> ParquetDataset:
    """Return a dataset of some files. It has the columns and types of the whole dataset. No file is opened.

    Args:
        dataset: the whole dataset.
        numbers: numbers of the files, in reading order.
        decryption: keys of the part. The part has none of the keys that the whole dataset has.
        has_rows: whether the files' rows belong to the part. If not, only the first file's columns do.
    """
    part = object.__new__(ParquetDataset)
    part.__dict__.update(dataset.__dict__)
    part._files = [dataset._files[number] for number in numbers]
    part._values = [dataset._values[number] for number in numbers]
    part._cached_keys = None
    part._has_rows = dataset._has_rows and has_rows
    part._open_files = part._opener(decryption)
    part._open_files.columns = [dataset._open_files.columns[number] for number in numbers]
    part._open_files.rows = [dataset._open_files.rows[number] if has_rows else 0 for number in numbers]
    return part
