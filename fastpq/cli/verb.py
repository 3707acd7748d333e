"""Verb: a click command with examples, facts as JSON, key options and a Session that holds what every verb needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from fastpq.cli.key_sources import KeySource, key_options
from fastpq.cli.terminal import Part, Screen, Styled

if TYPE_CHECKING:
    from fastpq.cli.places import OpenRows
    from fastpq.cli.progress_bar import ProgressBar

F = TypeVar("F", bound=Callable[..., Any])


class Session:
    """What a verb gets beside its own arguments.

    Args:
        as_json: whether facts are printed as JSON.
        keys: where keys come from.
        chunk_order: what decides if the chunks of a row group have another order than the schema, or None.
        on_missing_key: what rows have for columns whose keys are missing, as in ParquetFile.

    Attributes:
        as_json, keys, chunk_order, on_missing_key: as the arguments.
        screen: standard output.
        exit_code: what the process returns if nothing fails.
    """

    def __init__(
        self,
        as_json: bool,
        keys: KeySource,
        chunk_order: Literal["path", "position"] | None = None,
        on_missing_key: Literal["raise", "null"] = "raise",
    ) -> None:
        self.as_json = as_json
        self.keys = keys
        self.chunk_order = chunk_order
        self.on_missing_key = on_missing_key
        self.screen = Screen(sys.stdout)
        self.exit_code = 0

    def emit(self, facts: Any, show: Callable[[], None]) -> None:
        """Print facts as JSON, or call a function that shows them to a person."""
        if self.as_json:
            self.screen.json(facts)
        else:
            show()

    @property
    def reader_options(self) -> dict[str, Any]:
        """Options of ParquetFile and ParquetDataset that the user chooses, without the keys."""
        if self.chunk_order is None:
            return {}
        from fastpq.options import ReaderProperties

        return {"properties": ReaderProperties(chunk_order=self.chunk_order)}

    def open(self, place: str, **options: Any) -> Any:
        """Return one file as a ParquetFile, opened with the user's keys."""
        from fastpq.cli.places import open_place

        return open_place(place, self.keys, **self.reader_options, **options)

    def open_rows(self, places: Sequence[str]) -> OpenRows:
        """Return a ParquetFile or a ParquetDataset over places."""
        from fastpq.cli.places import open_rows

        return open_rows(places, self.keys, on_missing_key=self.on_missing_key, **self.reader_options)

    def files(self, places: Sequence[str]) -> list[str]:
        """Return the files at places: folders and globs become the files in them."""
        from fastpq.cli.places import files_at

        return files_at(places)

    def progress(self, what: str, unit: str = "rows") -> ProgressBar:
        """Return a progress bar. It appears after a second, and only in a terminal."""
        from fastpq.cli.progress_bar import ProgressBar

        return ProgressBar(what, unit)

    def note(self, *parts: Part) -> None:
        """Print a line for a person to standard error."""
        Screen(sys.stderr).line(*parts)

    def headline(self, name: str, number: int) -> None:
        """Print a file's name above its facts, if there are several files."""
        if number:
            self.screen.blank()
        self.screen.line(Styled(name, "heading"))


class Verb(click.Command):
    """A verb of the command.

    Args:
        examples: command lines with one sentence each.
        facts: a TypedDict class that describes the JSON output, or None if the verb prints no facts.
        **settings: arguments of click.Command.
    """

    def __init__(self, *, examples: Sequence[tuple[str, str]], facts: type[Any] | None, **settings: Any) -> None:
        super().__init__(**settings)
        self.examples = examples
        self.facts = facts

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write usage, text, options and examples."""
        super().format_help(ctx, formatter)
        with formatter.section("Examples"):
            for line, meaning in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")
                formatter.indent()
                formatter.write_text(meaning)
                formatter.dedent()

    def invoke(self, ctx: click.Context) -> Any:
        """Call the verb with a Session."""
        values = ctx.params
        values.pop("debug")
        as_json, keys = bool(values.pop("as_json", False)), KeySource.of_options(values)
        session = Session(as_json, keys, values.pop("chunk_order", None), values.pop("on_missing_key", "raise"))
        assert self.callback is not None
        ctx.invoke(self.callback, session, **values)
        return session.exit_code


class VerbGroup(click.Group):
    """A verb with verbs of its own, such as ``keys``.

    Args:
        text: the help.
        *verbs: pairs of a name and a Verb.
    """

    def __init__(self, text: str, *verbs: tuple[str, Verb]) -> None:
        super().__init__(help=text, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
        for name, inner in verbs:
            self.add_command(inner, name)


def chunk_order_option() -> click.Option:
    """Return the option ``--chunk-order`` for verbs that read files."""
    text = "What decides if chunks have another order than the schema: the path in each chunk, or its position."
    return click.Option(["--chunk-order"], type=click.Choice(["path", "position"]), default=None, help=text)


def verb(
    *,
    examples: Sequence[tuple[str, str]],
    facts: type[Any] | None = None,
    has_keys: bool = True,
    key_option_names: Collection[str] | None = None,
    reads_files: bool = True,
) -> Callable[[Callable[..., None]], Verb]:
    """Return a decorator that makes a Verb. The function gets a Session, then its parameters.

    Args:
        examples: command lines with one sentence each.
        facts: a TypedDict class that describes the JSON output. The verb then has ``--json`` and ``--json-schema``.
        has_keys: whether the verb has options for keys.
        key_option_names: these options. None means all, for a verb that opens files that may be encrypted.
        reads_files: whether the verb reads Parquet files, and so has ``--chunk-order``.
    """

    def decorate(function: Callable[..., None]) -> Verb:
        parameters: list[click.Parameter] = list(reversed(getattr(function, "__click_params__", [])))
        if facts is not None:
            parameters += [
                click.Option(["--json", "as_json"], is_flag=True, help="Print the facts as JSON, one object a file."),
                click.Option(
                    ["--json-schema"],
                    is_flag=True,
                    help="Print the schema of the JSON output.",
                    is_eager=True,
                    callback=_print_schema_of(facts),
                    expose_value=False,
                ),
            ]
        if reads_files:
            parameters.append(chunk_order_option())
        if has_keys:
            parameters += key_options(key_option_names)
        parameters.append(click.Option(["--debug"], is_flag=True, help="Show the traceback of an error."))
        return Verb(
            examples=examples,
            facts=facts,
            name=None,
            callback=function,
            params=parameters,
            help=function.__doc__,
            context_settings={"help_option_names": ["-h", "--help"]},
        )

    return decorate


def _print_schema_of(facts: type[Any]) -> Callable[[click.Context, click.Parameter, bool], None]:
    def print_schema(context: click.Context, parameter: click.Parameter, is_set: bool) -> None:
        if is_set:
            from fastpq.cli.json_schema import json_schema_of

            Screen(sys.stdout).json(json_schema_of(facts))
            context.exit()

    return print_schema
