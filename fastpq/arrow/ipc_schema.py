"""Decoding and encoding of ARROW:schema entries: an Arrow IPC schema message, in base64, in a Parquet file's metadata.

The message is a FlatBuffer (Schema.fbs and Message.fbs of the Arrow project). Its fields are decoded to FieldNodes, the nodes of
the C data interface, and encoded from FieldNodes.
https://arrow.apache.org/docs/format/Columnar.html#encapsulated-message-format
"""

from __future__ import annotations

import base64
import binascii
import copy
import struct

from fastpq.arrays.nodes import KEYS_SORTED, NULLABLE, ORDERED, FieldNode
from fastpq.arrow.flatbuffer import FlatTable, Scalar, flatbuffer
from fastpq.arrow.table_reader import TableReader
from fastpq.errors import FormatError, UnsupportedError
from fastpq.format.stored_footer import ARROW_KEY

_CONTINUATION = b"\xff\xff\xff\xff"
_VERSION_5 = 4
_SCHEMA_MESSAGE = 1

# Slots of the tables, in the order of Schema.fbs and Message.fbs.
_VERSION, _HEADER_TYPE, _HEADER, _BODY_LENGTH = range(4)                                # Message
_FIELDS, _SCHEMA_METADATA = 1, 2                                                        # Schema
_NAME, _NULLABLE, _TYPE_TYPE, _TYPE, _DICTIONARY, _CHILDREN, _METADATA = range(7)       # Field
_ID, _INDEX_TYPE, _IS_ORDERED = range(3)                                                # DictionaryEncoding
_KEY, _VALUE = range(2)                                                                 # KeyValue

# Members of the union Type.
_INT, _FLOAT, _DECIMAL, _DATE, _TIME, _TIMESTAMP, _INTERVAL = 2, 3, 7, 8, 9, 10, 11
_FIXED_SIZE_BINARY, _FIXED_SIZE_LIST, _MAP, _DURATION = 15, 16, 17, 18
_BARE = {
    "n": 1, "z": 4, "u": 5, "b": 6, "+l": 12, "+s": 13, "Z": 19, "U": 20, "+L": 21,
    "vz": 23, "vu": 24, "+vl": 25, "+vL": 26,
}
_BARE_FORMATS = {number: text for text, number in _BARE.items()}
_INT_FORMATS = {
    (8, 1): "c", (16, 1): "s", (32, 1): "i", (64, 1): "l",
    (8, 0): "C", (16, 0): "S", (32, 0): "I", (64, 0): "L",
}
_INTS = {text: widths for widths, text in _INT_FORMATS.items()}
_FLOATS, _UNITS, _DATES, _INTERVALS = "efg", "smun", "Dm", "MDn"
_SECOND, _MILLISECOND = range(2)
# Types with a unit: the start of the format string, the last letter of the format string by unit, and the default unit.
_LETTERS = {
    _FLOAT: ("", _FLOATS, 0),
    _DATE: ("td", _DATES, _MILLISECOND),
    _TIME: ("tt", _UNITS, _MILLISECOND),
    _INTERVAL: ("ti", _INTERVALS, 0),
    _DURATION: ("tD", _UNITS, _MILLISECOND),
}
_TIME_WIDTHS = {"s": 32, "m": 32, "u": 64, "n": 64}

# Most levels of a field; lists and the entries of maps count as levels. Bounds the recursion of _node.
_DEEPEST = 128


