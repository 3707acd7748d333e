"""The documentation of the command ``fastpq``, made from the same source as ``--help``.

python -m tools.command_pages               write docs/pages/command.md
python -m tools.command_pages --check       fail if the page is not what would be written
python -m tools.command_pages --man FOLDER  write a man page for the command and for each verb
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from fastpq.cli import verb_registry
from fastpq.cli.failures import EXIT_CODES
from fastpq.cli.json_schema import members_of
from fastpq.cli.key_sources import POLICIES, VARIABLES, key_options
from fastpq.cli.program import FIRST_STEPS, TEXT, program
from fastpq.cli.verb import Verb, chunk_order_option
from fastpq.version import VERSION

PAGE = Path(__file__).resolve().parent.parent / "docs" / "pages" / "command.md"
COMMON = {
    *("json", "json-schema", "debug", "help", "chunk-order"),
    *(name.lstrip("-") for option in key_options() for name in option.opts),
}

HEAD = """# The command fastpq

The command looks into Parquet files, compares, converts, encrypts and repairs them. It comes with the extra `cli`:

```sh
FASTPQ_NO_JAR=1 python -m pip install '.[cli]'     # in a clone
fastpq --help
```

`FASTPQ_NO_JAR=1` leaves out the [jar for Spark](spark.md#with-the-jar). To build the jar too, first install a JDK of version 17
or later and `pyspark`, and leave out the variable.

`python -m fastpq` is the same command. This page is made from the text of `fastpq VERB --help` by
`python -m tools.command_pages`. With `--man FOLDER` the tool writes man pages.

A FILE is a path, a folder, a glob in quotes, a URL that fsspec knows, or `-` for standard input or output. Output appears
whole or not at all: Ctrl-C or a full disk leave the old file, or none.
"""
# Pictures below the text of a verb: the file, which python -m tools.screenshots writes, and what it shows.
PICTURES = {
    "inspect": ("screenshot-inspect.svg", "A terminal with facts about a file: rows, size, codec, indexes, the largest columns"),
    "layout": ("screenshot-layout.svg", "The layout of a file under a filter: which bytes, column chunks and pages are read"),
    "browse": ("screenshot-browse.svg", "A terminal with the rows that match a filter, and the keys that work below them"),
}
COMPLETION = """## Completion in the shell

```sh
eval "$(_FASTPQ_COMPLETE=bash_source fastpq)"       # in ~/.bashrc; zsh_source and fish_source for others
```
"""


def verbs() -> Iterator[tuple[str, str, Verb]]:
    """Yield each verb's words, its section and its command. The verbs in a group have two words."""
    for each in verb_registry.summaries():
        command: Any = verb_registry.load(each.name)
        if hasattr(command, "commands"):
            for name, inner in command.commands.items():
                yield f"{each.name} {name}", each.section, inner
        else:
            yield each.name, each.section, command


def page() -> str:
    """Return the page of the documentation."""
    parts = [HEAD, _first_steps(), _keys(), _common_options(), _exit_codes(), COMPLETION]
    section = None
    for words, own_section, verb in verbs():
        if own_section != section:
            section = own_section
            parts.append(f"## {section}\n")
        parts.append(_verb(words, verb))
    return "\n".join(parts).rstrip() + "\n"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _first_steps() -> str:
    return _table(("Type", "to see"), [(f"`{line}`", meaning) for line, meaning in FIRST_STEPS])


def _keys() -> str:
    policies = _table(
        ("`--allow`", "sets in FileDecryptionProperties"),
        [(word, ", ".join(f"`{name}={value!r}`" for name, value in options.items())) for word, options in POLICIES.items()],
    )
    text = """## Keys

Keys come from a keyring, a key service, a file descriptor or the environment, never from arguments: everybody on the machine can
read these. With keys, a plaintext file is refused unless `--allow plaintext-files` is there.
"""
    variables = _table(("Variable", "holds"), [(f"`{name}`", meaning) for name, meaning in VARIABLES.items()])
    return "\n".join([text, _options_table(key_options()), variables, policies])


def _common_options() -> str:
    rows = [
        ("`--json`", "Print facts as JSON, one object a file. Verbs that print facts have it."),
        ("`--json-schema`", "Print the JSON schema of this output."),
        ("`--chunk-order` path, position", f"{chunk_order_option().help} Verbs that read files have it."),
        ("`--debug`", "Show the traceback of an error."),
        ("`--help`", "Show options and examples."),
    ]
    return "## Options of many verbs\n\n" + _table(("Option", "Meaning"), rows)


def _exit_codes() -> str:
    return "## Exit codes\n\n" + _table(("Code", "Meaning"), [(str(code), meaning) for code, meaning in EXIT_CODES.items()])


def _option_names(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in sorted([*option.opts, *option.secondary_opts], key=lambda name: -len(name)))
    return names if option.is_flag else f"{names} {_metavar(option)}"


def _metavar(option: click.Option) -> str:
    if option.metavar is None and isinstance(option.type, click.Choice):
        return ", ".join(option.type.choices)
    return option.metavar or option.type.name.upper()


def _option_text(option: click.Option) -> str:
    default = f" The default is {option.default}." if option.show_default and option.default not in (None, ()) else ""
    return (option.help or "").replace("  [default", " [default") + default


def _options_table(options: list[Any]) -> str:
    return _table(("Option", "Meaning"), [(_option_names(each), _option_text(each)) for each in options])


def own_options(verb: Verb) -> list[click.Option]:
    """Return the options that a verb does not share with others."""
    options = [each for each in verb.params if isinstance(each, click.Option)]
    return [each for each in options if not {name.lstrip("-") for name in each.opts} & COMMON]


def usage(words: str, verb: Verb) -> str:
    """Return the line that shows how to call a verb."""
    arguments = [each.make_metavar(click.Context(verb)) for each in verb.params if isinstance(each, click.Argument)]
    return " ".join(["fastpq", words, "[OPTIONS]", *arguments])


def _verb(words: str, verb: Verb) -> str:
    parts = [f"### {words}\n", f"`{usage(words, verb)}`\n", inspect.cleandoc(verb.help or "") + "\n"]
    if words in PICTURES:
        name, text = PICTURES[words]
        parts.append(f"![{text}]({name})\n")
    if options := own_options(verb):
        parts.append(_options_table(options))
    for line, meaning in verb.examples:
        parts.append(f"{meaning}\n\n```sh\n{line}\n```\n")
    if verb.facts is not None:
        members = _table(
            ("Member of the JSON output", "Meaning"), [(f"`{each}`", text) for each, text in members_of(verb.facts).items()]
        )
        parts.append(members)
    return "\n".join(parts)


def man_pages() -> dict[str, str]:
    """Return the man pages by file name."""
    pages = {"fastpq.1": _man_of_program()}
    for words, _, verb in verbs():
        pages[f"fastpq-{words.replace(' ', '-')}.1"] = _man_of_verb(words, verb)
    return pages


def _roff(text: str) -> str:
    """Escape a text for roff."""
    escaped_lines = (line.replace("\\", "\\e").replace("-", "\\-") for line in text.splitlines())
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in escaped_lines)


def _man_head(name: str, summary: str) -> list[str]:
    return [f'.TH {name.upper()} 1 "" "fastpq {VERSION}"', ".SH NAME", f"{_roff(name)} \\- {_roff(summary)}"]


def _man_of_program() -> str:
    lines = _man_head("fastpq", "look into Parquet files, compare, convert, encrypt and repair them")
    lines += [".SH SYNOPSIS", _roff("fastpq VERB [OPTIONS] FILE..."), ".SH DESCRIPTION", _roff(TEXT), ".SH VERBS"]
    for words, _, verb in verbs():
        lines += [".TP", f".B {_roff(words)}", _roff(verb.get_short_help_str(200))]
    lines += [".SH ENVIRONMENT"]
    for name, meaning in VARIABLES.items():
        lines += [".TP", f".B {_roff(name)}", _roff(meaning)]
    lines += [".SH EXIT STATUS"]
    for code, meaning in EXIT_CODES.items():
        lines += [".TP", f".B {code}", _roff(meaning)]
    return "\n".join(lines) + "\n"


def _man_of_verb(words: str, verb: Verb) -> str:
    lines = _man_head(f"fastpq-{words.replace(' ', '-')}", verb.get_short_help_str(200))
    lines += [
        ".SH SYNOPSIS",
        _roff(usage(words, verb)),
        ".SH DESCRIPTION",
        _roff(inspect.cleandoc(verb.help or "")),
        ".SH OPTIONS",
    ]
    for option in (each for each in verb.params if isinstance(each, click.Option)):
        lines += [".TP", f".B {_roff(_option_names(option).replace('`', ''))}", _roff(_option_text(option))]
    lines += [".SH EXAMPLES"]
    for line, meaning in verb.examples:
        lines += [".TP", f".B {_roff(line)}", _roff(meaning)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Return 1 if the check finds another page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if the page is not what would be written")
    parser.add_argument("--man", type=Path, metavar="FOLDER", help="write man pages")
    options = parser.parse_args()
    assert program.name == "fastpq"
    if options.man is not None:
        options.man.mkdir(parents=True, exist_ok=True)
        for name, text in man_pages().items():
            (options.man / name).write_text(text)
        return 0
    if options.check:
        is_same = PAGE.exists() and PAGE.read_text() == page()
        print("" if is_same else f"{PAGE} is old: python -m tools.command_pages writes it", end="" if is_same else "\n")
        return 0 if is_same else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
