"""Copies of the tree in build/, compiled in other ways: with sanitizers, or without function multiversioning."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNEL_CALLS = ROOT / "tests/kernel_calls.c"        # the C file of fastpq._kernel_calls, which lies outside of the package
FOLDERS = ("fastpq", "tests", "docs", "benchmarks", "tools")    # copied, with the files beside them
SHOWN = 4000        # characters of the log of a failed build


class BuildError(Exception):
    """A variant did not compile; the message is the end of its log."""


def build(
    name: str, options: Mapping[str, str], headers: frozenset[str] | None = None, python: str = sys.executable
) -> Path:
    """Bring the copy in build/NAME up to date and compile its changed modules.

    Args:
        name: of the folder.
        options: environment variables of setup.py.
        headers: names of the C headers changed by these options; extensions without such headers are copied from the tree.
            None where the options change the C made by Cython: everything is compiled.
        python: interpreter to compile for.

    Raises:
        BuildError: the compiler failed.
    """
    folder = ROOT / "build" / name
    folder.mkdir(parents=True, exist_ok=True)
    for part in FOLDERS:
        source, target = ROOT / part, folder / part
        _remove_deleted(source, target)
        shutil.copytree(source, target, ignore=_compiled_or_made if headers is None else _compiled, dirs_exist_ok=True)
    for source in ROOT.iterdir():
        if source.is_file():
            shutil.copy2(source, folder)
    if headers is not None:
        _copy_extensions(folder, headers)
    command = [python, "setup.py", "-q", "build_ext", "--inplace"]
    log = folder / "build.log"
    with log.open("w") as out:
        done = subprocess.run(command, cwd=folder, env={**os.environ, **options}, stdout=out, stderr=out, check=False)
    if done.returncode:
        raise BuildError(log.read_text()[-SHOWN:])
    return folder


def headers_with(name: str) -> frozenset[str]:
    """Names of a C header and of all headers including this one, directly or through others."""
    includes = {
        header.name: set(re.findall(r'#include "(?:[\w./]+/)?(\w+\.h)"', header.read_text()))
        for header in (ROOT / "fastpq").rglob("*.h")
    }
    found, grown = {name}, {name}
    while grown:
        grown = {header for header, included in includes.items() if included & found} - found
        found |= grown
    return frozenset(found)


def sanitizer_libraries() -> str:
    """Run-time libraries of gcc's sanitizers, in the form of LD_PRELOAD."""
    names = ("libasan.so", "libubsan.so")
    commands = (["gcc", f"-print-file-name={name}"] for name in names)
    return " ".join(subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip() for call in commands)


def _copy_extensions(folder: Path, headers: frozenset[str]) -> None:
    """Copy the extensions without any of the headers: younger than their C, the copies are up to date for a build."""
    for extension in (ROOT / "fastpq").rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"):
        module = extension.name.partition(".")[0]
        made = KERNEL_CALLS if module == "_kernel_calls" else extension.with_name(f"{module}.c")
        if not set(re.findall(r'#include "c/(\w+\.h)"', made.read_text())) & headers:
            shutil.copy2(extension, folder / extension.relative_to(ROOT))


def _remove_deleted(source: Path, target: Path) -> None:
    """Remove files from a copy where the tree has none; C and extensions of a present .pyx stay."""
    for path in target.rglob("*.[pchsm]*"):       # .py, .pyx, .pxd, .pyi, .c, .h, .so, .md
        there = source / path.relative_to(target)
        made = path.suffix in (".c", ".so") and there.with_name(f"{path.name.partition('.')[0]}.pyx").exists()
        if path.is_file() and path.suffix != ".pyc" and not made and not there.exists():
            path.unlink()


def _compiled(folder: str, names: list[str]) -> set[str]:
    """Extensions and byte code: left out of a copy."""
    return {name for name in names if name.endswith(".so") or name == "__pycache__"}


def _compiled_or_made(folder: str, names: list[str]) -> set[str]:
    """Extensions, byte code, and the C made by Cython."""
    return _compiled(folder, names) | {name for name in names if name.endswith(".c") and f"{name[:-2]}.pyx" in names}
