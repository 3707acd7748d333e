"""Requirements of tests beyond fastpq's own: test data, Java, a PKCS#11 token, packages without a wheel.

A test is skipped where a requirement is missing; the reason names the package to install. With CI=true a skip is a failure
(conftest.py).
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
    """Stands for a package that is not installed; the first use of an attribute skips the test."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):       # pytest asks for these attributes when it collects tests
            raise AttributeError(name)
        pytest.skip(self.reason)


def peer(module: str, install: str | None = None) -> Any:
    """Import a package without a wheel for some machines. Tests with a missing package are skipped.

    Args:
        module: name of the module to import.
        install: name of the package for pip, if different.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        return _Missing(f"needs {module} (pip install {install or module})")


def is_there(module: Any) -> bool:
    """Whether a peer could be imported."""
    return not isinstance(module, _Missing)


def needs(module: Any) -> None:
    """Skip a test without its peer; called at the head of a module, all tests of the module."""
    if isinstance(module, _Missing):
        pytest.skip(module.reason, allow_module_level=True)


def java_jars() -> Path:
    """The folder of Spark's and parquet-java's jars in PySpark; skips the test without PySpark or a JDK."""
    if missing := [command for command in ("java", "javac") if shutil.which(command) is None]:
        pytest.skip(f"needs {' and '.join(missing)} (Debian: apt-get install openjdk-17-jdk-headless)")
    pyspark = importlib.util.find_spec("pyspark")       # not imported: the import takes a second
    if pyspark is None or pyspark.origin is None:
        pytest.skip("needs PySpark, with its jars (pip install 'fastpq[spark]')")
    return Path(pyspark.origin).parent / "jars"


def softhsm_library() -> str:
    """Path of the PKCS#11 library of SoftHSM2; skips the test without SoftHSM2."""
    library = next((path for path in SOFTHSM_LIBRARIES if Path(path).exists()), None)
    if library is None or shutil.which("softhsm2-util") is None:
        pytest.skip("needs SoftHSM2 (Debian: apt-get install softhsm2)")
    return library


def compiler() -> str:
    """Path of the C compiler; skips the test without a compiler."""
    found = shutil.which(os.environ.get("CC", "cc"))
    if found is None:
        pytest.skip("needs a C compiler (Debian: apt-get install gcc)")
    return found


def has_font() -> bool:
    """Whether resvg-py is there, and a font for the text in its images."""
    resvg = peer("resvg_py", "resvg-py")
    if isinstance(resvg, _Missing):
        return False
    from fastpq.picture.file_picture import _font

    return _font(resvg) is not None


def needs_png() -> None:
    """Skip a test without resvg-py, or without a font for the text in images."""
    needs(peer("resvg_py", "resvg-py"))
    if not has_font():
        pytest.skip("needs a font (Debian: apt-get install fonts-dejavu-core)")


def needs_tpchgen() -> None:
    """Skip a test without tpchgen-cli, the generator of TPC-H's tables."""
    if not Path(sys.executable).with_name("tpchgen-cli").exists():
        pytest.skip("needs tpchgen-cli (pip install tpchgen-cli)")
