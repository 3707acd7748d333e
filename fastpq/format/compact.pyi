from collections.abc import Iterable
from typing import Any, TypeVar

from fastpq.format.list_offsets import StructList
from fastpq.format.struct import Struct

_S = TypeVar("_S", bound=Struct)

def decode(cls: type[_S], data: Any, offset: int = 0) -> tuple[_S, int]: ...
def decode_partly(cls: type[_S], data: Any, offset: int, lazy: Iterable[int]) -> tuple[_S, dict[int, int], int]: ...
def decode_listed(
    cls: type[_S], data: Any, offset: int, listed: dict[int, int], behind: int = 0
) -> tuple[_S, dict[int, StructList]]: ...
def encode(value: Struct) -> bytes: ...
