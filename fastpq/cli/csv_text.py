"""Rows as CSV text and back, with the difference between a null and a text that looks like one.

A null stands without quotes. A text that is empty or equal to the null's text stands in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from fastpq.cli.cell_values import csv_field
from fastpq.cli.failures import BROKEN, USAGE, CommandFailure

LARGEST_FIELD = 1 << 26  # in characters
_INSIDE_QUOTES = re.compile(r'(?:[^"]+|"")*')


class QuotedText(str):
    """A field in quotes that is equal to the null's text."""

    __slots__ = ()


class CsvRow(NamedTuple):
    """One row: the number of its last line, and its fields."""

    line_number: int
    fields: list[str]


def delimiter_of(place: str | None) -> str:
    """Return what stands between fields: a tab if the name ends with .tsv, or else a comma."""
    return "\t" if place is not None and place.lower().endswith(".tsv") else ","


def check_null(null: str, delimiter: str) -> None:
    """Refuse a null's text that can stand in a field only with quotes."""
    if any(mark in null for mark in (delimiter, '"', "\r", "\n")):
        raise CommandFailure(f"--null {null!r} has a mark of CSV", USAGE, "a text without quotes, delimiters and line ends")


def row_writer(null: str, delimiter: str) -> Callable[[Sequence[Any]], str]:
    """Return a function that makes a line of CSV from values.

    Args:
        null: text of a null.
        delimiter: what stands between fields.
    """
    check_null(null, delimiter)
    needs_quotes = re.compile(f'[{delimiter}"\r\n]').search

    def field(value: Any) -> str:
        if value is None:
            return null
        text = csv_field(value)
        if not text or text == null or needs_quotes(text):
            return '"' + text.replace('"', '""') + '"'
        return text

    return lambda values: delimiter.join(map(field, values)) + "\n"


def read_rows(lines: Iterator[str], place: str, null: str, delimiter: str) -> Iterator[CsvRow]:
    """Yield the rows of CSV text. A field in quotes that is equal to the null's text is a QuotedText.

    Args:
        lines: lines with their ends.
        place: how messages call the text.
        null: text of a null.
        delimiter: what stands between fields.
    """
    check_null(null, delimiter)
    fields: list[str] = []  # of a row that has not ended
    parts: list[str] | None = None  # of a field in quotes that has not ended
    number = size = 0
    for number, line in enumerate(lines, 1):
        if parts is None and '"' not in line:
            yield CsvRow(number, line.rstrip("\r\n").split(delimiter))
            continue
        place_in_line: int | None = 0
        while place_in_line is not None:
            if parts is None and line[place_in_line : place_in_line + 1] != '"':
                end = line.find(delimiter, place_in_line)
                fields.append(line[place_in_line:].rstrip("\r\n") if end < 0 else line[place_in_line:end])
                place_in_line = None if end < 0 else end + 1
                continue
            if parts is None:
                parts, size, place_in_line = [], 0, place_in_line + 1
            inside = _INSIDE_QUOTES.match(line, place_in_line)
            assert inside is not None
            parts.append(inside.group())
            size += len(parts[-1])
            if size > LARGEST_FIELD:
                raise CommandFailure(f"{place}, line {number}: a field in quotes has over {LARGEST_FIELD:,} characters", BROKEN)
            if inside.end() == len(line):
                break  # the next line goes on with the field
            text = "".join(parts).replace('""', '"')
            fields.append(QuotedText(text) if text == null else text)
            parts, place_in_line = None, inside.end() + 1
            if line.startswith(delimiter, place_in_line):
                place_in_line += 1
            elif line[place_in_line:].strip("\r\n"):
                raise CommandFailure(f"{place}, line {number}: text follows a field in quotes", BROKEN)
            else:
                place_in_line = None
        if parts is None:
            yield CsvRow(number, fields)
            fields = []
    if parts is not None:
        raise CommandFailure(f"{place}, line {number}: a field in quotes does not end", BROKEN)
