from collections.abc import Sequence

from numpy import bool_, int8
from numpy.typing import NDArray

from fastpq.arrays.slices import SliceReader

def compare_values(values: SliceReader, other: bytes) -> NDArray[int8]: ...
def begin_with(values: SliceReader, prefix: bytes) -> NDArray[bool_]: ...
def are_among(values: SliceReader, others: Sequence[bytes]) -> NDArray[bool_]: ...
