"""Mutations of the structures of a file: thrift fields at their bounds, and pages and indexes with right checksums and tags."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from random import Random
from typing import Any, Protocol

from fastpq import format as fmt
from fastpq.errors import ParquetError
from fastpq.format.struct import FieldType, Struct, Union, WireKind
from tests.corrupt.anatomy import Anatomy, Page, compressed, take_apart, uncompressed
from tests.corrupt.mutate import MUTATIONS, Sample
from tests.corrupt.seeds import SEALED, Seed

BITS = {WireKind.I8: 8, WireKind.I16: 16, WireKind.I32: 32, WireKind.I64: 64}
SMALL = (0, 1, -1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256)
TEXTS = ("", "a", "a.b", "list", "element", "\0", "é\u202e", "x" * 300)
# Structs of claims about values: a filter may believe them.
CLAIMS = (
    "Statistics", "ColumnIndex", "BloomFilterHeader", "SizeStatistics", "GeospatialStatistics", "BoundingBox", "ColumnOrder",
)
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Mutant:
    """Mutated bytes, and how far they may be believed.

    Attributes:
        what: seed and mutation, for people.
        data: bytes of the file.
        seed: number of the seed.
        same_values: any table read must be the seed's: only authenticated or checksummed bytes were altered.
        true_claims: statistics, indexes and bloom filters are the seed's.
    """

    what: str
    data: bytes
    seed: int
    same_values: bool = False
    true_claims: bool = False


class Subject:
    """A seed ready for mutations.

    Attributes:
        seed: the file.
        parts: its Anatomy; None for a file that cannot be taken apart.
        paths: places of fields in the footer, by class of struct.
    """

    def __init__(self, seed: Seed) -> None:
        self.seed = seed
        try:
            parts: Anatomy | None = take_apart(seed)
            assert parts is not None
            body, footer = parts.laid
            metadata = fmt.decode(fmt.FileMetaData, footer)[0]
            parts.closed(body, fmt.decode(fmt.FileMetaData, footer)[0], Random(0))
        except (ParquetError, AssertionError, ValueError, IndexError):
            self.parts: Anatomy | None = None
            return
        self.parts = parts
        self.paths = places(metadata)

    @property
    def subject(self) -> Subject:
        """Itself, as of a reference."""
        return self


class HasSubject(Protocol):
    """A Subject, or a reference to one."""

    @property
    def subject(self) -> Subject: ...


def places(struct: Struct) -> dict[str, list[tuple[Path, FieldType, bool]]]:
    """Places of all declared fields of a struct and its inner structs: path, type, and whether required; by name of the class."""
    found = defaultdict(list)

    def visit(value: Any, path: Path) -> None:
        if isinstance(value, Struct):
            for name, field in value.ORDERED:
                found[type(value).__name__].append(((*path, name), field.type, field.required))
                visit(getattr(value, name), (*path, name))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                visit(item, (*path, index))

    visit(struct, ())
    return dict(found)


def alter(struct: Struct, random: Random, known: dict[str, list[tuple[Path, FieldType, bool]]] | None = None) -> str:
    """Give one field of a struct, or of an inner struct, another value; returns the field's name."""
    by_class = known or places(struct)
    if not by_class:
        raise ValueError(f"{type(struct).__name__} has no fields")
    owner = random.choice(list(by_class))
    path, kind, is_required = random.choice(by_class[owner])
    holder: Any = struct
    for step in path[:-1]:
        holder = holder[step] if isinstance(step, int) else getattr(holder, step)
    name = str(path[-1])
    before = getattr(holder, name)
    if isinstance(holder, Union):       # of its members, exactly one is there
        for member, _ in holder.ORDERED:
            setattr(holder, member, None)
        setattr(holder, name, made(kind, random))
    elif before is not None and not is_required and random.random() < 0.15:
        setattr(holder, name, None)
    else:
        setattr(holder, name, other(kind, before, random))
    return f"{owner}.{name}"


