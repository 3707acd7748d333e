"""Rows as a table, CSV, JSON lines, Arrow or npz, to the screen or to a file that appears whole."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fastpq.cli.cell_values import json_value, value_text
from fastpq.cli.csv_text import delimiter_of, row_writer
from fastpq.cli.failures import CONVERTIBLE_ENDINGS, USAGE, CommandFailure
from fastpq.cli.places import STANDARD_STREAM, refuse_parquet_target
from fastpq.cli.terminal import Part, Screen, Styled
from fastpq.cli.writing_options import force_option

if TYPE_CHECKING:
    from fastpq.arrays.table import Table

TEXT_FORMATS = ("table", "csv", "jsonl")
BINARY_FORMATS = ("arrow", "npz")
FORMATS = (*TEXT_FORMATS, *BINARY_FORMATS)
LONGEST_CELL = 60  # characters of a cell in a table

Bytes = bytes | bytearray | memoryview


def _names(context: click.Context, option: click.Parameter, text: str | None) -> list[str] | None:
    return None if text is None else [name for name in text.split(",") if name]


def _filters(context: click.Context, option: click.Parameter, text: str | None) -> Any:
    if text is None:
        return None
    from fastpq.cli.where_parser import parse_where

    return parse_where(text)


# Gives a verb the names as ``columns``, or None for all columns.
columns_option = click.option(
    "--columns", "-c", metavar="NAMES", default=None, callback=_names, help="Only these columns, with commas between them."
)


# Verb.invoke gives its value to the Session, which opens files with it.
missing_key_option = click.option(
    "--on-missing-key",
    type=click.Choice(["raise", "null"]),
    default="raise",
    show_default=True,
    help="What happens to columns whose keys are missing: the verb fails, or they are null.",
)


def where_option_of(text: str, *, is_required: bool = False) -> Callable[[Any], Any]:
    """Return the option ``--where`` with another help text. It gives a verb the condition as ``filters``, or None."""
    return click.option(
        "--where", "-w", "filters", metavar="CONDITION", required=is_required, default=None, callback=_filters, help=text
    )


where_option = where_option_of("Only rows for which this holds: \"price < 2.5 and name in ('a', 'b')\".")


class RowTarget(NamedTuple):
    """Where a verb writes rows, and how.

    Attributes:
        format_name: one of ``FORMATS``.
        output: a path or URL, or None for standard output.
    """

    format_name: str
    output: str | None


def target_options(default: str) -> Callable[[Any], Any]:
    """Return the options ``--format`` and ``--output``, which give a verb a RowTarget as ``target``.

    Args:
        default: the format, if neither the user nor the ending of the output names one.
    """
    text = f"Form of the rows.  [default: by the ending of --output, or else {default}]"
    format_option = click.option("--format", "-f", "format_name", type=click.Choice(FORMATS), default=None, help=text)
    output_option = click.option(
        "--output", "-o", metavar="FILE", default=None, help="Write to a file, which appears whole or not at all."
    )

    def decorate(function: Callable[..., None]) -> Any:
        @wraps(function)
        def command(*arguments: Any, format_name: str | None, output: str | None, **values: Any) -> None:
            function(*arguments, target=RowTarget(format_name or _format_of(output, default), output), **values)

        return format_option(output_option(force_option(command)))

    return decorate


def _format_of(output: str | None, default: str) -> str:
    """Return the format of the output's ending, or the default."""
    if output is None:
        return default
    ending = output[output.rfind(".") :].lower() if "." in output else ""
    return CONVERTIBLE_ENDINGS.get(ending, "csv" if default == "table" else default)


def with_empty_table(tables: Iterator[Table], empty: Callable[[], Table]) -> Iterator[Table]:
    """Yield tables, or one without rows if there are none. The first table is read at once.

    Args:
        tables: the tables.
        empty: returns a table without rows.
    """
    first = next(tables, None)
    return chain([empty() if first is None else first], tables)


def _noting_missing_keys(tables: Iterable[Table]) -> Iterator[Table]:
    """Yield tables. At the end, name the columns that are null because their keys are missing, on standard error."""
    from fastpq.read.missing_keys import names_in_report

    names: dict[str, None] = {}
    for table in tables:
        names |= dict.fromkeys(names_in_report(table))
        yield table
    if names:
        Screen(sys.stderr).line(Styled("! ", "warning"), f"null, because their keys are missing: {', '.join(names)}")


def write_rows(screen: Screen, tables: Iterable[Table], target: RowTarget, null: str = "") -> None:
    """Write rows.

    Args:
        screen: standard output.
        tables: the rows, in one or more Tables with the same columns.
        target: where and how.
        null: text of a null in CSV.
    """
    format_name, output = target
    refuse_parquet_target(output)
    tables = _noting_missing_keys(tables)
    if format_name == "table" and output is None:
        show_rows(screen, list(tables))
        return
    is_text = format_name in TEXT_FORMATS
    if output is None or output == STANDARD_STREAM:
        if is_text:
            for piece in text_pieces(tables, format_name, null, delimiter_of(output)):
                screen.data(piece)
            return
        if screen.is_terminal:
            problem = f"{format_name} files are binary, and standard output is a terminal"
            raise CommandFailure(problem, USAGE, "-o FILE, or redirect the output")
        _write_binary(tables, format_name, sys.stdout.buffer.write)
        return
    from fastpq.io.sink_opening import open_sink

    with open_sink(output) as sink:
        if is_text:
            for piece in text_pieces(tables, format_name, null, delimiter_of(output)):
                sink.write(piece.encode())
        else:
            _write_binary(tables, format_name, sink.write)


