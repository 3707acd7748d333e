from collections.abc import Iterable
from typing import Any, TypeVar

from fastpq.format.struct import Struct

S = TypeVar("S", bound=Struct)

def decode(cls: type[S], data: Any, offset: int = 0) -> tuple[S, int]: ...
def decode_partly(cls: type[S], data: Any, offset: int, lazy: Iterable[int]) -> tuple[S, dict[int, int], int]: ...
def encode(value: Struct) -> bytes: ...
