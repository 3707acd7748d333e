"""rechunk_file: the same rows in row groups and pages of other sizes."""

from __future__ import annotations

from typing import Any, Unpack

from fastpq.io.source import Source
from fastpq.metadata.file_metadata import FileMetaData, RowGroupMetaData
from fastpq.options import WriterProperties, takes_options, with_options
from fastpq.rewriting.one_file import FilePlan, RewrittenFile, rewrite_file
from fastpq.rewriting.regrouping import Regrouping
from fastpq.rewriting.report import RewritingReport
from fastpq.rewriting.rewriting_options import RewritingKeywords, RewritingOptions

UNBOUNDED = 1 << 62


@takes_options(RewritingOptions)
def rechunk_file(
    source: Any,
    target: Any,
    *,
    row_group_size: int | None = None,
    row_group_bytes: int | None = None,
    data_page_size: int | None = None,
    data_page_rows: int | None = None,
    **options: Unpack[RewritingKeywords],
) -> RewritingReport:
    """Write the same rows in row groups or pages of other sizes.

    A row group that has the right size already is copied byte for byte, if pages keep their sizes. The others are decoded and
    encoded again, with the codecs, encodings, page version and bloom filters that the first row group has. INT96 timestamps keep
    their bytes. New row groups have no sorting columns, because rows of several row groups are joined. Memory holds one row group
    of the source and one of the new file.

    Args:
        source, target: as in ``project_file``.
        row_group_size, row_group_bytes: limits of a row group, as in ``write_table``. Without both, row groups stay.
        data_page_size, data_page_rows: limits of a page, as in ``write_table``.
        **options: any of the options that are common to all functions that make one file from another:

    Returns:
        A RewritingReport, which counts the copied and the decoded pages.

    Raises:
        ValueError: no size is given.
        FormatError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as in encrypt_file.
    """
    arguments = RewritingOptions.of(options)
    group_sizes = {"row_group_size": row_group_size, "row_group_bytes": row_group_bytes}
    page_sizes = {"data_page_size": data_page_size, "data_page_rows": data_page_rows}
    sizes = {name: size for name, size in {**group_sizes, **page_sizes}.items() if size is not None}
    if not sizes:
        raise ValueError("give a size of row groups or of pages")
    with_options(None, sizes)     # refuses sizes that are not positive
    changes_groups = row_group_size is not None or row_group_bytes is not None
    changes_pages = data_page_size is not None or data_page_rows is not None

    def plan(file: Source, metadata: FileMetaData) -> FilePlan:
        metadata.calendar.is_kept = True        # values are written as they are stored
        own_sizes = dict(sizes)
        if not changes_groups:
            own_sizes.update(row_group_size=max([1, *metadata.row_counts]), row_group_bytes=UNBOUNDED)

        def fill(new_file: RewrittenFile) -> None:
            regrouping = Regrouping(new_file, file, metadata, arguments.reading, own_sizes)
            _fill(new_file, regrouping, metadata, changes_groups=changes_groups, changes_pages=changes_pages)

        return FilePlan(metadata.schema, range(metadata.num_columns), metadata.key_values or None, fill=fill)

    return rewrite_file(source, target, plan, arguments)


def _fill(
    new_file: RewrittenFile, regrouping: Regrouping, metadata: FileMetaData, *, changes_groups: bool, changes_pages: bool
) -> None:
    """Write all row groups: copy those that fit, and decode the others.

    Args:
        new_file: the new file.
        regrouping: its row groups.
        metadata: the old file's footer.
        changes_groups, changes_pages: whether row groups and pages get other sizes.
    """
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    limits = regrouping.properties
    fitting = [not changes_pages and _is_fitting(group, limits, group is groups[-1]) for group in groups]
    if not all(fitting) and not regrouping.may_mix:
        fitting = [False] * len(groups)
    for group, is_fitting in zip(groups, fitting, strict=True):
        if is_fitting and not regrouping.has_waiting_rows:
            regrouping.copy(group)
            continue
        table = regrouping.read([group])
        if changes_groups:
            regrouping.add(table)
        else:
            regrouping.add_row_group(table)
        new_file.meter.add(group.num_rows)
    regrouping.finish()


def _is_fitting(group: RowGroupMetaData, limits: WriterProperties, is_last: bool) -> bool:
    """Return whether a row group is within the limits, and near one of them unless it is the last one."""
    num_bytes = group.total_byte_size
    if group.num_rows > limits.row_group_size or num_bytes > limits.row_group_bytes:
        return False
    return is_last or group.num_rows == limits.row_group_size or num_bytes > limits.row_group_bytes // 2
