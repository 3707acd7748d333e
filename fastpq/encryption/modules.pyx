# distutils: language = c
"""The module types in Parquet Modular Encryption, and the only function that builds an AAD (Encryption.md, 4.4).

It is compiled, because the compiled page loop needs an AAD for every page header and every page body.
"""

from enum import IntEnum

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from fastpq.errors import CryptoError

ModuleType = IntEnum(
    "ModuleType",
    {
        "FOOTER": FOOTER,
        "COLUMN_METADATA": COLUMN_METADATA,
        "DATA_PAGE": DATA_PAGE,
        "DICTIONARY_PAGE": DICTIONARY_PAGE,
        "DATA_PAGE_HEADER": DATA_PAGE_HEADER,
        "DICTIONARY_PAGE_HEADER": DICTIONARY_PAGE_HEADER,
        "COLUMN_INDEX": COLUMN_INDEX,
        "OFFSET_INDEX": OFFSET_INDEX,
        "BLOOM_FILTER_HEADER": BLOOM_FILTER_HEADER,
        "BLOOM_FILTER_BITSET": BLOOM_FILTER_BITSET,
    },
    module=__name__,
)


cdef bint has_chunk(int module) noexcept nogil:
    return module != FOOTER


cdef bint has_page(int module) noexcept nogil:
    return module == DATA_PAGE or module == DATA_PAGE_HEADER


cdef int64_t build_aad(const uint8_t* file_aad, size_t file_aad_size, int module, int64_t row_group, int64_t column,
                       int64_t page, uint8_t* out) except -1 nogil:
    cdef int64_t ordinals[3]
    cdef int count = 0, index
    cdef uint8_t* end = out + file_aad_size
    if module < FOOTER or module > BLOOM_FILTER_BITSET:
        with gil:
            raise CryptoError(f"{module} is not a module type")
    ordinals[0], ordinals[1], ordinals[2] = row_group, column, page
    if has_chunk(module):
        count = 3 if has_page(module) else 2
    for index in range(count):
        if ordinals[index] < 0 or ordinals[index] > LARGEST_ORDINAL:
            _refuse_ordinal(index, ordinals[index], module)
    if file_aad_size:
        memcpy(out, file_aad, file_aad_size)
    end[0] = <uint8_t>module
    for index in range(count):
        end[1 + 2 * index] = <uint8_t>(ordinals[index] & 0xff)
        end[2 + 2 * index] = <uint8_t>(ordinals[index] >> 8)
    return <int64_t>file_aad_size + 1 + 2 * count


cdef int _refuse_ordinal(int index, int64_t ordinal, int module) except -1 nogil:
    with gil:
        name = ("row group", "column", "page")[index]
        raise CryptoError(f"{name} ordinal {ordinal}: an encrypted file has {name} ordinals of 0 to {LARGEST_ORDINAL}",
                          module=ModuleType(module).name)


def module_aad(const uint8_t[::1] file_aad, int module, int64_t row_group=-1, int64_t column=-1, int64_t page=-1):
    """Build a module's AAD (Encryption.md, 4.4).

    Args:
        file_aad: the AAD prefix, if any, and ``aad_file_unique``.
        module: a ModuleType.
        row_group: the row group's ordinal. The footer has none.
        column: the column's ordinal. The footer has none.
        page: the data page's ordinal in its chunk. Only data pages and their headers have one.

    Returns:
        The additional authenticated data, as bytes.

    Raises:
        CryptoError: the module type is unknown, or an ordinal that it needs is outside 0 to 32767.
    """
    cdef size_t size = <size_t>file_aad.shape[0]
    cdef uint8_t* out = <uint8_t*>malloc(size + AAD_SUFFIX_SIZE)
    cdef int64_t aad_size
    if out == NULL:
        raise MemoryError()
    try:
        aad_size = build_aad(&file_aad[0] if size else NULL, size, module, row_group, column, page, out)
        return (<char*>out)[:aad_size]
    finally:
        free(out)
