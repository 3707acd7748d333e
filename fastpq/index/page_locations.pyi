from enum import IntEnum
from typing import Any

from fastpq.index.ranges import Int64s, RowRanges

def read_page_locations(data: Any, offset: int) -> Int64s: ...

class LocationFault(IntEnum):
    NONE = 0
    CHUNK = 1
    NO_PAGES = 2
    OUTSIDE = 3
    OVERLAP = 4
    ROWS = 5
    ENDS = 6
    GAPS = 7

def location_fault(locations: Int64s, num_rows: int, start: int, length: int, first_page: int) -> LocationFault: ...
def choose_pages(
    locations: Int64s, rows: RowRanges, start: int, nested: bool
) -> tuple[RowRanges, list[tuple[int, int]], Int64s, RowRanges] | None: ...
def pages_of(locations: Int64s, rows: RowRanges) -> tuple[int, int]: ...