def text_pieces(tables: Iterable[Table], format_name: str, null: str = "", delimiter: str = ",") -> Iterator[str]:
    """Yield rows as CSV, JSON lines or a plain table."""
    if format_name == "jsonl":
        yield from _json_lines(tables)
    elif format_name == "csv":
        yield from _csv(tables, null, delimiter)
    else:
        buffer = io.StringIO()
        show_rows(Screen(buffer, {}), list(tables))
        yield buffer.getvalue()


def _json_lines(tables: Iterable[Table]) -> Iterator[str]:
    import json

    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
    for table in tables:
        yield "".join(f"{encode(json_value(row))}\n" for row in table.rows())


def _csv(tables: Iterable[Table], null: str, delimiter: str) -> Iterator[str]:
    line = row_writer(null, delimiter)
    is_first = True
    for table in tables:
        heading = line(table.names) if is_first else ""
        is_first = False
        columns = [column.to_pylist() for column in table.columns]
        yield heading + "".join(map(line, zip(*columns, strict=True)))


def _write_binary(tables: Iterable[Table], format_name: str, write: Callable[[Bytes], Any]) -> None:
    if format_name == "npz":
        import numpy as np

        table = _whole(tables)
        buffer = io.BytesIO()
        np.savez(buffer, **_npz_arrays(table))
        write(buffer.getbuffer())
        return
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        raise CommandFailure("Arrow files are written by pyarrow, which is not installed", 5, "pip install pyarrow") from None
    writer = None
    stream = pa.PythonFile(_Writer(write), mode="w")
    for table in tables:
        arrow = table.to_arrow()
        writer = writer or pa.ipc.new_stream(stream, arrow.schema)
        writer.write_table(arrow)
    if writer is not None:
        writer.close()


def _npz_arrays(table: Table) -> dict[str, Any]:
    """Return a table's columns as arrays that numpy.load reads without pickles. A column with nulls has a mask beside it."""
    import numpy as np

    arrays: dict[str, Any] = {}
    for name, column in table.items():
        values = column.to_numpy(nulls="masked")
        if isinstance(values, np.ma.MaskedArray):
            if values.mask.any():
                arrays[f"{name}.mask"] = np.ma.getmaskarray(values)
            values = np.ma.getdata(values)
        if values.dtype.kind in "OT":
            values = _without_objects(name, values)
        arrays[name] = values
    return arrays


def _without_objects(name: str, values: Any) -> Any:
    """Return text and bytes as arrays of fixed width."""
    import numpy as np

    kinds = {type(value) for value in values.tolist() if value is not None}
    if kinds <= {str}:
        return np.array(["" if value is None else value for value in values.tolist()], dtype="U")
    if kinds <= {bytes}:
        longest = max((len(value) for value in values.tolist() if value is not None), default=1)
        return np.array([value or b"" for value in values.tolist()], dtype=f"V{max(longest, 1)}")
    raise CommandFailure(
        f"the column {name!r} has values that npz files hold only as pickles", 5, "--columns leaves it out; jsonl holds it"
    )


class _Writer:
    """A file object over a function that takes bytes."""

    closed = False

    def __init__(self, write: Callable[[Bytes], Any]) -> None:
        self._write = write

    def write(self, data: Bytes) -> int:
        view = memoryview(data).cast("B")
        self._write(view)
        return len(view)

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Do nothing: the sink has an owner."""


def _whole(tables: Iterable[Table]) -> Table:
    from fastpq.arrays.table import Table

    parts = list(tables)
    return parts[0] if len(parts) == 1 else Table.concat(parts)


def show_rows(screen: Screen, tables: Sequence[Table]) -> None:
    """Print rows as a table for a person. Numbers stand at the right, nulls are dim, long values are shortened."""
    from fastpq.cli.text_table import TableColumn, print_table

    if not tables or not tables[0].names:
        screen.line(Styled("no columns", "dim"))
        return
    names = tables[0].names
    columns = [
        TableColumn(name, _is_number(column), 9 if place < 3 else 8, is_text=not _is_number(column))
        for place, (name, column) in enumerate(tables[0].items())
    ]
    rows: list[list[Part]] = []
    for table in tables:
        values = [column.to_pylist() for column in table.columns]
        rows += [[_cell(value) for value in row] for row in zip(*values, strict=True)]
    print_table(screen, [column._replace(name=name) for column, name in zip(columns, names, strict=True)], rows)


def _cell(value: Any) -> Part:
    if value is None:
        return Styled("null", "dim")
    if value == "" and isinstance(value, str):
        return Styled("''", "dim")
    text = value_text(value)
    return text if len(text) <= 4 * LONGEST_CELL else text[: 4 * LONGEST_CELL] + "…"


def _is_number(column: Any) -> bool:
    dtype = getattr(getattr(column, "type", None), "dtype", None)
    logical = getattr(getattr(column, "type", None), "logical", None)
    return dtype is not None and dtype.kind in "iuf" and type(logical).__name__ not in ("Date", "Time", "Timestamp")
