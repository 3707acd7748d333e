"""Every way to read a mutant: each must give a table or a typed error, and no two ways may give different values."""

from __future__ import annotations

import io
import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

import fastpq
from fastpq import format as fmt
from fastpq._kernel_calls import decode_levels
from fastpq.arrays.table import Column
from tests.corrupt.anatomy import Page, take_apart, uncompressed
from tests.corrupt.seeds import decryption, encryption, load
from tests.corrupt.structured import Mutant, Subject, mutate_file

# Options of every read; one unit of INT96 timestamps, since "auto" is a unit by the values of each read.
READING: dict[str, Any] = {"threads": 1, "coerce_int96_timestamp_unit": "ms"}
LAYOUTS: tuple[Literal["views", "offsets", "dictionary"], ...] = ("views", "offsets", "dictionary")
MOST_BATCHES = 200
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}


class WrongValueError(Exception):
    """A value other than the file's."""


class Filtered(NamedTuple):
    """Filters, and the numbers of the rows that they match by a comparison in Python."""

    filters: Any
    rows: list[int]


class Reference:
    """A seed: what mutations begin with, and what it holds.

    Attributes:
        subject: the file in parts.
        table: all its values; None if it is not readable.
        filtered: filters on its flat columns.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.table: fastpq.Table | None = None
        self.filtered: list[Filtered] = []
        try:
            with fastpq.ParquetFile(subject.seed.data, decryption_properties=subject.seed.keys, **READING) as file:
                self.table = file.read()
        except fastpq.ParquetError:
            return
        self.filtered = list(filters_of(self.table))

    @property
    def seed(self) -> Any:
        return self.subject.seed


def filters_of(table: fastpq.Table) -> Iterator[Filtered]:
    """Filters on the flat columns of a table, with all operators."""
    for name, column in zip(table.names, table.columns, strict=True):
        if not isinstance(column, Column) or not len(column):
            continue
        values = column.to_pylist()
        yield Filtered((name, "is null"), [i for i, value in enumerate(values) if value is None])
        present = [value for value in values if value is not None]
        if not present or not isinstance(present[0], (int, str, bytes, float)) or any(v != v for v in present):
            continue
        chosen = sorted({present[0], present[len(present) // 2], present[-1]})
        for (name_of, compare), value in itertools.product(OPERATORS.items(), chosen):
            matching = [i for i, found in enumerate(values) if found is not None and compare(found, value)]
            yield Filtered((name, name_of, value), matching)
        members = [i for i, found in enumerate(values) if found in chosen[:2]]
        yield Filtered((name, "in", chosen[:2]), members)


def references(folder: Path) -> list[Reference]:
    """The seeds of a folder."""
    return [Reference(Subject(seed)) for seed in load(folder)]


class Case(NamedTuple):
    """A mutant and its seed."""

    mutant: Mutant
    reference: Reference

    @property
    def data(self) -> bytes:
        return self.mutant.data


def mutate_seed(given: Sequence[Reference], seed: int, number: int) -> tuple[str, Case]:
    """The mutant with this number, and what was done."""
    found = mutate_file(given, seed, number)
    return found.what, Case(found, given[found.seed])


class Reading:
    """One mutant, being read.

    Attributes:
        mutant: the bytes.
        reference: the seed.
        whole: the table of a plain read.
        error: the error of the plain read, where it failed.
    """

    def __init__(self, mutant: Mutant, reference: Reference, index: int) -> None:
        self.mutant, self.reference, self.index = mutant, reference, index
        self.random = Random(index)
        self.keys = reference.seed.keys
        self.whole: fastpq.Table | None = None
        self.error: fastpq.ParquetError | None = None
        try:
            with self.open() as file:
                self.whole = file.read()
        except fastpq.ParquetError as error:
            self.error = error

    def open(self, **options: Any) -> fastpq.ParquetFile:
        options = {"strings": LAYOUTS[self.index % 3], **READING, **options}
        return fastpq.ParquetFile(self.mutant.data, decryption_properties=self.keys, **options)

    @property
    def is_true(self) -> bool:
        """Whether the mutant has the values, and the claims about them, of its seed."""
        original = self.reference.table
        return self.whole is not None and original is not None and self.mutant.true_claims and self.whole.equals(original)

    def check(self, found: fastpq.Table, expected: fastpq.Table | None, how: str) -> None:
        """Compare a table with the same rows of a plain read, where this gave any."""
        if expected is not None and not found.equals(expected):
            raise WrongValueError(f"{how}: {found.to_pylist()[:20]} and not {expected.to_pylist()[:20]}")

    def check_rows(self, found: fastpq.Table, rows: slice | list[int], how: str) -> None:
        """The same for some rows; a file that misleads every reader of these rows alone is exempt."""
        try:
            self.check(found, self.part(rows), how)
        except WrongValueError:
            if not misleads(self, [*range(rows.start, rows.stop)] if isinstance(rows, slice) else rows):
                raise

    def part(self, rows: slice | list[int]) -> fastpq.Table | None:
        """Rows of the plain read; None where it failed."""
        if self.whole is None:
            return None
        return self.whole.slice(rows.start, rows.stop) if isinstance(rows, slice) else taken(self.whole, rows)

    def rows(self) -> int:
        """A number of rows to choose from."""
        if self.whole is not None:
            return self.whole.num_rows
        with self.open() as file:
            return min(max(file.metadata.num_rows, 0), 1000)


def taken(table: fastpq.Table, rows: list[int]) -> fastpq.Table:
    """The rows of a table with these numbers."""
    chosen = np.array(rows, np.int64)
    named = {name: column.take(chosen) for name, column in zip(table.names, table.columns, strict=True)}
    return fastpq.Table(named, num_rows=len(rows))


def misleads(reading: Reading, rows: list[int]) -> bool:
    """Whether an OffsetIndex is true about the pages of some rows, and false about other pages of their column chunks.

    A reader of these rows alone cannot know. Where pages of 2, 5 and 5 rows have the first rows 0, 5 and 10 in the index, the
    second page has 5 rows by index and header, and starts at row 2.
    """
    parts = take_apart(replace(reading.reference.seed, data=reading.mutant.data))
    with reading.open() as file:
        descriptors, counts = list(file.schema.columns), [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
    starts = np.cumsum([0, *counts])
    is_false = False
    for chunk in parts.chunks:
        pages = [page for page in chunk.pages if not page.is_dictionary]
        if chunk.offset_index is None or not pages:
            continue
        told = [entry.first_row_index for entry in fmt.decode(fmt.OffsetIndex, chunk.offset_index)[0].page_locations]
        bounds = np.array([*told, counts[chunk.group]])
        true = np.array([rows_of(page, chunk.codec, descriptors[chunk.column].max_repetition_level) for page in pages])
        wanted = [row - starts[chunk.group] for row in rows if 0 <= row - starts[chunk.group] < bounds[-1]]
        if not wanted:
            continue
        if len(told) != len(true):
            return False        # more or fewer pages than entries
        read = np.searchsorted(bounds, wanted, side="right") - 1
        is_true = np.diff(bounds) == true
        if not is_true[read].all():
            return False
        is_false = is_false or not is_true.all()
    return is_false


def rows_of(page: Page, codec: int, max_level: int) -> int:
    """Number of rows that begin on a data page."""
    header = page.parsed
    if header.data_page_header_v2 is not None:
        return header.data_page_header_v2.num_rows
    assert header.data_page_header is not None
    count = header.data_page_header.num_values
    if max_level == 0:
        return count
    body = uncompressed(page, codec)
    return int((decode_levels(body[4 : 4 + int.from_bytes(body[:4], "little")], count, max_level) == 0).sum())


# ---- the ways


def whole(reading: Reading) -> None:
    """The plain read, against the seed's values where these are authenticated or checksummed."""
    if reading.mutant.same_values and reading.whole is not None and reading.reference.table is not None:
        reading.check(reading.whole, reading.reference.table, "other values than the original's")


