"""Spark's own reader and writer, with the KmsClient of ManagedKeys.java, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import fastpq
from fastpq.encryption import EncryptionConfiguration, KmsConnectionConfig
from tests.encryption.keys.peers import MASTER_KEYS, factory, key_list
from tests.interop.parquet_java import class_path

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark cluster")]

# reads each of fastpq's files, and writes its own: internal, external, uniform
SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
classes, keys, folder, *files = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.extraClassPath", classes)
for name, value in {
    "parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory",
    "parquet.encryption.kms.client.class": "ManagedKeys$Kms", "test.wrap": keys, "test.unwrap": keys,
}.items():
    builder = builder.config(f"spark.hadoop.{name}", value)
spark = builder.getOrCreate()
sums = [list(spark.read.parquet(file).selectExpr("count(*)", "sum(id)", "sum(price)").first()) for file in files]
frame = spark.range(1000).selectExpr("id", "id / 4 as price").coalesce(1)
for name, options in {
    "internal": {"footer.key": "kf", "column.keys": "kc1:price"},
    "external": {"footer.key": "kf", "column.keys": "kc1:price", "key.material.store.internally": "false"},
    "uniform": {"uniform.key": "kc2"},
}.items():
    writer = frame.write
    for option, value in options.items():
        writer = writer.option(f"parquet.encryption.{option}", value)
    writer.parquet(f"{folder}/{name}")
print("RESULT" + json.dumps(sums))
spark.stop()
"""


def test_spark(tmp_path: Path) -> None:
    class_path(tmp_path)
    rows = np.arange(5_000)
    files = []
    for double in (True, False):
        for internal in (True, False):
            path = tmp_path / f"{double}-{internal}.parquet"
            configuration = EncryptionConfiguration(
                "kf", column_keys={"kc1": ["price"]}, double_wrapping=double, internal_key_material=internal
            )
            keys = factory().file_encryption_properties(KmsConnectionConfig(), configuration, path)
            fastpq.write_table({"id": rows, "price": rows / 4}, path, encryption_properties=keys)
            files.append(str(path))
    assert len(factory().rotate_master_keys(KmsConnectionConfig(), tmp_path / "True-False.parquet")) == 1
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), key_list(MASTER_KEYS), str(tmp_path), *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"RESULT{[[5_000, int(rows.sum()), float((rows / 4).sum())]] * 4}" in done.stdout
    for name in ("internal", "external", "uniform"):
        [part] = (tmp_path / name).glob("part-*.parquet")
        opened = factory().file_decryption_properties(KmsConnectionConfig(), None, part)
        table = pa.table(fastpq.read_table(part, decryption_properties=opened))
        assert table["id"].to_pylist() == list(range(1000))
        assert table["price"].to_pylist() == [number / 4 for number in range(1000)]
        assert len(list((tmp_path / name).glob("_KEY_MATERIAL_FOR_*.json"))) == (name == "external")
