"""The picture of a dataset: what ``ParquetDataset.layout`` returns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fastpq.options import ReaderProperties
from fastpq.picture.dataset_picture import DatasetMember, dataset_member, dataset_picture
from fastpq.picture.file_picture import FilePicture

if TYPE_CHECKING:
    from fastpq.api.file import ParquetFile

BY_PARTITION = "partition values"


def filtered_files(dataset: Any, filters: Any) -> Iterator[tuple[str, ParquetFile | None, Any]]:
    """Yield each file of a dataset with what is left of a filter after its partition values and missing columns.

    Args:
        dataset: the ParquetDataset.
        filters: as for ``read``.

    Yields:
        The path, the open file, and the filter for its rows: None if all rows match, or if they must be read to know. The file is
        None if the filter leaves it out unopened.
    """
    filters = dataset._checked(filters)
    for number, path in enumerate(dataset.files):
        with dataset._filtered_file(number, filters) as member:
            yield path, None if member is None else member.file, None if member is None else member.pushed_filters


def picture_of_dataset(dataset: Any, filters: Any, columns: Iterable[str] | None) -> FilePicture:
    """Return the picture of a dataset. Footers and some indexes are read, and no data page.

    Args:
        dataset: the ParquetDataset.
        filters: as for ``read``, or None.
        columns: as for ``read``.
    """
    result_columns = dataset._requested(columns)
    filters = dataset._checked(filters)
    paths: list[str] = dataset.files
    start = start_of_names(paths)

    def part_of(number: int) -> DatasetMember:
        name = paths[number][start:]
        with dataset._filtered_file(number, filters) as member:
            if member is not None and member.pushed_filters is not None:
                file = member.file
                keys = dataset._keys(file, member.own, dataset._with_filtered(result_columns, member))
                with file._errors():
                    request = file._request(keys, None, None, member.pushed_filters)
                    return dataset_member(file._file, name, request, file._reader().selective(request))
            left_out = None if filters is None else BY_PARTITION if member is None else ""
        with dataset._open_files.with_columns(number) as (file, _), file._errors():
            return dataset_member(file._file, name, None, None, left_out)

    parts = list(dataset._open_files.each(part_of))
    return dataset_picture(paths[0][: start - 1] or paths[0], parts, dataset._options.get("properties") or ReaderProperties())


def start_of_names(paths: Sequence[str]) -> int:
    """Return where the names of files begin in their paths: behind the last slash of what all paths share."""
    first, last = min(paths), max(paths)
    length = next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    return first[:length].rfind("/") + 1
