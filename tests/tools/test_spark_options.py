"""The tables of options in docs/pages/spark.md are made from the package's tables."""

from __future__ import annotations

import pytest

from tests.requirements import needs, peer

pyspark = peer("pyspark", "'fastpq[spark]'")


def test_the_page_is_not_stale() -> None:
    needs(pyspark)
    from tools import spark_options

    text = spark_options.PAGE.read_text()
    assert spark_options.page(text) == text, "python -m tools.spark_options writes the page"
    with pytest.raises(ValueError, match="has no line"):
        spark_options.page("no tables")


def test_rows_of_the_tables() -> None:
    needs(pyspark)
    from tools.spark_options import table

    reads = table("reads").splitlines()
    assert any(line.startswith("| `maxPartitionBytes` | 128 MiB | Largest number of file bytes") for line in reads)
    assert any(line.startswith("| `mergeSchema` | `false` |") for line in reads)
    assert any(line.startswith("| `timeZone` |  |") for line in reads)
    assert any(line.startswith("| `orphanSeconds` | 86,400 seconds |") for line in table("writes").splitlines())
    assert any(line.startswith("| `parquet.encryption.column.keys` |") for line in table("keys").splitlines())
