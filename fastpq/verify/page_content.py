"""Decodes single pages: decompression, levels and values as they are stored (README.md of parquet-format, "Data Pages").

A verification needs what the columns of a read do not keep: the levels, and the stored form of each value.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.codecs.catalogue import check_claimed_size, codec_for_read
from fastpq.encodings.registry import check_readable
from fastpq.errors import FormatError, LimitError, UnsupportedError
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import Type
from fastpq.verify.page_kernels import decode_byte_arrays, decode_hybrid, decode_levels, decode_numbers
from fastpq.verify.value_block import CodedValues, FixedValues, PlainValues, Values, VariableValues

Array: TypeAlias = NDArray[Any]

LENGTH_BYTES = 4        # of the size in front of the levels of a V1 page
LARGEST_CODE_WIDTH = 32
VALUE_MEMORY = 32       # bytes that a value takes here at most, if it has no width: a view, a code and flags

_WIDTHS = {Type.BOOLEAN: 1, Type.INT32: 4, Type.INT64: 8, Type.INT96: 12, Type.FLOAT: 4, Type.DOUBLE: 8}
_DICTIONARY = (fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY)


class PageContent(NamedTuple):
    """What a data page holds.

    Attributes:
        repetition, definition: level of each value, nulls included, uint8. None if the column has no such levels.
        num_values: values, nulls included.
        values: the values that are not null.
        is_bit_packed: whether levels have the deprecated encoding BIT_PACKED.
    """

    repetition: Array | None
    definition: Array | None
    num_values: int
    values: Values
    is_bit_packed: bool


class PageDecoder:
    """Decodes the pages of one column chunk, one after another.

    Args:
        column: the chunk's column.
        codec: number of the codec.
        v2_is_compressed: whether V2 pages are compressed even if their headers deny it.
        most_memory: largest size of the decoded values of a page, in bytes.

    Attributes:
        entries: the dictionary, or None before its page was decoded.
        width: bytes of a value, or 0 for BYTE_ARRAY.
    """

    def __init__(self, column: ColumnDescriptor, codec: int, v2_is_compressed: bool, most_memory: int) -> None:
        self._column = column
        self._physical = column.physical_type
        self.width = column.type_length or _WIDTHS.get(self._physical, 0)
        self._codec = codec_for_read(codec)
        self._v2_is_compressed = v2_is_compressed
        self._most_memory = most_memory
        self._previous = b""        # last value of the page before, for PARQUET-246
        self.entries: PlainValues | None = None

    def read_dictionary(self, header: fmt.PageHeader, body: Any) -> PlainValues:
        """Decode a dictionary page, and keep its entries.

        Args:
            header: the page's header.
            body: the decrypted body.

        Raises:
            FormatError: the page is broken.
            UnsupportedError: the encoding or the codec is unknown.
            LimitError: the codec cannot make so many bytes, or the values take too much memory.
        """
        own = header.dictionary_page_header
        if own is None:
            raise FormatError("a dictionary page without a DictionaryPageHeader")
        if own.encoding not in (fmt.Encoding.PLAIN, fmt.Encoding.PLAIN_DICTIONARY):
            raise FormatError(f"a dictionary page in the encoding {own.encoding}")
        data = self._inflated(body, header.uncompressed_page_size)
        self._check_count(own.num_values)
        entries, rest = self._plain_values(fmt.Encoding.PLAIN, data, own.num_values)
        if rest:
            raise FormatError(f"{rest} bytes after the {own.num_values} entries of the dictionary")
        self.entries = entries
        return entries

    def read_data(self, header: fmt.PageHeader, body: Any) -> PageContent:
        """Decode a data page.

        Args, raises: as ``read_dictionary``.
        """
        if header.data_page_header_v2 is not None:
            return self._read_v2(header, header.data_page_header_v2, body)
        own = header.data_page_header
        if own is None:
            raise FormatError("a data page without a DataPageHeader")
        self._check_count(own.num_values)
        data = self._inflated(body, header.uncompressed_page_size)
        column, count = self._column, own.num_values
        repetition, data, first = self._v1_levels(data, count, column.max_repetition_level, own.repetition_level_encoding)
        definition, data, second = self._v1_levels(data, count, column.max_definition_level, own.definition_level_encoding)
        return self._content(repetition, definition, own.encoding, data, count, first or second)

    def _read_v2(self, header: fmt.PageHeader, own: fmt.DataPageHeaderV2, body: Any) -> PageContent:
        self._check_count(own.num_values)
        stored_body = _as_array(body)
        sizes = own.repetition_levels_byte_length, own.definition_levels_byte_length
        together = sum(sizes)
        if min(sizes) < 0 or together > min(len(stored_body), header.uncompressed_page_size):
            raise FormatError(f"{together} bytes of levels in a page of {len(stored_body)}")
        column, count = self._column, own.num_values
        repetition = _levels(stored_body[: sizes[0]], count, column.max_repetition_level)
        definition = _levels(stored_body[sizes[0] : together], count, column.max_definition_level)
        values, size = stored_body[together:], header.uncompressed_page_size - together
        if own.is_compressed is not False or self._v2_is_compressed:
            values = self._inflated(values, size)
        elif len(values) != size:
            raise FormatError(f"{len(values)} bytes of values in an uncompressed page that claims {size}")
        return self._content(repetition, definition, own.encoding, values, count, False)

    def _content(
        self, repetition: Array | None, definition: Array | None, encoding: int, data: Array, count: int, is_bit_packed: bool
    ) -> PageContent:
        num_values = count if definition is None else int((definition == self._column.max_definition_level).sum())
        check_readable(encoding, self._physical)
        if encoding in _DICTIONARY:
            return PageContent(repetition, definition, count, self._coded_values(data, num_values), is_bit_packed)
        return PageContent(repetition, definition, count, self._plain_values(encoding, data, num_values)[0], is_bit_packed)

    def _coded_values(self, data: Array, count: int) -> CodedValues:
        if self.entries is None:
            raise FormatError("a page of dictionary codes in a chunk without a dictionary page")
        if not count:
            return CodedValues(np.empty(0, np.uint32), self.entries)
        if not len(data) or data[0] > LARGEST_CODE_WIDTH:
            raise FormatError("dictionary codes without a bit width from 0 to 32")
        codes = decode_hybrid(data[1:], int(data[0]), count)
        if int(codes.max()) >= len(self.entries):
            raise FormatError(f"dictionary code {int(codes.max())} in a chunk of {len(self.entries)} dictionary entries")
        return CodedValues(codes, self.entries)

    def _plain_values(self, encoding: int, data: Array, count: int) -> tuple[PlainValues, int | None]:
        """Return values in another encoding than a dictionary's, and the bytes after them if these can be counted."""
        if self._physical is Type.BYTE_ARRAY or encoding == fmt.Encoding.DELTA_BYTE_ARRAY:
            return self._variable_values(encoding, data, count)
        if self._physical is Type.BOOLEAN and encoding == fmt.Encoding.PLAIN:
            size = (count + 7) // 8
            if size > len(data):
                raise FormatError(f"{len(data)} bytes for {count} booleans")
            return FixedValues(np.unpackbits(data[:size], count=count, bitorder="little"), 1), len(data) - size
        values = decode_numbers(encoding, data, f"V{self.width}", 0, count).view(np.uint8)
        is_plain = encoding == fmt.Encoding.PLAIN
        return FixedValues(values, self.width), len(data) - count * self.width if is_plain else None

    def _variable_values(self, encoding: int, data: Array, count: int) -> tuple[PlainValues, int | None]:
        shares_prefixes = encoding == fmt.Encoding.DELTA_BYTE_ARRAY
        views, memory, size = decode_byte_arrays(encoding, data, count, self._previous if shares_prefixes else b"")
        values = VariableValues(views, memory)
        if shares_prefixes and count:
            [self._previous] = values.of(np.array([count - 1])).items()
        if self._physical is Type.BYTE_ARRAY:
            return values, len(data) - size if encoding == fmt.Encoding.PLAIN else None
        if (values.sizes() != self.width).any():
            raise FormatError(f"a value with another length than the {self.width} bytes of the column")
        return FixedValues(values.joined(), self.width), None

    def _v1_levels(self, data: Array, count: int, highest: int, encoding: int) -> tuple[Array | None, Array, bool]:
        """Return the levels at the start of a V1 page, the bytes behind them, and whether the levels are BIT_PACKED."""
        if not highest:
            return None, data, False
        if encoding == fmt.Encoding.BIT_PACKED:
            size = (count * highest.bit_length() + 7) // 8
            if size > len(data):
                raise FormatError(f"{size} bytes of levels in a page of {len(data)}")
            return decode_levels(data[:size], count, highest, True), data[size:], True
        if encoding != fmt.Encoding.RLE:
            raise UnsupportedError(f"levels in encoding {encoding}")
        if not count and not len(data):
            return np.empty(0, np.uint8), data, False
        size = int.from_bytes(data[:LENGTH_BYTES].tobytes(), "little")
        if len(data) < LENGTH_BYTES or size > len(data) - LENGTH_BYTES:
            raise FormatError(f"{size} bytes of levels in a page of {len(data)}")
        return _levels(data[LENGTH_BYTES : LENGTH_BYTES + size], count, highest), data[LENGTH_BYTES + size :], False

    def _inflated(self, body: Any, size: int) -> Array:
        """Return the uncompressed bytes of a body, whose header claims a size."""
        stored_body = _as_array(body)
        if self._codec.number == fmt.CompressionCodec.UNCOMPRESSED or not (len(stored_body) or size):
            if len(stored_body) != size:
                raise FormatError(f"{len(stored_body)} bytes in an uncompressed page that claims {size}")
            return stored_body
        try:
            check_claimed_size(self._codec.number, len(stored_body), size)
        except LimitError as error:     # of the codec, not of ReaderProperties
            raise FormatError(error.message) from error
        data = np.empty(size, np.uint8)
        self._codec.decompress_into(memoryview(stored_body), memoryview(data))  # type: ignore[arg-type]
        return data

    def _check_count(self, count: int) -> None:
        if count < 0:
            raise FormatError(f"a page of {count} values")
        if count * max(self.width, VALUE_MEMORY) > self._most_memory:
            raise LimitError(f"the {count} values of a page would take more memory than max_allocation")


def _levels(data: Array, count: int, highest: int) -> Array | None:
    return decode_levels(data, count, highest) if highest else None


def _as_array(body: Any) -> Array:
    return body if isinstance(body, np.ndarray) else np.frombuffer(body, np.uint8)
