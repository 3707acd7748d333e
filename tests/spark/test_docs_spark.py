"""The documentation's examples of Spark run as they stand, but for the name of a client that nobody has."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lineitem import lineitem
from tests.requirements import needs_tpchgen
from tests.spark.conftest import CLIENT
from tests.test_docs import blocks, name_of, run, with_blocks

SCALE = 0.01
THEIR_CLIENT = "mycompany.kms:Client"


@pytest.mark.parametrize("page", with_blocks("python", "spark"), ids=name_of)
def test_spark_examples(page: Path, source: Any, tmp_path: Path) -> None:
    """All of a page in one namespace, in order; ``spark`` and ``folder`` are there."""
    needs_tpchgen()
    shutil.move(lineitem(SCALE, tmp_path), tmp_path / "lineitem.parquet")
    namespace = {"spark": source, "folder": str(tmp_path)}
    for block in blocks(page):
        if block.words == {"python", "spark"}:
            run(page, block._replace(body=block.body.replace(THEIR_CLIENT, CLIENT)), namespace)
    assert namespace["found"][0] > 0
    assert {path.parent.name for path in (tmp_path / "items").rglob("*.parquet")} >= {"l_shipmode=AIR", "l_shipmode=RAIL"}
