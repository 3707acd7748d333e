"""Which encoding a column should have, from what each of them makes of a sample of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastpq.format import Encoding

# The simplest to read first: it wins unless another one is smaller by more than NEGLIGIBLE.
_BY_SIMPLICITY = (
    Encoding.PLAIN,
    Encoding.RLE,
    Encoding.RLE_DICTIONARY,
    Encoding.BYTE_STREAM_SPLIT,
    Encoding.DELTA_BINARY_PACKED,
    Encoding.DELTA_LENGTH_BYTE_ARRAY,
    Encoding.DELTA_BYTE_ARRAY,
)
NEGLIGIBLE = 0.05


@dataclass(frozen=True, slots=True)
class EncodingChoice:
    """An encoding and why a column has it.

    Attributes:
        encoding: by the specification's name.
        reason: for a person to read.
    """

    encoding: str
    reason: str


@dataclass(frozen=True, slots=True)
class DictionarySample:
    """What a dictionary makes of a sample.

    Attributes:
        distinct, once, twice: how many different values there are, and how many of them occur once and twice.
        plain_size: bytes of the dictionary page before it is compressed.
        stored_size: bytes of the dictionary page after that.
        indices_size: bytes of the compressed indices.
    """

    distinct: int
    once: int
    twice: int
    plain_size: int
    stored_size: int
    indices_size: int


@dataclass(frozen=True, slots=True)
class Sample:
    """What each encoding makes of a sample of a column.

    Attributes:
        values: how many values, nulls not among them, are in the sample.
        expected: how many a column chunk will hold.
        sizes: stored bytes of the sample in each encoding but the dictionary's, compressed as the column will be.
        dictionary: the same for a dictionary, or None where there shall be none.
        dictionary_page_size: the largest dictionary that is written.
    """

    values: int
    expected: int
    sizes: Mapping[Encoding, int]
    dictionary: DictionarySample | None
    dictionary_page_size: int


def choose_encoding(sample: Sample) -> EncodingChoice:
    """The encoding in which the column takes the fewest bytes, or a simpler one that takes hardly more."""
    if not sample.values:
        return EncodingChoice(Encoding.PLAIN.name, "there are no values to choose by")
    sizes = {encoding: size / sample.values for encoding, size in sample.sizes.items()}
    if sample.dictionary is not None:
        size = dictionary_size(sample, sample.dictionary)
        if size is not None:
            sizes[Encoding.RLE_DICTIONARY] = size
    acceptable = min(sizes.values()) / (1 - NEGLIGIBLE)
    chosen = next(encoding for encoding in _BY_SIMPLICITY if encoding in sizes and sizes[encoding] <= acceptable)
    ranking = ", ".join(f"{encoding.name} {size:.2f}" for encoding, size in sorted(sizes.items(), key=lambda item: item[1]))
    return EncodingChoice(chosen.name, f"bytes a value, in a sample of {sample.values}: {ranking}")


def dictionary_size(sample: Sample, found: DictionarySample) -> float | None:
    """Bytes a value that indices and dictionary take in a whole chunk, or None where the dictionary would be too large.

    How many different values a chunk has is estimated from those that occur once or twice in the sample (Chao 1984).
    """
    unseen = found.once * (found.once - 1) / (2 * (found.twice + 1)) if sample.expected > sample.values else 0
    distinct = min(found.distinct + unseen, found.distinct + max(0, sample.expected - sample.values))
    growth = distinct / max(found.distinct, 1)
    if found.plain_size * growth > sample.dictionary_page_size:
        return None
    wider = index_width(distinct) / max(index_width(found.distinct), 1)
    return found.indices_size / sample.values * wider + found.stored_size * growth / max(sample.expected, 1)


def index_width(distinct: float) -> int:
    """Bits of an index into so many values."""
    return max(1, int(distinct) - 1).bit_length()