def other(kind: FieldType, value: Any, random: Random) -> Any:
    """Another value of a type, at a bound of the type, near the present value or anywhere."""
    if value is None:
        return made(kind, random)
    if kind.kind in BITS:
        near = random.choice((*SMALL, value + 1, value - 1, value * 2, -value, 1 << 31, 1 << 63))
        return fitting(kind.kind, near if random.random() < 0.8 else random.getrandbits(64), random)
    match kind.kind:
        case WireKind.BOOL:
            return not value
        case WireKind.BINARY:
            return altered_bytes(value, random)
        case WireKind.STRING:
            return random.choice((*TEXTS, value + "x", value[:-1]))
        case WireKind.LIST:
            return altered_list(kind, value, random)
        case WireKind.STRUCT:
            if random.random() < 0.3 or not value.ORDERED:
                return made(kind, random)
            alter(value, random)
            return value
    return made(kind, random)


def fitting(kind: WireKind, number: int, random: Random) -> int:
    """A number within a wire type: the number itself, or a bound."""
    bound = 1 << BITS[kind] - 1
    return number if -bound <= number < bound else random.choice((bound - 1, -bound))


def altered_bytes(value: bytes, random: Random) -> bytes:
    choice = random.randrange(5)
    if choice == 0 or not value:
        return random.randbytes(random.choice((0, 1, 4, 8, 12, 16, 300)))
    if choice == 1:
        return value[: random.randrange(len(value))]
    if choice == 2:
        return value + random.randbytes(random.randint(1, 9))
    place = random.randrange(len(value))
    return value[:place] + bytes([random.choice((0, 1, 0x7F, 0x80, 0xFF))]) + value[place + 1 :]


def altered_list(kind: FieldType, value: list[Any], random: Random) -> list[Any]:
    out, choice = list(value), random.randrange(6)
    if choice == 0 or not out:
        return [*out, made(kind.argument, random)]
    place = random.randrange(len(out))
    if choice == 1:
        del out[place]
    elif choice == 2:
        out.insert(random.randrange(len(out) + 1), out[place])
    elif choice == 3:
        with_another = random.randrange(len(out))
        out[place], out[with_another] = out[with_another], out[place]
    elif choice == 4:
        out = [] if random.random() < 0.5 else out * random.choice((2, 3, 50))
    else:
        out[place] = other(kind.argument, out[place], random)
    return out


def made(kind: FieldType, random: Random, depth: int = 0) -> Any:
    """Any value of a type."""
    if kind.kind in BITS:
        return fitting(kind.kind, random.choice((*SMALL, 1 << 31, 1 << 63)), random)
    match kind.kind:
        case WireKind.BOOL:
            return random.random() < 0.5
        case WireKind.DOUBLE:
            return random.choice((0.0, -0.0, float("nan"), float("inf"), -1e308, 0.5))
        case WireKind.BINARY:
            return random.randbytes(random.choice((0, 1, 4, 8, 12, 16)))
        case WireKind.STRING:
            return random.choice(TEXTS)
        case WireKind.ENUM:
            known: type[IntEnum] = kind.argument
            return int(random.choice(list(known))) if random.random() < 0.9 else random.choice((-1, 9, 22, 127))
        case WireKind.LIST:
            return [made(kind.argument, random, depth + 1) for _ in range(random.choice((0, 1, 2)))]
    return made_struct(kind.argument, random, depth)


def made_struct(cls: type[Struct], random: Random, depth: int) -> Struct:
    """Any struct of a class, with few optional fields."""
    struct = cls()
    fields = [random.choice(cls.ORDERED)] if issubclass(cls, Union) else cls.ORDERED
    for name, field in fields:
        if issubclass(cls, Union) or field.required or (random.random() < 0.4 and depth < 3):
            setattr(struct, name, made(field.type, random, depth + 1))
    return struct


# ---- mutations of a file; each returns the bytes, the name, and whether statistics and indexes are the seed's


Change = tuple[bytes, str, bool]


def footer(subject: Subject, parts: Anatomy, random: Random) -> Change:
    """One to three fields of the footer have other values."""
    body, stored = parts.laid
    metadata = fmt.decode(fmt.FileMetaData, stored)[0]
    names = [alter(metadata, random, subject.paths)]
    with suppress(AttributeError, IndexError):      # a place that the mutation before has removed
        names += (alter(metadata, random, subject.paths) for _ in range(random.choice((0, 0, 1, 2))))
    claims = all(name.partition(".")[0] not in CLAIMS and not name.endswith("statistics") for name in names)
    return parts.closed(body, metadata, random), f"footer {', '.join(names)}", claims


