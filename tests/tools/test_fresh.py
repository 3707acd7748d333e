"""tools/fresh: commands and packages from README."""

from __future__ import annotations

import pytest

from tools.fresh import ROOT, FreshError, readme

COMMANDS = "```sh\ntools/demo      # shows\ntools/test\n```\n"
PACKAGES = "The packages `python3-dev python3-venv gcc libssl-dev` are needed."


def test_readme_names_what_a_fresh_machine_runs() -> None:
    commands, packages = readme((ROOT / "README.md").read_text())
    assert commands == ["tools/demo", "tools/test"]
    assert {"gcc", "python3-dev", "python3-venv", "libssl-dev"} <= set(packages.split())


def test_comments_are_no_part_of_a_command() -> None:
    assert readme(COMMANDS + PACKAGES) == (["tools/demo", "tools/test"], "python3-dev python3-venv gcc libssl-dev")


@pytest.mark.parametrize("text", [COMMANDS, PACKAGES, COMMANDS.replace("tools/test", "make check") + PACKAGES])
def test_another_readme_is_refused(text: str) -> None:
    with pytest.raises(FreshError, match=r"README\.md"):
        readme(text)
