"""The options that are common to all functions that make one file from another."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import fastpq
from fastpq.options import options_of
from fastpq.rewriting.rewriting_options import RewritingKeywords, RewritingOptions

VERBS = (
    "add_indexes", "delete_rows", "evolve_file", "project_file", "rechunk_file", "recompress_file", "redact_file", "sort_file",
    "split_file", "strip_file",
)


def test_keywords_for_type_checkers_are_the_options() -> None:
    options = {row.name: row.type for row in options_of(RewritingOptions).values()}
    assert {name: type_.__forward_arg__ for name, type_ in RewritingKeywords.__annotations__.items()} == options


@pytest.mark.parametrize("name", VERBS)
def test_signatures_and_help_list_the_options(name: str) -> None:
    verb = getattr(fastpq, name)
    parameters = inspect.signature(verb).parameters
    for row in options_of(RewritingOptions).values():
        assert parameters[row.name].default == row.default
        assert f"- ``{row.name}``: " in verb.__doc__


@pytest.mark.parametrize(("options", "message"), [
    ({"keep_metadta": ["geo"]}, "keep_metad"),
    ({"keep_metadata": "geo"}, "keep_metadata must be a list of names, not the name 'geo'"),
])
def test_wrong_options_are_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    path, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    fastpq.write_table({"a": [1]}, path)
    with pytest.raises(TypeError, match=message):
        fastpq.strip_file(path, target, **options)
    assert not target.exists()
