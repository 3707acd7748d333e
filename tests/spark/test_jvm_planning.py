"""Answers of planning for the jar, without a session: conditions on folders, aggregates, files that change, footers read."""

from __future__ import annotations

import base64
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import types as st

import fastpq
from fastpq.errors import KeyAccessError
from fastpq.spark import footers
from fastpq.spark.batches import FileScan, open_file
from fastpq.spark.filters import holds
from fastpq.spark.jvm import scan
from fastpq.spark.jvm.planning import answer

NAN = float("nan")


def asked(what: str, path: Path, table: st.StructType, **more: Any) -> Any:
    """The answer to a question about a dataset, as the jar asks."""
    session = {"spark.sql.session.timeZone": "UTC", "cores": 1}
    return answer({
        "ask": what, "options": {"path": str(path)}, "session": session, "table": table.json(), "schema": table.json(),
        "files": None, "conditions": [], "statistics": False, "averages": [], **more,
    })


def table_of(**types: st.DataType) -> st.StructType:
    return st.StructType([st.StructField(name, type_) for name, type_ in types.items()])


def parted(path: Path, *texts: str) -> Path:
    """A dataset with a folder of ``p`` for each text, of three rows each."""
    for text in texts:
        folder = path / f"p={text}"
        folder.mkdir(parents=True)
        fastpq.write_table({"id": [1, 2, 3]}, folder / "file.parquet")
    return path


def files_in(plan: Any) -> list[str]:
    return sorted(Path(split.file.path).parent.name for task in plan["tasks"] for split in pickle.loads(base64.b64decode(task)))


@pytest.mark.parametrize(
    ("type_", "texts", "op", "wanted", "left"),
    [
        (st.DoubleType(), ("NaN", "1.5"), ">", "1.0", ["p=1.5", "p=NaN"]),
        (st.DoubleType(), ("NaN", "1.5"), "=", "NaN", ["p=NaN"]),
        (st.DoubleType(), ("NaN", "1.5"), "<", "NaN", ["p=1.5"]),
        (st.DoubleType(), ("0.1", "1.5"), "=", "0.1", ["p=0.1"]),
        (st.FloatType(), ("0.1", "1.5"), "=", "0.1", ["p=0.1"]),
        (st.FloatType(), ("0.1", "1e39"), ">", "3e38", ["p=1e39"]),
    ],
)
def test_conditions_on_folders_of_floating_point_numbers(
    tmp_path: Path, type_: st.DataType, texts: tuple[str, ...], op: str, wanted: str, left: list[str]
) -> None:
    """NaN is the largest number, FLOAT has 32 bits, and Spark applies the conditions again."""
    path, table = parted(tmp_path, *texts), table_of(id=st.LongType(), p=type_)
    tree = [op, ["p"], {"float": wanted}]
    assert asked("filters", path, table, filters=[tree])["verdicts"] == ["pruning"]
    assert files_in(asked("plan", path, table, conditions=[{"tree": tree}])) == left


def test_conditions_on_folders_of_whole_numbers_are_exact(tmp_path: Path) -> None:
    path, table = parted(tmp_path, "1", "2"), table_of(id=st.LongType(), p=st.IntegerType())
    assert asked("filters", path, table, filters=[[">", ["p"], {"integer": "1"}]])["verdicts"] == ["exact"]


@pytest.mark.parametrize(
    ("value", "op", "wanted", "expected"),
    [
        (NAN, "==", float("nan"), True), (NAN, "!=", float("nan"), False), (NAN, ">", float("inf"), True), (NAN, ">=", NAN, True),
        (NAN, "<", NAN, False), (1.5, "<", NAN, True), (1.5, "!=", NAN, True), (NAN, "in", [1.0, float("nan")], True),
        (NAN, "not in", [float("nan")], False), (1.5, "not in", [NAN], True), (1.5, "not in", [NAN, None], False),
        (1.5, "in", [None, 1.5], True), (-0.0, "==", 0.0, True),
    ],
)
def test_the_order_of_nan(value: float, op: str, wanted: Any, expected: bool) -> None:
    assert holds(value, op, wanted) is expected


def test_aggregates_of_long_decimals_in_folders(tmp_path: Path) -> None:
    digits = "12345678901234567890123456789012345"
    path, table = parted(tmp_path, digits[:-3] + "." + digits[-3:]), table_of(id=st.LongType(), p=st.DecimalType(38, 3))
    rows = asked("aggregates", path, table, groups=["p"], aggregates=[["max", ["column", "p"]], ["count"]])["rows"]
    assert rows == [[digits, digits, "3"]]


@pytest.mark.parametrize(
    ("type_", "text"), [(st.DoubleType(), "1.5"), (st.FloatType(), "1.5"), (st.TimestampType(), "2020-01-01 00%3A00%3A00")]
)
def test_groups_without_a_form_in_json_are_left_to_spark(tmp_path: Path, type_: st.DataType, text: str) -> None:
    path, table = parted(tmp_path, text), table_of(id=st.LongType(), p=type_)
    assert asked("aggregates", path, table, groups=["p"], aggregates=[["count"]])["rows"] is None
    assert asked("aggregates", path, table, groups=[], aggregates=[["count", ["column", "p"]]])["rows"] == [["3"]]


