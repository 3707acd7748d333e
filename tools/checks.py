"""Checks of fastpq, in stages; tests come last, and after them the last lines of every other stage that failed.

  tools/test                  lint, types, and the tests of every room but the slow ones: some minutes
  tools/test --full           every stage, as continuous integration runs it
  tools/test fast PATH ...    compile what changed, then pytest on these paths, without slow tests; options of pytest
                              may follow (tools/test fast tests/spark -m slow)
  tools/test STAGE ...        the stages named
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from tools import builds, pythons
from tools.builds import ROOT

SHARED_DATA = ROOT.parent / "shared" / "data"
SITE = ROOT / "build" / "site"
KERNEL_TESTS = (
    "tests/api/test_writer.py",
    "tests/arrays",
    "tests/arrow",
    "tests/codecs",
    "tests/convert",
    "tests/encodings",
    "tests/filters",
    "tests/format",
    "tests/index",
    "tests/io/test_source.py",
    "tests/read",
    "tests/schema",
    "tests/stats/test_geospatial.py",
    "tests/stats/test_statistics.py",
    "tests/variant/test_encoding.py",
    "tests/variant/test_json.py",
    "tests/write/test_choice.py",
    "tests/write/test_chunks.py",
)
CLONED_TESTS = (    # of kernels with function multiversioning
    "tests/arrays",
    "tests/codecs",
    "tests/encodings",
    "tests/filters",
    "tests/format",
    "tests/index",
    "tests/read/test_wide_decimals.py",
    "tests/stats/test_statistics.py",
    "tests/write/test_chunks.py",
)
# Tests that depend on what a machine has: packages, time zones, fonts, a shell, a locale.
MACHINE_TESTS = (
    "tests/api",
    "tests/arrow",
    "tests/cli",
    "tests/convert",
    "tests/io",
    "tests/picture",
    "tests/spark",
    "tests/tools",
    "tests/test_docs.py",
)
FUZZ_TARGETS = ("paths", "key_material", "read", "nested", "kernel", "variant", "wkb", "arrow_schema")
FUZZ_MUTATIONS = 20_000     # of each target
CORES = 2       # simultaneous processes of pytest, and simultaneous stages
COMMITS, LONGEST_SUBJECT = 50, 72     # whose subjects lint looks at, and the characters of a subject
SEED = "FASTPQ_TEST_SEED"   # environment variable
LAST_LINES = 40     # of a failed stage's output, repeated at the end: of a long log often only the end is kept


class StageError(Exception):
    """A command of a stage failed.

    Attributes:
        last_lines: the end of the command's output; "" where that is the end of the whole output.
    """

    def __init__(self, message: str, last_lines: str = "") -> None:
        super().__init__(message)
        self.last_lines = last_lines


def run(*command: str, cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> None:
    """Run a command, and print what it prints.

    Raises:
        StageError: the command's exit code is not 0; with the last lines of the output.
    """
    settings = {**os.environ, **(environment or {})}
    last_lines: deque[str] = deque(maxlen=LAST_LINES)
    with subprocess.Popen(command, cwd=cwd, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last_lines.append(line)
    if process.returncode:
        raise StageError(f"{' '.join(command[:4])} ... exited with {process.returncode}", "".join(last_lines))


def python(*arguments: str, cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> None:
    run(sys.executable, *arguments, cwd=cwd, environment=environment)


def pytest_command(*arguments: str) -> tuple[str, ...]:
    """Return a command that runs tests in CORES processes, in random order; tests of one xdist_group stay in one process."""
    processes = ("-n", str(CORES), "--dist", "loadgroup", "--no-loadscope-reorder")
    options = ("-q", "--durations=10", "--durations-min=5", f"--randomly-seed={os.environ[SEED]}")
    return (sys.executable, "-m", "pytest", *options, *processes, *arguments)


# ---- the stages


def lint() -> None:
    python("-m", "ruff", "check", "--quiet", ".")
    tools = Path(sys.executable).parent         # cython-lint looks for pycodestyle on the PATH
    run(str(tools / "cython-lint"), "fastpq", environment={"PATH": f"{tools}:{os.environ['PATH']}"})
    sources = [*(ROOT / "fastpq").rglob("*.h"), *(ROOT / "fastpq").rglob("*.java"), *(ROOT / "tests/spark").rglob("*.java")]
    run(str(tools / "clang-format"), "--dry-run", "--Werror", *map(str, sorted(sources)))
    python("-m", "tools.rooms")
    python("-m", "tools.prose", "--check")
    python("-m", "tools.names", "--check")
    python("-m", "tools.documented_names")
    python("-m", "tools.keywords", "--check")
    python("-m", "tools.spark_options", "--check")
    warn_of_long_subjects()


def warn_of_long_subjects() -> None:
    """Name the commits whose subject is too long to be read in a list; they are history, so this is no failure."""
    command = ["git", "log", "-n", str(COMMITS), "--format=%h %s"]
    log = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    for line in log.stdout.splitlines():       # none outside of a clone
        commit, _, subject = line.partition(" ")
        if len(subject) > LONGEST_SUBJECT:
            say(f"warning: the subject of {commit} has {len(subject)} characters, {LONGEST_SUBJECT} at most: {subject[:40]}...")


def types() -> None:
    python("-m", "mypy")
    stubs = (stub.relative_to(ROOT).with_suffix("") for stub in sorted((ROOT / "fastpq").rglob("*.pyi")))
    options = ("--mypy-config-file", "pyproject.toml", "--concise", "--ignore-disjoint-bases")
    allowed = ("--allowlist", "tools/stubtest.txt", "--ignore-unused-allowlist")
    python("-m", "mypy.stubtest", *options, *allowed, *(".".join(stub.parts) for stub in stubs))


def docs() -> None:
    options = ("--quiet", "--strict", "--config-file", "docs/mkdocs.yml", "--site-dir", str(SITE))
    python("-m", "mkdocs", "build", *options, environment={"NO_MKDOCS_2_WARNING": "1"})     # silences an advertisement


def release() -> None:
    python("-m", "tools.release", "--check")


def fresh() -> None:
    if os.environ.get("CI") != "true" and (os.geteuid() != 0 or shutil.which("mmdebstrap") is None):
        say("fresh is left out: it needs root and mmdebstrap")
        return
    commands: list[str] = []
    if os.environ.get("CI") == "true":      # there, other stages run all tests
        for command in ("tools/demo", "tools/test lint types", f"tools/test fast -n {CORES} {' '.join(MACHINE_TESTS)}"):
            commands += ["--command", command]
    python("-m", "tools.fresh", "--user", "root", *commands)


def no_clones() -> None:
    folder = builds.build("no-clones", {"FASTPQ_NO_CLONES": "1"}, builds.headers_with("clones.h"))
    kernel_tests(folder, {}, tests=CLONED_TESTS)


def debug() -> None:
    folder = builds.build("debug", {"FASTPQ_DEBUG": "1"})
    environment = {
        "LD_PRELOAD": builds.sanitizer_libraries(),
        "ASAN_OPTIONS": "detect_leaks=0",       # the interpreter itself leaks memory at exit
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }
    kernel_tests(folder, environment, "-m", "not pooled")


def kernel_tests(
    folder: Path, environment: Mapping[str, str], *options: str, tests: Sequence[str] = KERNEL_TESTS
) -> None:
    # file descriptor 2 is not captured, to show a sanitizer's last message
    options = ("-x", "--capture=sys", "-p", "no:cacheprovider", *options)
    run(*pytest_command(*options, *tests), cwd=folder, environment={"PYTHONPATH": str(folder), **environment})


def other_python() -> None:
    found = pythons.other()
    if found is None:
        say("other-python is left out: there is no other Python with its C headers")
        return
    try:
        interpreter, folder = pythons.prepare(found)
    except subprocess.CalledProcessError as error:
        raise StageError(f"packages for {found}: pip exited with {error.returncode}") from None
    say(f"other-python: {pythons.packages(interpreter)}")
    options = ("-q", "-p", "no:cacheprovider", "-m", "not slow", "-n", str(CORES), f"--randomly-seed={os.environ[SEED]}")
    rooms = (f"tests/{room}" for room in pythons.ROOMS)
    # packages are left out (PySpark), or have no wheels for a new Python yet: their tests are skipped here, on CI too
    run(str(interpreter), "-m", "pytest", *options, *rooms, cwd=folder, environment={"PYTHONPATH": str(folder), "CI": ""})


def fuzz() -> None:
    for target in FUZZ_TARGETS:
        python("-m", "tests.corrupt", "--count", str(FUZZ_MUTATIONS), "--target", target)


def quick() -> None:
    run_last(*pytest_command("-m", "not slow"))


def tests() -> None:
    run_last(*pytest_command())


def run_last(*command: str) -> None:
    """Run a command whose output nothing follows, through no pipe: a process that a test left behind would keep it open."""
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode:
        raise StageError(f"{' '.join(command[:4])} ... exited with {done.returncode}")


@dataclass(frozen=True)
class Stage:
    """One check.

    Attributes:
        run: runs the check's commands; raises StageError.
        summary: one line for --help.
        cores: processor cores in use. Adjacent stages of one core run at the same time.
        plain: whether ``tools/test`` without arguments runs the stage.
        full: whether ``tools/test --full`` runs the stage.
    """

    run: Callable[[], None]
    summary: str
    cores: int = CORES
    plain: bool = False
    full: bool = True


STAGES = {
    "lint": Stage(lint, "ruff, cython-lint, clang-format, order of the rooms, prose, names", cores=1, plain=True),
    "types": Stage(types, "strict mypy, stubs against compiled modules", cores=1, plain=True),
    "docs": Stage(docs, f"documentation, warnings are errors, to {SITE.relative_to(ROOT)}", cores=1),
    "release": Stage(release, "sdist and one wheel as they would be released"),
    "no-clones": Stage(no_clones, "tests of cloned kernels without function multiversioning (FASTPQ_NO_CLONES=1)"),
    "debug": Stage(debug, "kernel tests with bounds checks, ASan and UBSan (FASTPQ_DEBUG=1)"),
    "other-python": Stage(other_python, "tests of some rooms in the newest other Python of the machine, with the newest NumPy"),
    "fuzz": Stage(fuzz, f"{FUZZ_MUTATIONS:,} mutations each of files, streams, variants, geometries and Arrow schemas"),
    "fresh": Stage(fresh, "README's commands in a minimal Debian; with CI=true only tests that depend on the machine"),
    "quick": Stage(quick, "pytest without slow tests", plain=True, full=False),
    "tests": Stage(tests, "pytest, slow tests too: Java, each Spark of 4.0 to 4.3, ten million nonces"),
}
CLOSING = ("quick", "tests")


# ---- running them


def main(arguments: Sequence[str]) -> int:
    if "FASTPQ_TEST_DATA" not in os.environ and SHARED_DATA.is_dir():
        os.environ["FASTPQ_TEST_DATA"] = str(SHARED_DATA)
    if arguments[:1] == ["fast"]:
        return fast(arguments[1:])
    options = parse(arguments)
    if options.seed is not None or SEED not in os.environ:      # run_apart passes the seed to its process
        os.environ[SEED] = str(random.getrandbits(32) if options.seed is None else options.seed)
        say(f"Python {platform.python_version()}, test data: {os.environ.get('FASTPQ_TEST_DATA', 'none')}")
        say(f"order and random values: --seed {os.environ[SEED]}")
    failed: list[Outcome] = []
    for batch in batches(options.stages):
        failed += [outcome for outcome in run_batch(batch) if not outcome.passed]
    for outcome in failed:
        if outcome.last_lines:
            say(f"{outcome.stage} failed; the end of its output:")
            print(outcome.last_lines, end="", flush=True)
    if failed:
        say(f"failed: {', '.join(outcome.stage for outcome in failed)}")
    return 1 if failed else 0


def fast(arguments: Sequence[str]) -> int:
    """Run pytest on some paths, in one process and in random order; returns its exit code."""
    if not arguments:
        say("fast needs a path, for example tools/test fast tests/convert/test_numpy.py")
        return 2
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    described = "".join(f"  {name:<10}  {stage.summary}{tiers(stage)}\n" for name, stage in STAGES.items())
    command_line = argparse.ArgumentParser(
        prog="tools/test",
        usage="tools/test [--full] [--seed N] [STAGE ...] | fast PATH ...",
        description=__doc__,
        epilog=f"stages:\n{described}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command_line.add_argument("stages", nargs="*", metavar="STAGE", help="stages to run, tests last")
    command_line.add_argument("--full", action="store_true", help="every stage")
    command_line.add_argument("--seed", type=int, help="repeat the order and the random values of a run (default: new ones)")
    return command_line


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line, with the default stages filled in."""
    command_line = parser()
    options = command_line.parse_args(arguments)
    if unknown := [name for name in options.stages if name not in STAGES]:
        command_line.error(f"no stage {unknown[0]!r}; there are {', '.join(STAGES)}")
    if options.full and options.stages:
        command_line.error("--full takes no stages")
    if not options.stages:
        options.stages = [name for name, stage in STAGES.items() if (stage.full if options.full else stage.plain)]
    return options


