"""The command itself: a group of verbs that are imported when they are used, and the report of errors."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from fastpq.cli.failures import EXIT_CODES, INTERRUPTED, SYSTEM, USAGE, Failure, failure_of
from fastpq.cli.key_sources import VARIABLES
from fastpq.cli.terminal import Screen, Styled, escape_text
from fastpq.cli.verb_registry import load, summaries
from fastpq.version import VERSION

TEXT = """Look into Parquet files, compare, convert, encrypt and repair them.

A FILE is a path, a folder, a glob in quotes, a URL (s3://, https:// ...), or - for standard input. fastpq VERB --help has
options and examples."""

FIRST_STEPS = (
    ("fastpq inspect FILE", "what the file is, who wrote it, and what stands out"),
    ("fastpq columns FILE --sort stored", "which column takes the space"),
    ('fastpq why FILE --where "id == 7"', "why a lookup reads so much"),
    ("fastpq keys inspect FILE", "what an encrypted file says about its keys, without any key"),
    ("fastpq verify FILE", "whether the file is sound: checksums, statistics, indexes"),
    ("fastpq head FILE", "the first rows"),
)


class Program(click.Group):
    """The command ``fastpq``. Its verbs come from the registry."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs."""
        return [each.name for each in summaries()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb, or return None."""
        return load(cmd_name)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a verb. A name that does not exist is reported with similar names."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.list_commands(ctx), n=3)
            hint = f"did you mean {', '.join(near)}?" if near else "fastpq --help lists the verbs"
            raise click.UsageError(f"{args[0]!r} is not a verb; {hint}", ctx) from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Complete a verb's name without importing the verbs."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(each.name, help=each.summary) for each in summaries() if each.name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs by section, without importing them."""
        with formatter.section("First steps"):
            formatter.write_dl(FIRST_STEPS, col_max=36)
        for section in dict.fromkeys(each.section for each in summaries()):
            with formatter.section(section or "Others"):
                formatter.write_dl([(each.name, each.summary) for each in summaries() if each.section == section])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the environment variables and the exit codes."""
        with formatter.section("Keys come from options, a file descriptor or the environment, never from arguments"):
            formatter.write_dl([*VARIABLES.items()])
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])


def _print_version(context: click.Context, parameter: click.Parameter, is_set: bool) -> None:
    if is_set:
        click.echo(f"fastpq {VERSION}")
        context.exit()


program = Program(
    name="fastpq",
    help=TEXT,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            help="Print the version.",
            callback=_print_version,
        )
    ],
)


def run_command(arguments: list[str]) -> int:
    """Run the command and return its exit code. Errors are one line on standard error, with a hint below.

    Args:
        arguments: the words after ``fastpq``.
    """
    if sys.stdout is None:
        return _report(Failure(SYSTEM, "standard output is closed", "redirect it: > FILE, or > /dev/null"))
    try:
        code = program.main(arguments, prog_name="fastpq", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        return _report(Failure(USAGE, error.format_message(), _usage_hint(error)))
    except click.ClickException as error:
        return _report(Failure(USAGE, error.format_message()))
    except SystemExit:      # click raises it only if nobody reads the output any more
        return 0
    except (KeyboardInterrupt, click.Abort):
        return _report(Failure(INTERRUPTED, "interrupted"))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the flush at exit would fail again
        return 0
    except (Exception, RecursionError) as error:
        if "--debug" in arguments:
            import traceback

            Screen(sys.stderr).lines(traceback.format_exc().splitlines())
        return _report(failure_of(error))
    return code if isinstance(code, int) else 0


def _usage_hint(error: click.UsageError) -> str:
    return "" if error.ctx is None else f"{error.ctx.command_path} --help"


def _report(failure: Failure) -> int:
    """Print an error, and return its exit code."""
    screen = Screen(sys.stderr)
    screen.line(Styled("fastpq: ", "error"), " ".join(escape_text(failure.message).split()))
    if failure.hint:
        screen.line(Styled(f"  hint: {failure.hint}", "dim"))
    return failure.code
