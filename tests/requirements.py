"""Parts that tests need and a newcomer's machine may lack: test data, Java, a PKCS#11 token, packages without a wheel.

A test that lacks one is skipped, and the reason names what to install. With CI=true a skip is a failure (conftest.py).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

DATA = Path(os.environ.get("FASTPQ_TEST_DATA") or "/nowhere")
SOFTHSM_LIBRARIES = (
    "/usr/lib/softhsm/libsofthsm2.so",
    "/usr/lib64/pkcs11/libsofthsm2.so",
    "/opt/homebrew/lib/softhsm/libsofthsm2.so",
)

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="needs the test data, whose folder FASTPQ_TEST_DATA names")


class _Missing:
    """A package that is not installed: the first use of it skips a test."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):       # which is asked by who looks for tests
            raise AttributeError(name)
        pytest.skip(self.reason)


def peer(module: str, install: str | None = None) -> Any:
    """Import a package that has no wheel for some machines. Tests that use it are skipped where it is missing.

    Args:
        module: to import.
        install: its name for pip, where that is another one.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        return _Missing(f"needs {module} (pip install {install or module})")


def is_there(module: Any) -> bool:
    """Whether a peer could be imported."""
    return not isinstance(module, _Missing)


def needs(module: Any) -> None:
    """Skip a test where a peer is missing; at the head of a module, all of its tests."""
    if isinstance(module, _Missing):
        pytest.skip(module.reason, allow_module_level=True)


def java_jars() -> Path:
    """The folder of Spark's and parquet-java's jars, which PySpark brings, where there is a JDK to compile against them."""
    if missing := [command for command in ("java", "javac") if shutil.which(command) is None]:
        pytest.skip(f"needs {' and '.join(missing)} (Debian: apt-get install openjdk-17-jdk-headless)")
    pyspark = importlib.util.find_spec("pyspark")       # not imported, which takes a second
    if pyspark is None or pyspark.origin is None:
        pytest.skip("needs PySpark, with its jars (pip install 'fastpq[spark]')")
    return Path(pyspark.origin).parent / "jars"


def softhsm_library() -> str:
    """The PKCS#11 library of SoftHSM2."""
    library = next((path for path in SOFTHSM_LIBRARIES if Path(path).exists()), None)
    if library is None or shutil.which("softhsm2-util") is None:
        pytest.skip("needs SoftHSM2 (Debian: apt-get install softhsm2)")
    return library


def compiler() -> str:
    """The C compiler."""
    found = shutil.which(os.environ.get("CC", "cc"))
    if found is None:
        pytest.skip("needs a C compiler (Debian: apt-get install gcc)")
    return found


def needs_tpchgen() -> None:
    """Skip where the generator of TPC-H's tables is missing."""
    if not Path(sys.executable).with_name("tpchgen-cli").exists():
        pytest.skip("needs tpchgen-cli (pip install tpchgen-cli)")
