"""Find what makes files larger, slower or less safe than need be.

Section: Check and compare
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

import click

from fastpq.cli.amounts import count_text, share_text, size_text
from fastpq.cli.failures import BROKEN, DIFFERENT, KEYS, UNSUPPORTED, USAGE, CommandFailure, Failure, failure_of
from fastpq.cli.places import STANDARD_STREAM, is_folder, is_glob, name_of_place, refuse_parquet_target, source_of
from fastpq.cli.terminal import Styled
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import force_option
from fastpq.errors import CryptoError, FormatError, KeyAccessError, LimitError, UnsupportedError

if TYPE_CHECKING:
    from fastpq.advice.advice_report import AdviceReport

MOST_ROWS = 1 << 20     # of the sample, as for fastpq.advise
NO_RECIPE = "a recipe writes all columns, and there are columns whose keys are missing"
EACH = "--each looks at each file by itself"
FILE_ERRORS = (FormatError, LimitError, CryptoError, UnsupportedError)      # after them, --each goes on with the next file
USES = ("scan", "lookup", "web", "archive", "gpu")


class ChangeFacts(TypedDict):
    """One change that is worth making.

    Attributes:
        topic: what the change is about.
        text: what is wrong, and what to do.
        columns: dotted paths, or an empty list for the whole file.
        unit: what before and after count.
        before: the measure without the change.
        after: the measure with it.
        decoding_seconds: processor seconds to decode these columns of the sample without the change and with it, or null.
        recipe: recipe for fastpq rewrite --recipe that makes this change alone. Of a dataset it has steps.
    """

    topic: str
    text: str
    columns: list[str]
    unit: str
    before: int
    after: int
    decoding_seconds: list[float] | None
    recipe: dict[str, Any]


class CautionFacts(TypedDict):
    """Something about safety that a person should decide.

    Attributes:
        topic: what it is about.
        text: what it is, and what helps.
        columns: dotted paths.
    """

    topic: str
    text: str
    columns: list[str]


class AdviceFacts(TypedDict):
    """Advice on a file or a dataset.

    Attributes:
        file: the file, or the dataset.
        use: what it is for.
        files: number of files.
        sampled_files: number of files on which changes were tried.
        bytes: size of all files.
        rows: rows of all files.
        sample_rows: rows on which the changes were tried.
        key: the column by which lookups look, or null.
        measured: whether the gains were measured for the use. For GPUs the rules are published ones.
        changes: changes that are worth making, the largest gain first.
        cautions: what concerns safety.
        recipe: recipe for fastpq rewrite --recipe that makes all changes. Of a dataset it has steps. Empty if columns were
            not read.
        unread_columns: dotted paths of columns that were not looked at, because keys are missing.
        error: why there is no advice on the file, or null.
    """

    file: str
    use: str
    files: int
    sampled_files: int
    bytes: int
    rows: int
    sample_rows: int
    key: str | None
    measured: bool
    changes: list[ChangeFacts]
    cautions: list[CautionFacts]
    recipe: dict[str, Any]
    unread_columns: list[str]
    error: str | None


@verb(
    examples=[
        ("fastpq doctor items.parquet", "What makes reading whole columns slower than necessary."),
        ("fastpq doctor items.parquet --for lookup --key user -o recipe.json", "Write a recipe for rewrite --recipe."),
        ("fastpq doctor folder -o steps.json", "A folder as one dataset. fastpq rewrite folder --recipe makes the steps."),
        ("fastpq doctor folder --each --for archive", "Each file of a folder by itself."),
    ],
    facts=AdviceFacts,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--for", "use", type=click.Choice(USES), default="scan", show_default=True, help="What the file is for.")
@click.option("--key", metavar="COLUMN", help="The column by which lookups look.  [default: one with unique values]")
@click.option(
    "--sample-rows", type=click.IntRange(1), default=MOST_ROWS, show_default=True, metavar="N", help="Rows to try changes on."
)
@click.option("--output", "-o", metavar="FILE", help="Write the recipe here, for fastpq rewrite --recipe.")
@force_option
@click.option("--each", is_flag=True, help="Look at each file by itself. Otherwise several files, or a folder, are one dataset.")
@click.option("--check", is_flag=True, help="Return the exit code 1 if a change is worth making.")
@click.option(
    "--on-missing-key", "missing_key_policy", type=click.Choice(["raise", "skip"]), default="raise", show_default=True,
    help="What happens to columns whose keys are missing: the verb fails, or leaves them out and names them.",
)
def command(
    session: Session,
    files: tuple[str, ...],
    use: Any,
    key: str | None,
    sample_rows: int,
    output: str | None,
    each: bool,
    check: bool,
    missing_key_policy: Any,
) -> None:
    """Try changes on rows, and show those that are worth making: the largest gain first.

    Several files, a folder or a glob are one dataset. Its files are looked at together, and changes are tried on a sample of
    them. No change makes reading slower than its saved bytes make it faster. For gpu, published rules are applied, and no GPU is
    measured.

    With --each, a file that cannot be read does not stop the others. The exit code is then 1 if a file is broken. It is 4 if a
    key is missing or wrong, and 5 if a file needs a feature that is not there.

    With --on-missing-key skip the other columns of an encrypted file are looked at. The exit code is then 4 if columns were left
    out, unless it is 1, and there is no recipe.
    """
    places: list[Any] = session.files(files)
    is_dataset = not each and (len(files) > 1 or is_glob(files[0]) or is_folder(files[0]))
    if is_dataset:
        if STANDARD_STREAM in places:
            raise CommandFailure("standard input stands alone: it cannot be part of a dataset", USAGE)
        places = [files[0] if len(files) == 1 else places]
    if output is not None and len(places) > 1:
        raise CommandFailure("a recipe is for one file or one dataset, and there are several files", USAGE, "leave out --each")
    refuse_parquet_target(output)
    codes = {0}
    for number, place in enumerate(places):
        try:
            report = _report(session, place, is_dataset, use, key, sample_rows, missing_key_policy)
        except FILE_ERRORS as error:
            if len(places) == 1:
                raise
            failure = failure_of(error)
            facts = _facts_without_advice(name_of_place(place), use, failure)
            session.emit(facts, partial(_show_failure, session, facts, number, failure))
            codes.add(DIFFERENT if failure.code == BROKEN else failure.code)
            continue
        facts = _facts(report.path if is_dataset else name_of_place(place), report)
        if facts["unread_columns"]:
            codes.add(KEYS)
            if output is not None:
                raise CommandFailure(NO_RECIPE, KEYS, "leave out --output, or give all keys")
        if output is not None:
            _write_recipe(session, output, facts["recipe"])
        if output != STANDARD_STREAM:
            session.emit(facts, partial(_show, session, facts, number, output))
        if check and facts["changes"]:
            codes.add(DIFFERENT)
    session.exit_code = next(code for code in (DIFFERENT, KEYS, UNSUPPORTED, 0) if code in codes)


def _report(
    session: Session, place: Any, is_dataset: bool, use: Any, key: str | None, sample_rows: int, missing_key_policy: Any
) -> AdviceReport:
    from fastpq.advice.advisor import advise

    keys = session.keys.decryption_of(None if is_dataset else place)
    source = place if is_dataset else source_of(place)
    try:
        return advise(
            source, use, key=key, sample_rows=sample_rows, decryption_properties=keys,
            on_missing_key=missing_key_policy, **session.reader_options,
        )
    except (KeyAccessError, UnsupportedError) as error:
        if not is_dataset:
            raise
        failure = failure_of(error)
        hint = f"{failure.hint}; {EACH}" if failure.hint else EACH
        raise CommandFailure(failure.message, failure.code, hint) from error


def _facts(name: str, report: AdviceReport) -> AdviceFacts:
    return AdviceFacts(
        file=name,
        use=report.use,
        files=report.num_files,
        sampled_files=report.sampled_files,
        bytes=report.size,
        rows=report.num_rows,
        sample_rows=report.sample_rows,
        key=report.key,
        measured=report.is_measured,
        changes=[
            ChangeFacts(
                topic=each.topic, text=each.text, columns=list(each.columns), unit=each.unit, before=each.before,
                after=each.after, recipe=dict(each.recipe),
                decoding_seconds=None if each.decoding_seconds is None else list(each.decoding_seconds),
            )
            for each in report.advice
        ],
        cautions=[
            CautionFacts(topic=each.topic, text=_command_words(each.text), columns=list(each.columns)) for each in report.cautions
        ],
        recipe=dict(report.recipe),
        unread_columns=list(report.unread_columns),
        error=None,
    )


def _command_words(text: str) -> str:
    """Return a text of the library with the option's name."""
    return text.replace("Ask for advice on each file by itself", EACH)


