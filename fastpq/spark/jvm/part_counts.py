"""What a worker counts for a file part. The JVM adds it to the metrics that the scan has (ScanMetrics.java)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastpq.spark.keyservice import calls_to_services

Item = TypeVar("Item")


@dataclass
class PartCounts:
    """Counts for a file part.

    Attributes:
        row_groups, skipped_row_groups: row groups that are read, and those that evidence rules out.
        pages, skipped_pages: data pages in columns with conditions, as far as page indexes tell them.
        nanoseconds: time to open the file, and to read and decode the part.
    """

    row_groups: int = 0
    skipped_row_groups: int = 0
    pages: int = 0
    skipped_pages: int = 0
    nanoseconds: int = 0
    _calls_before: int = field(default_factory=calls_to_services)

    def timed(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items. The time to make them counts."""
        iterator = iter(items)
        while True:
            start = time.perf_counter_ns()
            try:
                item = next(iterator)
            except StopIteration:
                return
            finally:
                self.nanoseconds += time.perf_counter_ns() - start
            yield item

    def add_groups(self, num_groups: int, num_read: int) -> None:
        """Count row groups. Some are read."""
        self.row_groups += num_read
        self.skipped_row_groups += num_groups - num_read

    def add_pages(self, evidence: Iterable[Any]) -> None:
        """Count pages by a filter's explanation (``fastpq.ParquetFile.explain``)."""
        for group in evidence:
            for column in group.columns:
                if column.pages is not None and column.num_pages is not None:
                    self.pages += column.pages
                    self.skipped_pages += column.num_pages - column.pages

    def message(self, bytes_read: int) -> dict[str, int]:
        """Return the counts for the JVM.

        Args:
            bytes_read: bytes that were read from the file.
        """
        return {
            "bytesRead": bytes_read,
            "workerTime": self.nanoseconds,
            "parts": int(self.row_groups > 0),
            "skippedParts": int(self.row_groups == 0),
            "rowGroups": self.row_groups,
            "skippedRowGroups": self.skipped_row_groups,
            "pages": self.pages,
            "skippedPages": self.skipped_pages,
            "keyServiceCalls": calls_to_services() - self._calls_before,
        }
