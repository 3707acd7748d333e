"""Every check of the project, one stage after another; pytest comes last, so that its closing lines do too."""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"
KERNEL_TESTS = (
    "tests/encodings",
    "tests/unit",
    "tests/roundtrip",
    "tests/variant/test_encoding.py",
    "tests/variant/test_json.py",
)
COPIED = ("fastpq", "tests", "benchmarks", "tools", "setup.py", "pyproject.toml", "README.md")
FUZZ_MUTATIONS = 20_000
PYTEST_PROCESSES = 2


class StageError(Exception):
    """A command of a stage failed."""


def run(*command: str, cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> None:
    """Run a command; its output goes where ours goes.

    Raises:
        StageError: it did not exit with 0.
    """
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **(environment or {})}, check=False)
    if done.returncode:
        raise StageError(f"{' '.join(command[:4])} ... exited with {done.returncode}")


def python(*arguments: str, cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> None:
    run(sys.executable, *arguments, cwd=cwd, environment=environment)


def lint() -> None:
    python("-m", "ruff", "check", "--quiet", ".")
    tools = Path(sys.executable).parent         # cython-lint looks for pycodestyle on the PATH
    run(str(tools / "cython-lint"), "fastpq", environment={"PATH": f"{tools}:{os.environ['PATH']}"})


def types() -> None:
    python("-m", "mypy")


def variant(name: str, options: Mapping[str, str], headers: frozenset[str] | None = None) -> Path:
    """A copy of the tree in build/NAME, built in place with these environment variables; rebuilt where it changed.

    Args:
        name: of the folder.
        options: environment variables of the build.
        headers: names of the headers that differ with them, so that extensions without these are taken as they are; None where
            Cython makes other C.
    """
    folder = ROOT / "build" / name
    folder.mkdir(parents=True, exist_ok=True)
    for entry in COPIED:
        source, target = ROOT / entry, folder / entry
        if source.is_dir():
            remove_deleted(source, target)
            shutil.copytree(source, target, ignore=compiled_or_made if headers is None else compiled, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)
    if headers is not None:
        copy_extensions(folder, headers)
    with (folder / "build.log").open("w") as log:
        done = subprocess.run(
            [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
            cwd=folder,
            env={**os.environ, **options},
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        raise StageError((folder / "build.log").read_text()[-4000:])
    return folder


def copy_extensions(folder: Path, headers: frozenset[str]) -> None:
    """Put the extensions that include none of the headers where a build in the folder finds them up to date."""
    built = folder / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for source in (ROOT / "fastpq").rglob("*.pyx"):
        included = set(re.findall(r'#include "c/(\w+\.h)"', source.with_suffix(".c").read_text()))
        if not included & headers:
            extension = source.with_suffix(sysconfig.get_config_var("EXT_SUFFIX"))
            place = built / extension.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(extension, place)


def headers_with(name: str) -> frozenset[str]:
    """Names of the C headers that include one, over any number of others, and its own."""
    includes = {
        header.name: set(re.findall(r'#include "(?:[\w./]+/)?(\w+\.h)"', header.read_text()))
        for header in (ROOT / "fastpq").rglob("*.h")
    }
    found, grown = {name}, {name}
    while grown:
        grown = {header for header, included in includes.items() if included & found} - found
        found |= grown
    return frozenset(found)


def remove_deleted(source: Path, target: Path) -> None:
    """Remove from a copy the source files that the tree has no longer."""
    for path in list(target.rglob("*.py*")):        # .py, .pyx, .pxd, .pyi
        if path.suffix != ".pyc" and not (source / path.relative_to(target)).exists():
            path.unlink()


def compiled(folder: str, names: list[str]) -> set[str]:
    """What a copy of the tree leaves out: extensions and byte code."""
    return {name for name in names if name.endswith(".so") or name == "__pycache__"}


def compiled_or_made(folder: str, names: list[str]) -> set[str]:
    """The same, and the C that Cython made."""
    return compiled(folder, names) | {name for name in names if name.endswith(".c") and f"{name[:-2]}.pyx" in names}


def kernel_tests(folder: Path, environment: Mapping[str, str] | None = None) -> None:
    variables = {"PYTHONPATH": str(folder), **(environment or {})}
    # file descriptor 2 is not captured, so that a sanitizer's last words are seen
    options = ["-q", "-x", "--capture=sys", "-p", "no:cacheprovider"]
    python("-m", "pytest", *options, *KERNEL_TESTS, cwd=folder, environment=variables)


def no_clones() -> None:
    kernel_tests(variant("no-clones", {"FASTPQ_NO_CLONES": "1"}, headers_with("clones.h")))


def sanitizer_library(name: str) -> str:
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def debug() -> None:
    folder = variant("debug", {"FASTPQ_DEBUG": "1"})
    kernel_tests(
        folder,
        {
            "LD_PRELOAD": " ".join(sanitizer_library(name) for name in ("libasan.so", "libubsan.so")),
            "ASAN_OPTIONS": "detect_leaks=0",       # the interpreter itself keeps memory at exit
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "FASTPQ_DEBUG": "1",
        },
    )


def fuzz() -> None:
    for target in ("read", "nested", "kernel", "variant", "wkb", "arrow_schema"):
        python("-m", "tests.corrupt", "--count", str(FUZZ_MUTATIONS), "--target", target)


def tests() -> None:
    if missing := [command for command in ("java", "javac") if shutil.which(command) is None]:
        say(f"no {' and no '.join(missing)}: tests with Spark and parquet-java are skipped (Debian: openjdk-17-jdk-headless)")
    python("-m", "pytest", "-q", "-n", str(PYTEST_PROCESSES))


STAGES: dict[str, tuple[Callable[[], None], str]] = {
    "lint": (lint, "ruff and cython-lint"),
    "types": (types, "strict mypy over the package"),
    "no-clones": (no_clones, "kernel tests without function multiversioning (FASTPQ_NO_CLONES=1)"),
    "debug": (debug, "kernel tests with bounds checks, ASan and UBSan (FASTPQ_DEBUG=1)"),
    "fuzz": (fuzz, f"{FUZZ_MUTATIONS:,} mutations each of files, streams, variants, geometries and Arrow schemas"),
    "tests": (tests, "pytest"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tools/test",
        description=__doc__,
        epilog="stages: " + "; ".join(f"{name}: {what}" for name, (_, what) in STAGES.items()),
    )
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="stages to run, in the order given (default: all)")
    chosen = parser.parse_args(arguments).stages or list(STAGES)
    unknown = [name for name in chosen if name not in STAGES]
    if unknown:
        parser.error(f"no stage {unknown[0]!r}; there are {', '.join(STAGES)}")
    if "FASTPQ_TEST_DATA" not in os.environ and SHARED_DATA.is_dir():
        os.environ["FASTPQ_TEST_DATA"] = str(SHARED_DATA)
    say(f"Python {platform.python_version()}, test data: {os.environ.get('FASTPQ_TEST_DATA', 'none')}")
    failed = [name for name in chosen if not timed(name)]
    if failed:
        say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def timed(name: str) -> bool:
    """Run one stage, say how long it took, return whether it passed."""
    say(f"{name}: {STAGES[name][1]}")
    started = time.monotonic()
    try:
        STAGES[name][0]()
    except StageError as error:
        say(f"{name} FAILED after {time.monotonic() - started:.1f} s: {error}")
        return False
    if name != "tests":     # whose own closing line has the time
        say(f"{name} passed in {time.monotonic() - started:.1f} s")
    return True


def say(message: str) -> None:
    print(f"test: {message}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
