from enum import IntEnum

from numpy import uint8
from numpy.typing import NDArray

class Order(IntEnum):
    ORDER_NONE = 0
    ORDER_BOOLEAN = 1
    ORDER_INT32 = 2
    ORDER_INT64 = 3
    ORDER_UINT32 = 4
    ORDER_UINT64 = 5
    ORDER_FLOAT16 = 6
    ORDER_FLOAT = 7
    ORDER_DOUBLE = 8
    ORDER_BYTES = 9
    ORDER_SIGNED_BYTES = 10

def compare(order: int, left: bytes, right: bytes) -> int: ...
def extreme(order: int, bounds: list[bytes] | list[bytes | None], sign: int) -> bytes | None: ...
def is_monotonic(order: int, bounds: list[bytes], sign: int) -> bool: ...
def exceed(order: int, left: list[bytes], right: list[bytes]) -> bool: ...
def nan_count(order: int, values: NDArray[uint8] | bytes) -> int: ...
