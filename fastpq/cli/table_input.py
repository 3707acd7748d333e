"""Rows from CSV, JSON lines, Arrow and npz, batch by batch."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from fastpq.cli.csv_text import CsvRow, QuotedText, delimiter_of, read_rows
from fastpq.cli.failures import BROKEN, CONVERTIBLE_ENDINGS, UNSUPPORTED, USAGE, CommandFailure
from fastpq.cli.places import STANDARD_STREAM, is_url

BATCH_ROWS = 65_536
FORMATS = ("parquet", "csv", "jsonl", "arrow", "npz")
_ENDINGS = {
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
    **CONVERTIBLE_ENDINGS,
}


class TableInput(NamedTuple):
    """Rows to be written.

    Attributes:
        schema: types by column as write_table takes them, or None where the data have types.
        batches: data that ParquetWriter takes.
    """

    schema: dict[str, Any] | None
    batches: Iterator[Any]


def format_by_name(place: str, format_name: str | None, what: str) -> str:
    """Return the format that the user names, or that the place's ending has."""
    if format_name is not None:
        return format_name
    ending = place[place.rfind(".") :].lower() if "." in place else ""
    if ending not in _ENDINGS:
        raise CommandFailure(f"the format of {place!r} is not known by its name", USAGE, f"--{what} {', '.join(FORMATS)}")
    return _ENDINGS[ending]


@contextmanager
def open_input(place: str, format_name: str, first_rows: int, null: str) -> Iterator[TableInput]:
    """Open a file that is not Parquet, and give its rows.

    Args:
        place: a path, a URL or ``-``.
        format_name: one of ``FORMATS`` but parquet.
        first_rows: rows from which the types of CSV are inferred.
        null: text of a null in CSV.
    """
    with _binary(place) as file:
        if format_name == "arrow":
            yield _arrow_input(file, place)
        elif format_name == "npz":
            yield _npz_input(file, place)
        else:
            stream = io.TextIOWrapper(file, "utf-8-sig", newline="")
            try:
                lines = _lines(stream, place)
                if format_name == "csv":
                    yield _csv_input(lines, place, first_rows, null)
                else:
                    yield TableInput(None, _json_batches(lines, place, first_rows))
            finally:
                stream.detach()  # the file has another owner


@contextmanager
def _binary(place: str) -> Iterator[Any]:
    """Open a place for reading. Standard input stays open."""
    if place == STANDARD_STREAM:
        yield sys.stdin.buffer
    elif is_url(place):
        import fsspec

        with fsspec.open(place, "rb") as file:
            yield file
    else:
        with open(place, "rb") as file:
            yield file


def _lines(stream: io.TextIOWrapper, place: str) -> Iterator[str]:
    """Yield the lines of a text, with their ends."""
    try:
        yield from map(str, stream)  # a closed generator must not close the stream
    except UnicodeDecodeError as error:
        raise CommandFailure(f"{place} is not UTF-8 text", BROKEN) from error


def _csv_input(lines: Iterator[str], place: str, first_rows: int, null: str) -> TableInput:
    stored_rows = read_rows(lines, place, null, delimiter_of(place))
    heading = next(stored_rows, None)
    if heading is None or (heading.fields == [""] and not isinstance(heading.fields[0], QuotedText)):
        raise CommandFailure(f"{place} has no heading", BROKEN, "the first line names the columns")
    names = list(map(str, heading.fields))
    if len({*names}) < len(names):
        raise CommandFailure(f"{place} names a column twice", BROKEN)
    rows = _checked_rows(stored_rows, names, place)
    first = _columns(_take(rows, first_rows), names, null)
    kinds = {name: _kind_of(values) for name, values in first.items()}
    schema = {name: kind.type_name for name, kind in kinds.items()}

    def batches() -> Iterator[dict[str, Any]]:
        columns = first
        while True:
            yield {name: _converted(kinds[name], values, name, place) for name, values in columns.items()}
            chunk = _take(rows, BATCH_ROWS)
            if not chunk:
                return
            columns = _columns(chunk, names, null)

    return TableInput(schema, batches())


def _checked_rows(rows: Iterator[CsvRow], names: Sequence[str], place: str) -> Iterator[list[str]]:
    for number, fields in rows:
        if len(fields) != len(names):
            if fields == [""] and not isinstance(fields[0], QuotedText):
                continue  # an empty line. In a file of one column it is an empty field
            raise CommandFailure(f"{place}, line {number}: {len(fields)} fields, but the heading has {len(names)}", BROKEN)
        yield fields


def _take(rows: Iterator[Any], count: int) -> list[Any]:
    from itertools import islice

    return list(islice(rows, count))


def _columns(rows: list[list[str]], names: Sequence[str], null: str) -> dict[str, list[str | None]]:
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return {
        name: [None if text == null and type(text) is str else text for text in values]
        for name, values in zip(names, columns, strict=True)
    }


class CsvKind(NamedTuple):
    """A type of CSV fields: its name in fastpq, and the function that reads a field."""

    type_name: str
    parse: Callable[[str], Any]


def _boolean(text: str) -> bool:
    if text not in ("true", "false", "True", "False"):
        raise ValueError(text)
    return text in ("true", "True")


