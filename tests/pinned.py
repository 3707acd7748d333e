"""Environments with pinned versions of other programs, in build/pinned. They are made once, and then kept."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "pinned"
SECONDS = 1800      # for pip


def pinned_python(name: str, *requirements: str, with_fastpq: bool = False) -> str:
    """Return the interpreter of an environment. A test is skipped where pip cannot get its packages.

    Args:
        name: name of the environment.
        requirements: its packages, each with a version, as for pip.
        with_fastpq: whether it also sees fastpq and the packages of this process, behind its own.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    home = FOLDER / f"{name}-{version}"
    python, stamp, wanted = home / "bin" / "python", home / "requirements.txt", "\n".join(requirements)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / f"{home.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)       # another process of pytest-xdist may be making it
        if stamp.exists() and stamp.read_text() == wanted:
            return str(python)
        subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", home], check=True, timeout=SECONDS)
        command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-compile", "--prefer-binary"]
        done = subprocess.run([*command, *requirements], capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode:
            pytest.skip(f"needs {', '.join(requirements)}, which pip cannot install: {done.stderr.strip()[-300:]}")
        if with_fastpq:
            own = home / "lib" / f"python{version}" / "site-packages" / "fastpq_and_its_tests.pth"
            own.write_text(f"{ROOT}\n{sysconfig.get_paths()['purelib']}\n")
        stamp.write_text(wanted)
    return str(python)


def run_pinned(python: str, script: str, *arguments: str) -> str:
    """Run a script in a pinned environment, and return what it prints.

    Args:
        python: the interpreter.
        script: the script's text.
        arguments: its arguments.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE"))}
    result = subprocess.run(
        [python, "-I", "-c", script, *arguments], capture_output=True, text=True, timeout=600, env=environment, check=False
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout
