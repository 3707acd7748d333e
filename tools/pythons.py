"""Tests in another Python: the newest installed one with C headers that is not the Python of .venv, with packages of its own.

The tree is compiled for it in build/python3.X, and build/python3.X-venv is its virtual environment. The tests are those of the
rooms where versions of Python and NumPy show: API, arrays, conversions, interchange with other libraries.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools import builds, requirements

OLDEST, NEWEST = 11, 14             # minor versions of Python 3
EXTRAS = ("build", "library", "demo", "pandas", "peers", "remote", "s3", "test")
ROOMS = ("api", "arrays", "arrow", "convert", "format", "interop", "metadata", "write")
PROBE = "import ensurepip, pathlib, sysconfig; pathlib.Path(sysconfig.get_path('include'), 'Python.h').stat()"


def other() -> Path | None:
    """The newest usable Python of another minor version than this one; None without."""
    return next((found for found in _installed() if _is_usable(found)), None)


def _installed() -> Iterator[Path]:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in range(NEWEST, OLDEST - 1, -1):
        if minor == sys.version_info.minor:
            continue
        name = f"python3.{minor}"
        on_path = shutil.which(name)
        yield from (Path(found) for found in ([on_path] if on_path else []))
        yield from sorted(pyenv.glob(f"3.{minor}.*/bin/{name}"), reverse=True)


def _is_usable(python: Path) -> bool:
    return subprocess.run([python, "-c", PROBE], capture_output=True, check=False).returncode == 0


def prepare(python: Path) -> tuple[Path, Path]:
    """Make a virtual environment with the packages, and compile the tree.

    Returns:
        The interpreter of the environment, and the folder of the compiled copy.

    Raises:
        builds.BuildError: the compiler failed.
        subprocess.CalledProcessError: packages cannot be installed.
    """
    name = python.name
    home = builds.ROOT / "build" / f"{name}-venv"
    interpreter = home / "bin" / "python"
    if not interpreter.exists():
        subprocess.run([python, "-m", "venv", home], check=True)
    wanted = requirements.of(EXTRAS)
    pip: list[str | Path] = [interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    subprocess.run([*pip, *wanted], check=True)
    return interpreter, builds.build(name, {}, python=str(interpreter))


def packages(interpreter: Path) -> str:
    """Versions of Python and NumPy."""
    script = "import numpy, platform; print(f'Python {platform.python_version()}, NumPy {numpy.__version__}')"
    return subprocess.run([interpreter, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