class IpcSchema:
    """The schema in an ARROW:schema entry; each field is decoded on first use.

    Args:
        text: the entry: base64 of an encapsulated IPC message.

    Raises:
        FormatError: the text is no entry.
    """

    def __init__(self, text: str) -> None:
        try:
            data = base64.b64decode(text, validate=True)
        except (ValueError, binascii.Error) as error:
            raise FormatError(f"{ARROW_KEY} is no base64") from error
        start = 4 if data.startswith(_CONTINUATION) else 0      # writers before Arrow 0.15 had no continuation
        size = int.from_bytes(data[start : start + 4], "little")
        message = TableReader.root(data[start + 4 : start + 4 + size])
        schema = message.table(_HEADER) if message.scalar(_HEADER_TYPE, "B") == _SCHEMA_MESSAGE else None
        if schema is None:
            raise FormatError(f"{ARROW_KEY} holds another message than a schema")
        self._schema = schema
        # Decoded fields and their numbers of nodes. Fields with metadata, mutable dicts, are decoded anew for each caller.
        self._known: dict[int, tuple[FieldNode, int]] = {}
        self._without_dictionary: set[int] = set()

    def anew(self) -> IpcSchema:
        """This schema for another caller: each may read as many bytes of names and metadata as the first."""
        other = copy.copy(self)
        other._schema = self._schema.anew()
        return other

    def __len__(self) -> int:
        return self._schema.count(_FIELDS)

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """Key-value metadata of the schema."""
        return dict(self.entries)

    @property
    def entries(self) -> list[tuple[bytes, bytes]]:
        """Keys and values of the metadata in their order, repeated keys included."""
        return [(pair.text(_KEY) or b"", pair.text(_VALUE) or b"") for pair in self._schema.items(_SCHEMA_METADATA)]

    def may_be_dictionary(self, index: int) -> bool:
        """Whether a field can be a dictionary, without a decoded field; the parameter is as of ``field``."""
        if index in self._without_dictionary:
            return False
        try:
            if self._schema.item(_FIELDS, index).table(_DICTIONARY) is not None:
                return True
        except FormatError:
            return False
        self._without_dictionary.add(index)
        return False

    def field(self, index: int, most: int) -> FieldNode:
        """A field with its children.

        Args:
            index: number of the field, below ``len(self)``.
            most: most nodes of the field. A flatbuffer may share nodes, so that few bytes can stand for many nodes.

        Raises:
            FormatError: the field breaks the format, or has more nodes.
            UnsupportedError: an unknown type.
        """
        known, count = self._known.get(index, (None, 0))
        if known is not None and count <= most:
            return known
        left = [most]
        node = _node(self._schema.item(_FIELDS, index), left, _DEEPEST)
        if not _has_metadata(node):
            self._known[index] = node, most - left[0]
        return node


def _node(field: TableReader, left: list[int], depth: int) -> FieldNode:
    left[0] -= 1
    if left[0] < 0 or field.count(_CHILDREN) > left[0] or not depth:
        raise FormatError(f"a field of {ARROW_KEY} has more children than its column")
    children: tuple[FieldNode, ...] = ()
    metadata: dict[bytes, bytes] | None = None
    if field.count(_CHILDREN):
        children = tuple(_node(child, left, depth - 1) for child in field.items(_CHILDREN))
    if field.count(_METADATA):
        metadata = {pair.text(_KEY) or b"": pair.text(_VALUE) or b"" for pair in field.items(_METADATA)}
    type_ = field.table(_TYPE)
    if type_ is None:
        raise FormatError(f"a field of {ARROW_KEY} has no type")
    member = field.scalar(_TYPE_TYPE, "B")
    text, name = _format(member, type_), _string(field.text(_NAME) or b"")
    flags = NULLABLE if field.scalar(_NULLABLE, "B") else 0
    if member == _MAP and type_.scalar(0, "B"):
        flags |= KEYS_SORTED
    encoding = field.table(_DICTIONARY)
    if encoding is None:
        return FieldNode(text, name, flags, metadata, children)
    if encoding.scalar(_IS_ORDERED, "B"):
        flags |= ORDERED
    index = encoding.table(_INDEX_TYPE)
    dictionary = FieldNode(text, children=children)
    return FieldNode("i" if index is None else _format(_INT, index), name, flags, metadata, dictionary=dictionary)


def _has_metadata(node: FieldNode) -> bool:
    inner = (*node.children, node.dictionary) if node.dictionary is not None else node.children
    return node.metadata is not None or any(map(_has_metadata, inner))


def _string(text: bytes) -> str:
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"a text in {ARROW_KEY} is not UTF-8") from error
    if "\0" in decoded:
        raise FormatError(f"a text in {ARROW_KEY} holds a zero byte")
    return decoded


def _letter(letters: str, number: int) -> str:
    if not 0 <= number < len(letters):
        raise FormatError(f"unit {number} of a type in {ARROW_KEY}")
    return letters[number]


def _format(member: int, type_: TableReader) -> str:
    """The format string of a type, a member of the union Type and its table."""
    if member in _BARE_FORMATS:
        return _BARE_FORMATS[member]
    if member == _INT:
        bits = type_.scalar(0, "i")
        found = _INT_FORMATS.get((bits, type_.scalar(1, "B")))
        if found is None:
            raise FormatError(f"an integer of {bits} bits in {ARROW_KEY}")
        return found
    if member == _DECIMAL:
        bits = type_.scalar(2, "i", 128)
        return f"d:{type_.scalar(0, 'i')},{type_.scalar(1, 'i')}" + ("" if bits == 128 else f",{bits}")
    if member == _TIMESTAMP:
        return f"ts{_letter(_UNITS, type_.scalar(0, 'h', _SECOND))}:{_string(type_.text(1) or b'')}"
    if member == _MAP:
        return "+m"
    if member in (_FIXED_SIZE_BINARY, _FIXED_SIZE_LIST):
        size = type_.scalar(0, "i")
        if size < 0:
            raise FormatError(f"a type of the fixed size {size} in {ARROW_KEY}")
        return f"{'w' if member == _FIXED_SIZE_BINARY else '+w'}:{size}"
    if member in _LETTERS:
        prefix, letters, default = _LETTERS[member]
        return prefix + _letter(letters, type_.scalar(0, "h", default))
    raise UnsupportedError(f"type {member} of the union in {ARROW_KEY}")


