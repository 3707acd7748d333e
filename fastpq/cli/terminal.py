"""Screen: where the command prints. It knows width and colours, and escapes what could act on a terminal.

Names and values come from files that strangers wrote. A terminal would obey escape sequences in them, and text directions could
make one name look like another. Therefore all text is escaped at this one place, and styles are added after it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from typing import Any, NamedTuple, TextIO

# Control characters, text directions, invisible characters, line separators, and halves of surrogate pairs.
UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
# The same without tab and line feed, for text whose lines are data.
UNSAFE_IN_LINES = re.compile(UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
_SHORT_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}

STYLES = {
    "heading": "1",
    "label": "2",
    "dim": "2",
    "warning": "33",
    "error": "31",
    "good": "32",
    "strong": "1",
    "key": "36",
}
# Width that nothing is shortened to fit. It counts if the output goes to a file or a pipe.
UNLIMITED = 1_000_000
NARROWEST = 40


class Styled(NamedTuple):
    """Text with a style from ``STYLES``, or with no style."""

    text: str
    style: str = ""


Part = str | Styled


def escape_text(text: str) -> str:
    """Return a text in which characters that could act on a terminal are replaced by escapes, such as ``\\x1b``."""
    return text if text.isascii() and text.isprintable() else UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def width_of(text: str) -> int:
    """Return how many columns a text takes in a terminal. East Asian characters take two, combining characters none."""
    if text.isascii():
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def shortened(text: str, width: int, *, keeps_end: bool = False) -> str:
    """Return a text that takes at most ``width`` columns. A longer text ends with an ellipsis, or begins with one."""
    if width_of(text) <= width:
        return text
    if keeps_end:
        return shortened(text[::-1], width)[::-1]
    while text and width_of(text) > width - 1:
        text = text[: max(0, min(len(text) - 1, width - 1))]
    return text + "…"


class Screen:
    """Standard output with its width, its styles and its escapes.

    Args:
        stream: where to print.
        environment: variables that say what the terminal can do.

    Attributes:
        is_terminal: whether a person looks at the output.
        width: columns that a line may take.
        has_colour: whether styles are printed.
        is_unicode: whether lines and marks may have characters outside ASCII.
    """

    def __init__(self, stream: TextIO, environment: Any = os.environ) -> None:
        self.stream = stream
        self.is_terminal = stream.isatty()
        self.has_colour = _has_colour(self.is_terminal, environment)
        self.width = _width(self.is_terminal, environment)
        self.is_unicode = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "") == "utf8"

    def line(self, *parts: Part) -> None:
        """Print one line. Its parts are escaped, then styled."""
        self.stream.write("".join(map(self.styled, parts)) + "\n")

    def lines(self, lines: Iterable[str]) -> None:
        """Print text lines, each escaped."""
        for text in lines:
            self.line(text)

    def styled(self, part: Part) -> str:
        """Return a part as it is printed."""
        text, style = (part, "") if isinstance(part, str) else part
        text = escape_text(text)
        if not self.is_unicode and not text.isascii():
            text = text.replace("…", "~").encode("ascii", "backslashreplace").decode()
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if style and self.has_colour and text else text

    def data(self, text: str) -> None:
        """Print data that other programs read, such as CSV. It is escaped only if a terminal shows it."""
        self.stream.write(UNSAFE_IN_LINES.sub(_escape, text) if self.is_terminal else text)

    def json(self, value: Any) -> None:
        """Print a value as JSON, whose strings hold no character that could act on a terminal."""
        import json

        text = json.dumps(value, ensure_ascii=False, indent=2 if self.is_terminal else None, allow_nan=False)
        self.stream.write(UNSAFE_IN_LINES.sub(_json_escape, text) + "\n")

    def facts(self, rows: Iterable[tuple[str, Part]], indent: int = 0) -> None:
        """Print labels and values in two columns. A long value goes on below its first line."""
        pairs = list(rows)
        label_width = max((len(label) for label, _ in pairs), default=0) + 2
        room = max(NARROWEST, self.width - label_width - indent)
        for label, value in pairs:
            text, style = (value, "") if isinstance(value, str) else value
            for number, piece in enumerate(_wrapped(escape_text(text), room)):
                label_text = label if number == 0 else ""
                self.line(" " * indent, Styled(label_text.ljust(label_width), "label"), Styled(piece, style))

    def paragraph(self, text: str, indent: int = 0, style: str = "") -> None:
        """Print sentences. Long ones go on below the first line."""
        for piece in _wrapped(escape_text(text), max(NARROWEST, self.width - indent)):
            self.line(" " * indent, Styled(piece, style))

    def note(self, mark: Styled, text: str) -> None:
        """Print a sentence behind a mark. A long one goes on below its first line."""
        room = max(NARROWEST, self.width - 2 - width_of(mark.text))
        for number, piece in enumerate(_wrapped(escape_text(text), room)):
            self.line("  ", mark if number == 0 else " " * width_of(mark.text), piece)

    def blank(self) -> None:
        """Print an empty line."""
        self.stream.write("\n")


def _wrapped(text: str, width: int) -> list[str]:
    """Return lines of a text, broken at spaces. A word that is longer than a line is broken too."""
    if width_of(text) <= width:
        return [text]
    if text.isascii():
        import textwrap

        return textwrap.wrap(text, width, break_on_hyphens=False) or [""]
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and width_of(lines[-1]) + 1 + width_of(word) <= width:
            lines[-1] += f" {word}"
            continue
        if lines[-1]:
            lines.append("")
        for character in word:
            if width_of(lines[-1] + character) > width:
                lines.append("")
            lines[-1] += character
    return lines


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _has_colour(is_terminal: bool, environment: Any) -> bool:
    """Return whether to print styles. NO_COLOR and dumb terminals have none (no-color.org)."""
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return is_terminal or environment.get("FORCE_COLOR", "0") not in ("", "0")


def _width(is_terminal: bool, environment: Any) -> int:
    columns = environment.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return max(NARROWEST, int(columns))
    return max(NARROWEST, shutil.get_terminal_size().columns) if is_terminal else UNLIMITED
