"""Footers of extraordinary size, opened and read: ``python -m benchmarks.footers`` compares time and memory with the peers.

Every measurement runs in its own process, the peers in turns. Memory is the growth of the largest resident size during the work.
The ratios are those of wall time and of processor time, which a busy machine alters less.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fastpq import format as fmt
from fastpq import write_table
from fastpq.options import ReaderProperties
from fastpq.schema.types import Type
from tests.varints import varint

READERS = ("fastpq", "pyarrow", "polars")
HUGE = (1 << 31) - 1


def listed(structs: list[bytes]) -> bytes:
    """A list of serialized structs."""
    return b"\xfc" + varint(len(structs)) + b"".join(structs)


def file_of(
    schema: list[bytes], num_rows: int, row_groups: list[bytes], key_values: list[bytes] | None = None, head: bytes = b"PAR1"
) -> bytes:
    """A file of a serialized footer's parts; head has the magic and the pages."""
    footer = b"\x15\x04\x19" + listed(schema) + b"\x16" + varint(num_rows * 2) + b"\x19" + listed(row_groups)
    footer += b"" if key_values is None else b"\x19" + listed(key_values)
    footer += b"\x00"
    return head + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def schema_of(names: list[str]) -> list[bytes]:
    root = fmt.encode(fmt.SchemaElement(name="schema", num_children=len(names)))
    return [root, *(fmt.encode(fmt.SchemaElement(type=Type.INT32, repetition_type=0, name=name)) for name in names)]


def column_chunk(name: str, offset: int, size: int, rows: int) -> fmt.ColumnChunk:
    metadata = fmt.ColumnMetaData(
        type=Type.INT32,
        encodings=[0],
        path_in_schema=[name],
        codec=0,
        num_values=rows,
        total_uncompressed_size=size,
        total_compressed_size=size,
        data_page_offset=offset,
    )
    return fmt.ColumnChunk(file_offset=0, meta_data=metadata)


def one_page() -> bytes:
    """A page of the INT32 value 7."""
    header = fmt.PageHeader(
        type=0,
        uncompressed_page_size=4,
        compressed_page_size=4,
        data_page_header=fmt.DataPageHeader(
            num_values=1, encoding=0, definition_level_encoding=3, repetition_level_encoding=3
        ),
    )
    return fmt.encode(header) + np.int32(7).tobytes()


def empty_row_groups(count: int) -> bytes:
    return file_of(schema_of([]), 0, [fmt.encode(fmt.RowGroup(columns=[], total_byte_size=0, num_rows=0))] * count)


def row_groups(count: int) -> bytes:
    """Row groups of one row and one column, all of the same page."""
    page = one_page()
    group = fmt.RowGroup(columns=[column_chunk("a", 4, len(page), 1)], total_byte_size=len(page), num_rows=1)
    return file_of(schema_of(["a"]), count, [fmt.encode(group)] * count, head=b"PAR1" + page)


def columns(count: int) -> bytes:
    """Columns of one row, all of the same page."""
    page, names = one_page(), [f"c{number}" for number in range(count)]
    chunks = [column_chunk(name, 4, len(page), 1) for name in names]
    group = fmt.encode(fmt.RowGroup(columns=chunks, total_byte_size=len(page) * count, num_rows=1))
    return file_of(schema_of(names), 1, [group], head=b"PAR1" + page)


def key_values(count: int) -> bytes:
    entries = [fmt.encode(fmt.KeyValue(key=f"k{number}", value="v")) for number in range(count)]
    return file_of(schema_of(["a"]), 0, [], entries)


def small() -> bytes:
    from io import BytesIO

    out = BytesIO()
    write_table({f"c{number}": np.arange(10) for number in range(10)}, out)
    return out.getvalue()


FILES: dict[str, Callable[[], bytes]] = {
    "small": small,
    "a million empty row groups": lambda: empty_row_groups(1_000_000),
    "300,000 row groups": lambda: row_groups(300_000),
    "100,000 columns": lambda: columns(100_000),
    "a million columns": lambda: columns(1_000_000),
    "ten million key-values": lambda: key_values(10_000_000),
}
# Work by the name in the report: opening reads the footer, reading gives the table of the library.
WORK = ("open", "read")


def do(reader: str, work: str, path: str) -> None:
    """Open or read a file once.

    Raises:
        Exception: any error of the library.
    """
    if reader == "fastpq":
        import fastpq

        properties = _unbounded()
        file = fastpq.ParquetFile(path, properties=properties)
        assert file.metadata.num_rows >= 0
        if work == "read":
            file.read()
    elif reader == "pyarrow":
        import pyarrow.parquet as pq

        limit = {"thrift_string_size_limit": HUGE, "thrift_container_size_limit": HUGE}
        if work == "read":
            pq.ParquetFile(path, **limit).read()
        else:
            assert pq.ParquetFile(path, **limit).metadata.num_rows >= 0
    else:
        import polars as pl

        if work == "read":
            pl.read_parquet(path)
        else:
            pl.scan_parquet(path).collect_schema()


def _unbounded() -> ReaderProperties:
    """Properties whose bounds let every file here pass."""
    return ReaderProperties(max_footer_size=HUGE, max_row_groups=HUGE, max_columns=HUGE, max_metadata_size=HUGE)


def measured(reader: str, work: str, path: str, runs: int) -> dict[str, Any]:
    """Seconds and processor seconds of the fastest run, and growth of the resident size in MiB."""
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        file.write(small())
        file.flush()
        do(reader, work, file.name)     # imports
    before, seconds = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, []
    for _ in range(runs):
        begun, used = time.perf_counter(), time.process_time()
        do(reader, work, path)
        seconds.append((time.perf_counter() - begun, time.process_time() - used))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"seconds": min(seconds)[0], "cpu": min(cpu for _, cpu in seconds), "mib": grown / 1024}


def in_child(reader: str, work: str, path: Path, runs: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.footers", "--child", json.dumps([reader, work, str(path), runs])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["killed"])[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.footers", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--files", nargs="*", default=[*FILES], choices=[*FILES], metavar="FILE", help=", ".join(FILES))
    parser.add_argument("--readers", nargs="*", default=[*READERS], choices=READERS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(measured(*json.loads(options.child))))
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in options.files:
            path = Path(folder) / "file.parquet"
            path.write_bytes(FILES[name]())
            runs = 200 if name == "small" else 1
            for work in WORK:
                found = {reader: in_child(reader, work, path, runs) for reader in options.readers}
                ours = found.get("fastpq", {})
                for reader, result in found.items():
                    if "error" in result:
                        print(f"{name}, {work}: {reader} {result['error'][:100]}", flush=True)
                        continue
                    ratio = ""
                    if "cpu" in ours and reader != "fastpq":
                        wall, cpu = (ours[kind] / max(result[kind], 1e-9) for kind in ("seconds", "cpu"))
                        ratio = f"; fastpq takes {wall:.2f} of the time, {cpu:.2f} of the processor time"
                    took = f"{result['seconds']:.4f} s, {result['cpu']:.4f} s of a processor"
                    print(f"{name}, {work}: {reader} {took}, {result['mib']:.0f} MiB{ratio}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
