"""Print a script that completes verbs and options in the shell.

Section: This machine
"""

from __future__ import annotations

import click

from fastpq.cli.verb import Session, verb


@verb(
    examples=[("fastpq completion bash > completion.sh", "Load the file in ~/.bashrc: source completion.sh")],
    has_keys=False,
    reads_files=False,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(session: Session, shell: str) -> None:
    """Print the completion script for a shell."""
    from click.shell_completion import get_completion_class

    from fastpq.cli.program import program

    kind = get_completion_class(shell)
    assert kind is not None
    session.screen.data(kind(program, {}, "fastpq", "_FASTPQ_COMPLETE").source())
