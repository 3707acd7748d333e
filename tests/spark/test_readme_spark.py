"""The README's example of Spark runs as it stands, but for the name of a client that nobody has."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lineitem import lineitem
from tests.spark.conftest import CLIENT
from tests.test_readme import blocks

SCALE = 0.01


def test_the_pipeline(source: Any, java_kms: str, tmp_path: Path) -> None:
    if not java_kms or not Path(sys.executable).with_name("tpchgen-cli").exists():
        pytest.skip("needs javac, for the native source's key service, and tpchgen-cli")
    shutil.move(lineitem(SCALE, tmp_path), tmp_path / "lineitem.parquet")
    (example,) = blocks("python spark")
    assert "mycompany.kms:Client" in example
    namespace = {"spark": source, "folder": str(tmp_path)}
    exec(compile(example.replace("mycompany.kms:Client", CLIENT), "README.md, Spark", "exec"), namespace)
    assert namespace["found"][0] > 0
    assert {path.parent.name for path in (tmp_path / "items").rglob("*.parquet")} >= {"l_shipmode=AIR", "l_shipmode=RAIL"}
