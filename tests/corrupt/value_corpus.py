"""Values that are mutated by themselves: variants, geometries in WKB, and the messages of Arrow schemas."""

from __future__ import annotations

import base64
import datetime
import decimal
import functools
import io
import struct
import uuid
from typing import Any

import pyarrow as pa

import fastpq
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.variant import Kind, Primitive, Variant
from tests.corrupt.mutate import Sample
from tests.variant.reference import Shape, variant

PRIMITIVES = [
    Primitive(Kind.NULL, None), Primitive(Kind.TRUE, True), Primitive(Kind.INT8, 1), Primitive(Kind.INT64, 1 << 40),
    Primitive(Kind.DOUBLE, 0.5), Primitive(Kind.FLOAT, 0.5), Primitive(Kind.DECIMAL4, decimal.Decimal("1.5")),
    Primitive(Kind.DECIMAL16, decimal.Decimal("1" * 30)), Primitive(Kind.DATE, 20_000), Primitive(Kind.TIME, 1),
    Primitive(Kind.TIMESTAMP, 1 << 50), Primitive(Kind.TIMESTAMP_NTZ_NANOS, 1 << 60), Primitive(Kind.BINARY, b"\x00" * 9),
    Primitive(Kind.STRING, "text"), Primitive(Kind.STRING, "longer é🐢 " * 10), Primitive(Kind.UUID, uuid.UUID(int=7)),
]
NESTED: list[Any] = [
    PRIMITIVES,
    {f"k{i}": value for i, value in enumerate(PRIMITIVES)},
    {"a": PRIMITIVES[2], "b": {"id": [PRIMITIVES[13], [], {}], "a": PRIMITIVES[0]}, "c": [PRIMITIVES[14]] * 3},
    {"id": PRIMITIVES[3], "species": {"name": PRIMITIVES[13]}, "observation": {"a": {"b": {"c": PRIMITIVES[5]}}}},
    [[[[[PRIMITIVES[2]]]]]],
]
SHAPES = [Shape(), Shape(extra=1), Shape(extra=3, large=True, long_strings=True, backwards=True)]


def variants() -> list[Sample]:
    """Metadata and value one after the other."""
    trees = [*PRIMITIVES, *NESTED]
    samples = [Sample(f"variant {i}", b"".join(variant(tree, shape)), ()) for i, tree in enumerate(trees) for shape in SHAPES]
    wide = Variant.from_python({f"field {i}": [i, datetime.date(2020, 1, 1)] for i in range(300)})
    return [*samples, Sample("wide variant", wide.metadata + wide.value, ())]


def split(data: bytes) -> tuple[bytes, bytes]:
    """Metadata and value, where the metadata says that it ends; half of each where it says nothing sensible."""
    size = (data[0] >> 6) + 1 if data else 1
    count = int.from_bytes(data[1 : 1 + size], "little")
    last = int.from_bytes(data[1 + (count + 1) * size : 1 + (count + 2) * size], "little")
    end = 1 + (count + 2) * size + last
    end = end if end < len(data) else len(data) // 2
    return data[:end], data[end:]


def geometries() -> list[Sample]:
    """Every type in both byte orders and all dimensions."""
    samples = []
    for order in "<>":
        for code, width in ((0, 2), (1000, 3), (2000, 3), (3000, 4)):
            head = struct.pack(f"{order}B", order == "<")
            coordinates = struct.pack(f"{order}{width}d", *range(width))
            point = head + struct.pack(f"{order}I", code + 1) + coordinates
            line = head + struct.pack(f"{order}II", code + 2, 3) + coordinates * 3
            polygon = head + struct.pack(f"{order}IIII", code + 3, 2, 1, 1)[: 4 * 3] + coordinates
            polygon += struct.pack(f"{order}I", 1) + coordinates
            parts = {4: point, 5: line, 6: polygon, 7: point + line + polygon}
            several = [
                head + struct.pack(f"{order}II", code + kind, 3 if kind == 7 else 2) + (part if kind == 7 else part * 2)
                for kind, part in parts.items()
            ]
            nested = head + struct.pack(f"{order}II", code + 7, len(several)) + b"".join(several)
            made = [point, line, polygon, *several, nested]
            samples += [Sample(f"geometry {order}{code} {i}", data, ()) for i, data in enumerate(made)]
    return samples


@functools.cache
def described() -> tuple[fastpq.Table, Any]:
    """A table whose columns Arrow has several types for, and their nodes in a file."""
    sink = io.BytesIO()
    fastpq.write_table(arrow_table(), sink, arrow_schema=True)
    with fastpq.ParquetFile(sink.getvalue(), arrow_schema=False) as file:
        return file.read(), file.schema.root.children


def arrow_table() -> pa.Table:
    day, kept = datetime.date(2020, 1, 1), pa.struct([("d", pa.date64()), ("t", pa.time32("s"))])
    return pa.table(
        {
            "duration": pa.array([1, None, 3], pa.duration("ms")),
            "zoned": pa.array([0, 1000, None], pa.timestamp("ms", "Europe/Berlin")),
            "text": pa.array(["a", "a", None]).dictionary_encode(),
            "codes": pa.array([5, 5, 6]).dictionary_encode(),
            "lists": pa.array([["x", None], None, ["more than twelve bytes", "y"]], pa.list_(pa.large_string(), 2)),
            "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int8())),
            "struct": pa.array([{"d": day, "t": None}, None, {"d": day, "t": 3}], kept),
            "decimal": pa.array([1, None, 2]).cast(pa.decimal256(20, 0)),
            "uuid": pa.array([bytes(16), None, bytes(16)], pa.uuid()),
        }
    )


def schemas() -> list[Sample]:
    """The messages of pyarrow and of fastpq."""
    sink = io.BytesIO()
    fastpq.write_table(arrow_table(), sink, arrow_schema=True)
    ours = base64.b64decode(fastpq.read_metadata(sink.getvalue()).key_value_metadata[ARROW_KEY] or "")
    return [Sample("pyarrow's schema", arrow_table().schema.serialize().to_pybytes(), ()), Sample("our schema", ours, ())]
