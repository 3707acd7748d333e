"""Fixtures of the command's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Runner, write_example_files


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Runner:
    """The command, as a function of its arguments."""
    return Runner(monkeypatch)


@pytest.fixture(scope="session")
def example_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the examples name. Do not change them."""
    folder = tmp_path_factory.mktemp("examples")
    write_example_files(folder)
    return folder


@pytest.fixture
def in_examples(example_files: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder as the working directory."""
    monkeypatch.chdir(example_files)
    return example_files
