"""Tables of flatbuffers: those that flatbuffer writes, those of pyarrow, and broken ones."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from fastpq.arrow.flatbuffer import FlatTable, Scalar, flatbuffer
from fastpq.arrow.table_reader import TableReader
from fastpq.errors import FormatError

INNER: FlatTable = {0: b"inner", 2: Scalar("h", -3)}
ROOT: FlatTable = {
    0: Scalar("B", 200),
    1: Scalar("h", -30_000),
    2: Scalar("i", -(1 << 31)),
    3: Scalar("q", 1 << 62),
    4: b"a text",
    6: INNER,
    7: [INNER, {}, {1: Scalar("B", 1)}],
    8: [],
}


def everything(table: TableReader, depth: int = 3) -> object:
    """All values of a table by any reading of its slots, or the error of each."""

    def tried(read: object) -> object:
        try:
            return read()  # type: ignore[operator]
        except FormatError as error:
            return str(error)

    found: list[object] = []
    for slot in range(10):
        found += [tried(lambda slot=slot, code=code: table.scalar(slot, code, 7)) for code in "Bhiq"]
        found.append(tried(lambda slot=slot: table.text(slot)))
        if depth:
            inner = tried(lambda slot=slot: table.table(slot))
            found.append(everything(inner, depth - 1) if isinstance(inner, TableReader) else inner)
            items = tried(lambda slot=slot: [*table.items(slot)][:4])
            found.append([everything(item, depth - 2) for item in items] if isinstance(items, list) and depth > 1 else None)
    return found


def test_all_kinds_of_values() -> None:
    table = TableReader.root(flatbuffer(ROOT))
    assert [table.scalar(slot, code) for slot, code in enumerate("Bhiq")] == [200, -30_000, -(1 << 31), 1 << 62]
    assert table.text(4) == b"a text"
    assert (table.text(5), table.table(5), table.count(5), [*table.items(5)], table.scalar(5, "i", -9)) == (None, None, 0, [], -9)
    assert table.scalar(100, "q", 3) == 3
    inner = table.table(6)
    assert inner is not None
    assert (inner.text(0), inner.scalar(2, "h")) == (b"inner", -3)
    assert [item.scalar(1, "B") for item in table.items(7)] == [0, 0, 1]
    assert table.item(7, 0).text(0) == b"inner"
    assert (table.count(7), table.count(8)) == (3, 0)
    for index in (3, -1):
        with pytest.raises(IndexError):
            table.item(7, index)
    with pytest.raises(ValueError, match="'d' is not a type of scalars"):
        table.scalar(0, "d")


def test_a_schema_of_pyarrow() -> None:
    schema = pa.schema([(f"column {number}", pa.int64()) for number in range(100)], {"key": "value"})
    message = TableReader.root(schema.serialize().to_pybytes()[8:])
    found = message.table(2)
    assert found is not None
    assert [field.text(0) for field in found.items(1)] == [name.encode() for name in schema.names]
    assert [(pair.text(0), pair.text(1)) for pair in found.items(2)] == [(b"key", b"value")]


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\xff\xff\xff\xff", b"\4\0\0\0", b"\4\0\0\0\xff\xff\xff\x7f"])
def test_no_root(data: bytes) -> None:
    with pytest.raises(FormatError, match="outside a flatbuffer"):
        TableReader.root(data)


def test_broken_buffers_end_in_errors() -> None:
    whole = flatbuffer(ROOT)
    draw = random.Random()
    for number in range(400):
        data = bytearray(whole[: draw.randrange(len(whole))] if number % 3 == 0 else whole)
        for _ in range(draw.randrange(1, 4)):
            if data:
                data[draw.randrange(len(data))] = draw.choice([0, 1, 4, 0x7F, 0x80, 0xFF, draw.randrange(256)])
        try:
            everything(TableReader.root(bytes(data)))
        except FormatError:
            continue


def test_shared_strings_are_bounded() -> None:
    table = TableReader.root(flatbuffer({0: b"x" * 1000}))
    with pytest.raises(FormatError, match="more than 8 times"):
        for _ in range(20):
            assert table.text(0) == b"x" * 1000