def encode_schema(root: FieldNode) -> str:
    """The ARROW:schema entry of a table's Arrow schema.

    Args:
        root: a struct; its children are the table's columns, its metadata the schema's.

    Raises:
        UnsupportedError: a format unknown to Schema.fbs or to fastpq.
    """
    ids = iter(range(1 << 62))

    def field(node: FieldNode) -> FlatTable:
        values = node if node.dictionary is None else node.dictionary
        member, type_ = _type(values.format, node.flags)
        table: FlatTable = {
            _NAME: node.name.encode(),
            _NULLABLE: Scalar("B", int(node.nullable)),
            _TYPE_TYPE: Scalar("B", member),
            _TYPE: type_,
            _CHILDREN: [field(child) for child in values.children],
        }
        if node.dictionary is not None:
            index = _type(node.format, 0)[1]
            ordered = Scalar("B", int(bool(node.flags & ORDERED)))
            table[_DICTIONARY] = {_ID: Scalar("q", next(ids)), _INDEX_TYPE: index, _IS_ORDERED: ordered}
        if node.metadata:
            table[_METADATA] = _pairs(node.metadata)
        return table

    schema: FlatTable = {_FIELDS: [field(child) for child in root.children], _SCHEMA_METADATA: _pairs(root.metadata or {})}
    message = flatbuffer(
        {
            _VERSION: Scalar("h", _VERSION_5),
            _HEADER_TYPE: Scalar("B", _SCHEMA_MESSAGE),
            _HEADER: schema,
            _BODY_LENGTH: Scalar("q", 0),
        }
    )
    message += bytes(-len(message) % 8)
    return base64.b64encode(_CONTINUATION + struct.pack("<I", len(message)) + message).decode()


def _pairs(metadata: dict[bytes, bytes]) -> list[FlatTable]:
    return [{_KEY: key, _VALUE: value} for key, value in metadata.items()]


def _type(text: str, flags: int) -> tuple[int, FlatTable]:
    """The member of the union Type for a format string, and the member's table."""
    if text in _BARE:
        return _BARE[text], {}
    if text in _INTS:
        bits, signed = _INTS[text]
        return _INT, {0: Scalar("i", bits), 1: Scalar("B", signed)}
    if text in ("e", "f", "g"):
        return _FLOAT, {0: Scalar("h", _FLOATS.index(text))}
    if text == "+m":
        return _MAP, {0: Scalar("B", int(bool(flags & KEYS_SORTED)))}
    kind, _, rest = text.partition(":")
    match kind:
        case "d":
            precision, scale, bits = ([*map(int, rest.split(",")), 128])[:3]
            return _DECIMAL, {0: Scalar("i", precision), 1: Scalar("i", scale), 2: Scalar("i", bits)}
        case "w":
            return _FIXED_SIZE_BINARY, {0: Scalar("i", int(rest))}
        case "+w":
            return _FIXED_SIZE_LIST, {0: Scalar("i", int(rest))}
        case "tdD" | "tdm":
            return _DATE, {0: Scalar("h", _DATES.index(kind[2]))}
        case "tts" | "ttm" | "ttu" | "ttn":
            return _TIME, {0: Scalar("h", _UNITS.index(kind[2])), 1: Scalar("i", _TIME_WIDTHS[kind[2]])}
        case "tss" | "tsm" | "tsu" | "tsn":
            zone: FlatTable = {1: rest.encode()} if rest else {}
            return _TIMESTAMP, {0: Scalar("h", _UNITS.index(kind[2]))} | zone
        case "tDs" | "tDm" | "tDu" | "tDn":
            return _DURATION, {0: Scalar("h", _UNITS.index(kind[2]))}
        case "tiM" | "tiD" | "tin":
            return _INTERVAL, {0: Scalar("h", _INTERVALS.index(kind[2]))}
    raise UnsupportedError(f"the Arrow format {text!r} has no type in {ARROW_KEY}")
