"""Distance of reads from the floor: ``tools/bench --jobs floor``, or ``python -m benchmarks.floor``.

The floor is what a reader can hardly save: to decompress every page, and to copy the result once. The decoders are those that
fastpq compiles. Each page is decompressed from memory to the same buffer, which stays in the cache. A page without compression is
copied there. The result is copied to memory that was used before, as that of a repeated read.

The files are in the folder of the benchmark's data, because the system finds the pages of a file in /dev/shm more slowly.

A turn is one decompression, one copy and one read, one after the other in one process, so a busy machine disturbs them alike.
Processor time counts. The ratio is the read's time over that of the floor: the median of the turns, with the interval that holds
the true median with 95 % probability. The table that is read is compared with pyarrow's before.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import fastpq
from benchmarks.against import median_interval
from benchmarks.data import FOLDER, path_of
from benchmarks.equal_work import COLUMNS
from benchmarks.equality import require_equal
from benchmarks.peers import ROW_GROUP_SIZE
from fastpq import format as fmt
from fastpq.arrays.layouts import CodedViews
from fastpq.arrays.table import Column
from fastpq.cli.stored_chunks import stored_pages
from fastpq.codecs.catalogue import codec_for_write
from fastpq.common.parallel import run_parallel

CODECS = ("none", "snappy", "lz4", "zstd")
FEWEST_TURNS = 9
TURNS = 15
COPIED = 4 << 20        # bytes that a thread copies at a time

Bytes = NDArray[np.uint8]


class CompressedPage(NamedTuple):
    """A page as it is stored, and its size after decompression in bytes."""

    body: memoryview
    size: int


@dataclass(frozen=True)
class FloorRecord:
    """One read and its floor.

    Attributes:
        codec: codec of the file.
        threads: threads of the read and of the floor.
        read, decompression, copy: processor seconds, medians.
        ratio: processor seconds of the read over those of decompression and copy, the median of the turns.
        low, high: interval of the ratio.
        elapsed: the same ratio in elapsed seconds.
    """

    codec: str
    threads: int
    read: float
    decompression: float
    copy: float
    ratio: float
    low: float
    high: float
    elapsed: float


def compressed_chunks(path: Path) -> list[list[CompressedPage]]:
    """Return the compressed pages of each column chunk. A page may have no levels, which V2 pages do not compress."""
    data = memoryview(path.read_bytes())
    with fastpq.ParquetFile(path) as file:
        return [
            [_page(data[page.offset : page.offset + page.stored_size]) for page in stored_pages(file, group, column)]
            for group in range(file.num_row_groups)
            for column in file.schema.columns
        ]


def _page(stored: memoryview) -> CompressedPage:
    header, size = fmt.decode(fmt.PageHeader, stored)
    v2 = header.data_page_header_v2
    if v2 is not None and (v2.definition_levels_byte_length or v2.repetition_levels_byte_length or v2.is_compressed is False):
        raise ValueError("the floor needs pages that are compressed as a whole")
    return CompressedPage(stored[size:], header.uncompressed_page_size)


def decompression(path: Path, codec: str, threads: int) -> Callable[[], object]:
    """Return a function that decompresses all pages of a file with the codec that fastpq compiles."""
    chunks = compressed_chunks(path)
    decompress_into = codec_for_write(codec, package=False).decompress_into
    largest = max(page.size for pages in chunks for page in pages)

    def decompress(pages: list[CompressedPage]) -> None:
        target = memoryview(bytearray(largest))
        for body, size in pages:
            decompress_into(body, target[:size])

    return partial(run_parallel, decompress, chunks, threads)


def copy_of(table: fastpq.Table, threads: int) -> Callable[[], object]:
    """Return a function that copies all buffers of a table to memory that it has already written."""
    pairs = [
        (source[first : first + COPIED], target[first : first + COPIED])
        for source in buffers_of(table)
        for target in [np.ones_like(source)]
        for first in range(0, source.nbytes, COPIED)
    ]

    def copy(pair: tuple[Bytes, Bytes]) -> None:
        np.copyto(pair[1], pair[0])

    return partial(run_parallel, copy, pairs, threads)


def buffers_of(table: fastpq.Table) -> Iterator[Bytes]:
    """Yield the memory of a table of flat columns without nulls: values, views and their text, codes and entries."""
    for column in table.columns:
        assert isinstance(column, Column)
        parts: list[Any] = [column.values]
        while parts:
            part = parts.pop()
            if isinstance(part, np.ndarray):
                yield np.ascontiguousarray(part).view(np.uint8)
            elif isinstance(part, CodedViews):
                parts += [part.codes, part.entries]
            else:
                parts += [part.views, *part.buffers]


def measure(table: Any, codec: str, threads: int, turns: int, folder: Path) -> FloorRecord:
    """Write a table, and measure its read and its floor in turns.

    Raises:
        DifferenceError: the table that is read differs from pyarrow's.
    """
    path = folder / "floor.parquet"
    fastpq.write_table(table, path, compression=codec, row_group_size=ROW_GROUP_SIZE)
    read = partial(fastpq.read_table, path, threads=threads)
    require_equal(pa.table(read()), pq.read_table(path))
    actions: dict[str, Callable[[], object]] = {
        "decompression": decompression(path, codec, threads),
        "copy": copy_of(read(), threads),
        "read": read,
    }
    processor: dict[str, list[float]] = {name: [] for name in actions}
    elapsed: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(turns + 1):       # without the first
        for name, action in actions.items():
            gc.collect()
            started, used = time.perf_counter(), time.process_time()
            action()
            used, seconds = time.process_time() - used, time.perf_counter() - started
            if turn:
                processor[name].append(used)
                elapsed[name].append(seconds)
    ratios = ratios_of(processor)
    low, high = median_interval(ratios)
    medians = {name: statistics.median(found) for name, found in processor.items()}
    return FloorRecord(codec, threads, **medians, ratio=statistics.median(ratios), low=low, high=high,
                       elapsed=statistics.median(ratios_of(elapsed)))


def ratios_of(seconds: dict[str, list[float]]) -> list[float]:
    """Return the sorted ratios of the turns: the read over decompression and copy."""
    turns = zip(seconds["read"], seconds["decompression"], seconds["copy"], strict=True)
    return sorted(read / (decompressed + copied) for read, decompressed, copied in turns)


def measure_lineitem(codec: str, threads: int, turns: int, scale: float, columns: str = "all") -> FloorRecord:
    """Measure the read of lineitem with a codec. The file has some of the columns, by a name in COLUMNS."""
    names = COLUMNS[columns]
    table = fastpq.read_table(path_of("lineitem", scale), list(names) if names else None)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        return measure(table, codec, threads, turns, Path(folder))


HEAD = (
    "| codec | threads | read | decompression | copy | read / floor | interval | in elapsed time |",
    "| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |",
)


def row_of(record: FloorRecord) -> str:
    """Return the row of a read in a table of Markdown."""
    seconds = " | ".join(f"{each:.3f}" for each in (record.read, record.decompression, record.copy))
    interval = f"{record.low:.2f} to {record.high:.2f}"
    return f"| {record.codec} | {record.threads} | {seconds} | {record.ratio:.2f} | {interval} | {record.elapsed:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.floor", description=__doc__)
    parser.add_argument("--columns", choices=COLUMNS, default="all", help="columns of the file (default: %(default)s)")
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}", help="numbers of threads (default: %(default)s)")
    turns = f"turns for each figure, at least {FEWEST_TURNS} (default: %(default)s)"
    parser.add_argument("--turns", type=int, default=TURNS, help=turns)
    parser.add_argument("--scale", type=float, default=1, help="TPC-H scale factor (default: %(default)s)")
    options = parser.parse_args()
    if options.turns < FEWEST_TURNS:
        parser.error(f"--turns must be at least {FEWEST_TURNS}")
    print(*HEAD, sep="\n")
    threads = sorted({int(count) for count in options.threads.split(",")})
    for codec in CODECS:
        for count in threads:
            print(row_of(measure_lineitem(codec, count, options.turns, options.scale, options.columns)), flush=True)


if __name__ == "__main__":
    main()
