"""The project's metadata hold together, and the checks of release files refuse what does not belong in these."""

from __future__ import annotations

import argparse
import ast
import hashlib
import platform
import re
import runpy
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.requirements import needs, peer

auditwheel = peer("auditwheel", "'fastpq[release]'")

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
APACHE_2_SHA256 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"      # of the text that apache.org publishes
IMPORTERS = ("import_module", "LazyModule")
# packages that are installed under another name, or along with another package
DISTRIBUTIONS = {
    "google": "google-cloud-kms",
    "google_crc32c": "google-crc32c",
    "grpc": "google-cloud-kms",
    "lzo": "python-lzo",
    "pkcs11": "python-pkcs11",
    "snappy": "python-snappy",
    "azure": "adlfs",
    "botocore": "boto3",
    "requests": "hvac",
    "py4j": "pyspark",
}
USER_EXTRAS = (
    "cli", "spark", "remote", "async", "obstore", "s3", "abfs", "aws", "azure", "crc32c", "google", "vault", "pkcs11", "lzo",
    "pandas", "gcs", "polars", "iceberg",
)
CYTHON_ONLY = {"cpython", "cython", "libc"}


def imported_packages() -> set[str]:
    """Distributions whose packages some module of fastpq imports: at its head, in a function, for types or by name."""
    found: set[str] = set()
    for path in (ROOT / "fastpq").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            found |= imported_by(node)
    statement = re.compile(r"^\s*(?:c?import|from)\s+(\w+)[\w.]*(?:\s+c?import\b|\s+as\b|\s*$|\s*,)", re.MULTILINE)
    for path in (ROOT / "fastpq").rglob("*.pyx"):
        found |= set(statement.findall(path.read_text()))
    return {DISTRIBUTIONS.get(name, name) for name in found - sys.stdlib_module_names - CYTHON_ONLY - {"fastpq"}}


def imported_by(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        return {(node.module or "").split(".")[0]}
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in IMPORTERS:
            return {str(node.args[0].value).split(".")[0]}
    return set()


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}  # type: ignore[index]


def test_every_dependency_is_imported() -> None:
    assert names(PROJECT["dependencies"]) <= imported_packages()


def test_every_imported_package_is_a_dependency_or_an_extra() -> None:
    extras = PROJECT["optional-dependencies"]
    optional = set().union(*(names(extras[extra]) for extra in USER_EXTRAS))
    assert imported_packages() <= names(PROJECT["dependencies"]) | optional


def test_the_licence_is_the_whole_apache_licence() -> None:
    assert PROJECT["license"] == "Apache-2.0"
    assert PROJECT["license-files"] == ["LICENSE"]
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2_SHA256
    assert not [name for name in PROJECT["classifiers"] if name.startswith("License ::")]      # PEP 639: one or the other


def test_every_url_is_of_one_home() -> None:
    home = PROJECT["urls"]["Homepage"]
    assert home.startswith("https://")
    assert all(url == home or url.startswith(home + "/") for url in PROJECT["urls"].values())


def test_the_changelog_begins_with_the_version() -> None:
    version = runpy.run_path(str(ROOT / "fastpq" / "version.py"))["VERSION"]
    headings = re.findall(r"^## (\S+) \((?:not released|\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == version


def test_an_extension_depends_on_the_headers_that_its_c_includes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("setuptools.setup", lambda **options: None)
    included_headers = runpy.run_path(str(ROOT / "setup.py"))["included_headers"]
    source = tmp_path / "module.c"
    source.write_text('#include "Python.h"\n  #include "c/alp.h"\n')
    headers = included_headers(source)
    assert {"fastpq/encodings/c/alp.h", "fastpq/encodings/c/clones.h"} <= headers       # clones.h is included by alp.h
    assert "fastpq/encodings/c/delta.h" not in headers
    assert not [header for header in headers if not header.startswith("fastpq/")]


def test_classifiers_name_the_pythons_that_are_required_and_built() -> None:
    minors = [int(match[1]) for name in PROJECT["classifiers"] if (match := re.search(r"Python :: 3\.(\d+)$", name))]
    assert PROJECT["requires-python"] == f">=3.{min(minors)}"
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp3{minor}-*" for minor in minors]


def test_an_sdist_that_lacks_a_file_or_has_another_is_refused(tmp_path: Path) -> None:
    needs(auditwheel)
    from tools import artefacts

    for name in ("a.py", "b.py", "PKG-INFO"):
        (tmp_path / name).touch()
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as archive:
        for name in ("a.py", "b.py", "PKG-INFO"):
            archive.add(tmp_path / name, f"fastpq-1.0/{name}")
    artefacts.check_sdist(tmp_path / "x.tar.gz", ["a.py", "b.py"], "1.0")
    with pytest.raises(artefacts.ContentError, match=r"missing \['c.py'\]"):
        artefacts.check_sdist(tmp_path / "x.tar.gz", ["a.py", "b.py", "c.py"], "1.0")
    with pytest.raises(artefacts.ContentError, match=r"does not belong there \['b.py'\]"):
        artefacts.check_sdist(tmp_path / "x.tar.gz", ["a.py"], "1.0")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["fastpq/__init__.py", "fastpq/x.pyx"], "does not belong there .'fastpq/x.pyx'"),
        (["fastpq/__init__.py", "fastpq/c/x.h"], "does not belong there .'fastpq/c/x.h'"),
        (["fastpq/__init__.py", "tests/test_x.py"], "does not belong there .'tests/test_x.py'"),
        ([], "missing .'fastpq/__init__.py'"),
        (["fastpq/__init__.py"], "missing .'fastpq/spark/fastpq-spark.jar'"),
        (["fastpq/__init__.py", "fastpq/spark/fastpq-spark.jar"], "missing .*'libcrypto'"),
    ],
)
def test_a_wheel_with_other_files_is_refused(tmp_path: Path, files: list[str], message: str) -> None:
    needs(auditwheel)
    from tools import artefacts

    wheel = tmp_path / "fastpq-1.0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        extensions = [f"fastpq/{name}.cpython-311-x86_64-linux-gnu.so" for name in ("x", "_cython", "_kernel_calls")]
        for name in (*files, *extensions):
            archive.writestr(name, "")
        for name in artefacts.METADATA_FILES:
            archive.writestr(f"fastpq-1.0.dist-info/{name}", "")
    with pytest.raises(artefacts.ContentError, match=message):
        artefacts.check_wheel(wheel, ["fastpq/__init__.py", "fastpq/x.pyx", "fastpq/c/x.h", "tests/test_x.py"], "1.0")


@pytest.mark.linux        # ELF
def test_an_extension_with_symbols_is_refused() -> None:
    needs(auditwheel)
    from tools import artefacts

    library = next((ROOT / "fastpq").rglob("*.so"))
    with pytest.raises(artefacts.ContentError, match="is not stripped"):
        artefacts.check_linking("x", library.read_bytes(), set())


def test_a_release_without_any_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    needs(auditwheel)
    from tools import release

    nothing = argparse.Namespace(check=False, python=None)
    assert platform.python_version() in [one.version for one in release.chosen_interpreters(nothing)]
    monkeypatch.setattr(release, "interpreter_at", lambda path: None)
    with pytest.raises(release.ReleaseError, match=r"no Python 3\.11, "):
        release.chosen_interpreters(nothing)


def test_the_tests_of_wheels_exist() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    assert all((ROOT / path).exists() for path in settings["test-sources"])
    named = [word for command in settings["test-command"] for word in command.split() if "/" in word]
    assert len(named) >= 4
    assert all((ROOT / path).exists() for path in named)
