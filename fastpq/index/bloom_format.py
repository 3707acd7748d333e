"""Bloom filters in files: their headers and places, how they are sealed and read (BloomFilter.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.errors import FormatError, UnsupportedError
from fastpq.index.bloom_filter import SplitBlockBloomFilter, hash_bytes
from fastpq.index.bloom_size import BLOCK_BYTES
from fastpq.index.claims import Claims, FilterClaims, Part
from fastpq.index.contradictions import refuse_refuted, without_refuted_statistics
from fastpq.io.source import Bytes, Source
from fastpq.metadata.column_chunk import ColumnChunkMetaData

NO_PAGE = -1
# Bytes read for the header of a filter of unknown length. Writers before format 2.10 do not store the length.
HEADER_READ = 256
# Bytes of a filter's header where the length of header and bitset is a multiple of a block.
SHORT_HEADER = BLOCK_BYTES
# Blocks and headers at most this many bytes apart are read together.
BLOCK_GAP = 1024
# Single blocks are read instead of the whole filter where the filter has at least this many blocks for each value.
WORTH_BLOCKS = 16


class ProbedBlocks:
    """A bloom filter of which only the blocks of some values have been read.

    Args:
        blocks: by value, a filter made of the value's block alone.
    """

    def __init__(self, blocks: Mapping[bytes, SplitBlockBloomFilter]) -> None:
        self._blocks = blocks

    def might_contain(self, value: bytes) -> bool:
        """Whether a value may have been inserted; the value is one of the keys of blocks."""
        return self._blocks[value].might_contain(value)


StoredFilter = SplitBlockBloomFilter | ProbedBlocks
Found = StoredFilter | FormatError | UnsupportedError | None


def serialized_filter(bloom_filter: SplitBlockBloomFilter, cipher: ModuleCipher) -> list[Any]:
    """Header and bitset of a filter, each serialized and sealed as a module, in the order of the file.

    Args:
        bloom_filter: the filter.
        cipher: cipher of the filter's column chunk.
    """
    header = fmt.encode(
        fmt.BloomFilterHeader(
            numBytes=bloom_filter.num_bytes,
            algorithm=fmt.BloomFilterAlgorithm(BLOCK=fmt.SplitBlockAlgorithm()),
            hash=fmt.BloomFilterHash(XXHASH=fmt.XxHash()),
            compression=fmt.BloomFilterCompression(UNCOMPRESSED=fmt.Uncompressed()),
        )
    )
    return [
        cipher.seal(ModuleType.BLOOM_FILTER_HEADER, NO_PAGE, header),
        cipher.seal(ModuleType.BLOOM_FILTER_BITSET, NO_PAGE, bloom_filter.bitset.data),
    ]


class FilterRequest(NamedTuple):
    """A request for the bloom filter of one column chunk.

    Attributes:
        chunk: metadata of the chunk.
        cipher: the chunk's cipher.
        claims: claims about the chunk, to check the filter against.
        values: PLAIN values to look up.
    """

    chunk: ColumnChunkMetaData
    cipher: ModuleCipher
    claims: Claims
    values: Collection[bytes] = ()


def read_bloom_filters(
    source: Source, wanted: Sequence[FilterRequest]
) -> list[SplitBlockBloomFilter | FormatError | UnsupportedError | None]:
    """Read the whole bloom filters of column chunks.

    One round of requests reads all filters of known length, and the headers of the others. A second round reads the bitsets
    of the others.

    Args:
        source: the file.
        wanted: the chunks; values are ignored.

    Returns:
        For each chunk its filter, None for a chunk without a filter, or the filter's error: FormatError where a claim of the
        filter is refuted (``contradictions.CHECKS``), UnsupportedError where its algorithm, hash or compression is unknown.

    Raises:
        TagVerificationError: an encrypted filter was altered.
    """
    found: list[SplitBlockBloomFilter | FormatError | UnsupportedError | None] = [None] * len(wanted)
    checked = [without_refuted_statistics(request.claims) for request in wanted]
    places: dict[int, tuple[int, int]] = {}
    for index, (request, claims) in enumerate(zip(wanted, checked, strict=True)):
        try:
            place = _place(request.chunk, claims, source.size)
        except FormatError as error:
            found[index] = error
            continue
        if place is not None:
            places[index] = place
    missing: dict[int, tuple[int, int]] = {}
    for (index, (offset, _)), data in zip(places.items(), source.read_ranges(places.values()), strict=True):
        cipher, claims = wanted[index].cipher, checked[index]
        try:
            header_size, bitset_size = _parse_header(data, cipher, claims)
            if header_size + bitset_size <= len(data):
                found[index] = _open(data[header_size : header_size + bitset_size], cipher, claims)
            else:
                missing[index] = offset + header_size, bitset_size
        except (FormatError, UnsupportedError) as error:
            found[index] = error
    for index, data in zip(missing, source.read_ranges(missing.values()), strict=True):
        try:
            found[index] = _open(data, wanted[index].cipher, checked[index])
        except FormatError as error:
            found[index] = error
    return found


def probe_bloom_filters(source: Source, wanted: Sequence[FilterRequest]) -> list[Found]:
    """Read as much of the bloom filters of column chunks as looking up some values takes.

    Of a large filter with few values, header and the blocks of the values are read; any other filter is read whole.

    Args:
        source: the file.
        wanted: the chunks.

    Returns, raises: as read_bloom_filters.
    """
    found: list[Found] = [None] * len(wanted)
    places: dict[int, list[tuple[int, int]]] = {}
    probed: dict[int, tuple[Claims, list[bytes]]] = {}
    for index, request in enumerate(wanted):
        claims = without_refuted_statistics(request.claims)
        values = [*request.values, *claims.certain_values]
        if (place := _block_places(request, claims, values, source.size)) is not None:
            places[index], probed[index] = place, (claims, values)
    data = iter(source.read_ranges((place for each in places.values() for place in each), gap=BLOCK_GAP))
    for index, each in places.items():
        header, *blocks = [next(data) for _ in each]
        claims, values = probed[index]
        found[index] = _probed(header, blocks, wanted[index], claims, values)
    whole = [index for index, known in enumerate(found) if known is None]
    for index, read in zip(whole, read_bloom_filters(source, [wanted[index] for index in whole]), strict=True):
        found[index] = read
    return found


def _block_places(
    request: FilterRequest, claims: Claims, values: Collection[bytes], file_size: int
) -> list[tuple[int, int]] | None:
    """Places, as (offset, length), of a filter's header and of the block of each value; None where the whole filter is to be
    read.

    A filter is read whole where it is encrypted, where its length is unknown and where values are many. The header's length is
    the remainder of the filter's length by blocks, on the assumption of a header no longer than a block.
    """
    if request.cipher.overhead or request.chunk.metadata.bloom_filter_length is None:
        return None
    try:
        place = _place(request.chunk, claims, file_size)
    except FormatError:     # read_bloom_filters reports the error
        return None
    if place is None:
        return None
    offset, length = place
    header = length % BLOCK_BYTES or SHORT_HEADER
    blocks = (length - header) // BLOCK_BYTES
    if len(values) * WORTH_BLOCKS > blocks:
        return None
    start = offset + header
    return [(offset, header), *((start + _block_of(value, blocks) * BLOCK_BYTES, BLOCK_BYTES) for value in values)]


def _block_of(value: bytes, blocks: int) -> int:
    return (hash_bytes(value) >> 32) * blocks >> 32


def _probed(
    header: Bytes, blocks: Sequence[Bytes], request: FilterRequest, claims: Claims, values: Collection[bytes]
) -> ProbedBlocks | FormatError | UnsupportedError | None:
    """A filter of the blocks read; None where the header shows the assumption of _block_places to be wrong."""
    try:
        sizes = _parse_header(header, request.cipher, claims)
    except UnsupportedError as error:
        return error
    except FormatError:     # read_bloom_filters reports the error
        return None
    if sizes != (len(header), (request.chunk.metadata.bloom_filter_length or 0) - len(header)):
        return None
    found = ProbedBlocks({value: SplitBlockBloomFilter.of_bitset(block) for value, block in zip(values, blocks, strict=True)})
    try:
        _check_values(found, claims)
    except FormatError as error:
        return error
    return found


def _place(chunk: ColumnChunkMetaData, claims: Claims, file_size: int) -> tuple[int, int] | None:
    """Offset and length of a filter in the file; of a filter of unknown length, of the bytes to look for its header in."""
    offset, length = chunk.metadata.bloom_filter_offset, chunk.metadata.bloom_filter_length
    # Some writers store the offset 0 for no filter. With a file_path, the format leaves open whose offset it is.
    if not offset or chunk.file_path:
        return None
    claims.bloom_filter = FilterClaims(offset, length, file_size)
    refuse_refuted(Part.BLOOM_FILTER, claims)
    return offset, min(HEADER_READ, file_size - offset) if length is None else length


def _parse_header(data: Bytes, cipher: ModuleCipher, claims: Claims) -> tuple[int, int]:
    """Stored sizes of the header at the start of data, and of the bitset behind the header."""
    plain, stored_size = cipher.open_first(ModuleType.BLOOM_FILTER_HEADER, NO_PAGE, data[:HEADER_READ].data)
    header, size = fmt.decode(fmt.BloomFilterHeader, plain)
    if header.algorithm.BLOCK is None:
        raise UnsupportedError(f"a bloom filter with the algorithm {header.algorithm!r}")
    if header.hash.XXHASH is None:
        raise UnsupportedError(f"a bloom filter with the hash {header.hash!r}")
    if header.compression.UNCOMPRESSED is None:
        raise UnsupportedError(f"a bloom filter with the compression {header.compression!r}")
    header_size = size if stored_size < 0 else stored_size
    bitset_size = header.numBytes + cipher.overhead
    if claims.bloom_filter is not None:
        claims.bloom_filter.num_bytes, claims.bloom_filter.stored_size = header.numBytes, header_size + bitset_size
    refuse_refuted(Part.BLOOM_FILTER, claims)
    return header_size, bitset_size


def _open(stored: Bytes, cipher: ModuleCipher, claims: Claims) -> SplitBlockBloomFilter:
    """A filter over a stored bitset; shares the memory of an unencrypted bitset."""
    if cipher.overhead == 0:
        found = SplitBlockBloomFilter.of_bitset(stored)
    else:
        found = SplitBlockBloomFilter.of_bitset(cipher.open(ModuleType.BLOOM_FILTER_BITSET, NO_PAGE, stored.data))
    if claims.bloom_filter is not None:
        claims.bloom_filter.has_bits = bool(found.bitset.any())
    _check_values(found, claims)
    return found


def _check_values(found: StoredFilter, claims: Claims) -> None:
    """Raises FormatError for a filter without values certainly in the chunk."""
    if claims.bloom_filter is not None:
        claims.bloom_filter.denies_bounds = not all(map(found.might_contain, claims.certain_values))
    refuse_refuted(Part.BLOOM_FILTER, claims)
