"""Decoding and encoding of ARROW:schema entries. An entry is a schema message in Arrow's IPC format, in base64.

A Parquet file has the entry in its metadata. The message is a FlatBuffer (Schema.fbs and Message.fbs in the Arrow project). Its
fields are converted to and from FieldNodes, which represent schemas in the C data interface.
https://arrow.apache.org/docs/format/Columnar.html#encapsulated-message-format
"""

from __future__ import annotations

import base64
import binascii
import copy
import struct
from functools import lru_cache

from fastpq.arrays.nodes import KEYS_SORTED, NULLABLE, ORDERED, FieldNode
from fastpq.arrow.flatbuffer import EncodedTable, FlatTable, Scalar, flatbuffer
from fastpq.arrow.plain_fields import dictionary_numbers, plain_field
from fastpq.arrow.table_reader import TableReader
from fastpq.errors import FormatError, UnsupportedError
from fastpq.format.stored_footer import ARROW_KEY

_CONTINUATION = b"\xff\xff\xff\xff"
_VERSION_5 = 4
_SCHEMA_MESSAGE = 1

# Table slots, in the same order as in Schema.fbs and Message.fbs.
_VERSION, _HEADER_TYPE, _HEADER, _BODY_LENGTH = range(4)                                # Message
_FIELDS, _SCHEMA_METADATA = 1, 2                                                        # Schema
_NAME, _NULLABLE, _TYPE_TYPE, _TYPE, _DICTIONARY, _CHILDREN, _METADATA = range(7)       # Field
_ID, _INDEX_TYPE, _IS_ORDERED = range(3)                                                # DictionaryEncoding
_KEY, _VALUE = range(2)                                                                 # KeyValue
_EMPTY_NAME = bytes(5)                          # a string of length 0 in a flatbuffer, with its NUL

# Members of the union Type in Schema.fbs.
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
_UNITS = "smun"
_SECOND, _MILLISECOND = range(2)
# For each type with a unit: its format string's prefix, the last letter by unit, and the default unit.
_LETTERS = {
    _FLOAT: ("", "efg", 0),
    _DATE: ("td", "Dm", _MILLISECOND),
    _TIME: ("tt", _UNITS, _MILLISECOND),
    _INTERVAL: ("ti", "MDn", 0),
    _DURATION: ("tD", _UNITS, _MILLISECOND),
}
_TIME_WIDTHS = {"s": 32, "m": 32, "u": 64, "n": 64}

# Largest number of levels in a field, which limits how deep _node recurses. Lists and map entries count as levels.
_DEEPEST = 128


class IpcSchema:
    """The schema in an ARROW:schema entry. Each field is decoded when it is first used.

    Args:
        text: the entry, which is an encapsulated IPC message in base64.

    Raises:
        FormatError: the text is not such an entry.
    """

    def __init__(self, text: str) -> None:
        try:
            data = base64.b64decode(text, validate=True)
        except (ValueError, binascii.Error) as error:
            raise FormatError(f"{ARROW_KEY} is not valid base64") from error
        start = 4 if data.startswith(_CONTINUATION) else 0      # writers before Arrow 0.15 wrote no continuation marker
        size = int.from_bytes(data[start : start + 4], "little")
        message = TableReader.root(data[start + 4 : start + 4 + size])
        schema = message.table(_HEADER) if message.scalar(_HEADER_TYPE, "B") == _SCHEMA_MESSAGE else None
        if schema is None:
            raise FormatError(f"{ARROW_KEY} has a message that is not a schema")
        self._schema = schema
        # Decoded fields with their node counts. Fields with metadata are decoded again for each caller, because a dict is
        # mutable.
        self._decoded_fields: dict[int, tuple[FieldNode, int]] = {}
        self._dictionaries: list[set[int]] = []     # indexes of the fields that may be dictionaries, found on first use

    def anew(self) -> IpcSchema:
        """Return this schema for another caller, who may read as many name and metadata bytes as the first one."""
        other = copy.copy(self)
        other._schema = self._schema.anew()
        return other

    def __len__(self) -> int:
        return self._schema.count(_FIELDS)

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The schema's key-value metadata."""
        return dict(self.entries)

    @property
    def entries(self) -> list[tuple[bytes, bytes]]:
        """The metadata's keys and values, in order. Keys may repeat."""
        return [(pair.text(_KEY) or b"", pair.text(_VALUE) or b"") for pair in self._schema.items(_SCHEMA_METADATA)]

    def may_be_dictionary(self, index: int) -> bool:
        """Return whether a field may be a dictionary, without decoding it. The argument is as for ``field``."""
        if not self._dictionaries:
            self._dictionaries.append(dictionary_numbers(self._schema, _FIELDS))
        return index in self._dictionaries[0]

    def field(self, index: int, most: int) -> FieldNode:
        """Return a field with its children.

        Args:
            index: field index, less than ``len(self)``.
            most: largest allowed node count. A flatbuffer may share nodes, so that few bytes can describe many nodes.

        Raises:
            FormatError: the field breaks the format or has more nodes.
            UnsupportedError: a type is unknown.
        """
        field, count = self._decoded_fields.get(index, (None, 0))
        if field is not None and count <= most:
            return field
        plain = plain_field(self._schema, _FIELDS, index, _format)
        if plain is not None:
            self._decoded_fields[index] = plain, 1
            return plain
        budget = [most]
        node = _node(self._schema.item(_FIELDS, index), budget, _DEEPEST)
        if not _has_metadata(node):
            self._decoded_fields[index] = node, most - budget[0]
        return node