def export(reading: Reading) -> None:
    """Arrow checks every value."""
    if reading.whole is not None:
        validate(reading.whole)


def validate(table: fastpq.Table) -> None:
    """Let Arrow check a table in full; a column without an Arrow type is a SchemaError."""
    for column in table.columns:
        try:
            values = pa.array(column)
        except fastpq.SchemaError:
            continue
        values.validate(full=not has_times(values.type))
        if len(values) != table.num_rows or (values.null_count != column.null_count and not pa.types.is_null(values.type)):
            raise WrongValueError(f"{len(values)} rows, {values.null_count} nulls; not {table.num_rows}, {column.null_count}")


def has_times(kind: pa.DataType) -> bool:
    """Whether values of a type may lie outside of the bounds that Arrow sets: times of a day."""
    return pa.types.is_time(kind) or any(has_times(kind.field(i).type) for i in range(kind.num_fields))


def pylist(reading: Reading) -> None:
    """Python objects of some rows, and texts for people."""
    if reading.whole is not None:
        reading.whole.slice(0, 30).to_pylist()
        repr(reading.whole)


def batches(reading: Reading) -> None:
    size = reading.random.choice((1, 3, 7, 100))
    start = 0
    with reading.open() as file:
        for count, table in enumerate(file.iter_batches(size)):
            reading.check(table, reading.part(slice(start, start + table.num_rows)), "iter_batches")
            start += table.num_rows
            if count > MOST_BATCHES:
                return
    if reading.whole is not None and start != reading.whole.num_rows:
        raise WrongValueError(f"{start} rows in batches, and not {reading.whole.num_rows}")


