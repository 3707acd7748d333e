"""CSV keeps the difference between a null and a text that is empty or looks like the null's text."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path

import pytest

import fastpq
from fastpq.cli import csv_text
from fastpq.cli.csv_text import QuotedText, read_rows, row_writer
from fastpq.cli.failures import CommandFailure
from tests.cli.running import Runner

PIECES = ["a", '"', ",", "\n", "\r\n", "\r", "", "NULL", " ", '""']


def lines_of(text: str) -> io.StringIO:
    return io.StringIO(text, newline="")


@pytest.mark.parametrize("null", ["", "NULL"])
def test_random_rows_come_back(null: str) -> None:
    rng = random.Random(1)
    for _ in range(2000):
        rows = [[None if rng.random() < 0.2 else "".join(rng.choices(PIECES, k=rng.randrange(4))) for _ in "xyz"] for _ in "ab"]
        text = "".join(map(row_writer(null, ","), rows))
        back = [
            [None if field == null and not isinstance(field, QuotedText) else field for field in row.fields]
            for row in read_rows(lines_of(text), "x", null, ",")
        ]
        assert back == rows, text
        assert [*csv.reader(lines_of(text), strict=True)] == [[null if field is None else field for field in row] for row in rows]


def test_other_text_is_read_as_by_pythons_reader() -> None:
    rng = random.Random(2)
    for _ in range(5000):
        text = "".join(rng.choices(["a", '"', ",", "\n"], k=8))
        try:
            expected = [row or [""] for row in csv.reader(lines_of(text), strict=True)]
        except csv.Error:
            with pytest.raises(CommandFailure):
                list(read_rows(lines_of(text), "x", "", ","))
        else:
            assert [row.fields for row in read_rows(lines_of(text), "x", "", ",")] == expected, text


def test_a_field_without_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_text, "LARGEST_FIELD", 100)
    with pytest.raises(CommandFailure, match="line 6: a field in quotes has over 100 characters"):
        list(read_rows(iter(['"' + "x" * 18 + "\n"] * 1 + ["y" * 19 + "\n"] * 50), "x", "", ","))


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("options", [(), ("--null", "NULL"), ("--null", "7")])
def test_nulls_and_empty_texts_come_back(
    options: tuple[str, ...], ending: str, command: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = {"text": ["", None, "NULL", "7", "a,b\tc"], "number": [7, None, 8, 9, 10], "": ["", "", None, None, "x"]}
    fastpq.write_table(table, "m.parquet")
    fastpq.write_table({"only": table["text"]}, "one.parquet")
    for name, columns in (("m", table), ("one", {"only": table["text"]})):
        assert command("convert", f"{name}.parquet", "-o", f"{name}.{ending}", *options).code == 0
        result = command("convert", f"{name}.{ending}", "-o", "back.parquet", *options)
        assert result.code == 0, result.err
        back = fastpq.read_table("back.parquet")
        assert {column: back[column].to_pylist() for column in back.names} == columns


def test_the_text_of_nulls(command: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fastpq.write_table({"a": ["", None, "NULL"], "b": [1, None, 2]}, "m.parquet")
    assert command("convert", "m.parquet", "-o", "m.csv", "--null", "NULL").code == 0
    assert Path("m.csv").read_text() == 'a,b\n"",1\nNULL,NULL\n"NULL",2\n'
    assert command("cat", "m.parquet", "-f", "csv").out == 'a,b\n"",1\n,\nNULL,2\n'
    for place in (("m.parquet", "-o", "x.csv"), ("m.csv", "-o", "x.parquet")):
        code, _, err = command("convert", *place, "--null", "a,b")
        assert (code, "--null 'a,b'" in err) == (2, True)
        assert not Path(place[-1]).exists()


def test_all_fields_in_quotes(command: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some programs write numbers and nulls in quotes too."""
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text('"number","text"\n"1","a"\n"",""\n')
    assert command("convert", "x.csv", "-o", "x.parquet").code == 0
    assert fastpq.read_table("x.parquet").to_pylist() == [{"number": 1, "text": "a"}, {"number": None, "text": ""}]
