"""An option is one row of a table: everything else that shows it is made from the row."""

from __future__ import annotations

import json
from pathlib import Path

from tests.tools.package_copy import PackageCopy
from tools import keywords

ROW = '    novelty: int | None = option(None, "Number of wonders.", unit="wonders", least=3)\n'
READER_ROW = '    curiosity: bool = option(False, "Look twice.", level="dataset")\n'
SHOWN = """
import inspect, json, typing
import fastpq
from fastpq.api import keywords
from fastpq.options import WriterProperties, with_options
from fastpq.spark import compact_dataset, option_keywords

def error(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

writers = fastpq.write_table, fastpq.ParquetWriter, fastpq.write_dataset
readers = fastpq.read_table, fastpq.ParquetFile, fastpq.read_dataset
print(json.dumps({
    "writers": [str(inspect.signature(each).parameters["novelty"]) for each in writers],
    "readers": [str(inspect.signature(each).parameters["curiosity"]) for each in readers],
    "help": [
        "Number of wonders. Unit: wonders. Default ``None``." in each.__doc__
        for each in (*writers, WriterProperties, compact_dataset)
    ],
    "reader help": ["Look twice." in each.__doc__ for each in readers],
    "types": [name in typed.__annotations__ for name, typed in [
        ("novelty", keywords.WriterOptions), ("novelty", option_keywords.CompactionKeywords),
        ("curiosity", keywords.ReaderOptions), ("curiosity", keywords.DatasetReaderOptions),
    ]],
    "near": error(lambda: with_options(None, {"novelti": 1})),
    "small": error(lambda: WriterProperties(novelty=2)),
    "text": error(lambda: WriterProperties(novelty="2")),
    "reader": error(lambda: fastpq.read_table(b"", curiosities=True)),
}))
"""


def test_the_stub_is_not_stale() -> None:
    assert keywords.STUB.read_text() == keywords.stub(), "python -m tools.keywords writes the stub"
    assert keywords.SPARK_STUB.read_text() == keywords.spark_stub(), "python -m tools.keywords writes the stub"


def test_an_option_is_one_row(tmp_path: Path) -> None:
    """One file is edited for an option, and the tool writes the stub."""
    copy = PackageCopy(tmp_path / "copy")
    copy.insert("fastpq/options.py", "Mapping from text to text that is stored in the footer.\")\n", ROW)
    copy.insert("fastpq/api/reader_options.py", "(fastpq.arrow.hints).\",\n        level=\"dataset\",\n    )\n", READER_ROW)
    edited = copy.changed_files()
    assert edited == {"fastpq/options.py", "fastpq/api/reader_options.py"}      # one file for each of the two options

    assert copy.run("-m", "tools.keywords", "--check").returncode == 1
    assert copy.run("-m", "tools.keywords").returncode == 0
    assert copy.changed_files() == edited | {"fastpq/api/keywords.pyi", "fastpq/spark/option_keywords.pyi"}
    stub = (copy.folder / "fastpq/api/keywords.pyi").read_text()
    assert stub.count("    novelty: int | None\n") == 1
    assert (copy.folder / "fastpq/spark/option_keywords.pyi").read_text().count("    novelty: int | str\n") == 1
    assert stub.count("    curiosity: bool\n") == 1     # in DatasetReaderOptions, the base of ReaderOptions

    done = copy.run("-c", SHOWN)
    assert not done.stderr
    shown = json.loads(done.stdout)
    assert set(shown.pop("writers")) == {"novelty: 'int | None' = None"}
    assert set(shown.pop("readers")) == {"curiosity: 'bool' = False"}
    assert all([*shown.pop("help"), *shown.pop("reader help"), *shown.pop("types")])
    assert shown == {
        "near": "TypeError: unknown options: novelti; did you mean novelty?",
        "small": "ValueError: novelty must be at least 3, not 2",
        "text": "TypeError: novelty must be a whole number, not '2'",
        "reader": "TypeError: unknown options: curiosities; did you mean curiosity?",
    }