def ranges(reading: Reading) -> None:
    count = reading.rows()
    bounds = sorted(reading.random.sample(range(count + 1), 2)) if count else [0, 0]
    with reading.open() as file:
        found = file.read(row_ranges=[(bounds[0], bounds[1])])
    reading.check_rows(found, slice(*bounds), "row_ranges")


def take(reading: Reading) -> None:
    count = reading.rows()
    rows = [reading.random.randrange(count) for _ in range(3)] if count else []
    with reading.open() as file:
        found = file.take(np.array(rows, np.int64))
    reading.check_rows(found, rows, "take")


def groups(reading: Reading) -> None:
    """Row groups one by one."""
    start = 0
    with reading.open() as file:
        for group in range(min(file.num_row_groups, 20)):
            found = file.read(row_groups=[group])
            reading.check(found, reading.part(slice(start, start + found.num_rows)), "row_groups")
            start += found.num_rows


def columns(reading: Reading) -> None:
    """Columns one by one, by number."""
    with reading.open() as file:
        leaves = list(file.schema.columns)
        for leaf in leaves[:6]:
            found = file.read([leaf.index])
            flat = reading.whole is not None and leaf.is_flat and reading.whole.names.count(leaf.name) == 1
            if flat and reading.whole is not None:
                reading.check(found, reading.whole.select([leaf.name]), "columns")


def filters(reading: Reading) -> None:
    """Filters against a comparison in Python where statistics are true; else they must not fail."""
    if not reading.reference.filtered:
        return
    original, true = reading.reference.table, reading.is_true
    believed = true or reading.mutant.same_values
    chosen = reading.random.choice(reading.reference.filtered)
    with reading.open() as file:
        try:
            found, count = file.read(filters=[chosen.filters]), file.count([chosen.filters])
            file.explain([chosen.filters])
        except fastpq.TagVerificationError:
            if reading.keys is None:
                raise
            return      # an encrypted index in another place than the footer tells: refused, and not left out
        except fastpq.ParquetError:
            if true and not reading.mutant.same_values:     # else an altered index may be refused
                raise WrongValueError(f"{chosen.filters} fails on a file that reads whole") from None
            return
    if believed and original is not None:
        reading.check(found, taken(original, chosen.rows), f"filter {chosen.filters}")
        if count != len(chosen.rows):
            raise WrongValueError(f"count {chosen.filters} is {count}, and not {len(chosen.rows)}")


