"""Published rules for files that GPUs decode. No GPU is measured: the bytes before and after are all that is known.

The rules come from the documentation of RAPIDS cuDF (its Parquet writer's defaults and its list of codecs), and from NVIDIA's
articles on Parquet and on nvCOMP: a thread block decodes one page, so that there must be many pages of about 1 MiB; row groups
should have about a million rows; Snappy and Zstandard have fast decoders; and DELTA_BYTE_ARRAY makes each value depend on the one
before it.
"""

from __future__ import annotations

from collections.abc import Iterator

from fastpq.advice.advice_report import Advice
from fastpq.advice.present_settings import Change, structural_changes
from fastpq.advice.trials import RowSample
from fastpq.options import DEFAULT_PROPERTIES

FAST_CODECS = ("uncompressed", "snappy", "zstd")
MOST_GROUP_ROWS = 4 << 20


class GpuAdvisor:
    """Finds what published rules ask for.

    Args:
        sample: rows of the file.

    Attributes:
        settings: the settings with all changes.
    """

    def __init__(self, sample: RowSample) -> None:
        self._structure, self._sample = sample.structure, sample
        self.settings = sample.structure.settings

    def advice(self) -> list[Advice]:
        """Return the changes, the one that saves most bytes first."""
        before = float(self._structure.size)
        advice = []
        for change in self._changes():
            recipe = change.apply(self._structure.settings).options()
            self.settings = change.apply(self.settings)
            trial = self._sample.trial(self.settings)
            after = self._sample.bytes_by_column(trial).sum() + self._sample.rest_bytes(trial)
            columns = tuple(change.of_columns)
            advice.append(Advice(change.topic, change.text, columns, "stored bytes", int(before), int(after), None, recipe))
            before = after
        return sorted(advice, key=lambda each: each.gain, reverse=True)

    def _changes(self) -> Iterator[Change]:
        defaults, settings = DEFAULT_PROPERTIES, self._structure.settings
        yield from structural_changes(self._structure)
        rows = self._structure.facts.rows
        if len(rows) and rows.max() > MOST_GROUP_ROWS:
            text = "The row groups are large. A GPU has to hold one in its memory. Write row groups of about a million rows."
            yield Change("row groups", text, {"row_group_rows": defaults.row_group_size})
        if self._structure.has_large_pages:
            text = "The pages are large. A thread block decodes one page, so that much of the GPU is idle. Write pages of 1 MiB."
            yield Change("pages", text, {"page_rows": defaults.data_page_rows, "page_bytes": defaults.data_page_size})
        slow = [name for name, each in settings.columns.items() if each.codec not in FAST_CODECS]
        if slow:
            text = "The codec has no fast decoder for GPUs. Compress the pages with zstd."
            yield Change("compression", text, {}, {name: {"codec": "zstd", "level": None} for name in slow})
        dependent = [name for name, each in settings.columns.items() if each.encoding == "DELTA_BYTE_ARRAY"]
        if dependent:
            text = "Each value depends on the one before it (DELTA_BYTE_ARRAY). Write a dictionary or plain values."
            yield Change("encoding", text, {}, {name: {"encoding": None, "is_dictionary": True} for name in dependent})
