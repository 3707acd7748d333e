from enum import IntEnum

from typing_extensions import Buffer

class ModuleType(IntEnum):
    FOOTER = 0
    COLUMN_METADATA = 1
    DATA_PAGE = 2
    DICTIONARY_PAGE = 3
    DATA_PAGE_HEADER = 4
    DICTIONARY_PAGE_HEADER = 5
    COLUMN_INDEX = 6
    OFFSET_INDEX = 7
    BLOOM_FILTER_HEADER = 8
    BLOOM_FILTER_BITSET = 9

def module_aad(file_aad: Buffer, module: int, row_group: int = -1, column: int = -1, page: int = -1) -> bytes: ...