def _node(field: TableReader, budget: list[int], depth: int) -> FieldNode:
    budget[0] -= 1
    if budget[0] < 0 or field.count(_CHILDREN) > budget[0] or not depth:
        raise FormatError(f"a field of {ARROW_KEY} has more children than its column")
    children: tuple[FieldNode, ...] = ()
    metadata: dict[bytes, bytes] | None = None
    if field.count(_CHILDREN):
        children = tuple(_node(child, budget, depth - 1) for child in field.items(_CHILDREN))
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
        name = text.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"a text in {ARROW_KEY} is not UTF-8") from error
    if "\0" in name:
        raise FormatError(f"a text in {ARROW_KEY} has a zero byte")
    return name


def _letter(letters: str, number: int) -> str:
    if not 0 <= number < len(letters):
        raise FormatError(f"a type in {ARROW_KEY} has the unknown unit {number}")
    return letters[number]


def _format(member: int, type_: TableReader) -> str:
    """Return the format string for a member of the union Type, with the table that describes it."""
    if member in _BARE_FORMATS:
        return _BARE_FORMATS[member]
    if member == _INT:
        bits = type_.scalar(0, "i")
        text = _INT_FORMATS.get((bits, type_.scalar(1, "B")))
        if text is None:
            raise FormatError(f"{ARROW_KEY} has an integer type of {bits} bits")
        return text
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
            raise FormatError(f"a type in {ARROW_KEY} has the fixed size {size}")
        return f"{'w' if member == _FIXED_SIZE_BINARY else '+w'}:{size}"
    if member in _LETTERS:
        prefix, letters, default = _LETTERS[member]
        return prefix + _letter(letters, type_.scalar(0, "h", default))
    raise UnsupportedError(f"type {member} in {ARROW_KEY} is not supported")


def encode_schema(root: FieldNode) -> str:
    """Return the ARROW:schema entry for a table's Arrow schema.

    Args:
        root: a struct whose children are the table's columns, and whose metadata is the schema's metadata.

    Raises:
        UnsupportedError: Schema.fbs or fastpq does not support a format.
    """
    ids = iter(range(1 << 62))

    def field(node: FieldNode) -> FlatTable | EncodedTable:
        if node.dictionary is None and not node.children and not node.metadata:
            return _leaf_field(node.name.encode(), node.format, node.flags)
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


def _leaf_field(name: bytes, text: str, flags: int) -> EncodedTable:
    """Return the Field table for a field without children, dictionary and metadata."""
    return EncodedTable(_nameless_field(text, flags) + struct.pack("<I", len(name)) + name + b"\0")


@lru_cache(maxsize=256)
def _nameless_field(text: str, flags: int) -> bytes:
    """Return the Field table for a format string and flags, up to the name, which is at its end."""
    member, type_ = _type(text, flags)
    table: FlatTable = {
        _NAME: b"",     # the first reference is filled last
        _NULLABLE: Scalar("B", int(bool(flags & NULLABLE))),
        _TYPE_TYPE: Scalar("B", member),
        _TYPE: type_,
        _CHILDREN: [],
    }
    return flatbuffer(table).removesuffix(_EMPTY_NAME)


def _pairs(metadata: dict[bytes, bytes]) -> list[FlatTable | EncodedTable]:
    return [{_KEY: key, _VALUE: value} for key, value in metadata.items()]


def _type(text: str, flags: int) -> tuple[int, FlatTable]:
    """Return a format string's member of the union Type, and the table that describes it."""
    if text in _BARE:
        return _BARE[text], {}
    if text in _INTS:
        bits, signed = _INTS[text]
        return _INT, {0: Scalar("i", bits), 1: Scalar("B", signed)}
    if text == "+m":
        return _MAP, {0: Scalar("B", int(bool(flags & KEYS_SORTED)))}
    for member, (prefix, letters, _) in _LETTERS.items():
        if text[:-1] == prefix and text[-1:] in [*letters]:
            width = {1: Scalar("i", _TIME_WIDTHS[text[-1]])} if member == _TIME else {}
            return member, {0: Scalar("h", letters.index(text[-1])), **width}
    kind, _, rest = text.partition(":")
    match kind:
        case "d":
            precision, scale, bits = ([*map(int, rest.split(",")), 128])[:3]
            return _DECIMAL, {0: Scalar("i", precision), 1: Scalar("i", scale), 2: Scalar("i", bits)}
        case "w":
            return _FIXED_SIZE_BINARY, {0: Scalar("i", int(rest))}
        case "+w":
            return _FIXED_SIZE_LIST, {0: Scalar("i", int(rest))}
        case "tss" | "tsm" | "tsu" | "tsn":
            zone: FlatTable = {1: rest.encode()} if rest else {}
            return _TIMESTAMP, {0: Scalar("h", _UNITS.index(kind[2]))} | zone
    raise UnsupportedError(f"the Arrow format {text!r} has no type in {ARROW_KEY}")
