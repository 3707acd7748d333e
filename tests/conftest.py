"""Configuration of all tests: one seed, marks for slow tests, servers for a whole session, and no skip on CI."""

from __future__ import annotations

import os
import random
import sys
import sysconfig
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests import bytecode, requirements  # noqa: F401 - by its import, bytecode is kept
from tests.interop.parquet_java import ParquetJava
from tests.io.azure_server import azure_server
from tests.io.google_server import google_server
from tests.io.object_stores import KINDS, Store, moto_server

# No deadline for hypothesis examples: test machines are shared, so that an example's duration varies.
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")

# Servers by fixture. Tests with the fixture are marked slow and run in one process, so that one process starts the server.
SERVERS = {"parquet_java": "parquet-java", "spark": "spark", "on_cluster": "spark cluster"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bloom-probes", type=int, default=2_000_000, help="values inserted and probed (default: %(default)s)")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose one seed, before pytest-randomly and hypothesis do, for the order of tests and all random values."""
    if not config.pluginmanager.hasplugin("randomly"):
        return
    seed = getattr(config, "workerinput", {}).get("randomly_seed", config.option.randomly_seed)
    if seed == "default":
        seed = random.SystemRandom().getrandbits(32)
    config.option.randomly_seed = seed
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = seed


def pytest_report_header() -> str:
    return f"test data (FASTPQ_TEST_DATA): {requirements.DATA if requirements.DATA.is_dir() else 'none'}"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how to repeat a run that failed."""
    seed = getattr(config.option, "randomly_seed", None)
    if seed is not None and (terminalreporter.stats.get("failed") or terminalreporter.stats.get("error")):
        terminalreporter.write_line(f"seed of the order and of random values: --randomly-seed={seed}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of servers and run these first, then other slow ones: no process ends long after the others.

    Tests of other systems are deselected.
    """
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        for server in SERVERS.keys() & fixtures:
            item.add_marker("slow")
            item.add_marker(pytest.mark.xdist_group(SERVERS[server]))
    absent = {"linux"} if sys.platform != "linux" else set()
    if "FASTPQ_TEST_FIPS" not in os.environ:
        absent.add("fips")
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        absent.add("free_threaded")
    foreign = [item for item in items if any(item.get_closest_marker(name) for name in absent)]
    items[:] = [item for item in items if item not in foreign]
    config.hook.pytest_deselected(items=foreign)
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in ("xdist_group", "slow")])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail where pytest-xdist lost the groups, which it adds to the names of tests: each process would start every server."""
    if getattr(item.config.option, "loadgroup", False) and item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
        pytest.fail("pytest-xdist passes over xdist_group: install pytest<9.2 (pip install --editable '.[dev]')", pytrace=False)


# ---- no skip on CI


def fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI") == "true" and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"a test was skipped, which is a failure where CI=true: {reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    fail_if_skipped(report)
    return report


# ---- servers of a session


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """The URL of moto's server of AWS KMS and S3."""
    with moto_server() as url:
        yield url


@pytest.fixture(scope="session")
def azure_url() -> Iterator[str]:
    """The URL of a server of Azure's Blob Storage."""
    with azure_server() as url:
        yield os.environ.get("FASTPQ_TEST_AZURE", url)


@pytest.fixture(scope="session")
def google_url() -> Iterator[str]:
    """The URL of a server of Google's store."""
    with google_server() as url:
        yield os.environ.get("FASTPQ_TEST_GOOGLE", url)


@pytest.fixture(scope="session", params=KINDS)
def object_store(request: pytest.FixtureRequest) -> Store:
    """Each kind of object store, with its server."""
    kind = request.param
    return Store(kind, request.getfixturevalue({"s3": "moto_url", "azure": "azure_url", "google": "google_url"}[kind]))


@pytest.fixture(scope="session")
def parquet_java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ParquetJava]:
    """A JVM with parquet-java, for the whole session."""
    with ParquetJava(tmp_path_factory.mktemp("classes")) as running:
        yield running
