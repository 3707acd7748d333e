"""Draw who owns each byte of files, and what a filter reads.

Section: Look at a file
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypedDict

import click

from fastpq.cli.failures import USAGE, CommandFailure
from fastpq.cli.places import STANDARD_STREAM, is_folder, is_glob, name_of_place, refuse_parquet_target, source_of
from fastpq.cli.row_output import columns_option, where_option_of
from fastpq.cli.terminal import Styled
from fastpq.cli.verb import Session, verb
from fastpq.cli.writing_options import force_option
from fastpq.errors import KeyAccessError

if TYPE_CHECKING:
    from fastpq.picture.file_picture import FilePicture

FORMATS = ("html", "svg", "png")
LENSES = ("bytes", "time", "pruning")


class LayoutNumber(TypedDict):
    """One of the plain numbers.

    Attributes:
        name: what is counted.
        text: the numbers.
        notable: whether it deserves a look.
    """

    name: str
    text: str
    notable: bool


class LayoutFacts(TypedDict):
    """The layout of a file, or of a dataset.

    Attributes:
        file: the file, or the files.
        size: size of all files in bytes.
        bytes: bytes by kind of part, whose sum is the size.
        numbers: the plain numbers above the picture.
        picture: where the picture is, or null.
    """

    file: str
    size: int
    bytes: dict[str, int]
    numbers: list[LayoutNumber]
    picture: str | None


@verb(
    examples=[
        ("fastpq layout items.parquet -o layout.html", "A page for a browser: bytes, time and pruning."),
        ('fastpq layout items.parquet -o why.svg --where "price < 2.5"', "Which chunks and pages a filter reads."),
        ("fastpq layout items.parquet -o layout.png", "An image for a message or a slide."),
        ("fastpq layout items.parquet", "The numbers alone, in the terminal."),
        ('fastpq layout folder -o folder.html --where "id < 400"', "Files and columns of a dataset."),
        ("fastpq layout items.parquet -o time.svg --lens time --measure", "Where the time goes, measured on this machine."),
    ],
    facts=LayoutFacts,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--output", "-o", metavar="FILE", help="Write the picture here: .html, .svg or .png.")
@force_option
@click.option("--format", "-f", "format_name", type=click.Choice(FORMATS), help="Form of the picture.  [default: by the ending]")
@click.option("--lens", type=click.Choice(LENSES), help="What the colours mean.  [default: bytes, or pruning with --where]")
@where_option_of("A filter: what it leaves out is dim.")
@columns_option
@click.option("--measure", is_flag=True, help="Decode chunks and take the time. Otherwise times are estimates.")
def command(
    session: Session,
    files: tuple[str, ...],
    output: str | None,
    format_name: str | None,
    lens: Any,
    filters: Any,
    columns: list[str] | None,
    measure: bool,
) -> None:
    """Draw the layout of a file as a page or an image that loads nothing from elsewhere.

    The footer and some indexes are read, and data pages only with --measure. Of an encrypted footer without a key it shows what
    can be known. Several files, or a folder, are one picture with files in the place of row groups.
    """
    _refuse_pictures(files)
    format_name = None if output is None else _format_of(output, format_name)
    refuse_parquet_target(output)
    is_dataset = len(files) > 1 or is_glob(files[0]) or is_folder(files[0])
    if is_dataset and measure:
        raise CommandFailure("--measure is for one file, and there are several", USAGE, "name one file")
    if is_dataset:
        picture = session.open_rows(files).layout(filters, columns)
    else:
        picture = _picture(session, files[0], filters, columns, measure)
    if output is not None:
        lens = lens or ("bytes" if picture.pruning is None else "pruning")
        _write(output, _image(picture, format_name, lens), session)
        if output == STANDARD_STREAM:
            return
    facts = LayoutFacts(
        file=", ".join(map(name_of_place, files)),
        size=picture.owners.size,
        bytes=picture.bytes_by_part,
        numbers=[LayoutNumber(name=each.name, text=each.text, notable=each.is_notable) for each in picture.numbers],
        picture=output,
    )
    session.emit(facts, lambda: _show(session, facts))


def _refuse_pictures(files: tuple[str, ...]) -> None:
    """Refuse a picture's name among several files. The user meant ``--output``."""
    for place in files[1:]:
        if place.lower().rpartition(".")[2] in (*FORMATS, "htm"):
            raise CommandFailure(f"{place} is not a Parquet file", USAGE, f"-o {place} writes the picture there")


def _format_of(output: str, format_name: str | None) -> str:
    if format_name is not None:
        return format_name
    ending = output.lower().rpartition(".")[2]
    if ending in ("html", "htm"):
        return "html"
    if ending in FORMATS:
        return ending
    raise CommandFailure(f"the ending of {output!r} names no format", USAGE, "--format html, svg or png")


def _image(picture: FilePicture, format_name: str | None, lens: Any) -> str | bytes:
    if format_name == "png":
        return picture.to_png(lens)
    return picture.to_html(lens) if format_name == "html" else picture.to_svg(lens)


def _picture(session: Session, place: str, filters: Any, columns: list[str] | None, measure: bool) -> FilePicture:
    source = source_of(place)
    from fastpq.api.file import ParquetFile

    try:
        file = ParquetFile(source, decryption_properties=session.keys.decryption_of(place), **session.reader_options)
    except KeyAccessError:
        if not session.keys.is_empty:
            raise
        return _sealed_picture(source)
    with file:
        return file.layout(filters, columns, measure=measure)


def _sealed_picture(source: Any) -> FilePicture:
    """Return the picture of a file whose encrypted footer has no key."""
    from fastpq.cli.file_facts import protection_of
    from fastpq.io.source_opening import open_source
    from fastpq.picture.file_picture import sealed_picture

    protection = protection_of(source)
    prefix = "needed from the reader" if protection.needs_aad_prefix else "stored" if protection.aad_prefix else "none"
    facts = [
        ("footer", "encrypted: schema, rows and values are hidden"),
        ("algorithm", protection.algorithm or "unknown"),
        ("AAD prefix", prefix),
        ("master keys", ", ".join(protection.master_key_ids) or "not named"),
    ]
    if protection.columns:
        facts.append(("columns with own keys", f"{len(protection.columns):,}"))
    with open_source(source) as file:
        return sealed_picture(file, facts)


def _write(output: str, image: str | bytes, session: Session) -> None:
    from fastpq.io.sink_opening import open_sink

    if output == STANDARD_STREAM and isinstance(image, str):
        session.screen.data(image)
        return
    if output == STANDARD_STREAM and sys.stdout.isatty():
        raise CommandFailure("an image is binary, and standard output is a terminal", USAGE, "-o FILE, or redirect the output")
    with open_sink(sys.stdout.buffer if output == STANDARD_STREAM else output) as sink:
        sink.write(image.encode() if isinstance(image, str) else image)


def _show(session: Session, facts: LayoutFacts) -> None:
    session.headline(facts["file"], 0)
    screen = session.screen
    screen.facts(
        [(each["name"], Styled(each["text"], "warning") if each["notable"] else each["text"]) for each in facts["numbers"]],
        indent=2,
    )
    screen.blank()
    screen.facts([(name, f"{size:,} bytes") for name, size in facts["bytes"].items()], indent=2)
    if facts["picture"] is not None:
        screen.line(Styled(f"the picture is in {facts['picture']}", "dim"))
