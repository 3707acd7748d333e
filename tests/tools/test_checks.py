"""tools/test: stages, their order, and the exit code."""

from __future__ import annotations

import pytest

from tools import checks


def test_tests_come_last_and_stages_of_one_core_beside_each_other() -> None:
    assert checks.batches(["quick", "lint", "types", "debug", "docs"]) == [["lint", "types"], ["debug"], ["docs"], ["quick"]]


def test_full_leaves_nothing_out() -> None:
    full, plain = checks.parse(["--full"]).stages, checks.parse([]).stages
    assert set(full) == checks.STAGES.keys() - {"quick"}
    assert set(plain) - set(full) == {"quick"}      # whose tests are all in the stage tests


@pytest.mark.parametrize("arguments", [["no-such-stage"], ["--full", "lint"], ["fast"]])
def test_arguments_that_do_not_fit(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        raise SystemExit(checks.main(arguments))
    assert raised.value.code == 2


@pytest.mark.parametrize(("failing", "code"), [("fuzz", 1), ("quick", 1), (None, 0)])
def test_a_stage_that_fails(
    failing: str | None, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = []

    def stage(name: str) -> checks.Stage:
        def run() -> None:
            ran.append(name)
            if name == failing:
                raise checks.StageError("a reason", "the end of its output\n" if name == "fuzz" else "")
        return checks.Stage(run, "a summary")

    monkeypatch.setattr(checks, "STAGES", {name: stage(name) for name in ("quick", "fuzz", "debug")})
    monkeypatch.setenv(checks.SEED, "1")
    assert checks.main(["quick", "fuzz", "debug"]) == code
    assert ran == ["fuzz", "debug", "quick"]
    lines = capsys.readouterr().out.splitlines()
    last = lines.index("test: quick: a summary")
    expected = {
        "fuzz": ["test: fuzz failed; the end of its output:", "the end of its output", "test: failed: fuzz"],
        "quick": ["test: failed: quick"],
        None: [],       # pytest's summary is the end
    }
    assert lines[last + 1:] == expected[failing]


def test_the_last_lines_of_a_command_that_fails(capfd: pytest.CaptureFixture[str]) -> None:
    script = f"for line in range({checks.LAST_LINES + 5}): print(line)\nraise SystemExit(3)"
    with pytest.raises(checks.StageError, match="exited with 3") as raised:
        checks.python("-c", script)
    lines = [f"{line}\n" for line in range(checks.LAST_LINES + 5)]
    assert raised.value.last_lines == "".join(lines[5:])
    assert capfd.readouterr().out == "".join(lines)
