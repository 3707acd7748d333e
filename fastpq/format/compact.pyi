from collections.abc import Iterable
from typing import Any, TypeVar

from fastpq.format.list_offsets import StructList
from fastpq.format.struct import Struct

S = TypeVar("S", bound=Struct)

def decode(cls: type[S], data: Any, offset: int = 0) -> tuple[S, int]: ...
def decode_partly(cls: type[S], data: Any, offset: int, lazy: Iterable[int]) -> tuple[S, dict[int, int], int]: ...
def decode_listed(
    cls: type[S], data: Any, offset: int, listed: dict[int, int], behind: int = 0
) -> tuple[S, dict[int, StructList]]: ...
def encode(value: Struct) -> bytes: ...