def statistics(reading: Reading) -> None:
    """Statistics, indexes, bloom filters, and metadata in words."""
    with reading.open() as file:
        repr(file)
        repr(file.metadata)
        for column in range(min(len(file.schema.columns), 4)):
            asked: list[Callable[[], Any]] = [partial(file.min_max, column), partial(file.null_count, column)]
            for group in range(min(file.num_row_groups, 4)):
                asked += [partial(ask, group, column) for ask in (file.offset_index, file.column_index, file.bloom_filter)]
            for ask in asked:
                try:
                    ask()
                except fastpq.ParquetError:
                    continue


def recovery(reading: Reading) -> None:
    """recover_table; a file that reads whole loses nothing."""
    how: Literal["null", "skip"] = "null" if reading.index % 2 else "skip"
    found = fastpq.recover_table(reading.mutant.data, on_error=how, **READING, decryption_properties=reading.keys)
    validate(found.table)
    if reading.whole is not None:
        reading.check(found.table, reading.whole, "recover_table")
    elif reading.mutant.same_values and reading.reference.table is not None and not found.report.losses:
        reading.check(found.table, reading.reference.table, "recover_table, no losses")


def tolerant(reading: Reading) -> None:
    """on_error, in batches."""
    with reading.open(on_error="skip" if reading.index % 2 else "null") as file:
        for count, table in enumerate(file.iter_batches(6)):
            validate(table)
            if count > MOST_BATCHES:
                return


def rewriting(reading: Reading) -> None:
    """A file encrypted, merged with itself, or decrypted, reads as before."""
    out = io.BytesIO()
    mode = reading.random.choice(("uniform", "signed", None))
    with reading.open() as file:
        first = next(iter(file.schema.columns), None)
    if mode is None or first is None:
        fastpq.merge_files([reading.mutant.data], out, decryption_properties=reading.keys)
        keys = None
    else:
        given = encryption(mode, ".".join(first.path)) if mode == "signed" else encryption(mode, "")
        fastpq.encrypt_file(reading.mutant.data, out, given, decryption_properties=reading.keys)
        keys = decryption(mode)
    try:
        with fastpq.ParquetFile(out.getvalue(), decryption_properties=keys, **READING) as file:
            found = file.read()
    except fastpq.ParquetError as error:
        if reading.whole is not None:
            raise WrongValueError(f"{mode}: reads before, and not after: {error!r}") from error
        return
    reading.check(found, reading.whole, f"rewritten {mode}")


def written(reading: Reading) -> None:
    """A table that was read is written and read again."""
    if reading.whole is None or reading.whole.num_rows > 10_000:
        return
    out = io.BytesIO()
    fastpq.write_table(reading.whole, out, data_page_rows=7, row_group_size=50)
    with fastpq.ParquetFile(out.getvalue(), **READING) as file:
        found = file.read()
    before, after = repr(reading.whole.to_pylist()), repr(found.to_pylist())      # NaN equals NaN in a text
    if before != after:
        raise WrongValueError(f"written again: {after[:2000]} and not {before[:2000]}")


def layouts(reading: Reading) -> None:
    """The other layouts of strings, two threads, unverified checksums."""
    for layout in LAYOUTS:
        if layout != LAYOUTS[reading.index % 3]:
            with reading.open(strings=layout, threads=2) as file:
                found = file.read()
            reading.check(found, reading.whole, f"strings={layout}")
            validate(found)
    with reading.open(properties=fastpq.ReaderProperties(verify_checksums=False, verify_decimals=False)) as file:
        file.read()


WAYS: tuple[Callable[[Reading], None], ...] = (
    export, batches, ranges, take, groups, columns, filters, filters, statistics, recovery, tolerant, rewriting, written, layouts,
    pylist,
)


def paths(case: Case, index: int) -> None:
    """Read a mutant whole, and in one other way that depends on its number."""
    reading = Reading(case.mutant, case.reference, index)
    whole(reading)
    try:
        WAYS[index % len(WAYS)](reading)
    except fastpq.ParquetError:
        if reading.error is None:
            return      # an index or a statistic is broken, or the rewriting refuses: what was read is right
    if reading.error is not None:
        raise reading.error
