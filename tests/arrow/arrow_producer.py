"""A producer of Arrow structures made with ctypes alone, which can break every rule of the C data interface."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

POINTER = ctypes.c_void_p
RELEASE = ctypes.CFUNCTYPE(None, POINTER)


class CSchema(ctypes.Structure):
    _fields_ = [
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_char_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", POINTER),
        ("dictionary", POINTER),
        ("release", POINTER),
        ("private_data", POINTER),
    ]


class CArray(ctypes.Structure):
    _fields_ = [
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", POINTER),
        ("children", POINTER),
        ("dictionary", POINTER),
        ("release", POINTER),
        ("private_data", POINTER),
    ]


class CStream(ctypes.Structure):
    _fields_ = [
        ("get_schema", POINTER),
        ("get_next", POINTER),
        ("get_last_error", POINTER),
        ("release", POINTER),
        ("private_data", POINTER),
    ]


# Structures that somebody holds call back into their producer, which is otherwise garbage: the next collection would free it.
ALIVE: list[Producer] = []

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [POINTER, ctypes.c_char_p, POINTER]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype = POINTER
capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def metadata(pairs: dict[bytes, bytes]) -> bytes:
    """The packed form of ArrowSchema.metadata."""
    out = struct.pack("=i", len(pairs))
    for key, value in pairs.items():
        out += struct.pack("=i", len(key)) + key + struct.pack("=i", len(value)) + value
    return out


@dataclass
class Field:
    """An ArrowSchema to be."""

    format: bytes
    name: bytes = b""
    flags: int = 2
    metadata: bytes | None = None
    children: Sequence[Field] = ()
    dictionary: Field | None = None


@dataclass
class Values:
    """An ArrowArray to be."""

    length: int
    buffers: Sequence[bytes | None] = ()
    null_count: int = 0
    offset: int = 0
    children: Sequence[Values] = ()
    dictionary: Values | None = None
    n_buffers: int | None = None
    n_children: int | None = None


@dataclass
class Producer:
    """Gives one array through ``__arrow_c_array__``.

    Attributes:
        schemas, arrays: calls of release.
        made: array structures made, children and dictionaries among them.
        given: the array structures that went into capsules.
    """

    schema: Field
    values: Values
    arrays: int = 0
    schemas: int = 0
    made: int = 0
    given: list[CArray] = field(default_factory=list)
    _keep: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        ALIVE.append(self)
        self._release_schema = RELEASE(self._count_schema)
        self._release_array = RELEASE(self._count_array)

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        self.given.append(self.c_array(self.values))
        return (
            new_capsule(ctypes.addressof(self.c_schema(self.schema)), b"arrow_schema", None),
            new_capsule(ctypes.addressof(self.given[-1]), b"arrow_array", None),
        )

    def _count_schema(self, address: int) -> None:
        CSchema.from_address(address).release = None
        self.schemas += 1

    def _count_array(self, address: int) -> None:
        array = CArray.from_address(address)
        owned = [POINTER.from_address(array.children + i * 8).value for i in range(array.n_children if array.children else 0)]
        for one in [*owned, array.dictionary]:
            if one and CArray.from_address(one).release:
                self._release_array(one)
        array.release = None
        self.arrays += 1

    def c_schema(self, spec: Field) -> CSchema:
        children = self._pointers([self.c_schema(child) for child in spec.children])
        dictionary = None if spec.dictionary is None else ctypes.addressof(self.c_schema(spec.dictionary))
        schema = CSchema(
            spec.format, spec.name, None, spec.flags, len(spec.children), children, dictionary, self._pointer("schema")
        )
        if spec.metadata is not None:
            packed = ctypes.create_string_buffer(spec.metadata, len(spec.metadata))
            self._keep.append(packed)
            ctypes.c_void_p.from_buffer(schema, CSchema.metadata.offset).value = ctypes.addressof(packed)
        self._keep.append(schema)
        return schema

    def c_array(self, spec: Values) -> CArray:
        blocks = [None if data is None else ctypes.create_string_buffer(data, max(len(data), 1)) for data in spec.buffers]
        children = self._pointers([self.c_array(child) for child in spec.children])
        dictionary = None if spec.dictionary is None else ctypes.addressof(self.c_array(spec.dictionary))
        array = CArray(
            spec.length,
            spec.null_count,
            spec.offset,
            len(blocks) if spec.n_buffers is None else spec.n_buffers,
            len(spec.children) if spec.n_children is None else spec.n_children,
            self._pointers(blocks),
            children,
            dictionary,
            self._pointer("array"),
        )
        self._keep += [array, blocks]
        self.made += 1
        return array

    def _pointer(self, kind: str) -> int | None:
        callback = self._release_schema if kind == "schema" else self._release_array
        return ctypes.cast(callback, POINTER).value

    def _pointers(self, targets: Sequence[Any]) -> int | None:
        if not targets:
            return None
        block = (POINTER * len(targets))(*[None if target is None else ctypes.addressof(target) for target in targets])
        self._keep.append(block)
        return ctypes.addressof(block)


class StreamProducer(Producer):
    """Gives the array through ``__arrow_c_stream__``; ``failure`` is (where, errno, message) of a call that fails."""

    failure: tuple[str, int, bytes | None] | None = None
    streams: int = 0

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        given: list[bool] = []

        def get_schema(stream: int, out: int) -> int:
            if self.failure and self.failure[0] == "schema":
                return self.failure[1]
            ctypes.memmove(out, ctypes.addressof(self.c_schema(self.schema)), ctypes.sizeof(CSchema))
            return 0

        def get_next(stream: int, out: int) -> int:
            if self.failure and self.failure[0] == "next":
                ctypes.memset(out, 0xAB, ctypes.sizeof(CArray))  # whatever stands there after a failure is no array
                return self.failure[1]
            ctypes.memset(out, 0, ctypes.sizeof(CArray))
            if not given:
                ctypes.memmove(out, ctypes.addressof(self.c_array(self.values)), ctypes.sizeof(CArray))
                given.append(True)
            return 0

        def get_last_error(stream: int) -> int | None:
            if self.failure is None or self.failure[2] is None:
                return None
            return ctypes.cast(ctypes.c_char_p(self.failure[2]), POINTER).value

        def release(stream: int) -> None:
            CStream.from_address(stream).release = None
            self.streams += 1

        two = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, POINTER)
        callbacks = [
            two(get_schema),
            two(get_next),
            ctypes.CFUNCTYPE(POINTER, POINTER)(get_last_error),
            RELEASE(release),
        ]
        stream = CStream(*[ctypes.cast(callback, POINTER).value for callback in callbacks])
        self._keep += [stream, callbacks]
        return new_capsule(ctypes.addressof(stream), b"arrow_array_stream", None)