def test_folders_of_text_with_a_collation_are_left_to_spark(tmp_path: Path) -> None:
    """Spark takes a and A for one group, and for one extreme."""
    path, table = parted(tmp_path, "a", "A"), table_of(id=st.LongType(), p=st.StringType("UTF8_LCASE"))
    assert asked("aggregates", path, table, groups=["p"], aggregates=[["count"]]) == {"rows": None, "types": None}
    assert asked("aggregates", path, table, groups=[], aggregates=[["min", ["column", "p"]]]) == {"rows": None, "types": None}
    assert asked("aggregates", path, table, groups=[], aggregates=[["count", ["column", "p"]]])["rows"] == [["6"]]


def test_a_jar_of_another_version(tmp_path: Path) -> None:
    path, table = parted(tmp_path, "1"), table_of(id=st.LongType(), p=st.IntegerType())
    question: dict[str, Any] = {
        "options": {"path": str(path)}, "session": {}, "table": table.json(), "files": None, "conditions": [],
    }
    with pytest.raises(ValueError, match="the jar and fastpq are of different versions"):
        answer({"ask": "aggregates", **question, "groups": [], "aggregates": [["count"]]})


def test_a_plan_anew_keeps_what_spark_knows_from_the_first(tmp_path: Path) -> None:
    """A file of nulls, and a file more, between the plans: the tasks promise the columns without nulls of the first plan."""
    path, table = parted(tmp_path, "1", "2"), table_of(id=st.LongType(), p=st.IntegerType())
    first = asked("plan", path, table)
    assert first["complete"] == ["id"]
    parted(tmp_path, "3")
    fastpq.write_table({"id": np.ma.masked_array([1, 2, 3], [False, True, False])}, tmp_path / "p=2" / "file.parquet")
    assert asked("plan", path, table)["complete"] == []
    narrower = {"tree": [">", ["p"], {"integer": "1"}]}
    again = asked("plan", path, table, complete=first["complete"], files=first["files"], conditions=[narrower])
    assert again["complete"] == ["id"]
    assert pickle.loads(base64.b64decode(again["plan"]))[0].handover.complete == {"id"}
    assert files_in(again) == ["p=2"]
    assert again["files"] is None       # the question had them


def test_a_column_that_is_gone_after_planning(tmp_path: Path) -> None:
    """Spark's code for columns without nulls would read zeros: the task refuses instead."""
    fastpq.write_table({"id": [1, 2, 3], "x": [4, 5, 6]}, tmp_path / "file.parquet")
    plan = asked("plan", tmp_path, table_of(id=st.LongType(), x=st.LongType()))
    assert plan["complete"] == ["id", "x"]
    fastpq.write_table({"id": [1, 2, 3]}, tmp_path / "file.parquet")
    (task,) = plan["tasks"]
    with pytest.raises(fastpq.FormatError, match="x"):
        list(scan.batches(base64.b64decode(plan["plan"]), base64.b64decode(task)))


def test_statistics_of_many_files_open_each_footer_a_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, names = 10, [f"c{number}" for number in range(20)]
    for number in range(files):
        fastpq.write_table({name: [number, number + 1] for name in names}, tmp_path / f"{number}.parquet")
    monkeypatch.setattr(footers, "MOST_KEPT", 4)
    opened: list[str] = []

    def counted(path: str, service: Any) -> Any:
        opened.append(path)
        return open_file(path, service)

    monkeypatch.setattr(footers, "open_file", counted)
    plan = asked("plan", tmp_path, table_of(**{name: st.LongType() for name in names}), statistics=True)
    assert plan["columns"] == {name: {"nulls": 0, "min": "0", "max": "10", "distinct": 11} for name in names}
    assert len(opened) <= 3 * files


def test_a_lookup_of_columns_whose_keys_the_driver_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks read the rows."""
    fastpq.write_table({"id": [1, 2]}, tmp_path / "a.parquet")
    table, tree = table_of(id=st.LongType()), ["=", ["id"], {"integer": "2"}]
    more = {"lookup": True, "conditions": [{"tree": tree}]}
    assert asked("filters", tmp_path, table, filters=[tree], whole=True) == {"verdicts": ["exact"], "lookup": True}
    assert asked("lookup", tmp_path, table, **more) == {"rows": [["2"]]}

    def refuse(scan: FileScan) -> None:
        raise KeyAccessError("no key")

    monkeypatch.setattr(FileScan, "batches", refuse)
    assert asked("lookup", tmp_path, table, **more) == {"rows": None}
    assert len(asked("plan", tmp_path, table, **more)["tasks"]) == 1
