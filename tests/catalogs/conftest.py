"""A catalog of PyIceberg in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import is_there, peer


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Any]:
    for module, install in (("pyiceberg", "pyiceberg"), ("sqlalchemy", "sqlalchemy")):
        if not is_there(peer(module)):
            pytest.skip(f"needs {module} (pip install {install})")
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("tests", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("db")
    yield catalog
    catalog.close()