def tiers(stage: Stage) -> str:
    return "" if stage.full and stage.plain else " (--full)" if stage.full else " (without --full)"


def batches(names: Sequence[str]) -> list[list[str]]:
    """Stages grouped for running: adjacent stages of one core together, any other stage alone, CLOSING stages last."""
    ordered = sorted(names, key=lambda name: name in CLOSING)
    split: list[list[str]] = []
    for one_core, group in groupby(ordered, lambda name: STAGES[name].cores == 1):
        neighbours = list(group)
        split += [neighbours] if one_core else [[name] for name in neighbours]
    return split


@dataclass(frozen=True)
class Outcome:
    """How a stage ended.

    Attributes:
        last_lines: the end of a failed stage's output.
    """

    stage: str
    passed: bool
    last_lines: str = ""


def run_batch(names: Sequence[str]) -> list[Outcome]:
    """Run stages at the same time."""
    if len(names) == 1:
        return [run_here(names[0])]
    with ThreadPoolExecutor(CORES) as pool:
        return list(pool.map(run_apart, names))


def run_apart(name: str) -> Outcome:
    """Run a stage in its own process, and print the output at its end."""
    command = [sys.executable, "-m", "tools.checks", name]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout, end="", flush=True)
    return Outcome(name, done.returncode == 0, "".join(done.stdout.splitlines(keepends=True)[-LAST_LINES:]))


def run_here(name: str) -> Outcome:
    """Run a stage in this process, and print its time."""
    say(f"{name}: {STAGES[name].summary}")
    started = time.monotonic()
    try:
        STAGES[name].run()
    except (StageError, builds.BuildError) as error:
        if name not in CLOSING:
            say(f"{name} FAILED after {time.monotonic() - started:.0f} s: {error}")
        return Outcome(name, passed=False, last_lines=error.last_lines if isinstance(error, StageError) else f"{error}\n")
    if name not in CLOSING:
        say(f"{name} passed in {time.monotonic() - started:.0f} s")
    return Outcome(name, passed=True)


def say(message: str) -> None:
    print(f"test: {message}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
