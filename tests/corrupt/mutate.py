"""Mutations of Parquet files; each is a function of the bytes and a random generator alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from tests.varints import varint

MAGIC_AND_LENGTH = 8        # the footer's length and the magic after it
HEADER_REACH = 48           # bytes from a page header's start that a mutation of headers may touch
INTERESTING = (0x00, 0x01, 0x7F, 0x80, 0xFF)
LENGTHS = (0, 1, 0x7F, 0x80, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True)
class Sample:
    """A file to mutate.

    Attributes:
        name: where it comes from.
        data: its bytes.
        headers: offsets at which page headers begin.
    """

    name: str
    data: bytes
    headers: Sequence[int]

    @property
    def footer(self) -> tuple[int, int]:
        """Start and end of the serialized footer."""
        end = len(self.data) - MAGIC_AND_LENGTH
        length = int.from_bytes(self.data[end : end + 4], "little")
        return max(0, end - length), end


def place(sample: Sample, random: Random) -> int:
    """An offset: in the footer, in a page header, or anywhere, equally likely."""
    start, end = sample.footer
    where = random.randrange(3)
    if where == 0 and end > start:
        return random.randrange(start, end)
    if where == 1 and sample.headers:
        return min(len(sample.data) - 1, random.choice(sample.headers) + random.randrange(HEADER_REACH))
    return random.randrange(len(sample.data))


def flip(sample: Sample, random: Random) -> bytes:
    """One to four bits."""
    data = bytearray(sample.data)
    for _ in range(random.randint(1, 4)):
        data[place(sample, random)] ^= 1 << random.randrange(8)
    return bytes(data)


def overwrite(sample: Sample, random: Random) -> bytes:
    """One to eight bytes, with values that are the ends of ranges or with any."""
    data = bytearray(sample.data)
    start = place(sample, random)
    for offset in range(start, min(len(data), start + random.randint(1, 8))):
        data[offset] = random.choice(INTERESTING) if random.random() < 0.5 else random.randrange(256)
    return bytes(data)


def grow(sample: Sample, random: Random) -> bytes:
    """A number in the footer or a page header becomes another one, as a varint; the footer's length follows."""
    at = place(sample, random)
    stop = at
    while stop < len(sample.data) - 1 and sample.data[stop] & 0x80 and stop - at < 9:
        stop += 1
    number = varint(random.choice(LENGTHS) if random.random() < 0.7 else random.getrandbits(random.randint(1, 64)))
    if random.random() < 0.5:       # in place: what follows is overwritten, offsets stay right
        return sample.data[:at] + number + sample.data[at + len(number) :]
    data = sample.data[:at] + number + sample.data[stop + 1 :]
    return relength(data, len(data) - len(sample.data)) if at >= sample.footer[0] else data


def relength(data: bytes, change: int) -> bytes:
    """The footer's length, changed by so much."""
    end = len(data) - MAGIC_AND_LENGTH
    length = int.from_bytes(data[end : end + 4], "little") + change
    return data[:end] + (length & 0xFFFFFFFF).to_bytes(4, "little") + data[end + 4 :]


def footer_length(sample: Sample, random: Random) -> bytes:
    """The footer's own length is wrong."""
    if random.random() < 0.5:
        return relength(sample.data, random.randint(-64, 64))
    end = len(sample.data) - MAGIC_AND_LENGTH
    return sample.data[:end] + (random.choice(LENGTHS) & 0xFFFFFFFF).to_bytes(4, "little") + sample.data[end + 4 :]


def little_endian(sample: Sample, random: Random) -> bytes:
    """A four-byte length (of a level run or a BYTE_ARRAY value) becomes another."""
    at = place(sample, random)
    return sample.data[:at] + (random.choice(LENGTHS) & 0xFFFFFFFF).to_bytes(4, "little") + sample.data[at + 4 :]


def truncate(sample: Sample, random: Random) -> bytes:
    """The end is missing; half the time the footer is kept and the middle is missing."""
    if random.random() < 0.5:
        return sample.data[: random.randrange(len(sample.data))]
    start, _ = sample.footer
    cut = random.randrange(start + 1)
    return sample.data[: max(0, cut - random.randint(1, 64))] + sample.data[cut:]


def splice(sample: Sample, random: Random) -> bytes:
    """A range is overwritten with, or replaced by, another range of the same file."""
    size = min(len(sample.data), random.choice((1, 4, 16, 64, 256)))
    source = random.randrange(len(sample.data) - size + 1)
    target = place(sample, random)
    piece = sample.data[source : source + size]
    kept = target + (size if random.random() < 0.7 else random.randrange(size + 1))
    return sample.data[:target] + piece + sample.data[kept:]


MUTATIONS: tuple[Callable[[Sample, Random], bytes], ...] = (
    flip, flip, overwrite, overwrite, grow, grow, grow, little_endian, footer_length, truncate, splice,
)


def mutate(samples: Sequence[Sample], seed: int, index: int) -> tuple[str, bytes]:
    """The mutation with this number: what was done to which file, and the bytes.

    One to three mutations are applied, one on top of the other.
    """
    random = Random(f"{seed}:{index}")
    sample = random.choice(samples)
    done = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        mutation = random.choice(MUTATIONS)
        data = mutation(sample, random)
        done.append(mutation.__name__)
        if len(data) <= MAGIC_AND_LENGTH:
            return f"{sample.name}: {', '.join(done)}", data
        sample = Sample(sample.name, data, sample.headers)
    return f"{sample.name}: {', '.join(done)}", sample.data