def _facts_without_advice(name: str, use: str, failure: Failure) -> AdviceFacts:
    return AdviceFacts(
        file=name, use=use, files=1, sampled_files=0, bytes=0, rows=0, sample_rows=0, key=None, measured=False, changes=[],
        cautions=[], recipe={}, unread_columns=[], error=failure.message,
    )


def _write_recipe(session: Session, output: str, recipe: dict[str, Any]) -> None:
    text = json.dumps(recipe, indent=2) + "\n"
    if output == STANDARD_STREAM:
        session.screen.data(text)
        return
    from fastpq.io.sink_opening import open_sink

    with open_sink(output) as sink:
        sink.write(text.encode())


def _show_failure(session: Session, facts: AdviceFacts, number: int, failure: Failure) -> None:
    session.headline(facts["file"], number)
    session.screen.line("  ", Styled("! ", "warning"), f"no advice: {failure.message}")
    if failure.hint:
        session.screen.line("  ", Styled(f"hint: {failure.hint}", "dim"))


def _show(session: Session, facts: AdviceFacts, number: int, output: str | None) -> None:
    screen = session.screen
    session.headline(facts["file"], number)
    files = [count_text(facts["files"], "file")] if facts["files"] > 1 else []
    amounts = [f"for {facts['use']}", *files, size_text(facts["bytes"]), count_text(facts["rows"], "row")]
    if facts["key"] is not None:
        amounts.append(f"by the key {facts['key']}")
    if facts["sampled_files"] < facts["files"]:
        amounts.append(f"tried on {count_text(facts['sampled_files'], 'file')}")
    elif facts["sample_rows"] < facts["rows"]:
        amounts.append(f"tried on {count_text(facts['sample_rows'], 'row')}")
    screen.line("  ", Styled(", ".join(amounts), "dim"))
    if not facts["measured"]:
        screen.line("  ", Styled("by published rules: no GPU was measured", "dim"))
    if facts["use"] == "lookup" and facts["key"] is None:
        screen.line("  ", Styled("! ", "warning"), "no column looks like a key: --key names one")
    for each in facts["changes"]:
        names = ", ".join(each["columns"])
        screen.line("  ", Styled(each["topic"], "strong"), f"  {names}" if names else "")
        screen.paragraph(each["text"], indent=4)
        gain = each["before"] - each["after"]
        amount = size_text if "bytes" in each["unit"] else "{:,}".format
        parts = [f"{each['unit']}: {amount(each['before'])} -> {amount(each['after'])}"]
        parts += [f"{share_text(gain, each['before'])} less"] if gain > 0 else []
        if each["decoding_seconds"] is not None:
            parts.append("decoding {:.1f} -> {:.1f} ms".format(*(seconds * 1e3 for seconds in each["decoding_seconds"])))
        screen.line("    ", Styled("; ".join(parts), "dim"))
    for caution in facts["cautions"]:
        screen.line("  ", Styled("! ", "warning"), Styled(caution["topic"], "strong"))
        screen.paragraph(caution["text"], indent=4)
    if facts["unread_columns"]:
        names = ", ".join(facts["unread_columns"])
        screen.line("  ", Styled("! ", "warning"), f"not looked at, because keys are missing: {names}")
    if not facts["changes"]:
        what = " in what was read" if facts["unread_columns"] else ""
        screen.line("  ", Styled(f"nothing to change{what} for {facts['use']}", "good"))
    elif output is not None:
        screen.line("  ", Styled(f"the recipe is in {output}", "dim"))
