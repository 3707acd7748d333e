"""What the driver sends to executors: they load it only with the driver's versions."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import types as st

from fastpq.spark import sent
from fastpq.spark.jobs.running import TaskOutcome, Work
from fastpq.spark.options import write_options
from fastpq.spark.scan.file_scan import ScanPlan
from fastpq.spark.write.folder_writer import Writer
from fastpq.version import VERSION

SCHEMA = st.StructType([st.StructField("id", st.LongType())])


class SentToOtherVersion(sent.SentToExecutors):
    """An object whose class an older fastpq does not have."""


@pytest.fixture(params=["plan", "writer", "work"])
def object_of_driver(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "plan":
        return ScanPlan(SCHEMA, batch_rows=7)
    if request.param == "writer":
        return Writer(SCHEMA, write_options({"path": str(tmp_path / "rows")}), False)
    return Work("does nothing", lambda item: (str(item), 0), lambda item: TaskOutcome())


def test_an_executor_with_the_same_versions(object_of_driver: Any) -> None:
    loaded = pickle.loads(cloudpickle.dumps(object_of_driver))
    assert type(loaded) is type(object_of_driver)
    assert loaded.__dict__.keys() == object_of_driver.__dict__.keys()
    if isinstance(object_of_driver, ScanPlan):
        assert loaded == copy.deepcopy(object_of_driver) == object_of_driver


@pytest.mark.parametrize(("name", "value"), [("VERSION", "0.0.9"), ("PYTHON", "3.99")])
def test_an_executor_with_other_versions(
    object_of_driver: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    pickled = cloudpickle.dumps(object_of_driver)
    driver = f"the driver runs fastpq {VERSION} with Python {sent.PYTHON}"
    monkeypatch.setattr(sent, name, value)
    with pytest.raises(sent.VersionError, match=value) as caught:
        pickle.loads(pickled)
    assert str(caught.value).startswith(driver)


def test_versions_are_compared_before_a_class_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pickled = pickle.dumps(SentToOtherVersion())
    monkeypatch.delitem(globals(), "SentToOtherVersion")
    with pytest.raises(AttributeError, match="SentToOtherVersion"):
        pickle.loads(pickled)
    monkeypatch.setattr(sent, "VERSION", "0.0.9")
    with pytest.raises(sent.VersionError, match=r"0\.0\.9"):
        pickle.loads(pickled)
