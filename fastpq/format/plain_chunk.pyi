from collections.abc import Iterable

from fastpq.format.list_offsets import StructList

def stored_path(names: Iterable[str]) -> bytes: ...

class ChunkEntries:
    def __init__(self, footer: memoryview, row_groups: StructList) -> None: ...
