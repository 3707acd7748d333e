"""Ray Data reads datasets through fastpq. test_pinned_engines.py runs this file in an environment with Ray."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest
import ray
from ray.data.expressions import col

import fastpq
from fastpq.adapters import read_ray
from fastpq.adapters.dataset_tasks import arrow_task
from fastpq.adapters.ray_source import _RaySource
from tests.adapters.counted import FILES, KEY_FUNCTION, ROWS, CountedDataset, has_no_key, keys_of


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Ray on this machine, with one process for tasks."""
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def test_queries(counted: CountedDataset) -> None:
    """Each is one plan. Each gives what it gives for a table in memory."""
    rows = read_ray(counted.folder, **counted.options(by_name=True))
    assert rows.count() == FILES * ROWS
    assert rows.schema().names == ["id", "noise", "text", "value"]
    assert rows.filter(expr=col("id") > 299_996).select_columns(["text"]).take_all() == [
        {"text": f"row {number}"} for number in (997, 998, 999)
    ]
    partly = rows.filter(expr=(col("id") > 290_000) & (col("id") * 2 < 580_010))
    assert sorted(row["id"] for row in partly.take_all()) == [290_001, 290_002, 290_003, 290_004]
    assert rows.filter(expr=col("text") == "row 7").count() == FILES * ROWS // 1000
    assert rows.filter(expr=col("id") < 0).count() == 0
    assert rows.limit(2).take_all()[1]["id"] == 1


def test_bytes(counted: CountedDataset) -> None:
    def read() -> Any:
        return read_ray(str(counted.folder), **counted.options(by_name=True))

    assert counted.share(lambda: read().materialize()) > 1.0
    assert counted.share(lambda: read().select_columns(["value"]).materialize()) < 0.15
    assert counted.share(lambda: read().filter(expr=col("id") == 5).select_columns(["text"]).materialize()) < 0.2


def test_tasks(counted: CountedDataset) -> None:
    source = _RaySource(arrow_task(counted.folder, **_decryption(counted), options={}))
    for number, expected in ((1, 1), (2, 2), (100, FILES)):
        tasks = source.get_read_tasks(number)
        assert len(tasks) == expected
        assert sum(task.metadata.num_rows for task in tasks) == FILES * ROWS
        assert pa.concat_tables([table for task in tasks for table in task()]).num_rows == FILES * ROWS


def _decryption(counted: CountedDataset) -> dict[str, Any]:
    return {"decryption": KEY_FUNCTION if counted.is_encrypted else None}


def test_no_key_in_a_plan_or_a_task(encrypted: CountedDataset) -> None:
    rows = read_ray(encrypted.folder, **encrypted.options(by_name=True)).filter(expr=col("id") > 5).select_columns(["text"])
    assert has_no_key(repr(rows) + str(rows) + rows.stats() + str(rows._logical_plan.dag))
    source = _RaySource(arrow_task(encrypted.folder, KEY_FUNCTION, {}))
    for thing in (source, source.get_read_tasks(2)):
        content = cloudpickle.dumps(thing)
        assert has_no_key(content)
        assert KEY_FUNCTION.encode() in content


def test_keys_that_cannot_reach_a_task(encrypted: CountedDataset) -> None:
    for keys in (keys_of(""), lambda path: keys_of(path)):
        with pytest.raises(fastpq.UnsupportedError, match="keys never enter a task"):
            read_ray(encrypted.folder, decryption_properties=keys)      # type: ignore[arg-type]
        source = _RaySource(arrow_task(encrypted.folder, keys, {}))
        for dumps in (pickle.dumps, cloudpickle.dumps):
            with pytest.raises(fastpq.UnsupportedError, match="keys never enter a task"):
                dumps(source)
