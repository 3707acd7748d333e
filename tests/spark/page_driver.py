"""Runs the Spark examples in pages, in a session whose jar is loaded as README says.

``python -m tests.spark.page_driver FOLDER JAR PAGE...``: JAR has the key service in Java for Spark's own reader.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import fastpq.spark
from benchmarks.lineitem import lineitem
from tests.encryption.keys.peers import MASTER_KEYS, key_list
from tests.spark.conftest import CLIENT
from tests.spark.jvms import RUN_LOCALLY
from tests.test_docs import blocks, run

SCALE = 0.01
THEIR_CLIENT = "mycompany.kms:Client"
SHIP_MODES = {"l_shipmode=AIR", "l_shipmode=RAIL"}


def run_page(page: Path, spark: Any, folder: Path, old: str = "", new: str = "") -> int:
    """Run all Spark examples of a page in one namespace, in order, and check the dataset and the revenue.

    Args:
        page: the page.
        spark: the session.
        folder: an empty folder.
        old: text that some example has.
        new: text that takes its place.

    Returns:
        The number of examples with the old text.
    """
    shutil.move(lineitem(SCALE, folder), folder / "lineitem.parquet")
    namespace = {"spark": spark, "folder": str(folder)}
    examples = [block for block in blocks(page) if block.words == {"python", "spark"}]
    for block in examples:
        run(page, block._replace(body=block.body.replace(THEIR_CLIENT, CLIENT).replace(old, new)), namespace)
    assert namespace["revenue"][0] > 0
    assert {path.parent.name for path in (folder / "items").rglob("*.parquet")} >= SHIP_MODES
    return sum(old in block.body for block in examples)


def start(jar: str) -> Any:
    """Start a session with fastpq's jar and with the key service in Java."""
    settings = {
        **RUN_LOCALLY,
        "spark.jars": f"{fastpq.spark.jar_path()},{jar}",
        "spark.sql.shuffle.partitions": "2",
        "spark.hadoop.parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory",
        "spark.hadoop.parquet.encryption.kms.client.class": "ManagedKeys$Kms",
        "spark.hadoop.test.wrap": key_list(MASTER_KEYS),
        "spark.hadoop.test.unwrap": key_list(MASTER_KEYS),
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


if __name__ == "__main__":
    session = start(sys.argv[2])
    for number, name in enumerate(sys.argv[3:]):
        folder = Path(sys.argv[1], str(number))
        folder.mkdir()
        run_page(Path(name), session, folder)
        assert fastpq.spark.session.has_jar(session)
        print(f"{name}: passed")
    session.stop()
