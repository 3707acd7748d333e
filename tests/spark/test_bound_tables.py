"""The option tableId: files of a table are bound to their names, in the Python source, through the jar and in jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
import fastpq.spark
from fastpq.encryption import KmsConnectionConfig
from tests.encryption.keys.peers import arrow_factory, factory
from tests.spark.conftest import CLIENT
from tests.spark.test_jvm_read import FORMAT

SERVICE: dict[str, Any] = {"kms.client": CLIENT}
TABLE: dict[str, Any] = {"tableId": "sales"}
KEYS: dict[str, Any] = {
    **SERVICE, **TABLE, "parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:price"}
REFUSAL = r"AAD prefix"


def data_files(folder: Path) -> list[Path]:
    files = folder.rglob("part-*.parquet")
    return sorted(path for path in files if not any(part[0] in "_." for part in path.relative_to(folder).parts))


def exchange(folder: Path) -> None:
    one, other = data_files(folder)[:2]
    for suffix in ("", ".crc"):
        places = [path if not suffix else path.with_name(f".{path.name}{suffix}") for path in (one, other)]
        if places[0].exists():
            aside = folder / "_aside"
            places[0].rename(aside)
            places[1].rename(places[0])
            aside.rename(places[1])


def prefixes(folder: Path) -> list[bytes | None]:
    return [fastpq.inspect_encryption(path).files[0].aad_prefix for path in data_files(folder)]


def bound(folder: Path) -> list[bytes | None]:
    return [f"sales|file|{path.name}|".encode() for path in data_files(folder)]


def pay_by_arrow(path: Path) -> int:
    keys = arrow_factory().file_decryption_properties(pe.KmsConnectionConfig(), pe.DecryptionConfiguration(), str(path))
    with pq.ParquetFile(path, decryption_properties=keys) as file:
        rows: int = file.read().num_rows
        return rows


@pytest.mark.parametrize("name", ["fastpq", FORMAT])
def test_exchanged_files_are_refused(source: Any, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "rows"
    frame = source.range(0, 300, 1, 3).selectExpr("id", "id / 4 as price", "id % 2 as part")
    for _ in range(2):
        writer = frame.write.format(name).mode("append").options(**KEYS)
        (writer.partitionBy("part") if name == FORMAT else writer.option("partitionBy", "part")).save(str(folder))
    assert prefixes(folder) == bound(folder)
    assert len({*bound(folder)}) == len(bound(folder)) == 12      # also in different partitions

    def count(**options: Any) -> int:
        rows = source.read.format(name).options(**SERVICE, **options).load(str(folder))
        total: int = rows.selectExpr("sum(price) > 0", "count(id)").first()[1]
        return total

    assert count(**TABLE) == count() == 600
    ours = factory().dataset_decryption_properties(KmsConnectionConfig(), table_id="sales")
    assert fastpq.read_dataset(folder, decryption_properties=ours).num_rows == 600
    assert source.read.parquet(str(folder)).count() == 600       # Spark's own reader takes the stored prefix
    (folder / "part=0").rename(folder / "part=7")
    assert count(**TABLE) == 600
    exchange(folder)
    with pytest.raises(Exception, match=REFUSAL):
        count(**TABLE)
    with pytest.raises(fastpq.CryptoError, match=REFUSAL):
        fastpq.read_dataset(folder, decryption_properties=ours)
    exchange(folder)
    with pytest.raises(Exception, match=REFUSAL):
        count(tableId="other")
    assert count(**TABLE) == 600


def test_jobs_keep_the_binding(source: Any, tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    source.range(0, 40, 1, 4).selectExpr("id", "id / 4 as price").write.parquet(str(folder))
    assert fastpq.spark.encrypt_dataset(source, str(folder), **KEYS).count() == 4
    assert prefixes(folder) == bound(folder)
    exchange(folder)
    for job in (fastpq.spark.rotate_keys, fastpq.spark.compact_dataset):
        with pytest.raises(fastpq.ParquetError, match=REFUSAL):
            job(source, str(folder), **KEYS)
    with pytest.raises(fastpq.ParquetError, match=REFUSAL):
        fastpq.spark.decrypt_dataset(source, str(folder), **SERVICE, **TABLE)
    exchange(folder)
    fastpq.spark.rotate_keys(source, str(folder), **KEYS)
    assert prefixes(folder) == bound(folder)
    fastpq.spark.compact_dataset(source, str(folder), **KEYS)
    (file,) = folder.glob("part-*.parquet")
    assert prefixes(folder) == bound(folder)
    assert pay_by_arrow(file) == 40
    assert fastpq.spark.read(source, str(folder), **SERVICE, **TABLE).count() == 40
    fastpq.spark.decrypt_dataset(source, str(folder), **SERVICE, **TABLE)
    assert source.read.parquet(str(folder)).count() == 40


def test_a_file_that_was_not_bound_is_refused(source: Any, tmp_path: Path) -> None:
    unbound = {name: value for name, value in KEYS.items() if name != "tableId"}
    frame = source.range(10).selectExpr("id", "id / 4 as price")
    frame.write.format("fastpq").mode("append").options(**unbound).save(str(tmp_path))
    assert fastpq.spark.read(source, str(tmp_path), **SERVICE).count() == 10
    with pytest.raises(Exception, match="without one"):
        fastpq.spark.read(source, str(tmp_path), **SERVICE, **TABLE).count()
