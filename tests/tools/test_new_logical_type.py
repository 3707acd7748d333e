"""A logical type is added in the files that ARCHITECTURE.md names, and in no others."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.tools.package_copy import ROOT, PackageCopy

# Places of a text type XML: file, text in front of the new text, new text.
EDITS = [
    ("fastpq/format/parquet.py", "class BsonType(Struct):\n    pass\n", "\n\nclass XmlType(Struct):\n    pass\n"),
    ("fastpq/format/parquet.py", "FileType | None = optional(19, FileType)\n",
     "    XML: XmlType | None = optional(20, XmlType)\n"),
    ("fastpq/schema/types.py", "class Bson(LogicalType):\n    \"\"\"A BSON document.\"\"\"\n\n    __slots__ = ()\n",
     "\n\nclass Xml(LogicalType):\n    \"\"\"An XML document as UTF-8 text.\"\"\"\n\n    __slots__ = ()\n"),
    ("fastpq/schema/types.py", "_TEXT = (String, Enum, Json", ", Xml"),
    ("fastpq/schema/types.py", "case String() | Enum() | Json() | Bson()", " | Xml()"),
    ("fastpq/schema/types.py", "case String() | Enum() | Json():\n            return StringDType()\n",
     "        case Xml():\n            return StringDType()\n"),
    ("fastpq/schema/types.py", "case String() | Enum() | Json():\n            return \"vu\"\n",
     "        case Xml():\n            return \"vu\"\n"),
    ("fastpq/schema/logical.py", "    Json,\n", "    Xml,\n"),
    ("fastpq/schema/logical.py", "    Json(): (\"JSON\", fmt.JsonType),\n", "    Xml(): (\"XML\", fmt.XmlType),\n"),
    ("fastpq/types.py", "    Json,\n", "    Xml,\n"),
    ("fastpq/types.py", "    \"Json\",\n", "    \"Xml\",\n"),
]
USE = """
import io, json
import fastpq
from fastpq.types import ColumnType, Type, Xml

file = io.BytesIO()
type_ = ColumnType(Type.BYTE_ARRAY, None, Xml())
fastpq.write_table({"a": ["<x/>", None, "<y/>"]}, file, schema={"a": type_})
table = fastpq.read_table(file, filters=[("a", ">", "<x/>")])
print(json.dumps([table["a"].type == type_, table["a"].to_pylist(), str(fastpq.read_schema(file))]))
"""


def test_the_files_of_a_logical_type(tmp_path: Path) -> None:
    copy = PackageCopy(tmp_path / "copy")
    for file, after, text in EDITS:
        copy.insert(file, after, text)
    done = copy.run("-c", USE)
    assert not done.stderr
    is_same_type, values, schema = json.loads(done.stdout)
    assert is_same_type
    assert values == ["<y/>"]
    assert "(XML)" in schema
    (row,) = re.findall(r"^\| logical type \| (.*) \|$", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    described = {f"fastpq/{file}" for file in re.findall(r"`([\w/]+\.py)`", row)}
    assert copy.changed_files() <= described
