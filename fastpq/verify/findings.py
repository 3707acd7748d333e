"""What a verification finds: Violation, ReaderDifference and UncheckedPart, and the collector that the checks report to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from fastpq.errors import CryptoError, KeyAccessError, LimitError, ParquetError, TagVerificationError, UnsupportedError
from fastpq.verify import sections


class PlaceInFile(NamedTuple):
    """A place in a file. A part of it that is not known, or does not apply, is None.

    Attributes:
        row_group: index of the row group.
        column: dotted path of the column.
        page: number of the data page in its column chunk.
        offset: offset in the file, in bytes.
    """

    row_group: int | None = None
    column: str | None = None
    page: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self._asdict().items() if value is not None)

    @property
    def in_brackets(self) -> str:
        """The place as the end of a sentence, or an empty text if nothing is known of it."""
        text = str(self)
        return f" [{text}]" if text else ""


@dataclass(frozen=True, slots=True)
class Violation:
    """One sentence of the specification that a file breaks.

    Attributes:
        part: the part of the file that is wrong: ``"footer"``, ``"schema"``, ``"row group"``, ``"column chunk"``,
            ``"page header"``, ``"page"``, ``"dictionary"``, ``"levels"``, ``"values"``, ``"statistics"``, ``"offset index"``,
            ``"column index"``, ``"bloom filter"`` or ``"encryption"``.
        message: what is wrong. It shows no values of an encrypted column.
        section: the section of the specification.
        place: where the part is.
        readers: what other readers do with such a file, if it is known that they differ. Else None.
        is_harmless: whether no reader is known that uses the wrong number. Many writers get these numbers wrong.
    """

    part: str
    message: str
    section: str
    place: PlaceInFile
    readers: str | None = None
    is_harmless: bool = False

    def __str__(self) -> str:
        harmless = ", harmless" if self.is_harmless else ""
        return f"{self.part}: {self.message}{self.place.in_brackets} ({self.section}{harmless})"


@dataclass(frozen=True, slots=True)
class ReaderDifference:
    """Something legal in a file that readers understand differently.

    Attributes:
        case: what the file has.
        readers: what other readers do.
        fastpq: what fastpq does.
        place: where it is.
    """

    case: str
    readers: str
    fastpq: str
    place: PlaceInFile

    def __str__(self) -> str:
        return f"{self.case}{self.place.in_brackets}: {self.readers}; fastpq: {self.fastpq}"


@dataclass(frozen=True, slots=True)
class UncheckedPart:
    """A part of a file that could not be checked.

    Attributes:
        part: the part, as for Violation.
        reason: why it was not checked.
        place: where the part is.
        needs_key: whether a key is missing.
    """

    part: str
    reason: str
    place: PlaceInFile
    needs_key: bool = False

    def __str__(self) -> str:
        return f"{self.part}: not checked{self.place.in_brackets}: {self.reason}"


class Findings:
    """Collector of what the checks find.

    Args:
        most: number of violations that are kept. Further ones are only counted. The same limit holds for the other kinds.

    Attributes:
        violations, differences, unchecked: what was found, in the order of the checks.
        num_violations, num_harmless: how many violations do harm, and how many are harmless, with those that are only counted.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.violations: list[Violation] = []
        self.differences: dict[tuple[str, str | None], ReaderDifference] = {}
        self.unchecked: list[UncheckedPart] = []
        self.num_violations = self.num_harmless = 0

    def violate(
        self, part: str, section: str, message: str, place: PlaceInFile, readers: str | None = None, *, harmless: bool = False
    ) -> None:
        """Report a violation."""
        self.num_violations += not harmless
        self.num_harmless += harmless
        if len(self.violations) < self._most:
            self.violations.append(Violation(part, message, section, place, readers, harmless))

    def differ(self, case: str, readers: str, fastpq: str, place: PlaceInFile) -> None:
        """Report a difference between readers. It is kept once for each column."""
        key = case, place.column
        if key not in self.differences and len(self.differences) < self._most:
            self.differences[key] = ReaderDifference(case, readers, fastpq, place)

    def leave_out(self, part: str, reason: str, place: PlaceInFile, *, needs_key: bool = False) -> None:
        """Report a part that is not checked."""
        if len(self.unchecked) < self._most:
            self.unchecked.append(UncheckedPart(part, reason, place, needs_key))

    @contextmanager
    def catching(self, part: str, section: str, place: PlaceInFile) -> Iterator[None]:
        """Report an error of the reader that is raised in the ``with`` block. The rest of the block is left out."""
        try:
            yield
        except ParquetError as error:
            self.take(error, part, section, place)

    def take(self, error: ParquetError, part: str, section: str, place: PlaceInFile) -> None:
        """Report an error of the reader: a violation, or a part that cannot be checked."""
        context = error.context
        place = PlaceInFile(
            context.get("row_group", place.row_group) if place.row_group is None else place.row_group,
            place.column or context.get("column"),
            context.get("page") if place.page is None else place.page,
            place.offset,
        )
        if isinstance(error, KeyAccessError):
            self.leave_out(part, error.message, place, needs_key=True)
        elif isinstance(error, CryptoError):
            module = context.get("module")
            named_module = f" of the module {module}" if module and isinstance(error, TagVerificationError) else ""
            self.violate("encryption", sections.ENCRYPTION, error.message + named_module, place)
        elif isinstance(error, UnsupportedError | LimitError):
            self.leave_out(part, error.message, place)
        else:
            self.violate(part, section, error.message, place)