def any_chunk(parts: Anatomy, random: Random) -> int:
    found = [place for place, chunk in enumerate(parts.chunks) if chunk.pages]
    if not found:
        raise ValueError("no pages")
    return random.choice(found)


def finished(parts: Anatomy, random: Random) -> bytes:
    body, stored = parts.lay(random)
    return parts.closed(body, fmt.decode(fmt.FileMetaData, stored)[0], random)


def with_page(parts: Anatomy, place: int, number: int, page: Page) -> Anatomy:
    pages = parts.chunks[place].pages
    return parts.with_chunk(place, pages=(*pages[:number], page, *pages[number + 1 :]))


def page_header(subject: Subject, parts: Anatomy, random: Random) -> Change:
    """One or two fields of a page header have other values."""
    place = any_chunk(parts, random)
    number = random.randrange(len(parts.chunks[place].pages))
    page = parts.chunks[place].pages[number]
    header = page.parsed
    names = [alter(header, random) for _ in range(random.choice((1, 1, 2)))]
    changed = with_page(parts, place, number, Page(fmt.encode(header), page.body))
    return finished(changed, random), f"page header {', '.join(names)}", False


def page_body(subject: Subject, parts: Anatomy, random: Random) -> Change:
    """The uncompressed bytes of a page are mutated, then compressed again."""
    place = any_chunk(parts, random)
    chunk = parts.chunks[place]
    number = random.randrange(len(chunk.pages))
    page = chunk.pages[number]
    body = uncompressed(page, chunk.codec)
    done = []
    for _ in range(random.choice((1, 1, 2, 4))):
        if len(body) > 8:
            mutation = random.choice(MUTATIONS)
            body = mutation(Sample("", body, ()), random)
            done.append(mutation.__name__)
        else:
            body = altered_bytes(body, random)
    header = page.parsed
    names = [alter(header, random)] if random.random() < 0.2 else []
    changed = with_page(parts, place, number, compressed(header, page, body, chunk.codec))
    return finished(changed, random), f"page body {', '.join(done + names)}", False


def compressed_body(subject: Subject, parts: Anatomy, random: Random) -> Change:
    """The compressed bytes of a page are mutated; its size and checksum are right."""
    place = any_chunk(parts, random)
    chunk = parts.chunks[place]
    number = random.randrange(len(chunk.pages))
    page, header = chunk.pages[number], chunk.pages[number].parsed
    if len(page.body) > 8:
        body = random.choice(MUTATIONS)(Sample("", page.body, ()), random)
    else:
        body = altered_bytes(page.body, random)
    header.compressed_page_size = len(body)
    header.crc = None
    return finished(with_page(parts, place, number, Page(fmt.encode(header), body)), random), "compressed body", False


def pages_moved(subject: Subject, parts: Anatomy, random: Random) -> Change:
    """A page is missing, there twice, in another place, or one of another chunk."""
    place = any_chunk(parts, random)
    pages = list(parts.chunks[place].pages)
    number, choice = random.randrange(len(pages)), random.randrange(4)
    if choice == 0:
        del pages[number]
    elif choice == 1:
        pages.insert(random.randrange(len(pages) + 1), pages[number])
    elif choice == 2:
        random.shuffle(pages)
    else:
        pages[number] = random.choice(parts.chunks[any_chunk(parts, random)].pages)
    return finished(parts.with_chunk(place, pages=tuple(pages)), random), "pages moved", False


def index(subject: Subject, parts: Anatomy, random: Random) -> Change:
    """Fields of a ColumnIndex or an OffsetIndex have other values; or two chunks have each other's."""
    names = ("column_index", "offset_index")
    found = [(place, name) for place, chunk in enumerate(parts.chunks) for name in names if getattr(chunk, name) is not None]
    if not found:
        raise ValueError("no indexes")
    place, name = random.choice(found)
    kind: type[Struct] = fmt.ColumnIndex if name == "column_index" else fmt.OffsetIndex
    struct = fmt.decode(kind, getattr(parts.chunks[place], name))[0]
    done = [alter(struct, random) for _ in range(random.choice((1, 1, 2)))]
    changed = parts.with_chunk(place, **{name: fmt.encode(struct)})
    return finished(changed, random), f"index {', '.join(done)}", False


