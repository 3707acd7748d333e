"""Scenes: statements that share files and tables. Each runs once with Spark's own source and once with fastpq's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Place:
    """Where a statement runs.

    Attributes:
        spark: a session.
        source: name of the source under test.
        files: folder with the scene's files, which both sources read.
        folder: folder that only this source writes to.
        database: current database of the session, which only this source uses.
    """

    spark: Any
    source: str
    files: str
    folder: str
    database: str

    def sql(self, text: str) -> Any:
        """Run SQL statements, separated by semicolons. Return the last result.

        The words {source}, {files}, {folder} and {database} stand for the attributes.
        """
        for name, value in (
            ("source", f"`{self.source}`"),
            ("files", self.files),
            ("folder", self.folder),
            ("database", self.database),
        ):
            text = text.replace("{" + name + "}", value)
        result = None
        for statement in filter(str.strip, text.split(";")):
            result = self.spark.sql(statement)
        return result

    @contextmanager
    def settings(self, **settings: str) -> Iterator[None]:
        """Change settings of the session for a while. Underscores stand for the dots of their names."""
        names = {name.replace("_", "."): value for name, value in settings.items()}
        for name, value in names.items():
            self.spark.conf.set(name, value)
        try:
            yield
        finally:
            for name in names:
                self.spark.conf.unset(name)

    @property
    def read(self) -> Any:
        """A reader of the source."""
        return self.spark.read.format(self.source)

    def load(self, path: str = "", **options: object) -> Any:
        """Return the rows of a path below the scene's files."""
        return self.read.options(**options).load(f"{self.files}/{path}")

    def write(self, frame: Any, mode: str = "error") -> Any:
        """Return a writer of the source."""
        return frame.write.format(self.source).mode(mode)

    def save(self, frame: Any, path: str, mode: str = "error", **options: object) -> Any:
        """Write rows to a path below this source's folder, and return what the source reads there."""
        self.write(frame, mode).options(**options).save(f"{self.folder}/{path}")
        return self.read.load(f"{self.folder}/{path}")

    def rows(self, *columns: str, count: int = 10) -> Any:
        """Return rows with the column ``id`` and further expressions, in one partition."""
        return self.spark.range(0, count, 1, 1).selectExpr("id", *columns)

    def paths(self, path: str = "", pattern: str = "*") -> list[str]:
        """Return the names of the visible entries below this source's folder."""
        root = Path(self.folder, path)
        return sorted(str(entry.relative_to(root)) for entry in root.rglob(pattern) if not entry.name.startswith("."))


def under(action: Callable[[Place], Any], **settings: str) -> Callable[[Place], Any]:
    """Return a function that collects the outcome of another under settings, named as for Place.settings."""

    def action_under_settings(at: Place) -> Any:
        with at.settings(**settings):
            result = action(at)
            return [result.schema.json(), result.collect()] if hasattr(result, "collect") else result

    return action_under_settings


Action = str | Callable[[Place], Any]


def last(*results: Any) -> Any:
    """Return the last of several results: that of a statement after others that prepare it."""
    return results[-1]


@dataclass(frozen=True)
class Refused:
    """A statement that Spark's own source refuses."""

    action: Action


def refused(action: Action) -> Refused:
    """Mark a statement that Spark's own source refuses: the other source has to refuse it with the same class of error."""
    return Refused(action)


@dataclass(frozen=True)
class Scene:
    """Statements that run one after another.

    Attributes:
        name: name, which no other scene has.
        statements: SQL or functions by their names. A function returns what is compared: a DataFrame or plain values.
        files: writes the files that both sources read into a folder.
        before: SQL or a function that runs for each source before the statements.
        settings: settings of the session.
    """

    name: str
    statements: Mapping[str, Action | Refused]
    files: Callable[[Any, str], None] | None = None
    before: Action | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
