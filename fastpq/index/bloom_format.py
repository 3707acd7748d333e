"""Bloom filters in files: where they are, and how they are sealed, read and checked (BloomFilter.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.errors import FormatError, UnsupportedError
from fastpq.index.bloom_filter import SplitBlockBloomFilter, hash_each
from fastpq.index.bloom_size import BLOCK_BYTES
from fastpq.index.chunk_claims import BloomFilterClaims, ChunkMetadataClaims, Part
from fastpq.index.consistency_checks import refuse_refuted, without_refuted_statistics
from fastpq.io.source import Bytes, Source
from fastpq.metadata.column_chunk import ColumnChunkMetaData

Hashes = NDArray[np.uint64]
NO_PAGE = -1
_NO_HASHES = np.empty(0, np.uint64)
# Bytes read for a filter's header if the filter's length is unknown. Writers before format 2.10 do not store the length.
HEADER_READ = 256
# Header size in bytes that is assumed if header and bitset together are a multiple of the block size.
SHORT_HEADER = BLOCK_BYTES
# Blocks and headers at most this many bytes apart are read together.
BLOCK_GAP = 1024
# Single blocks are read instead of the whole filter if the filter has at least this many blocks for each value.
WORTH_BLOCKS = 16


class ProbedBlocks:
    """A bloom filter from which only the blocks for some values have been read.

    Args:
        hashes: shape (n,), uint64: the values' hashes.
        blocks: for each value, a filter that consists of the value's block alone.
    """

    def __init__(self, hashes: Hashes, blocks: Sequence[SplitBlockBloomFilter]) -> None:
        self._blocks = dict(zip(hashes.tolist(), blocks, strict=True))

    def probe_hashes(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Return whether each value may have been inserted. Only values whose blocks were read may be asked for.

        Args:
            hashes: shape (n,), uint64: the values' hashes.
        """
        hits = [self._blocks[number].probe_hashes(hashes[place : place + 1])[0] for place, number in enumerate(hashes.tolist())]
        return np.array(hits, np.bool_)


StoredFilter = SplitBlockBloomFilter | ProbedBlocks
_Failure = FormatError | UnsupportedError | None


def serialized_filter(bloom_filter: SplitBlockBloomFilter, cipher: ModuleCipher) -> list[Any]:
    """Serialize a filter's header and bitset, and seal each as a module.

    Args:
        bloom_filter: the filter.
        cipher: the cipher for the filter's column chunk.
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
    """A request for one column chunk's bloom filter.

    Attributes:
        chunk: the chunk's metadata.
        cipher: the chunk's cipher.
        claims: claims about the chunk, to check the filter against.
        hashes: shape (n,), uint64: XXH64 of the values to look up, in PLAIN encoding.
    """

    chunk: ColumnChunkMetaData
    cipher: ModuleCipher
    claims: ChunkMetadataClaims
    hashes: Hashes = _NO_HASHES


def read_bloom_filters(
    source: Source, requests: Sequence[FilterRequest]
) -> list[SplitBlockBloomFilter | _Failure]:
    """Read the whole bloom filters of column chunks.

    One round of requests reads all filters whose length is known, and the headers of the others. A second round reads the
    bitsets that are still missing.

    Args:
        source: the file.
        requests: the chunks. Hashes are ignored.

    Returns:
        For each chunk its filter, or None if it has no filter, or the filter's error: FormatError if a claim of the filter is
        refuted (``consistency_checks.CHECKS``), UnsupportedError if its algorithm, hash or compression is unknown.

    Raises:
        TagVerificationError: an encrypted filter was altered.
    """
    results: list[SplitBlockBloomFilter | _Failure] = [None] * len(requests)
    usable_claims = [without_refuted_statistics(request.claims) for request in requests]
    places: dict[int, tuple[int, int]] = {}
    for index, (request, claims) in enumerate(zip(requests, usable_claims, strict=True)):
        try:
            place = _place(request.chunk, claims, source.size)
        except FormatError as error:
            results[index] = error
            continue
        if place is not None:
            places[index] = place
    missing: dict[int, tuple[int, int]] = {}
    for (index, (offset, _)), data in zip(places.items(), source.read_ranges(places.values()), strict=True):
        cipher, claims = requests[index].cipher, usable_claims[index]
        try:
            header_size, bitset_size = _parse_header(data, cipher, claims)
            if header_size + bitset_size <= len(data):
                results[index] = _open(data[header_size : header_size + bitset_size], cipher, claims)
            else:
                missing[index] = offset + header_size, bitset_size
        except (FormatError, UnsupportedError) as error:
            results[index] = error
    for index, data in zip(missing, source.read_ranges(missing.values()), strict=True):
        try:
            results[index] = _open(data, requests[index].cipher, usable_claims[index])
        except FormatError as error:
            results[index] = error
    return results


def probe_bloom_filters(source: Source, requests: Sequence[FilterRequest]) -> list[StoredFilter | _Failure]:
    """Read those parts of bloom filters that are necessary to look up some values.

    If a filter is large and the values are few, only its header and the values' blocks are read. Any other filter is read whole.

    Args:
        source: the file.
        requests: the chunks, with the hashes of the values.

    Returns, raises: as read_bloom_filters.
    """
    results: list[StoredFilter | _Failure] = [None] * len(requests)
    places: dict[int, list[tuple[int, int]]] = {}
    claims_and_hashes: dict[int, tuple[ChunkMetadataClaims, Hashes]] = {}
    for index, request in enumerate(requests):
        claims = without_refuted_statistics(request.claims)
        hashes = np.concatenate([request.hashes, hash_each(claims.certain_values)])
        if (place := _block_places(request, claims, hashes, source.size)) is not None:
            places[index], claims_and_hashes[index] = place, (claims, hashes)
    data = iter(source.read_ranges((place for each in places.values() for place in each), gap=BLOCK_GAP))
    for index, each in places.items():
        header, *blocks = [next(data) for _ in each]
        claims, hashes = claims_and_hashes[index]
        results[index] = _probed(header, blocks, requests[index], claims, hashes)
    whole = [index for index, result in enumerate(results) if result is None]
    for index, result in zip(whole, read_bloom_filters(source, [requests[index] for index in whole]), strict=True):
        results[index] = result
    return results


def _block_places(
    request: FilterRequest, claims: ChunkMetadataClaims, hashes: Hashes, file_size: int
) -> list[tuple[int, int]] | None:
    """Return (offset, length) for a filter's header and for each value's block, or None if the whole filter should be read.

    A filter is read whole if it is encrypted, if its length is unknown, or if the values are many. The header is assumed to be
    no longer than a block. Its length is then the remainder of the filter's length divided by the block size.
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
    if len(hashes) * WORTH_BLOCKS > blocks:
        return None
    start = offset + header
    return [(offset, header), *((start + _block_of(number, blocks) * BLOCK_BYTES, BLOCK_BYTES) for number in hashes.tolist())]


