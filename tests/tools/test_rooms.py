"""The order of the rooms: imports of each kind, upward and downward."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import rooms


def test_rooms_stand_in_order() -> None:
    assert rooms.upward(rooms.modules()) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tree.py", "from fastpq.arrays.table import Table\n"),
        ("tree.py", "import fastpq.arrays.table\n"),
        ("tree.py", "from fastpq.arrays import table as tables\n"),
        ("tree.py", "def f():\n    from fastpq.arrays.table import (\n        Table,\n    )\n"),
        ("tree.py", "if TYPE_CHECKING:\n    from fastpq.arrays.table import Table\n"),
        ("tree.py", 'tables = LazyModule("fastpq.arrays.table")\n'),
        ("tree.pyi", "from fastpq.arrays.table import Table\n"),
        ("tree.pyx", "from fastpq.arrays.table cimport Table, other\n"),
        ("tree.pyx", "cdef void f():\n    from fastpq.arrays import (\n        table)\n"),
        ("tree.pxd", "cimport fastpq.arrays.table\n"),
    ],
)
def test_an_import_from_above_is_found(name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "ROOT", tmp_path)
    contents = {"schema/__init__.py": "", f"schema/{name}": text, "arrays/__init__.py": "", "arrays/table.py": ""}
    for path, content in contents.items():
        file = tmp_path / "fastpq" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    expected = "fastpq.schema.tree imports fastpq.arrays.table: arrays stands above schema"
    assert rooms.upward(rooms.modules()) == [expected]
    (tmp_path / "fastpq/schema" / name).write_text("")
    (tmp_path / "fastpq/arrays/table.py").write_text("from fastpq.schema import tree\n")
    assert rooms.upward(rooms.modules()) == []


def test_a_room_without_a_place_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "ROOT", tmp_path)
    (tmp_path / "fastpq/attic").mkdir(parents=True)
    (tmp_path / "fastpq/attic/box.py").write_text("")
    assert rooms.upward(rooms.modules()) == ["attic has no place in the order of rooms"]


def test_spark_imports_the_core_from_one_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rooms.beside_core(rooms.modules()) == []
    monkeypatch.setattr(rooms, "ROOT", tmp_path)
    monkeypatch.setattr(rooms, "MOST_INTERNAL_MODULES", 1)
    for path, text in (
        ("__init__.py", ""), ("errors.py", ""), ("io/sink.py", ""), ("io/source.py", ""),
        ("spark/core.py", "import fastpq\nfrom fastpq.errors import FormatError\nfrom fastpq.io import sink, source\n"),
        ("spark/writer.py", "from fastpq.io.sink import FileSink\nfrom fastpq.spark.core import sink\n"),
        ("spark/example/kms.py", "from fastpq.io.sink import FileSink\n"),
    ):
        (tmp_path / "fastpq" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fastpq" / path).write_text(text)
    assert rooms.beside_core(rooms.modules()) == [
        "fastpq.spark.writer imports fastpq.io.sink: import from fastpq.spark.core",
        "fastpq.spark.core imports 2 internal modules, 1 are allowed",
    ]
    assert not [line for line in rooms.upward(rooms.modules()) if "spark.core" in line]


def test_names_have_one_meaning() -> None:
    assert rooms.ambiguous(rooms.modules()) == []


def test_a_name_with_two_meanings_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "ROOT", tmp_path)
    for path, text in (
        ("schema/tree.py", "class Node:\n    def walk(self): ...\n\ndef _own(): ...\ndef encode(): ...\n"),
        ("arrays/tree.pyx", "cdef class Node:\n    pass\n\ndef _own(): ...\ndef walk(): ...\ndef encode(): ...\n"),
        ("spark/scan/tree.py", ""), ("spark/write/__init__.py", ""), ("write/__init__.py", ""),
        ("spark/jvm/java/Own.java", "/** A class. */\npublic final class Own {\n    static class Node {}\n}\n"),
    ):
        (tmp_path / "fastpq" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fastpq" / path).write_text(text)
    assert rooms.ambiguous(rooms.modules()) == [
        "Node stands in Own.java and fastpq.arrays.tree and fastpq.schema.tree",
        "module tree stands in fastpq.arrays.tree and fastpq.schema.tree and fastpq.spark.scan.tree",
    ]


def test_files_and_functions_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rooms.oversized(rooms.modules()) == []
    monkeypatch.setattr(rooms, "ROOT", tmp_path)
    (tmp_path / "fastpq/schema").mkdir(parents=True)
    body = "    x = 1\n" * (rooms.MOST_FUNCTION_LINES - 1)
    (tmp_path / "fastpq/schema/short.py").write_text(f'def f():\n    """One.\n\n    Two.\n    """\n{body}')
    assert rooms.oversized(rooms.modules()) == []
    (tmp_path / "fastpq/schema/long.py").write_text(f"def f():\n    x = 1\n{body}")
    (tmp_path / "fastpq/schema/longer.pyx").write_text("x = 1\n" * (rooms.MOST_LINES + 1))
    assert rooms.oversized(rooms.modules()) == [
        f"fastpq/schema/long.py: f has {rooms.MOST_FUNCTION_LINES + 1} lines",
        f"fastpq/schema/longer.pyx has {rooms.MOST_LINES + 1} lines of code",
    ]


def test_docstrings_comments_and_blank_lines_are_not_code() -> None:
    text = '"""One.\n\nTwo.\n"""\n\n# Three.\nx = """a\nb"""     # four\n\n\ndef f():\n    r"""Five."""\n    return x\n'
    assert rooms.code_lines(text) == 4


def test_circles_have_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rooms.entangled(rooms.modules()) == []
    monkeypatch.setattr(rooms, "ROOT", tmp_path)
    (tmp_path / "fastpq/schema").mkdir(parents=True)
    for name, target in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("e", "e")):
        (tmp_path / f"fastpq/schema/{name}.py").write_text(f"def f():\n    from fastpq.schema import {target}\n")
    circle = ["fastpq.schema.a", "fastpq.schema.b", "fastpq.schema.c"]
    assert rooms.circles(rooms.modules()) == [circle]
    assert rooms.entangled(rooms.modules()) == [f"a circle of 3 modules: {', '.join(circle)}"]
    monkeypatch.setattr(rooms, "MOST_CIRCLES", 1)
    assert rooms.entangled(rooms.modules()) == []