def _has_leading_zero(text: str) -> bool:
    """Return whether a number has a zero in front, such as 00123, so that it rather is a name."""
    digits = text.lstrip("+-")
    return digits[:1] == "0" and digits[1:2].isdigit()


def _whole_number(text: str) -> int:
    number = int(text)
    if "_" in text or not -(2**63) <= number < 2**63 or text != text.strip() or _has_leading_zero(text):
        raise ValueError(text)
    return number


def _number(text: str) -> float:
    if "_" in text or text != text.strip() or _has_leading_zero(text):
        raise ValueError(text)
    return float(text)


def _kinds() -> list[CsvKind]:
    """Return the types that fields may have, the narrowest first."""
    import datetime

    def date(text: str) -> datetime.date:
        if len(text) != 10:
            raise ValueError(text)
        return datetime.date.fromisoformat(text)

    def moment(text: str) -> datetime.datetime:
        value = datetime.datetime.fromisoformat(text)
        if value.tzinfo is not None or len(text) < 16:
            raise ValueError(text)
        return value

    return [
        CsvKind("bool", _boolean),
        CsvKind("int64", _whole_number),
        CsvKind("float64", _number),
        CsvKind("date", date),
        CsvKind("timestamp[us]", moment),
        CsvKind("string", str),
    ]


def _kind_of(values: Sequence[str | None]) -> CsvKind:
    """Return the narrowest type that all fields have. A column without a value is text.

    Some programs write all fields in quotes, nulls too. So a null's text in quotes does not make a column of numbers text.
    """
    texts = [text for text in values if type(text) is str]
    kinds = _kinds()
    if not texts:
        return kinds[-1]
    return next(kind for kind in kinds if _fits(kind, texts))


def _fits(kind: CsvKind, texts: Sequence[str]) -> bool:
    try:
        for text in texts:
            kind.parse(text)
    except ValueError:
        return False
    return True


def _converted(kind: CsvKind, values: Sequence[str | None], name: str, place: str) -> list[Any]:
    try:
        return [None if text is None else _parsed(kind, text) for text in values]
    except ValueError as error:
        hint = "--infer-rows N looks at more rows before it chooses types"
        raise CommandFailure(
            f"{place}: the column {name!r} began as {kind.type_name}, and then has another value ({error})", BROKEN, hint
        ) from None


def _parsed(kind: CsvKind, text: str) -> Any:
    """Return a field's value. A null's text in quotes is a null if it is no value of the type."""
    if type(text) is str:
        return kind.parse(text)
    return kind.parse(str(text)) if _fits(kind, [str(text)]) else None


def _json_batches(lines: Iterator[str], place: str, first_rows: int) -> Iterator[dict[str, Any]]:
    """Yield rows by columns. The first batch has first_rows rows, and its members are the columns."""
    names: list[str] | None = None
    objects = _json_objects(lines, place)
    while True:
        rows = _take(objects, first_rows if names is None else BATCH_ROWS)
        if not rows:
            break
        if names is None:
            names = list(dict.fromkeys(name for row in rows for name in row))
        surplus = next((name for row in rows for name in row if name not in names), None)
        if surplus is not None:
            raise CommandFailure(
                f"{place}: the member {surplus!r} comes late", BROKEN, "--infer-rows N looks at more rows for names and types"
            )
        yield {name: [row.get(name) for row in rows] for name in names}
    if names is None:
        raise CommandFailure(f"{place} has no rows, and so no columns", BROKEN)


def _json_objects(lines: Iterator[str], place: str) -> Iterator[dict[str, Any]]:
    import json

    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise CommandFailure(f"{place}, line {number}: {error}", BROKEN) from error
        if not isinstance(row, dict):
            raise CommandFailure(f"{place}, line {number}: a JSON object is expected", BROKEN)
        yield row


def _arrow_input(file: Any, place: str) -> TableInput:
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        raise CommandFailure(
            "Arrow files are read by pyarrow, which is not installed", UNSUPPORTED, "pip install pyarrow"
        ) from None
    return TableInput(None, _arrow_batches(pa, file, place))


def _arrow_batches(pa: Any, file: Any, place: str) -> Iterator[Any]:
    """Yield the batches of an Arrow file or an Arrow stream."""
    stream = io.BytesIO(file.read()) if place == STANDARD_STREAM else file
    try:
        try:
            reader = pa.ipc.open_file(stream)
        except pa.ArrowInvalid:
            stream.seek(0)
            yield pa.ipc.open_stream(stream)
            return
        yield pa.Table.from_batches([], reader.schema)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    except pa.ArrowInvalid as error:
        raise CommandFailure(f"{place} is not an Arrow file: {error}", BROKEN) from error


def _npz_input(file: Any, place: str) -> TableInput:
    import numpy as np

    stream = io.BytesIO(file.read())
    try:
        with np.load(stream, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError) as error:
        raise CommandFailure(f"{place} is not an npz file of plain arrays: {error}", BROKEN) from error
    masks = {name.removesuffix(".mask"): arrays[name] for name in list(arrays) if name.endswith(".mask")}
    columns: dict[str, Any] = {name: values for name, values in arrays.items() if not name.endswith(".mask")}
    for name, mask in masks.items():
        if name in columns:
            columns[name] = np.ma.MaskedArray(columns[name], mask)
    return TableInput(None, iter([columns]))
