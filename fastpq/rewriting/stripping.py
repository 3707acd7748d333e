"""strip_file: makes a new file from another one, without its statistics, indexes and key-value metadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

from fastpq import format as fmt
from fastpq.arrow.hints import redacted_entry
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.io.source import Source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import takes_options
from fastpq.rewriting.chunk_edits import Stripping
from fastpq.rewriting.one_file import FilePlan, rewrite_file
from fastpq.rewriting.report import DroppedMetadata, RewritingReport
from fastpq.rewriting.rewriting_options import RewritingKeywords, RewritingOptions


@takes_options(RewritingOptions)
def strip_file(
    source: Any,
    target: Any,
    *,
    statistics: bool = True,
    page_index: bool = True,
    bloom_filters: bool = True,
    key_values: bool | Iterable[str] = True,
    **options: Unpack[RewritingKeywords],
) -> RewritingReport:
    """Write a file without its statistics, indexes, bloom filters and key-value metadata. Pages are copied without decoding.

    Readers do not need these parts, but reads with filters have to read more without them. Each option leaves out one kind of
    part. False keeps it.

    Args:
        source, target: as in ``project_file``.
        statistics: leave out statistics, size statistics and geospatial statistics in the footer, statistics in page headers, and
            the ColumnIndex.
        page_index: leave out the OffsetIndex and the ColumnIndex.
        bloom_filters: leave out bloom filters.
        key_values: leave out the key-value metadata, or only the given keys. Without the entry ARROW:schema, durations become
            numbers, and other Arrow types are lost.
        **options: any of the options that are common to all functions that make one file from another:

    Returns:
        A RewritingReport, which lists the key-value entries that were left out.

    Raises:
        FormatError, UnsupportedError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as in encrypt_file.
    """
    if isinstance(key_values, str):
        raise TypeError(f"key_values must be True, False or a list of names, not the name {key_values!r}")
    dropped_keys = key_values if isinstance(key_values, bool) else frozenset(key_values)

    def plan(file: Source, metadata: FileMetaData) -> FilePlan:
        edit = Stripping(statistics=statistics, page_index=page_index, bloom_filters=bloom_filters)
        entries = metadata.key_values
        kept_entries = [
            entry for entry in entries if not (dropped_keys if isinstance(dropped_keys, bool) else entry.key in dropped_keys)
        ]
        if len(kept_entries) < len(entries):    # the ARROW:schema has a copy of the other entries
            kept_entries = [_without_copies(entry, metadata, kept_entries) for entry in kept_entries]
        kept_keys = {entry.key for entry in kept_entries}
        dropped = tuple(DroppedMetadata(entry.key, "") for entry in entries if entry.key not in kept_keys)
        leaves = range(metadata.num_columns)
        return FilePlan(metadata.schema, leaves, kept_entries or None, lambda _: edit, dropped_metadata=dropped)

    return rewrite_file(source, target, plan, RewritingOptions.of(options))


def _without_copies(entry: fmt.KeyValue, metadata: FileMetaData, entries: list[fmt.KeyValue]) -> fmt.KeyValue:
    """Return an entry as it will be stored. The ARROW:schema entry loses its copies of entries that are not kept."""
    if entry.key != ARROW_KEY or entry.value is None:
        return entry
    texts = {each.key: each.value for each in entries if each.key != ARROW_KEY and each.value is not None}
    return fmt.KeyValue(key=ARROW_KEY, value=redacted_entry(entry.value, metadata.schema.root.children, texts, ())[0])