def offset_index(subject: Subject, parts: Anatomy, random: Random) -> Change:
    """The places in a laid OffsetIndex have other values."""
    body, stored = parts.laid
    metadata = fmt.decode(fmt.FileMetaData, stored)[0]
    entries = [entry for group in metadata.row_groups for entry in group.columns if entry.offset_index_offset is not None]
    if not entries or parts.sealing is not None:
        return index(subject, parts, random)
    entry = random.choice(entries)
    assert entry.offset_index_offset is not None
    struct = fmt.decode(fmt.OffsetIndex, body, entry.offset_index_offset)[0]
    done = alter(struct, random)
    entry.offset_index_offset, altered = len(body), fmt.encode(struct)
    entry.offset_index_length = len(altered)
    return parts.closed(body + altered, metadata, random), f"offset index {done}", False


def bloom(subject: Subject, parts: Anatomy, random: Random) -> Change:
    """A bloom filter has another header, or other bits."""
    found = [place for place, chunk in enumerate(parts.chunks) if chunk.bloom is not None]
    if not found:
        raise ValueError("no bloom filters")
    place = random.choice(found)
    filters = parts.chunks[place].bloom
    assert filters is not None
    stored, bits = filters
    header = fmt.decode(fmt.BloomFilterHeader, stored)[0]
    if random.random() < 0.6:
        alter(header, random)
    else:
        bits = altered_bytes(bits, random)
    return finished(parts.with_chunk(place, bloom=(fmt.encode(header), bits)), random), "bloom filter", False


STRUCTURED: tuple[Callable[[Subject, Anatomy, Random], Change], ...] = (
    footer, footer, footer, page_header, page_header, page_body, page_body, page_body, compressed_body, pages_moved, index,
    offset_index, bloom,
)


def raw(number: int, subject: Subject, random: Random) -> Mutant:
    """Bytes anywhere are altered; what is read of a sealed file must be the seed's values all the same."""
    seed = subject.seed
    given, names = seed.sample, []
    for _ in range(random.choice((1, 1, 2))):
        mutation = random.choice(MUTATIONS)
        data = mutation(given, random)
        names.append(mutation.__name__)
        if len(data) <= 8:
            break
        given = Sample(given.name, data, given.headers)
    sealed = seed.mode in SEALED
    return Mutant(f"{seed.name}: {', '.join(names)}", data, number, same_values=sealed, true_claims=sealed)


def within_page(number: int, subject: Subject, parts: Anatomy, random: Random) -> Mutant:
    """A stored page body is altered, and keeps its checksum or tag."""
    body, stored = parts.laid
    place = any_chunk(parts, random)
    pages = parts.chunks[place].pages
    page = random.choice(pages)
    at = body.find(page.body) if parts.sealing is None else -1
    if at < 0 or not page.body or page.parsed.crc is None:
        raise ValueError("no checksummed page")
    data = bytearray(body)
    for _ in range(random.randint(1, 6)):
        data[at + random.randrange(len(page.body))] ^= 1 << random.randrange(8)
    if data == body:
        data[at] ^= 1
    metadata = fmt.decode(fmt.FileMetaData, stored)[0]
    what = f"{subject.seed.name}: checksummed page"
    return Mutant(what, parts.closed(bytes(data), metadata, random), number, same_values=True, true_claims=True)


def mutate_file(subjects: Sequence[HasSubject], seed: int, number: int) -> Mutant:
    """The mutant with this number."""
    random = Random(f"{seed}:{number}")
    chosen = random.randrange(len(subjects))
    subject = subjects[chosen].subject
    if subject.parts is None or random.random() < 0.2:
        return raw(chosen, subject, random)
    if subject.seed.checked and subject.seed.mode is None and random.random() < 0.1:
        try:
            return within_page(chosen, subject, subject.parts, random)
        except ValueError:      # a file without checksummed pages
            return raw(chosen, subject, random)
    for _ in range(4):
        change = random.choice(STRUCTURED)
        try:
            data, name, claims = change(subject, subject.parts, random)
        except (ValueError, ParquetError, OverflowError, TypeError):    # a struct without its required fields, or no such part
            continue
        return Mutant(f"{subject.seed.name}: {name}", data, chosen, true_claims=claims)
    return raw(chosen, subject, random)