def _block_of(number: int, blocks: int) -> int:
    """Return the number of the block that a hash belongs to."""
    return (number >> 32) * blocks >> 32


def _probed(
    header: Bytes, blocks: Sequence[Bytes], request: FilterRequest, claims: ChunkMetadataClaims, hashes: Hashes
) -> ProbedBlocks | _Failure:
    """Return a filter that consists of some blocks, or None if the header shows that _block_places assumed a wrong size."""
    try:
        sizes = _parse_header(header, request.cipher, claims)
    except UnsupportedError as error:
        return error
    except FormatError:     # read_bloom_filters reports the error
        return None
    if sizes != (len(header), (request.chunk.metadata.bloom_filter_length or 0) - len(header)):
        return None
    blocks_of_filter = ProbedBlocks(hashes, [SplitBlockBloomFilter.of_bitset(block) for block in blocks])
    try:
        _check_values(blocks_of_filter, claims)
    except FormatError as error:
        return error
    return blocks_of_filter


def _place(chunk: ColumnChunkMetaData, claims: ChunkMetadataClaims, file_size: int) -> tuple[int, int] | None:
    """Return a filter's (offset, length), or None without a filter. If the length is unknown, only the header is covered."""
    offset, length = chunk.metadata.bloom_filter_offset, chunk.metadata.bloom_filter_length
    # Some writers store the offset 0 if there is no filter. With a file_path, the format does not say whose offset it is.
    if not offset or chunk.file_path:
        return None
    claims.bloom_filter = BloomFilterClaims(offset, length, file_size)
    refuse_refuted(Part.BLOOM_FILTER, claims)
    return offset, min(HEADER_READ, file_size - offset) if length is None else length


def _parse_header(data: Bytes, cipher: ModuleCipher, claims: ChunkMetadataClaims) -> tuple[int, int]:
    """Return (stored size of the header, stored size of the bitset behind it), and check both against the claims."""
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
    claims.filter.num_bytes, claims.filter.stored_size = header.numBytes, header_size + bitset_size
    refuse_refuted(Part.BLOOM_FILTER, claims)
    return header_size, bitset_size


def _open(bitset: Bytes, cipher: ModuleCipher, claims: ChunkMetadataClaims) -> SplitBlockBloomFilter:
    """Return a filter over a stored bitset. It shares the memory of an unencrypted bitset."""
    plain = cipher.open(ModuleType.BLOOM_FILTER_BITSET, NO_PAGE, bitset.data) if cipher.overhead else bitset
    bloom_filter = SplitBlockBloomFilter.of_bitset(plain)
    claims.filter.has_bits = bool(bloom_filter.bitset.any())
    _check_values(bloom_filter, claims)
    return bloom_filter


def _check_values(bloom_filter: StoredFilter, claims: ChunkMetadataClaims) -> None:
    """Raise FormatError if a filter lacks values that the chunk certainly has."""
    claims.filter.denies_bounds = not bloom_filter.probe_hashes(hash_each(claims.certain_values)).all()
    refuse_refuted(Part.BLOOM_FILTER, claims)
