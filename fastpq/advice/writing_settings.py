"""FileSettings: how a file is written, column by column. They become writer options, which a recipe keeps as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastpq.options import DEFAULT_PROPERTIES, SortingColumn


@dataclass(frozen=True, slots=True)
class ColumnSettings:
    """How one leaf column is written.

    Attributes:
        codec: name of the codec.
        level: level of the codec, or None for its default.
        encoding: an encoding that is asked for, or None for a dictionary or PLAIN.
        is_dictionary: whether a dictionary is tried. The writer keeps it only if the chunk becomes smaller.
        has_statistics: whether bounds and null counts are written.
        has_bloom_filter: whether each chunk gets a bloom filter.
    """

    codec: str
    level: int | None = None
    encoding: str | None = None
    is_dictionary: bool = True
    has_statistics: bool = True
    has_bloom_filter: bool = False


@dataclass(frozen=True, slots=True)
class FileSettings:
    """How a file is written.

    Attributes:
        columns: settings by dotted path.
        row_group_rows: most rows in a row group.
        page_rows: most rows in a data page.
        page_bytes: target size of a data page before compression.
        has_page_index: whether page indexes are written.
        is_version_2: whether data pages are V2.
        sorting: columns by which each row group is sorted.
        booleans: paths of BOOLEAN columns, which have neither dictionaries nor bloom filters.
    """

    columns: Mapping[str, ColumnSettings]
    row_group_rows: int = DEFAULT_PROPERTIES.row_group_size
    page_rows: int = DEFAULT_PROPERTIES.data_page_rows
    page_bytes: int = DEFAULT_PROPERTIES.data_page_size
    has_page_index: bool = True
    is_version_2: bool = False
    sorting: tuple[SortingColumn, ...] = ()
    booleans: frozenset[str] = frozenset()

    def with_column(self, name: str, settings: ColumnSettings) -> FileSettings:
        """Return the settings with another column in the place of a column."""
        return replace(self, columns={**self.columns, name: settings})

    def only(self, names: frozenset[str]) -> FileSettings:
        """Return the settings for a file that has some of the columns."""
        columns = {name: each for name, each in self.columns.items() if name in names}
        sorting = self.sorting if all(each.path in names for each in self.sorting) else ()
        return replace(self, columns=columns, sorting=sorting)

    def options(self) -> dict[str, Any]:
        """Return the options of ``WriterProperties`` that differ from their defaults, as values that JSON can have."""
        columns = self.columns
        options: dict[str, Any] = {}
        codecs = {name: each.codec for name, each in columns.items()}
        if {*codecs.values()} != {DEFAULT_PROPERTIES.compression}:
            options["compression"] = codecs if len({*codecs.values()}) > 1 else next(iter(codecs.values()), None)
        options["compression_level"] = {name: each.level for name, each in columns.items() if each.level is not None}
        options["column_encoding"] = {name: each.encoding for name, each in columns.items() if each.encoding is not None}
        with_dictionary = [name for name, each in columns.items() if each.is_dictionary and name not in self.booleans]
        if len(with_dictionary) + len(self.booleans & columns.keys()) < len(columns):
            options["use_dictionary"] = with_dictionary or False
        with_statistics = [name for name, each in columns.items() if each.has_statistics]
        if len(with_statistics) < len(columns):
            options["write_statistics"] = with_statistics or False
        options["bloom_filter"] = {name: True for name, each in columns.items() if each.has_bloom_filter}
        options["sort_by"] = [sorting_member(each) for each in self.sorting]
        options |= {
            "row_group_size": self.row_group_rows,
            "data_page_rows": self.page_rows,
            "data_page_size": self.page_bytes,
            "data_page_version": "2.0" if self.is_version_2 else "1.0",
            "write_page_index": self.has_page_index,
        }
        is_default = {name: value == getattr(DEFAULT_PROPERTIES, name) for name, value in options.items()}
        return {name: value for name, value in options.items() if not is_default[name] and value not in ({}, [])}


def sorting_member(column: SortingColumn) -> str | dict[str, Any]:
    """Return a sorting column as JSON has it: a name, or an object if it is not ascending with nulls last."""
    if not column.descending and not column.nulls_first:
        return column.path
    return {"path": column.path, "descending": column.descending, "nulls_first": column.nulls_first}


def writer_options_of(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of ``WriterProperties`` that a recipe has. Objects in ``sort_by`` become SortingColumns."""
    options = dict(recipe)
    for name in ("sort_by", "sorting_columns"):
        if isinstance(options.get(name), list):
            options[name] = sorting_columns_of(options[name])
    return options


def sorting_columns_of(members: Sequence[Any]) -> list[Any]:
    """Return the sorting columns that a recipe has: objects become SortingColumns, and names stay."""
    return [SortingColumn(**each) if isinstance(each, dict) else each for each in members]
