"""The files that are mutated: some that pyarrow writes here, and the small flat ones of the test data."""

from __future__ import annotations

import io
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

import fastpq
from tests.corrupt.mutate import Sample

LARGEST = 64 * 1024     # bytes; large files only dilute the mutations

# Two encodings for each type that has them.
COLUMN_ENCODINGS: tuple[dict[str, str], ...] = (
    {
        "integer": "DELTA_BINARY_PACKED",
        "small": "DELTA_BINARY_PACKED",
        "optional": "BYTE_STREAM_SPLIT",
        "flag": "RLE",
        "text": "DELTA_LENGTH_BYTE_ARRAY",
        "fixed": "DELTA_BYTE_ARRAY",
        "decimal": "BYTE_STREAM_SPLIT",
        "time": "DELTA_BINARY_PACKED",
    },
    {
        "integer": "BYTE_STREAM_SPLIT",
        "small": "BYTE_STREAM_SPLIT",
        "text": "DELTA_BYTE_ARRAY",
        "fixed": "BYTE_STREAM_SPLIT",
        "decimal": "DELTA_BYTE_ARRAY",
    },
)


def table(rows: int) -> pa.Table:
    """Columns of every kind, with nulls and repeats."""
    number = list(range(rows))
    return pa.table(
        {
            "integer": pa.array(number, pa.int64()),
            "small": pa.array([i % 7 for i in number], pa.int32()),
            "optional": pa.array([None if i % 3 == 0 else i / 8 for i in number], pa.float64()),
            "flag": pa.array([None if i % 11 == 0 else i % 2 == 0 for i in number], pa.bool_()),
            "text": pa.array([None if i % 5 == 0 else f"text {i % 13} and more of it" for i in number]),
            "fixed": pa.array([bytes([i % 256] * 5) for i in number], pa.binary(5)),
            "decimal": pa.array([i % 97 for i in number]).cast(pa.decimal128(25, 3)),
            "time": pa.array(number, pa.timestamp("us", "UTC")),
        }
    )


def written() -> Iterator[Sample]:
    """Files of every codec, page version and use of dictionaries."""
    codecs = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")
    versions: tuple[Any, ...] = ("1.0", "2.0")
    for codec, version, dictionary in itertools.product(codecs, versions, (True, False)):
        sink = io.BytesIO()
        pq.write_table(
            table(300),
            sink,
            compression=codec,
            data_page_version=version,
            use_dictionary=dictionary,
            data_page_size=600,
            row_group_size=200,
            write_batch_size=64,
            write_page_checksum=True,
            store_schema=False,
        )
        yield sample(f"pyarrow {codec} {version} {'dictionary' if dictionary else 'plain'}", sink.getvalue())


def written_in_encodings() -> Iterator[Sample]:
    """Files in the encodings that are not the default's."""
    for codec, version, encodings in itertools.product(("none", "zstd"), ("1.0", "2.0"), COLUMN_ENCODINGS):
        sink = io.BytesIO()
        pq.write_table(
            table(400),
            sink,
            compression=codec,
            data_page_version=version,
            use_dictionary=False,
            column_encoding=encodings,
            data_page_size=900,
            row_group_size=300,
            write_batch_size=64,
            store_schema=False,
        )
        yield sample(f"pyarrow {codec} {version} {encodings['text']}", sink.getvalue())


def nested_table(rows: int) -> pa.Table:
    """Lists, maps, structs and lists of them, with nulls and empties everywhere."""
    number = list(range(rows))
    lists = [None if i % 7 == 0 else [None if j == 2 else i + j for j in range(i % 5)] for i in number]
    deep = [None if i % 9 == 0 else [[f"text {i % 13}" for _ in range(j)] for j in range(i % 4)] for i in number]
    return pa.table(
        {
            "list": pa.array(lists, pa.list_(pa.int64())),
            "deep": pa.array(deep, pa.list_(pa.list_(pa.string()))),
            "map": pa.array([[(f"k{j}", j / 8) for j in range(i % 3)] for i in number], pa.map_(pa.string(), pa.float64())),
            "struct": pa.array([None if i % 4 == 0 else {"a": i, "b": {"c": [i % 2 == 0]}} for i in number]),
            "structs": pa.array([[{"x": j, "y": None if j else "why"} for j in range(i % 3)] for i in number]),
        }
    )


def nested_corpus() -> list[Sample]:
    """Nested files: of pyarrow and of fastpq in many encodings, and the valid small ones of the test data."""
    samples = []
    versions: tuple[Literal["1.0", "2.0"], ...] = ("1.0", "2.0")
    choices: tuple[Literal["auto"] | None, ...] = (None, "auto")
    for codec, version, auto in itertools.product(("none", "zstd"), versions, choices):
        sink = io.BytesIO()
        fastpq.write_table(
            nested_table(200), sink, compression=codec, data_page_version=version, encoding=auto, data_page_rows=30,
            row_group_size=120, use_dictionary=auto is None, arrow_schema=True,
        )
        samples.append(sample(f"fastpq {codec} {version} {auto}", sink.getvalue()))
        sink = io.BytesIO()
        pages = {"data_page_size": 300, "write_batch_size": 16}
        pq.write_table(nested_table(200), sink, compression=codec, data_page_version=version, **pages)
        samples.append(sample(f"pyarrow {codec} {version}", sink.getvalue()))
    if data := os.environ.get("FASTPQ_TEST_DATA"):
        samples += wild(Path(data), nested=True)
    return samples


def sample(name: str, data: bytes) -> Sample:
    """A Sample, with the page headers that the footer knows of."""
    try:
        metadata = pq.read_metadata(io.BytesIO(data))
    except (OSError, pa.ArrowException):
        return Sample(name, data, ())
    headers = set()
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(index)
            headers |= {chunk.data_page_offset, chunk.dictionary_page_offset}
    return Sample(name, data, sorted(offset for offset in headers if offset is not None and 0 <= offset < len(data)))


def wild(folder: Path, nested: bool = False) -> Iterator[Sample]:
    """The valid files of the test data, flat or nested, but for the hundred levels deep ones."""
    for entry in json.loads((folder / "wild/manifest.json").read_text()):
        features = entry["features"]
        path = folder / "wild" / entry["file"]
        if entry["class"] == "valid" and ("nest:nested" in features) == nested and path.stat().st_size <= LARGEST:
            yield sample(entry["file"], path.read_bytes())


def corpus(folder: Path | None = None) -> list[Sample]:
    """All samples, in an order that stays.

    Args:
        folder: take every file in this folder, and no others.
    """
    if folder:
        found = [sample(str(path), path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()]
        return [file for file in found if file.data]
    samples = [*written(), *written_in_encodings()]
    if data := os.environ.get("FASTPQ_TEST_DATA"):
        samples += wild(Path(data))
    return samples
